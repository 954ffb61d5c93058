"""A log in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.reward import RewardScale
from sottovoce.shared.schema import Feature

LEAST_ROWS = 20
"""Fewer rows are not compared: half of them learn, and half of them value."""


@dataclass(frozen=True, slots=True)
class Log:
    """Rows of a trial.

    schema: the features as a device would have them.
    contexts (n, d)    on the axes of the schema
    chosen (n,)        the number of the arm that each person got
    rewards (n,)       what it brought, in [0, 1]
    propensities (n,)  the chance that this arm had, given the context
    source: where the propensities come from, in words.
    scale: the unit of the rewards.
    """

    name: str
    arms: tuple[str, ...]
    schema: tuple[Feature, ...]
    contexts: Floats
    chosen: Counts
    rewards: Floats
    propensities: Floats
    source: str = "given"
    scale: RewardScale = field(default_factory=RewardScale)

    def __post_init__(self) -> None:
        n = len(self.chosen)
        shapes = {len(each) for each in (self.contexts, self.rewards, self.propensities)}
        if shapes != {n}:
            raise ExperimentError(must("a log", "have columns of the same length", sorted(shapes)))
        if not ((self.rewards >= 0) & (self.rewards <= 1)).all():
            raise ExperimentError(must("the rewards of a log", "lie in [0, 1]", "others"))
        check_propensities(self.propensities)

    def require_arms(self) -> None:
        """Refuse a log with one arm only, or too few rows to divide."""
        if len(self) < LEAST_ROWS:
            raise ExperimentError(must("a log", f"have at least {LEAST_ROWS} rows", len(self)))
        seen = np.bincount(self.chosen, minlength=len(self.arms))
        if (seen > 0).sum() < 2:
            only = self.arms[int(seen.argmax())]
            mean = self.scale.mean(float(self.rewards.mean()))
            hint = f"of it one can say that it brought {mean:.3g} on average, and of others nothing"
            rule = "have at least two arms to compare"
            raise ExperimentError(must("a log", rule, f"one, {only!r}", hint=hint))

    def __len__(self) -> int:
        return len(self.chosen)

    def take(self, rows: Counts) -> "Log":
        """Return some of the rows."""
        return replace(
            self,
            contexts=self.contexts[rows],
            chosen=self.chosen[rows],
            rewards=self.rewards[rows],
            propensities=self.propensities[rows],
        )

    def halves(self, rng: np.random.Generator) -> tuple["Log", "Log"]:
        """Return two halves of the rows, at random: to learn on, and to value on."""
        order = rng.permutation(len(self))
        return self.take(order[: len(self) // 2]), self.take(order[len(self) // 2 :])


def check_propensities(values: Floats) -> None:
    """Refuse chances that cannot be: the arm of a row was chosen, so its chance was above 0."""
    what, hint = (
        "the propensities of a log",
        "a propensity is the chance of the arm that was chosen",
    )
    wrong = ~(values > 0)
    if wrong.any():
        rule = "be above 0 in every row: an arm without a chance is never chosen"
        came = f"{int(wrong.sum())} rows of {len(values):,} with 0 or less"
        raise ExperimentError(must(what, rule, came, hint=hint))
    if (values > 1).any():
        came = f"{int((values > 1).sum())} rows of {len(values):,} above 1"
        raise ExperimentError(must(what, "be at most 1", came, hint=hint))


def uniform_propensities(chosen: Counts, arms: int) -> Floats:
    """Return 1/K for everybody: what holds if a fair draw gave the arms."""
    return np.full(len(chosen), 1 / arms)


def shares_of_arms(chosen: Counts, arms: int) -> Floats:
    """Return the share of each arm in the log: what holds if everybody had the same chances."""
    return np.asarray((np.bincount(chosen, minlength=arms) / len(chosen))[chosen])


def design(contexts: Floats, schema: Sequence[Feature]) -> Floats:
    """Return the columns of a linear model: 1, each number from -1 to 1, and 0 or 1 for levels."""
    columns = [np.ones(len(contexts))]
    axes = [axis for feature in schema for axis in feature.axes]
    for number, axis in enumerate(axes):
        at = contexts[:, number]
        if axis.ordered:
            columns.append(2 * at - 1)
            continue
        level = np.minimum((at * axis.levels).astype(int), axis.levels - 1)
        columns += [(level == each).astype(np.float64) for each in range(1, axis.levels)]
    return np.stack(columns, axis=1)
