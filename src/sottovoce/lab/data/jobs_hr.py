"""HR Analytics: which data scientists look for another job.

A small relative of the paper's JOBS, not the same data. People in cities with a development index
above 0.9 are the target (9643), those in other cities auxiliary (9515). The city and its index are
no covariates: no value of them occurs on both sides. Gaps stay gaps.
"""

from collections.abc import Mapping

from sottovoce.lab.data.columns import Column, Levels, Numbers, strings, with_gaps
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.prepare import Crowd

FILE = Wanted(
    ("hr_job_change/hr_job_change.parquet", "hr_job_change/aug_train.csv"),
    "aug_train.csv of Kaggle's arashnic/hr-analytics-job-change-of-data-scientists, 19158 rows",
)

DEVELOPED = 0.9
CODES = (
    *("gender", "relevent_experience", "enrolled_university", "major_discipline"),
    "company_type",
)
# Levels with a natural order, as numbers; ``experience`` and ``last_new_job`` are years.
ORDERS: Mapping[str, tuple[str, ...]] = {
    "education_level": ("Primary School", "High School", "Graduate", "Masters", "Phd"),
    "experience": ("<1", *map(str, range(1, 21)), ">20"),
    "company_size": (
        *("<10", "10/49", "50-99", "100-500", "500-999", "1000-4999", "5000-9999"),
        "10000+",
    ),
    "last_new_job": ("never", "1", "2", "3", "4", ">4"),
}
PLAIN = ("experience", "company_size", "education_level")


def jobs_hr(file: File) -> Crowd:
    """Tell the rows apart."""
    names = (*CODES, *ORDERS, "training_hours", "city_development_index", "target")
    file.require(names, what="the columns of jobs-hr")
    index = file.numbers("city_development_index")
    columns: dict[str, Column] = {name: strings(file.column(name, levels=True)) for name in CODES}
    for name, order in ORDERS.items():
        columns[name] = Numbers(strings(file.column(name, levels=True)).ranks_in(order))
    columns["training_hours"] = file.column("training_hours")
    looking = strings(file.column("target")).codes
    return Crowd(
        columns=columns,
        label=Levels(looking, ("stays", "looks for a job")),
        target=index > DEVELOPED,
        auxiliary={"less developed cities": index <= DEVELOPED},
        optional=with_gaps(columns),
    )
