"""The plan: many runs of each case, summed up; the first answer soon, a better one as runs come."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import joblib
import numpy as np

from sottovoce.lab.environments import Counts, Floats
from sottovoce.lab.plan.gain import half_width, people_until_gain_shows
from sottovoce.lab.plan.runs import Case, Followed, follow

EPSILONS = (0.5, 1.0, 2.0, 4.0)
"""Each plan is made for these beside its own ε."""

MOST_PEOPLE_SUITED = 0.8
"""Most people: so large a share of those who come."""

HOPELESS = 0.7
"""A plan is hopeless if people lose more than this share of what arms at random lose."""

LEAST_WORLDS = 4
"""So many worlds of each case are played, however long that takes."""

NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Spread:
    """A number that differs from world to world: 1 of 10 are below ``low``, half below ``middle``.

    ∞ where it is never reached.
    """

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """What is expected of one case, over its plausible worlds; figures in the owner's unit.

    epsilon, features, people: the case. worlds: how many were played.
    people_until_most: how many come until an arm that suits them goes to 80 % of the people.
    reached: in how many worlds that happens before the end.
    suited_at_end: the share of people who then get one.
    lost_until_most: what people lose in all until then; until the end if the middle is beyond.
    lost: what they lose in all until the end.
    lost_share: the same as a share of what arms at random lose.
    gain: what each person gains over the baseline, on average over all who come.
    gain_at_end: what each of the last ones does.
    worse_in_all: how often all people together get less than always the baseline would bring.
    worse_at_end: how often the last ones do.
    people_until_gain_shows: how many come until the interval of the gain leaves 0.
    """

    epsilon: float
    features: int
    people: int
    worlds: int
    people_until_most: Spread
    reached: float
    suited_at_end: float
    lost_until_most: float
    lost: float
    lost_share: float
    gain: float
    gain_at_end: float
    worse_in_all: float
    worse_at_end: float
    people_until_gain_shows: Spread

    @property
    def hopeless(self) -> bool:
        """Whether people would lose nearly as much as with arms at random."""
        return self.lost_share > HOPELESS

    @property
    def enough(self) -> bool:
        """Whether, in most worlds, an arm that suits them goes to most people before the end."""
        return self.people_until_most.middle <= self.people

    @property
    def verdict(self) -> str:
        """The line in a word."""
        if self.hopeless:
            return "hopeless"
        return "enough" if self.enough else "tight"


@dataclass(frozen=True, slots=True)
class Curve:
    """How one case goes on, on average over worlds: for a picture.

    people (G,)  how many have come. suited (3, G): the share that gets an arm that suits them, in
    1 of 10 worlds below, on average, and in 9 of 10 below. gain (G,): over the baseline, of each
    person so far. width (G,): half of its interval.
    """

    people: Counts
    suited: Floats
    gain: Floats
    width: Floats


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is simulated: up to so many worlds of each case, within so many seconds.

    The seconds count from the first run that ends, so that compiling does not count.
    """

    worlds: int = 200
    seconds: float = 30.0
    workers: int = -1
    seed: int = 0


Tell = Callable[[Sequence[Sequence[Followed]]], None]
"""Called with the runs of each case so far, after each of them."""


def play(
    cases: Sequence[Case], limits: Limits, tell: Tell = lambda _: None
) -> list[list[Followed]]:
    """Play plausible worlds, each of them in every case, until there are enough or time is up."""
    found: list[list[Followed]] = [[] for _ in cases]
    ends = [NEVER]

    def jobs() -> Iterator[tuple[int, int]]:
        for world in range(limits.worlds):
            for number in range(len(cases)):
                if world >= min(LEAST_WORLDS, limits.worlds) and time.monotonic() > ends[0]:
                    return
                yield number, limits.seed + world

    parallel = joblib.Parallel(
        n_jobs=limits.workers, return_as="generator", pre_dispatch="2*n_jobs"
    )
    for number, run in parallel(
        joblib.delayed(_numbered)(number, cases[number], seed) for number, seed in jobs()
    ):
        if ends[0] == NEVER:
            ends[0] = time.monotonic() + limits.seconds
        found[number].append(run)
        tell(found)
    return found


def _numbered(number: int, case: Case, seed: int) -> tuple[int, Followed]:
    return number, follow(case, seed)


def line_of(case: Case, runs: Sequence[Followed], *, share: float) -> Line:
    """Sum up the runs of a case. share: of the people in each group that measures the gain."""
    experiment = case.experiment
    people, unit = experiment.horizon, experiment.rewards.width
    until = spread([run.people_until(MOST_PEOPLE_SUITED) for run in runs])
    lost = np.array([run.lost_until(people) for run in runs])
    at_random = np.array([run.at_random * people for run in runs])
    baseline = np.array([run.baseline for run in runs])
    late = baseline - np.array([_rate(run) for run in runs])
    shows = [
        people_until_gain_shows(run.people, run.gain, epsilon=experiment.epsilon, share=share)
        for run in runs
    ]
    until_then = min(until.middle, people)
    return Line(
        epsilon=experiment.epsilon,
        features=len(experiment.context),
        people=people,
        worlds=len(runs),
        people_until_most=until,
        reached=float(np.mean([run.suited.max() >= MOST_PEOPLE_SUITED for run in runs])),
        suited_at_end=float(np.mean([run.suited[-1] for run in runs])),
        lost_until_most=unit * float(np.mean([run.lost_until(until_then) for run in runs])),
        lost=unit * float(lost.mean()),
        lost_share=float(lost.sum() / at_random.sum()),
        gain=unit * float((baseline - lost / people).mean()),
        gain_at_end=unit * float(late.mean()),
        worse_in_all=float(np.mean(lost > baseline * people)),
        worse_at_end=float(np.mean(late < 0)),
        people_until_gain_shows=spread(shows),
    )


def curve_of(case: Case, runs: Sequence[Followed], *, share: float) -> Curve:
    """Return the course of a case on average."""
    unit = case.experiment.rewards.width
    people = runs[0].people
    suited = np.array([run.suited for run in runs])
    low, high = np.quantile(suited, [0.1, 0.9], axis=0)
    epsilon = case.experiment.epsilon
    return Curve(
        people=people,
        suited=np.stack([low, suited.mean(axis=0), high]),
        gain=unit * np.mean([run.gain / run.people for run in runs], axis=0),
        width=unit * np.array([half_width(n, epsilon=epsilon, share=share) for n in people]),
    )


def spread(values: Sequence[float]) -> Spread:
    """Return the 10 %, 50 % and 90 % points; values may be ∞.

    >>> spread([3.0, 1.0, 2.0, math.inf])
    Spread(low=1.0, middle=2.5, high=inf)
    """
    ordered = sorted(values)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return Spread(
        ordered[max(math.ceil(0.1 * len(ordered)) - 1, 0)],
        middle,
        ordered[math.ceil(0.9 * len(ordered)) - 1],
    )


def _rate(run: Followed) -> float:
    """Return what each of the last people lost, about the last tenth of them."""
    end = float(run.people[-1])
    before = run.lost_until(0.9 * end)
    return float((run.lost[-1] - before) / (0.1 * end))


def plan_cases(case: Case) -> dict[str, list[Case]]:
    """Return the cases that are set side by side: by ε, with fewer features, with more people."""
    own = case.experiment.epsilon
    every = sorted({*EPSILONS, own})
    features = len(case.experiment.context)
    fewer = sorted({(features + 1) // 2, min(2, features)} - {features}, reverse=True)
    return {
        "by ε": [case.with_epsilon(epsilon) for epsilon in every],
        "with fewer features": [case.with_features(count) for count in fewer],
        "with more people": [case.with_people(4 * case.experiment.horizon)],
    }


def offered(lines: Sequence[Line]) -> float | None:
    """Return the least ε at which the people are enough, or None."""
    enough = [line.epsilon for line in lines if line.enough and not line.hopeless]
    return min(enough) if enough else None
