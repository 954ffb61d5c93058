"""The paper's JOBS: who of 73462 applicants got a job (``stackoverflow_full.csv``).

The file is not distributed with this project, and the paper says of its split only the counts:
57773 target users and 14318 auxiliary ones, with 11 covariates. What follows from these:

- 57773 + 14318 = 72091 leaves out 1371 rows. They are believed to be the people whose gender is
  neither ``Man`` nor ``Woman``, so that these two alone are kept.
- 14 columns less the label, the free text ``HaveWorkedWith`` and the column that splits are the 11.
- Which column splits is not known. So the loader looks: if one value of a column has 14318 rows and
  the others have 57773, that is the split. If none has, the split is by ``Country``, and the United
  States are auxiliary: about a fifth of such surveys, as here, and without the country there are 11
  covariates with few levels each.

The name of the auxiliary population says which split was taken. None of this could be checked on
the file itself.
"""

from collections.abc import Iterator

from sottovoce.lab.data.columns import Columns, Levels, strings, take
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.prepare import Crowd

FILE = Wanted(
    ("jobs/stackoverflow_full.csv", "stackoverflow_full.csv"),
    "stackoverflow_full.csv of Kaggle's ayushtankha/70k-job-applicants-data-human-resource, "
    "73462 rows",
)

TARGET, AUXILIARY = 57773, 14318
COUNTRY = ("Country", "United States of America")
NUMBERS = ("Employment", "YearsCode", "YearsCodePro", "PreviousSalary", "ComputerSkills")
CODES = ("Age", "Accessibility", "EdLevel", "Gender", "MentalHealth", "MainBranch", "Country")
PLAIN = ("ComputerSkills", "PreviousSalary", "YearsCode")


def jobs(file: File) -> Crowd:
    """Tell the rows apart."""
    file.require((*NUMBERS, *CODES, "Employed"), what="the columns of jobs")
    columns: Columns = {
        **{name: file.column(name) for name in NUMBERS},
        **{name: strings(file.column(name, levels=True)) for name in CODES},
    }
    label = strings(file.column("Employed"))
    kept = strings(columns["Gender"]).codes_in(("Man", "Woman")) >= 0
    for column in (label, *columns.values()):
        kept &= ~column.missing()
    columns, label = take(columns, kept), label.take(kept)
    name, value = next(_as_in_the_paper(columns), COUNTRY)
    apart = strings(columns[name]).codes_in((value,)) == 0
    # With another split, 200 countries would drown the other columns: they stay out.
    covariates = {each: columns[each] for each in columns if each not in (name, COUNTRY[0])}
    return Crowd(
        columns=covariates,
        label=Levels(label.codes, ("not employed", "employed")),
        target=~apart,
        auxiliary={f"{name}: {value}": apart},
        dropped=int((~kept).sum()),
    )


def _as_in_the_paper(columns: Columns) -> Iterator[tuple[str, str]]:
    """Yield the values that have the paper's counts on both sides."""
    for name in CODES:
        column = strings(columns[name])
        for code, value in enumerate(column.levels):
            apart = int((column.codes == code).sum())
            if (len(column.codes) - apart, apart) == (TARGET, AUXILIARY):
                yield name, value
