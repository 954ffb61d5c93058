"""HR Analytics: which data scientists look for another job.

A small relative of the paper's JOBS, not the same data. People in cities with a development index
above 0.9 are the target (9643), those in other cities auxiliary (9515). The city and its index are
no covariates: no value of them occurs on both sides. Gaps stay gaps.
"""

from collections.abc import Mapping
from os import PathLike

import numpy as np

from sottovoce.lab.data.columns import Column, Levels, Numbers, strings
from sottovoce.lab.data.folder import Wanted
from sottovoce.lab.data.prepare import DEFAULT, Crowd, Preparation, Reduce, prepare
from sottovoce.lab.data.sample import DataSet
from sottovoce.shared.errors import ExperimentError, must

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


def jobs_hr(
    data_dir: str | PathLike[str] | None = None,
    *,
    reduce: Reduce = DEFAULT,
    plain: bool = False,
) -> DataSet:
    """Load the data set.

    plain: three named features (experience, size of the company, education), not a reduction.
    """
    file = FILE.open(data_dir)
    names = (*CODES, *ORDERS, "training_hours", "city_development_index", "target")
    file.require(names, what="the columns of jobs-hr")
    index = file.column("city_development_index")
    if not isinstance(index, Numbers):
        raise ExperimentError(must("column 'city_development_index'", "hold numbers", "text"))
    columns: dict[str, Column] = {name: strings(file.column(name, levels=True)) for name in CODES}
    for name, order in ORDERS.items():
        codes = strings(file.column(name, levels=True)).codes_in(order)
        columns[name] = Numbers(np.where(codes < 0, np.nan, codes.astype(np.float64)))
    columns["training_hours"] = file.column("training_hours")
    looking = strings(file.column("target")).codes
    crowd = Crowd(
        name="jobs-hr",
        columns=columns,
        label=Levels(looking, ("stays", "looks for a job")),
        target=index.values > DEVELOPED,
        auxiliary={"less developed cities": index.values <= DEVELOPED},
    )
    return prepare(crowd, Preparation(features=PLAIN if plain else None, reduce=reduce))
