"""Tables for ``benchmarks/rows.py``: the named data sets, and more of the same files.

The made tables have five arms and more, by public rules: bounds that are round numbers, or the
levels of a column. Their groups differ in what a person with given features has for a class, not
only in who comes: which columns split people like that was found by measuring, with ``limits``
below. In the swapped tables, a known share of the rows tells of the wrong class.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sottovoce.lab.data import adult, flights, green_taxi, jobs_hr
from sottovoce.lab.data.catalogue import load
from sottovoce.lab.data.columns import Column, Columns, Levels, Rows, numbers_of, strings, take
from sottovoce.lab.data.files import File, Wanted
from sottovoce.lab.data.playing import best_arm_share
from sottovoce.lab.data.prepare import Crowd, Preparation, prepare
from sottovoce.lab.data.sample import DataSet, Sample
from sottovoce.lab.data.selection import Text
from sottovoce.lab.environments import Counts, Floats

Make = Callable[[Path], DataSet]


class Label(NamedTuple):
    """Classes, and the columns that would give them away."""

    classes: Levels
    left_out: tuple[str, ...]


class Split(NamedTuple):
    """Who is the target, and the columns that tell the two sides apart."""

    target: Rows
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of a file, with labels and splits by name."""

    columns: Columns
    labels: Mapping[str, Label]
    splits: Mapping[str, Split]


def in_bins(values: Floats, bounds: Sequence[float]) -> Levels:
    """Return the bin of each number: below the first bound, from one to the next, and beyond."""
    between = [f"{low:g} to {high:g}" for low, high in pairwise(bounds)]
    names = (f"below {bounds[0]:g}", *between, f"{bounds[-1]:g} and more")
    return Levels(np.searchsorted(bounds, values, side="right").astype(np.int64), names)


def _adult(file: File) -> Source:
    names = (*adult.NUMBERS, *adult.LEVELS, "native_country", "income")
    read = {name: file.column(name) for name in names}
    whole = ~np.logical_or.reduce([column.missing() for column in read.values()])
    columns = take(read, whole)
    hours = numbers_of(columns["hours_per_week"], "hours_per_week")
    schooling = numbers_of(columns["education_num"], "education_num")
    age = numbers_of(columns["age"], "age")
    home = ("marital_status", "relationship")
    return Source(
        {name: each for name, each in columns.items() if name not in ("fnlwgt", "native_country")},
        {
            "age": Label(in_bins(age, (25, 32, 39, 47, 56)), ("age",)),
            "hours": Label(in_bins(hours, (20, 35, 40, 41, 50)), ("hours_per_week",)),
            "education": Label(in_bins(schooling, (9, 10, 11, 13, 14)), ("education_num",)),
            "occupation": Label(strings(columns["occupation"]), ("occupation",)),
            "marriage": Label(strings(columns["marital_status"]), home),
        },
        {
            "sex": Split(_is(columns["sex"], "Male"), ("sex",)),
            "country": Split(_is(columns["native_country"], "United-States"), ()),
            "married": Split(_is(columns["marital_status"], "Married-civ-spouse"), home),
        },
    )


def _jobs(file: File) -> Source:
    crowd = jobs_hr.jobs_hr(file)
    known = ~crowd.columns["experience"].missing()
    columns = take({**crowd.columns, "looking": crowd.label}, known)
    years = numbers_of(columns["experience"], "experience")
    studies = columns["enrolled_university"]
    return Source(
        columns,
        {"experience": Label(in_bins(years, (3, 6, 10, 16, 21)), ("experience",))},
        {
            "city": Split(crowd.target[known], ()),
            "studies": Split(_is(studies, "no_enrollment"), ("enrolled_university",)),
        },
    )


def _flights(file: File) -> Source:
    delay = file.numbers("arr_delay")
    kept = ~(np.isnan(delay) | file.column("temp").missing())
    codes = {name: strings(file.column(name)) for name in flights.CODES}
    columns = take({**{name: file.column(name) for name in flights.NUMBERS}, **codes}, kept)
    origin = strings(file.column("origin")).take(kept)
    return Source(
        columns,
        {
            "five": Label(in_bins(delay[kept], (-20, -10, 0, 15)), ()),
            "seven": Label(in_bins(delay[kept], (-25, -15, -5, 5, 20, 60)), ()),
        },
        {
            "origin": Split(_is(origin, "EWR"), ()),
            "autumn": Split(_is(columns["month"], "9", "10", "11"), ("month",)),
            "carrier": Split(_is(columns["carrier"], "EV"), ("carrier",)),
        },
    )


def _taxi(file: File) -> Source:
    # A trip's fare and its duration say the same; places say the borough.
    used = ("trip_distance", "pu_borough", "do_borough", "hour", "weekday")
    read = green_taxi.covariates(file)
    kept = green_taxi.plausible(file)
    columns = take({name: read[name] for name in (*used, "trip_seconds")}, kept)
    minutes = numbers_of(columns.pop("trip_seconds"), "trip_seconds") / 60
    speed = numbers_of(columns["trip_distance"], "trip_distance") / (minutes / 60)
    hour = numbers_of(columns["hour"], "hour")
    return Source(
        columns,
        {
            "minutes": Label(in_bins(minutes, (6, 9, 12, 17, 25)), ()),
            "speed": Label(in_bins(speed, (7, 9, 11, 13, 16)), ("trip_distance",)),
        },
        {
            "borough": Split(_is(columns["pu_borough"], "Manhattan"), ("pu_borough",)),
            "weekday": Split(~_is(columns["weekday"], "5", "6"), ("weekday",)),
            "daytime": Split((hour >= 6) & (hour < 20), ("hour",)),
        },
    )


def _is(column: Column, *levels: str) -> Rows:
    return strings(column).codes_in(levels) >= 0


Read = Callable[[File], Source]


@lru_cache(maxsize=1)
def _source(wanted: Wanted, read: Read, folder: Path) -> Source:
    """Read a file once for the tables that follow one another."""
    return read(File(wanted.find(folder)))


def made(wanted: Wanted, read: Read, label: str, split: str, folder: Path) -> DataSet:
    """Make a data set of one label and one split of a file."""
    source = _source(wanted, read, folder)
    classes, telling = source.labels[label]
    target, apart = source.splits[split]
    left_out = {*telling, *apart}
    crowd = Crowd(
        columns={name: each for name, each in source.columns.items() if name not in left_out},
        label=classes,
        target=target,
        auxiliary={"others": ~target},
    )
    return prepare(f"{label} by {split}", crowd, Preparation())


def swapped(data: DataSet, share: float, *, region: bool) -> DataSet:
    """Give a share of the rows the next class in place of their own; the target stays as it is.

    region: all rows with the smallest values of the first axis, in place of rows anywhere.
    """
    rng = np.random.default_rng(0)

    def swap(sample: Sample) -> Sample:
        wrong = sample.contexts[:, 0] < share if region else rng.random(len(sample)) < share
        return Sample(sample.contexts, np.where(wrong, sample.labels + 1, sample.labels) % arms)

    arms = len(data.arms)
    return replace(data, auxiliary={name: swap(each) for name, each in data.auxiliary.items()})


def _made_tables() -> dict[str, Make]:
    sources: dict[str, tuple[Wanted, Read]] = {
        "adult": (adult.FILE, _adult),
        "jobs": (jobs_hr.FILE, _jobs),
        "flights": (flights.FILE, _flights),
        "taxi": (green_taxi.FILE, _taxi),
    }
    listed = (
        *("adult/hours/sex", "adult/age/married", "adult/education/country"),
        *(
            "adult/occupation/sex",
            "adult/marriage/sex",
            "jobs/experience/city",
            "jobs/experience/studies",
        ),
        *("flights/five/origin", "flights/five/autumn", "flights/seven/carrier"),
        *("taxi/minutes/weekday", "taxi/minutes/daytime", "taxi/minutes/borough"),
        "taxi/speed/borough",
    )
    tables: dict[str, Make] = {}
    for name in listed:
        source, label, split = name.split("/")
        tables[name] = partial(made, *sources[source], label, split)
    return tables


def _named(name: str, folder: Path) -> DataSet:
    return load(name, folder)


def _plain(name: str, text: Text, folder: Path) -> DataSet:
    return load(name, folder, plain=True, text=text)


def _swapped(make: Make, share: float, folder: Path, *, region: bool) -> DataSet:
    return swapped(make(folder), share, region=region)


NAMED = ("adult", "adult-regions", "jobs-hr", "flights", "green-taxi", "green-taxi-street")
MADE = _made_tables()
BOTH: Mapping[str, Text] = {"columns": "ranks", "levels": "levels"}
PLAIN: Mapping[str, Mapping[str, Text]] = {
    "adult": BOTH,
    "jobs-hr": {"columns": "ranks"},  # no text among its named columns
    "flights": BOTH,
    "green-taxi": BOTH,
    "green-taxi-street": BOTH,
}
"""The tables with three named columns, and what becomes of text in them."""

TO_SWAP = ("adult", "flights", "green-taxi", "taxi/minutes/weekday")
SHARES = {"quarter": 0.25, "half": 0.5}


def _tables() -> dict[str, Make]:
    named: dict[str, Make] = {name: partial(_named, name) for name in NAMED}
    plain: dict[str, Make] = {
        f"{name}/{kind}": partial(_plain, name, text)
        for name, kinds in PLAIN.items()
        for kind, text in kinds.items()
    }
    whole = {**named, **plain, **MADE}
    wrong: dict[str, Make] = {
        f"{name}/swapped/{share}{'-in-a-region' if region else ''}": partial(
            _swapped, whole[name], SHARES[share], region=region
        )
        for name in TO_SWAP
        for share in SHARES
        for region in (False, True)
    }
    return {**whole, **wrong}


TABLES: Mapping[str, Make] = _tables()
"""What makes each table of the folder with the files."""


class Limits(NamedTuple):
    """Mean rewards in the target without any privacy.

    one_arm: of the best single arm.
    own: of the best arm in each cell of a grid, half of the target by the other half.
    rows: of the arm that is best in each cell among the auxiliary rows.
    """

    one_arm: float
    own: float
    rows: float


GRID = 6
"""Into how many parts each axis is cut for ``limits``."""

CAUTION = 2.0
"""How many people with the classes of all stand in every cell beside its own people."""


def limits(data: DataSet) -> Limits:
    """Say what the features tell, and how much of it the auxiliary rows tell alike."""
    arms, cells = len(data.arms), GRID ** data.target.contexts.shape[1]

    def best(samples: Iterable[tuple[Counts, Counts]]) -> Counts:
        counts = np.zeros((cells, arms))
        for where, labels in samples:
            np.add.at(counts, (where, labels), 1)
        return np.asarray((counts + CAUTION * counts.sum(axis=0) / counts.sum()).argmax(axis=1))

    where, labels = _cells(data.target), data.target.labels
    first = np.random.default_rng(0).random(len(labels)) < 0.5
    own = sum(
        int((best([(where[known], labels[known])])[where[~known]] == labels[~known]).sum())
        for known in (first, ~first)
    )
    told = best((_cells(each), each.labels) for each in data.auxiliary.values())
    return Limits(best_arm_share(data), own / len(labels), float((told[where] == labels).mean()))


def _cells(sample: Sample) -> Counts:
    parts = np.minimum((GRID * sample.contexts).astype(np.int64), GRID - 1)
    return np.asarray(parts @ (GRID ** np.arange(parts.shape[1])))
