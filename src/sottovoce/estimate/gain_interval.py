"""What the two groups have told → the gain with its interval (``gain.py`` has the proof)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.estimate.gain import (
    BEGAN,
    DRIFT,
    NUMBER,
    PRESENT,
    RESIDUAL,
    WEIGHT,
    WEIGHTS,
    WHOLE,
    Gain,
    error_share,
)
from sottovoce.shared.baseline import UNIT
from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.reward import RewardScale

HALVINGS = 60
"""A bound is found to 2^-60 of where it may be."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a policy has brought over the baseline, for each person of some people.

    since: how many people of the target had come before the first of them.
    people: how many of them have come.
    mean: the estimate of the gain for each person, without bias.
    low, high: its interval.
    policy_people, baseline_people: how many people of each group have answered.
    """

    since: int
    people: int
    mean: float
    low: float
    high: float
    policy_people: int
    baseline_people: int

    @property
    def total(self) -> float:
        """What it has brought all of them together."""
        return self.people * self.mean

    @property
    def balanced(self) -> bool:
        """Whether the two groups are as equal as a fair coin makes them, but once in 10,000 times.

        If they are not, reports of one group get lost more often, and the gain cannot be trusted.
        """
        answers = self.policy_people + self.baseline_people
        return abs(self.policy_people - self.baseline_people) <= 1 + 3.9 * math.sqrt(answers)

    def counted_as(self, rewards: RewardScale) -> "Brought":
        """Return it in the owner's unit: a difference of two rewards has no zero point."""
        mean, low, high = (rewards.width * each for each in (self.mean, self.low, self.high))
        return replace(self, mean=mean, low=low, high=high)


@dataclass(frozen=True, slots=True)
class GainEstimate:
    """What the policy brings over the baseline, as of the learner's last step.

    level: the probability with which ``ever`` has been true whenever anybody looked, and that with
        which ``present`` has.
    share: how many people get the baseline's arm now; as many more are asked what the policy
        brings.
    ever: the policy as it was run, over all people so far.
    present: over the people since a while ago, at least the latest half: the policy as it was run
        of late. None while too few have come.
    """

    level: float
    share: float
    ever: Brought
    present: Brought | None

    def counted_as(self, rewards: RewardScale) -> "GainEstimate":
        """Return it in the owner's unit."""
        present = self.present and self.present.counted_as(rewards)
        return replace(self, ever=self.ever.counted_as(rewards), present=present)


def gain_estimate(gain: Gain, *, people: float, level: float) -> GainEstimate:
    """Return what is known of the gain. people: of the target, by the last step."""
    known = finite_float(level)
    if known is None or not 0 < known < 1:
        raise ExperimentError(must("the level of an interval", "lie in (0, 1)", repr(level)))
    begun = gain.windows[PRESENT, BEGAN] >= 0
    return GainEstimate(
        level=known,
        share=int(gain.share[0]) / UNIT,
        ever=_brought(gain, WHOLE, people, 1 - known),
        present=_brought(gain, PRESENT, people, 1 - known) if begun else None,
    )


def _brought(gain: Gain, window: int, people: float, error: float) -> Brought:
    sums = gain.windows[window]
    policy, baseline = map(int, gain.groups[window])
    weight, drift, residual = float(sums[WEIGHT]), float(sums[DRIFT]), float(sums[RESIDUAL])
    since = int(sums[BEGAN])
    if weight == 0:
        return Brought(since, int(people) - since, 0.0, -1.0, 1.0, policy, baseline)
    most = -math.log(error * error_share(float(sums[NUMBER])))

    def excess(total: float) -> float:
        """Return by how much the evidence against a sum of gains exceeds what chance allows."""
        return _log_wealth(gain, window, total - drift) - most

    middle = residual + drift  # there the evidence is at most 0: 1 + z ≤ e^z
    low = -_bound(lambda total: excess(-total), -middle, weight)
    high = _bound(excess, middle, weight)
    mean = min(max(middle / weight, -1.0), 1.0)
    bounds = (max(low / weight, -1.0), min(high / weight, 1.0))
    return Brought(since, int(people) - since, mean, *bounds, policy, baseline)


def _log_wealth(gain: Gain, window: int, total: float) -> float:
    """Return the logarithm of the mixture, were Σ (θ - d) so large."""
    rates, wealth = gain.rates[window], gain.wealth[window]
    weights = np.log(np.array(WEIGHTS) / 2.0)
    each = np.concatenate(
        [weights + wealth[0] - rates * total, weights + wealth[1] + rates * total]
    )
    top = float(each.max())
    return top + math.log(float(np.exp(each - top).sum()))


def _bound(excess: Callable[[float], float], middle: float, weight: float) -> float:
    """Return the first total above the middle that is ruled out; the evidence is convex."""
    low, high = middle, max(middle, weight)
    if excess(high) <= 0:
        return high
    for _ in range(HALVINGS):
        half = (low + high) / 2
        if excess(half) > 0:
            high = half
        else:
            low = half
    return high
