"""What one call of a device tells somebody on the same machine who has a clock.

    python -m benchmarks.even_time                  # a table
    python -m benchmarks.even_time --calls 20000 --json
    python -m benchmarks.even_time --only deep      # pairs with this word in their name

Each pair is two inputs that must not be told apart. The calls about both are made in one process,
in random order, without garbage collection, each timed on its own. The figure is the AUC: the
probability that a call about the one takes longer than a call about the other, 1/2 if time tells
nothing, with its 95 % interval (DeLong). The exit status is 1 if an interval lies above 0.55.

The question of ``whisper`` is a public coin, and held fixed here: the time that it takes must not
cover up for anything else.
"""

import argparse
import gc
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

import sottovoce as sv
from sottovoce.device import whisper as device_whisper
from sottovoce.device.draws import OperatingSystem
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import Release, uniform
from sottovoce.shared.whisper.questions import Kind, Question

LIMIT = 0.55
RNG = random.Random(0)  # noqa: S311  it decides on no noise, only on who comes next
MOST_DEPTH, MOST_BINS = 96, 4096

Call = Callable[[], Any]
Person = Callable[[], Call]
"""Gets everything ready, untimed, and returns the call to be timed."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two people that one call must not tell apart; of a coin, both are the same person."""

    name: str
    one: Person
    other: Person
    coin: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The AUC of a pair, at least 1/2, with its interval, and how long a call takes."""

    name: str
    calls: int
    auc: float
    low: float
    high: float
    median_microseconds: float


# --- releases -------------------------------------------------------------------------------------


def experiment(d: int, *, epsilon: float = 1.0, method: str = "whisper") -> sv.Experiment:
    """Return an experiment with two arms and d numbers."""
    context = [sv.Numeric(f"x{j}", 0, 1) for j in range(d)]
    return sv.Experiment(arms=["a", "b"], context=context, epsilon=epsilon, method=method)


def half_settled(about: sv.Experiment, cuts: dict[str, int]) -> Release:
    """Return a release in which bins are settled where the first digit of their path is 1."""
    levels = about.settings.levels_in_sets(about)
    sets = {
        path: frozenset(range(levels[axis] // 2, levels[axis]))
        for path, axis in cuts.items()
        if levels[axis]
    }
    partition = Partition(about.dimension, cuts, levels if sets else (), sets)
    bins = tuple(uniform(path, [0] if path[:1] == "1" else [0, 1]) for path in partition.leaves())
    first = sv.Learner(about).release()
    return Release.from_table(replace(first, partition=partition, bins=bins).to_table())


def balanced(splits: int, *, root: str = "") -> dict[str, int]:
    """Return the cuts of so many splits below a bin, the shallowest bin first."""
    paths = [root]
    for index in range(splits):
        paths += [paths[index] + "0", paths[index] + "1"]
    return {path: len(path) % 2 for path in paths[:splits]}


def one_branch(d: int) -> dict[str, int]:
    """Return a tree that is as deep as it may be along one branch, and one split deep elsewhere."""
    return {"0" * depth: depth % d for depth in range(MOST_DEPTH)}


# --- people ---------------------------------------------------------------------------------------


def choosing(release: Release, context: Callable[[], dict[str, Any]]) -> Person:
    """Time a choice."""

    def ready() -> Call:
        device, who = sv.Device(release), context()
        return lambda: device.choose(who)

    return ready


def reporting(
    release: Release, context: Callable[[], dict[str, Any]], reward: float | None
) -> Person:
    """Time a report; the choice comes before."""

    def ready() -> Call:
        device = sv.Device(release)
        device.choose(context())
        return lambda: device.report(reward=reward)

    return ready


def logging(release: Release, context: Callable[[], dict[str, Any]]) -> Person:
    """Time a report on a logged row."""

    def ready() -> Call:
        device, row = sv.Device(release), context()
        return lambda: device.report_logged(row, arm="a", reward=1.0)

    return ready


def at(d: int, low: float, high: float) -> Callable[[], dict[str, Any]]:
    """Draw somebody with every feature in [low, high)."""

    def draw() -> dict[str, Any]:
        return {f"x{j}": RNG.uniform(low, high) for j in range(d)}

    return draw


def value(raw: Any) -> Callable[[], dict[str, Any]]:
    """Return somebody with a value of the only feature."""
    return lambda: {"x0": raw}


CONTESTED, SETTLED = at(2, 0.0, 0.5), at(2, 0.5, 1.0)


def pairs_of(name: str, release: Release) -> list[Pair]:
    """Return the pairs that every method has to pass, with a half-settled release."""

    def report(what: str, one: float | None, other: float | None) -> Pair:
        people = [reporting(release, CONTESTED, each) for each in (one, other)]
        return Pair(f"{name}: report, {what}", people[0], people[1])

    return [
        Pair(
            f"{name}: choose, settled or contested",
            choosing(release, SETTLED),
            choosing(release, CONTESTED),
        ),
        Pair(
            f"{name}: report, settled or contested",
            reporting(release, SETTLED, 1.0),
            reporting(release, CONTESTED, 1.0),
        ),
        Pair(
            f"{name}: logged row, settled or contested",
            logging(release, SETTLED),
            logging(release, CONTESTED),
        ),
        report("no outcome or one", None, 1.0),
        report("reward 0 or 1", 0.0, 1.0),
        report("reward 0.5 or 0.3", 0.5, 0.3),
    ]


def all_pairs() -> Iterator[Pair]:
    """Yield every pair; large releases only when it is their turn."""
    for epsilon in (1.0, 2.0, 4.0):
        release = half_settled(experiment(2, epsilon=epsilon), balanced(399))  # 200 contested
        name = f"whisper, epsilon {epsilon:g}"
        yield from pairs_of(name, release)
        person = reporting(release, CONTESTED, 1.0)
        yield Pair(f"{name}: report, secret coin of the odds", person, person, "chance")
        person = reporting(release, CONTESTED, 0.5)
        yield Pair(f"{name}: report, secret coin of the sign", person, person, "chance_of_bits")
    deep = half_settled(experiment(100), one_branch(100))
    shallow, deepest = at(100, 0.5, 1.0), at(100, 0.0, 1e-4)
    yield Pair("deep: choose, 1 or 96 splits", choosing(deep, shallow), choosing(deep, deepest))
    told = [reporting(deep, each, 1.0) for each in (shallow, deepest)]
    yield Pair("deep: report, 1 or 96 splits", told[0], told[1])
    wide = half_settled(experiment(2), {"": 0, **balanced(MOST_BINS - 2, root="0")})
    few, many = choosing(wide, SETTLED), choosing(wide, CONTESTED)
    yield Pair(f"wide: choose, one of two or of {MOST_BINS} bins", few, many)
    levels = tuple(f"level {index}" for index in range(1000))
    listed = sv.Experiment(arms=["a", "b"], context=[sv.Categorical("x0", levels)], epsilon=1.0)
    release = half_settled(listed, {"": 0})
    first, last = choosing(release, value(levels[0])), choosing(release, value(levels[-1]))
    yield Pair("levels: choose, first or last of 1,000", first, last)
    for feature in (
        sv.Numeric("x0", 0, 1, optional=True),
        sv.Ordinal("x0", levels, optional=True),
        sv.Categorical("x0", levels, optional=True),
        sv.Boolean("x0", optional=True),
    ):
        gaps = sv.Experiment(arms=["a", "b"], context=[feature], epsilon=1.0)
        release = half_settled(gaps, {"": 0})
        kind = type(feature).__name__.lower()
        there: Any = {"numeric": 0.0, "boolean": False}.get(kind, levels[0])
        people = choosing(release, value(there)), choosing(release, value(None))
        yield Pair(f"missing: choose, {kind} there or missing", *people)
    if find_spec("opendp"):
        yield from pairs_of("ldpmab", half_settled(experiment(2, method="ldpmab"), balanced(15)))


# --- measuring ------------------------------------------------------------------------------------


@contextmanager
def public_coins_held() -> Iterator[None]:
    """Ask everybody the same question, about a feature."""

    def ask(release: Release, *, population: int, logged: bool) -> Question:
        return Question(Kind.OUTCOME if logged else Kind.CONTRAST, 0)

    with mock.patch.object(device_whisper, "draw_question", ask):
        yield


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect no garbage but between two pairs."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Coin:
    """Tells how the first coin of its kind fell in a call."""

    def __init__(self, kind: str) -> None:
        self.fell: bool | None = None
        self._kind = kind
        self._toss = getattr(OperatingSystem, kind)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the coins of the device."""

        def toss(draws: OperatingSystem, numerator: int, denominator: int) -> bool:
            fell: bool = self._toss(draws, numerator, denominator)
            self.fell = fell if self.fell is None else self.fell
            return fell

        with mock.patch.object(OperatingSystem, self._kind, toss):
            yield


def times(pair: Pair, calls: int) -> tuple[list[int], list[int]]:
    """Time so many calls in random order; return those of the one and of the other."""
    taken: tuple[list[int], list[int]] = ([], [])
    coin = Coin(pair.coin or "chance")
    for _ in range(calls + 100):
        which = RNG.random() < 0.5
        call = (pair.one, pair.other)[which]()
        coin.fell = None
        if pair.coin is None:
            start = time.perf_counter_ns()
            call()
            end = time.perf_counter_ns()
        else:
            with coin.watched():
                start = time.perf_counter_ns()
                call()
                end = time.perf_counter_ns()
            which = bool(coin.fell)
        taken[which].append(end - start)
    return taken[0][50:], taken[1][50:]  # the first calls work out what all others share


def auc(one: list[int], other: list[int]) -> tuple[float, float]:
    """Return P(other > one) + P(equal)/2 and its standard error (DeLong)."""
    m, n = len(one), len(other)
    ranks = rankdata([*one, *other])
    x: NDArray[Any] = 1 - (ranks[:m] - rankdata(one)) / n
    y: NDArray[Any] = (ranks[m:] - rankdata(other)) / m
    return float(y.mean()), math.sqrt(np.var(x, ddof=1) / m + np.var(y, ddof=1) / n)


def measure(pair: Pair, calls: int) -> Result:
    """Measure one pair."""
    one, other = times(pair, calls)
    area, error = auc(one, other)
    area = max(area, 1 - area)
    low, high = area - 1.96 * error, area + 1.96 * error
    median = float(np.median([*one, *other])) / 1000
    return Result(pair.name, len(one) + len(other), area, low, high, median)


def main() -> int:
    """Measure all pairs; return the exit status."""
    parser = argparse.ArgumentParser(description="What the time of one call tells.")
    parser.add_argument("--calls", type=int, default=10_000, help="for each pair (10,000)")
    parser.add_argument("--only", default="", help="pairs with this in their name")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    with public_coins_held(), no_garbage_collection():
        for pair in all_pairs():
            if options.only not in pair.name:
                continue
            result = measure(pair, options.calls)
            gc.collect()
            results.append(result)
            if not options.json:
                interval = f"{result.low:.3f} to {result.high:.3f}"
                mark = "  TELLS" if result.low > LIMIT else ""
                took = f"{result.median_microseconds:7.1f} µs"
                print(f"{result.name:52} {result.auc:.3f} ({interval}) {took}{mark}", flush=True)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    return int(any(result.low > LIMIT for result in results))


if __name__ == "__main__":
    sys.exit(main())
