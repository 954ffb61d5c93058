"""A warning for operators: an experiment that asks for more than its people and its ε can give.

It follows from the public settings alone, before anybody has taken part, and from an effect: what
the right arm brings a person more. ``sottovoce plan`` looks closer, and asks for the effect.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from sottovoce.shared.experiment import Experiment, Population

EFFECT = 0.1
"""What a person's best arm is taken to bring more than the next best, of the range of rewards."""

MOST_SHARE = 0.7
"""Warn above this share of what random arms lose. The rule of thumb is off by a tenth or two."""

MOST_PEOPLE = 10**9
"""More people are not proposed, and not more rows."""

MOST_EPSILON = 4.0
"""A larger ε is not proposed: it protects little."""

ROWS_EPSILON = 4.0
"""The ε of logged rows of others that are proposed, or the people's own if that is larger."""


def warning(experiment: Experiment, *, effect: float = EFFECT) -> str | None:
    """Return one line if people are expected to lose too much; None if not, or if nobody knows."""
    share = experiment.settings.expected_loss(experiment, effect=effect)
    if share is None or share <= MOST_SHARE:
        return None
    more, helps = effect * experiment.rewards.width, _or(remedies(experiment, effect=effect))
    return (
        f"{experiment.name} looks hopeless: if the right arm brings {more:g} more,"
        f" {experiment.horizon:,} people at ε = {experiment.epsilon:g} will lose about"
        f" {math.floor(100 * share)} % of what random arms lose; {helps}"
    )


def remedies(experiment: Experiment, *, effect: float = EFFECT) -> list[str]:
    """Say what would help: first what is enough by itself, then what helps besides."""

    def enough(planned: Experiment) -> bool:
        share = experiment.settings.expected_loss(planned, effect=effect)
        return share is not None and share <= MOST_SHARE

    people = _least(
        lambda n: enough(replace(experiment, horizon=math.ceil(n))),
        low=experiment.horizon,
        high=MOST_PEOPLE,
    )
    epsilon = _least(
        lambda value: enough(replace(experiment, epsilon=value)),
        low=experiment.epsilon,
        high=MOST_EPSILON,
    )
    rows = _least(lambda n: enough(_with_rows(experiment, n)), low=1, high=MOST_PEOPLE)
    found = []
    if people is not None:
        found.append(f"plan for {people:,.0f} people")
    if epsilon is not None:
        found.append(f"set epsilon to {epsilon:g}")
    if rows is not None:
        budget = max(ROWS_EPSILON, experiment.epsilon)
        found.append(f"ask others for {rows:,.0f} logged rows at ε = {budget:g}")
    fewer = {
        "features": len(experiment.context) > 1,
        "levels": any(experiment.settings.levels_in_sets(experiment)),
        "arms": len(experiment.arms) > 2,
    }
    if any(fewer.values()):
        found.append(f"have fewer {_or([name for name, some in fewer.items() if some])}")
    return found or ["no number of people would be enough"]


def _with_rows(experiment: Experiment, rows: float) -> Experiment:
    """Return the experiment with so many logged rows of others, whose arms were drawn evenly."""
    arms = len(experiment.arms)
    budget = max(ROWS_EPSILON, experiment.epsilon)
    names = {each.name for each in experiment.populations}
    name = next(
        f"others {number}" for number in range(len(names) + 1) if f"others {number}" not in names
    )
    others = Population(name, budget, math.ceil(rows), [1 / arms] * arms)
    return replace(experiment, auxiliary=[*experiment.auxiliary, others])


def _least(enough: Callable[[float], bool], *, low: float, high: float) -> float | None:
    """Return the least value that is enough, rounded up to two digits; None beyond ``high``."""
    if low >= high or not enough(high):
        return None
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    unit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return round(math.ceil(high / unit) * unit, 9)


def _or(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
