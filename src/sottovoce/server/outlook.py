"""A warning for operators: an experiment that asks for more than its people and its ε can give.

It follows from the public settings alone, before anybody has taken part.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from sottovoce.shared.experiment import Experiment

MOST_SHARE = 0.7
"""Warn above this share of what random arms lose. The rule of thumb is off by a tenth or two."""

MOST_PEOPLE = 10**9
"""More people are not proposed."""

MOST_EPSILON = 4.0
"""A larger ε is not proposed: it protects little."""


def warning(experiment: Experiment) -> str | None:
    """Return one line if people are expected to lose too much; None if not, or if nobody knows."""
    share = experiment.settings.expected_share(experiment)
    if share is None or share <= MOST_SHARE:
        return None
    return (
        f"{experiment.name}: after {experiment.horizon:,} people at ε = {experiment.epsilon:g}, "
        f"they will have lost about {math.floor(100 * share)} % of what random arms lose; "
        f"{_or(_remedies(experiment))}"
    )


def _remedies(experiment: Experiment) -> list[str]:
    """Say what would help: first what is enough by itself, then what helps besides."""
    people = _least(
        lambda n: _is_enough(replace(experiment, horizon=math.ceil(n))),
        low=experiment.horizon,
        high=MOST_PEOPLE,
    )
    epsilon = _least(
        lambda value: _is_enough(replace(experiment, epsilon=value)),
        low=experiment.epsilon,
        high=MOST_EPSILON,
    )
    found = []
    if people is not None:
        found.append(f"plan for {people:,.0f} people")
    if epsilon is not None:
        found.append(f"set epsilon to {epsilon:g}")
    fewer = {
        "features": len(experiment.context) > 1,
        "levels": any(experiment.settings.levels_in_sets(experiment)),
        "arms": len(experiment.arms) > 2,
    }
    if any(fewer.values()):
        found.append(f"have fewer {_or([name for name, some in fewer.items() if some])}")
    return found or ["no number of people would be enough"]


def _is_enough(experiment: Experiment) -> bool:
    share = experiment.settings.expected_share(experiment)
    return share is not None and share <= MOST_SHARE


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
