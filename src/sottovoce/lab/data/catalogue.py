"""The data sets by name."""

from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Protocol

from sottovoce.lab.data.adult import adult
from sottovoce.lab.data.flights import flights
from sottovoce.lab.data.green_taxi import green_taxi
from sottovoce.lab.data.jobs import jobs
from sottovoce.lab.data.jobs_hr import jobs_hr
from sottovoce.lab.data.prepare import DEFAULT, Reduce
from sottovoce.lab.data.sample import DataSet
from sottovoce.shared.errors import ExperimentError, must


class Loader(Protocol):
    """What loads a data set from a folder."""

    def __call__(
        self,
        data_dir: str | PathLike[str] | None = None,
        *,
        reduce: Reduce = DEFAULT,
        plain: bool = False,
    ) -> DataSet:
        """Load it."""


DATA_SETS: Mapping[str, Loader] = {
    "adult": adult,
    "adult-regions": partial(adult, regions=True),
    "green-taxi": green_taxi,
    "green-taxi-street": partial(green_taxi, split="street"),
    "jobs-hr": jobs_hr,
    "flights": flights,
    "jobs": jobs,
}


def load(
    name: str,
    data_dir: str | PathLike[str] | None = None,
    *,
    reduce: Reduce = DEFAULT,
    plain: bool = False,
) -> DataSet:
    """Load a data set from a folder; None for the one that the variable SOTTOVOCE_DATA names.

    reduce: how its columns become three axes; see ``Preparation``.
    plain: three named features instead.
    """
    if name not in DATA_SETS:
        raise ExperimentError(must("a data set", f"be one of {list(DATA_SETS)}", repr(name)))
    return DATA_SETS[name](data_dir, reduce=reduce, plain=plain)
