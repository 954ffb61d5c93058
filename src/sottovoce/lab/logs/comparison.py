"""Methods, single arms and the log's own policy, side by side on one log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Floats
from sottovoce.lab.logs.learning import learn
from sottovoce.lab.logs.log import Log
from sottovoce.lab.logs.values import (
    Estimate,
    RewardModel,
    Values,
    mean_reward,
    value_of,
)
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must

METHODS = ("whisper", "ldpmab", "linear", "nn")
BEST = "best single arm"
MODEL = "linear model (not private)"
RANDOM = "arms at random"
OWN = "the log's own policy"

CLIP = 0.01
"""Propensities below this count as this, unless somebody says otherwise."""

LEAST_COUNTING = 200
"""If fewer rows count, intervals are not to be trusted, and the reader is told."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """What one policy would have brought.

    learning: the mean reward while it learned, by replay, and how many people that is; None for
        what does not learn.
    values: of the policy at the end, on rows that it did not learn from.
    """

    name: str
    values: Values | None
    learning: Estimate | None = None
    people: int | None = None


@dataclass(frozen=True, slots=True)
class LogComparison:
    """All lines, and what a reader must know.

    best: the arm that is called the best single one. clipped: how many rows have a propensity below
        ``clip``. warnings: in words.
    """

    log: Log
    epsilon: float
    reps: int
    lines: tuple[LogLine, ...]
    best: str
    clip: float
    clipped: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogEffort:
    """How much is done. reps: how often each method learns, each time with noise of its own."""

    reps: int = 3
    seed: int = 0
    tell: Callable[[str], None] = lambda _: None


def compare_on_log(
    log: Log,
    *,
    methods: Sequence[str] = METHODS,
    epsilon: float = 1.0,
    clip: float = CLIP,
    effort: LogEffort | None = None,
) -> LogComparison:
    """Value methods on a log: they learn on one half of the rows, and are valued on the other."""
    effort = effort or LogEffort()
    log.require_arms()
    check.epsilon(epsilon)
    check.whole_number(effort.reps, what="reps", least=1)
    if not 0 <= clip < 1:
        raise ExperimentError(must("clip", "lie in [0, 1)", clip))
    rng = np.random.default_rng(effort.seed)
    first, second = log.halves(rng)
    model = RewardModel.fit(first)
    expected = model.predict(second)
    floor = max(clip, float(log.propensities.min()))

    def valued(policy: Floats) -> Values:
        return value_of(policy, second, expected, clip=clip)

    lines = [_learned(first, second, method, epsilon, floor, valued, effort) for method in methods]
    arms = len(log.arms)
    every = np.eye(arms)
    best = _best_arm(first, clip)
    single = [
        LogLine(f"always {log.arms[k]}", valued(_always(every[k], second))) for k in range(arms)
    ]
    lines += [
        LogLine(MODEL, valued(every[expected.argmax(axis=1)])),
        LogLine(BEST, single[best].values),
        LogLine(RANDOM, valued(_always(np.full(arms, 1 / arms), second))),
        LogLine(OWN, None, mean_reward(second), len(second)),
        *single,
    ]
    return LogComparison(
        log=log,
        epsilon=epsilon,
        reps=effort.reps,
        lines=tuple(lines),
        best=log.arms[best],
        clip=clip,
        clipped=int((log.propensities < clip).sum()),
        warnings=_warnings(log, lines, floor),
    )


def _always(chances: Floats, log: Log) -> Floats:
    return np.tile(chances, (len(log), 1))


def _best_arm(log: Log, clip: float) -> int:
    """Return the arm that looks best on rows that it is not valued on."""
    weights = 1 / np.maximum(log.propensities, clip)
    arms = len(log.arms)
    sums = np.bincount(log.chosen, weights * log.rewards, minlength=arms)
    return int(np.argmax(sums / np.maximum(np.bincount(log.chosen, weights, minlength=arms), 1e-9)))


def _learned(
    first: Log,
    second: Log,
    method: str,
    epsilon: float,
    floor: float,
    valued: Callable[[Floats], Values],
    effort: LogEffort,
) -> LogLine:
    """Let a method learn several times; value the average of its policies at the end.

    What people get from a policy that is drawn at random among several is the average over these.
    """
    chances, means, people = np.zeros((len(second), len(first.arms))), [], []
    for repetition in range(effort.reps):
        effort.tell(f"{method}: {repetition + 1} of {effort.reps}")
        seed = effort.seed + repetition
        learned = learn(first, method=method, epsilon=epsilon, floor=floor, seed=seed)
        chances += learned.chances(second.contexts) / effort.reps
        people.append(len(learned.rewards))
        means.append(learned.rewards)
    # Repetitions share rows, so that they do not narrow the interval: it is that of one of them.
    some = [mean_reward(first, each) for each in means if len(each) > 1]
    if not some:
        return LogLine(method, valued(chances), None, 0)
    middle = float(np.mean([each.value for each in some]))
    half = float(np.mean([each.high - each.value for each in some]))
    learning = Estimate(middle, middle - half, middle + half)
    return LogLine(method, valued(chances), learning, round(float(np.mean(people))))


def _warnings(log: Log, lines: Sequence[LogLine], floor: float) -> tuple[str, ...]:
    found = []
    if log.source != "given":
        found.append(
            f"The propensities were {log.source}: if anything else decided who got which arm, all"
            " figures but the mean of the log are biased, by nobody knows how much."
        )
    below = int((log.propensities < floor).sum())
    if below:
        found.append(
            f"{below:,} rows have a propensity below {floor:g}, which counts as {floor:g}: arms"
            " that the log hardly tried are undervalued."
        )
    few = [each.name for each in lines if each.values and each.values.effective < LEAST_COUNTING]
    if few:
        found.append(
            f"Fewer than {LEAST_COUNTING} rows count for {', '.join(few)}: do not trust their"
            " intervals."
        )
    short = [
        each.name for each in lines if each.people is not None and each.people < LEAST_COUNTING
    ]
    if short:
        found.append(
            f"Fewer than {LEAST_COUNTING} people come in the replay of {', '.join(short)}: one row"
            f" in {1 / floor:,.0f} counts. What they learn from so few says little."
        )
    return tuple(found)
