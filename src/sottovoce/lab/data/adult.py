"""UCI Adult: who earns more than 50,000 dollars a year (1994 census of the United States).

The paper's ADULT: rows with nulls dropped; people from the United States are the target (41292),
those from other countries auxiliary (3930); 46 columns of numbers before the reduction.

Departs from the paper: it has M = 7 auxiliary sets, the largest of 3930 people. That is everybody
from other countries, so both cannot be. ``adult`` has them as one set, ``adult-regions`` as seven.
"""

from collections.abc import Mapping

import numpy as np

from sottovoce.lab.data.columns import Rows, strings, take
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.prepare import Crowd

FILE = Wanted(
    ("adult/adult.parquet", "adult/adult.csv.gz", "adult/adult.csv"),
    "adult.data and adult.test of the UCI Machine Learning Repository (data set 2) as one table, "
    "48842 rows, with a heading age, workclass, ..., native_country, income",
)

NUMBERS = (
    *("age", "fnlwgt", "education_num"),
    *("capital_gain", "capital_loss", "hours_per_week"),
)
LEVELS = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")
PLAIN = ("marital_status", "education_num", "age")

# The census' own list: nobody of the auxiliary sets serves in the armed forces.
OCCUPATIONS = (
    *("Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing"),
    *("Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv"),
    *("Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving"),
)

# "South" is the census' own word, for South Korea as far as is known; "Hong" is Hong Kong.
REGIONS: Mapping[str, tuple[str, ...]] = {
    "Asia": (
        *("Cambodia", "China", "Hong", "India", "Iran", "Japan", "Laos", "Philippines", "South"),
        *("Taiwan", "Thailand", "Vietnam"),
    ),
    "Mexico": ("Mexico",),
    "Europe": (
        *("England", "France", "Germany", "Greece", "Holand-Netherlands", "Hungary", "Ireland"),
        *("Italy", "Poland", "Portugal", "Scotland", "Yugoslavia"),
    ),
    "Caribbean": (
        *("Cuba", "Dominican-Republic", "Haiti", "Jamaica", "Outlying-US(Guam-USVI-etc)"),
        *("Puerto-Rico", "Trinadad&Tobago"),
    ),
    "Central America": ("El-Salvador", "Guatemala", "Honduras", "Nicaragua"),
    "South America": ("Columbia", "Ecuador", "Peru"),
    "Canada": ("Canada",),
}


def adult(file: File, *, regions: bool = False) -> Crowd:
    """Tell the rows apart.

    regions: seven auxiliary populations by region of the world, instead of one.
    """
    names = (*NUMBERS, *LEVELS, "native_country", "income")
    file.require(names, what="the columns of adult")
    columns = {name: file.column(name) for name in names}
    kept = ~np.logical_or.reduce([column.missing() for column in columns.values()])
    columns = take(columns, kept)
    label, country = strings(columns.pop("income")), strings(columns.pop("native_country"))
    here = country.codes_in(("United-States",)) == 0
    auxiliary: dict[str, Rows] = {"other countries": ~here}
    if regions:
        auxiliary = {name: country.codes_in(listed) >= 0 for name, listed in REGIONS.items()}
    return Crowd(
        columns=columns,
        label=label,
        target=here,
        auxiliary=auxiliary,
        dropped=int((~kept).sum()),
    )
