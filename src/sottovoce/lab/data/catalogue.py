"""The data sets by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike

from sottovoce.lab.data import adult, flights, green_taxi, jobs, jobs_hr
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.prepare import DEFAULT, Crowd, Preparation, Reduce, prepare
from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.data.selection import Text
from sottovoce.shared.errors import ExperimentError, must


@dataclass(frozen=True, slots=True)
class Named:
    """A data set with a name.

    plain: three named features that can be had instead of a reduction of all.
    levels: as ``Preparation`` has them.
    """

    file: Wanted
    crowd: Callable[[File], Crowd]
    plain: tuple[str, ...]
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)


_ADULT = (adult.PLAIN, {"occupation": adult.OCCUPATIONS})
_STREET = partial(green_taxi.green_taxi, split="street")

DATA_SETS: Mapping[str, Named] = {
    "adult": Named(adult.FILE, adult.adult, *_ADULT),
    "adult-regions": Named(adult.FILE, partial(adult.adult, regions=True), *_ADULT),
    "green-taxi": Named(green_taxi.FILE, green_taxi.green_taxi, green_taxi.PLAIN),
    "green-taxi-street": Named(green_taxi.FILE, _STREET, green_taxi.PLAIN),
    "jobs-hr": Named(jobs_hr.FILE, jobs_hr.jobs_hr, jobs_hr.PLAIN),
    "flights": Named(flights.FILE, flights.flights, flights.PLAIN),
    "jobs": Named(jobs.FILE, jobs.jobs, jobs.PLAIN),
}


def load(
    name: str,
    data_dir: str | PathLike[str] | None = None,
    *,
    reduce: Reduce = DEFAULT,
    plain: bool = False,
    text: Text = "ranks",
) -> DataSet:
    """Load a data set from a folder; None for the one that the variable SOTTOVOCE_DATA names.

    reduce: how its columns become three axes; see ``Preparation``.
    plain: three named features instead.
    text: what becomes of those that are text; see ``Preparation``.
    """
    if name not in DATA_SETS:
        raise ExperimentError(must("a data set", f"be one of {list(DATA_SETS)}", repr(name)))
    named = DATA_SETS[name]
    crowd = named.crowd(File(named.file.find(data_dir)))
    features = named.plain if plain else None
    how = Preparation(features=features, reduce=reduce, levels=named.levels, text=text)
    return prepare(name, crowd, how)
