"""Releases with every kind of feature, contexts at their cuts, and the forms of a policy."""

import json
import math
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import Any

import psycopg

import sottovoce as sv
from sottovoce.device.policy.python_text import python_text
from sottovoce.device.policy.sql_text import sql_text
from sottovoce.shared.partition import Partition
from sottovoce.shared.schema import Feature
from support.databases import cluster

ARMS = ("control", "reminder", "coach", "call")

EVERY_KIND = (
    sv.Numeric("age", 18, 90),
    sv.Numeric("balance", -0.1, 0.3, optional=True),
    sv.Numeric("steps", 0, 20_000),
    sv.Ordinal("mood", ("low", "middling", "high")),
    sv.Ordinal("pain", ("none", "some", "much", "worst"), optional=True),
    sv.Categorical("city", ("Rome", "Oslo", "Lima"), optional=True, other=True),
    sv.Categorical("kind", ("a", "b", "c", "d"), other=True),
    sv.Categorical("hand", ("left", "right")),
    sv.Boolean("member"),
    sv.Boolean("vip", optional=True),
)

HOSTILE = (
    'a"b',
    "a'b; DROP TABLE person; --",
    "`x` *y* [z](http://evil.example)",
    "<script>alert(1)</script>",
    "\\' OR 1=1 /* ",
    "{0} %s ? :x $1 {name}",
    '"""); import os; #',
    "class",
    "é ü 中",
    " ",
)

Arm = str | None
"""None: the context does not fit."""

Context = dict[str, Any]


def experiment(
    context: Sequence[Feature] = EVERY_KIND, *, method: Any = "whisper", **settings: Any
) -> sv.Experiment:
    """An experiment with every kind of feature."""
    defaults: Context = {"arms": ARMS, "epsilon": 1.0, "horizon": 10_000}
    return sv.Experiment(context=context, method=method, **{**defaults, **settings})


def released(experiment: sv.Experiment, rng: random.Random, *, cuts: int = 40) -> sv.Release:
    """A release as a learner could publish it, with cuts at random; half of the numbers scaled."""
    levels = experiment.settings.levels_in_sets(experiment)
    partition = Partition(experiment.dimension, {}, levels if any(levels) else ())
    for _ in range(cuts):
        path = rng.choice([*partition.leaves()])
        axis = rng.randrange(experiment.dimension)
        if levels[axis]:
            here = sorted(partition.places(path, axis))
            if len(here) < 2:
                continue
            up = frozenset(rng.sample(here, rng.randrange(1, len(here))))
            partition = replace(partition, sets={**partition.sets, path: up})
        partition = partition.cut(path, axis=axis)
    whispers = isinstance(experiment.settings, sv.Whisper)
    if whispers:
        numbers = [axis for axis, each in enumerate(experiment.axes) if not each.levels]
        partition = replace(partition, scales={each: knots(rng) for each in numbers[::2]})
    bins = []
    for path in partition.leaves():
        arms = sorted(rng.sample(range(len(experiment.arms)), rng.choice([1, 1, 2])))
        bins.append(sv.BinPolicy(path, tuple(arms), (1 / len(arms),) * len(arms)))
    ask = (512, 512, *[0] * (experiment.dimension - 1)) if whispers else ()
    table = sv.Release(experiment, 7, partition, tuple(bins), 0, ask).to_table()
    return sv.Release.from_table(json.loads(json.dumps(table)))


def knots(rng: random.Random) -> tuple[float, ...]:
    """A scale with a long tail."""
    return (0.0, *sorted(rng.random() ** 4 for _ in range(31)), 1.0)


def estimates(
    release: sv.Release, rng: random.Random
) -> dict[tuple[str, int], tuple[float, float]]:
    """An estimate of each arm in most bins."""
    return {
        (policy.path, arm): (rng.random(), 0.1)
        for policy in release.contested
        if rng.random() < 0.8
        for arm in policy.live
    }


# --- contexts -------------------------------------------------------------------------------------


def contexts(release: sv.Release, rng: random.Random, n: int) -> Iterator[Context]:
    """Contexts of which most numbers are at a cut, at a bound, or next to one."""
    at = {feature.name: cuts_of(release, feature) for feature in release.experiment.context}
    for _ in range(n):
        yield {
            feature.name: value(feature, at[feature.name], rng)
            for feature in release.experiment.context
        }


def cuts_of(release: sv.Release, feature: Feature) -> list[float]:
    """Every place on a number's own scale at which some bin is cut, roughly."""
    if not isinstance(feature, sv.Numeric):
        return []
    axis = [each.name for each in release.experiment.axes].index(feature.name)
    partition = release.partition
    edges = {
        partition.position(axis, sum(partition.edges(path)[axis]) / 2)
        for path, each in partition.cuts.items()
        if each == axis
    }
    return [feature.low + edge * (feature.high - feature.low) for edge in edges]


def value(feature: Feature, cuts: Sequence[float], rng: random.Random) -> Any:
    if feature.optional and rng.random() < 0.2:
        return None
    match feature:
        case sv.Numeric():
            return number(feature, cuts, rng)
        case sv.Boolean():
            return rng.random() < 0.5
        case sv.Categorical() if feature.other and rng.random() < 0.2:
            return rng.choice(["elsewhere", "", "rome", "it's", "other", "missing"])
        case _:
            return rng.choice(feature.levels)


def number(feature: sv.Numeric, cuts: Sequence[float], rng: random.Random) -> float | int:
    """A number at a cut or right beside one, at a bound or beyond it, or anywhere."""
    kind = rng.random()
    if kind < 0.2:
        return rng.uniform(feature.low, feature.high)
    if kind < 0.3:
        return rng.randrange(int(feature.low) - 2, int(feature.high) + 3)
    if kind < 0.4:
        return rng.choice([0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.7976931348623157e308])
    near = rng.choice([feature.low, feature.high, *cuts])
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        near = math.nextafter(near, rng.choice([-math.inf, math.inf]))
    return near


# --- forms ----------------------------------------------------------------------------------------


def by_release(policy: sv.Policy, given: Context) -> Arm:
    """The arm by the partition of the release, which finds a bin in another way than a device."""
    release = policy.release
    try:
        point = [
            position
            for feature in release.experiment.context
            for position in feature.positions(given.get(feature.name))
        ]
    except sv.ContextError:
        return None
    path = release.partition.find(point)
    found = release.policies[path]
    known = [policy.estimates.get((path, arm), (None,))[0] for arm in found.arms]
    merits = found.propensities if None in known else known
    return release.experiment.arms[found.arms[merits.index(max(merits))]]  # type: ignore[type-var]


def by_policy(policy: sv.Policy, given: Context) -> Arm:
    try:
        return policy.choose(given)
    except sv.ContextError:
        return None


def python_function(policy: sv.Policy) -> Callable[[Context], Arm]:
    """The function of the Python form; a context that it refuses gets None."""
    names: dict[str, Any] = {"__name__": "policy"}
    exec(compile(python_text(policy), "policy.py", "exec"), names)  # noqa: S102
    choose = names["choose"]

    def arm(given: Context) -> Arm:
        try:
            return str(choose(given))
        except ValueError:
            return None

    return arm


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _columns(experiment: sv.Experiment) -> str:
    kinds = {sv.Numeric: "DOUBLE PRECISION", sv.Boolean: "BOOLEAN"}
    return ", ".join(
        f"{identifier(each.name)} {kinds.get(type(each), 'TEXT')}" for each in experiment.context
    )


def by_sqlite(policy: sv.Policy, given: Sequence[Context]) -> list[Arm]:
    """The arms that SQLite gives, of a table with one row for each context."""
    features = policy.release.experiment.context
    rows = [(i, *[each.get(feature.name) for feature in features]) for i, each in enumerate(given)]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            f"CREATE TABLE people (row_number INT, {_columns(policy.release.experiment)})"
        )
        marks = ", ".join("?" * (1 + len(features)))
        database.executemany(f"INSERT INTO people VALUES ({marks})", rows)  # noqa: S608
        return [arm for (arm,) in database.execute(query(policy))]


def by_postgresql(policy: sv.Policy, given: Sequence[Context]) -> list[Arm]:
    """The arms that PostgreSQL gives."""
    features = policy.release.experiment.context
    with psycopg.connect(cluster().url()) as connection:
        columns = _columns(policy.release.experiment)
        create = f"CREATE TEMPORARY TABLE people (row_number INT, {columns}) ON COMMIT DROP"
        connection.execute(create.encode())
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for i, each in enumerate(given):
                copy.write_row([i, *[each.get(feature.name) for feature in features]])
        return [arm for (arm,) in connection.execute(query(policy).encode())]


def query(policy: sv.Policy) -> str:
    """What somebody would ask a database."""
    return (
        f"SELECT\n{sql_text(policy, table='person')}\n AS arm"
        " FROM people AS person ORDER BY row_number"
    )


# --- learners -------------------------------------------------------------------------------------


@cache
def learned(method: str) -> sv.Policy:
    """What the learner of a method has made of people who have every kind of feature."""
    # Enough ε to learn something from a few people.
    epsilon, people = {"whisper": (16.0, 3000)}.get(method, (512.0, 1500))
    schema = experiment(
        method=method, epsilon=epsilon, horizon=people, release_every=50, arms=ARMS[:3]
    )
    learner, rng = sv.Learner(schema), random.Random(3)
    for person in contexts(learner.release(), rng, people):
        device = sv.Device(learner.release())
        person["steps"] = rng.uniform(0, 20_000)
        arm = device.choose(person)
        lazy, roman = person["steps"] < 10_000, person["city"] in (None, "Rome")
        best = "reminder" if roman else "control" if lazy else "coach"
        learner.receive(device.report(reward=float(arm == best)))
    arms = {arm: number for number, arm in enumerate(schema.arms)}
    known = {
        (each.path, arms[each.arm]): (float(each.estimate), float(each.radius))
        for each in learner.estimates()
        if each.live and each.estimate is not None and each.radius is not None
    }
    return sv.Policy(learner.release(), estimates=known)
