"""Rewards as their owner counts them: from an outcome to a number in [0, 1], and back.

An experiment says how rewards are counted: ``reward = [0, 60]`` for minutes, say, or
``reward = "yes/no"``. The device turns an outcome into a number in [0, 1] before it is privatised.
What is beyond the bounds counts as the bound. Estimates and pages turn means back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ExperimentError, RewardError, kind_of, must

YES_NO = "yes/no"


@dataclass(frozen=True, slots=True)
class RewardScale:
    """How the rewards of an experiment are counted.

    low, high: what counts as 0 and as 1.
    clamps: whether what is beyond the bounds counts as the bound. Without a scale of its own, an
        experiment takes numbers in [0, 1], and refuses others: they are more likely a mistake.
    """

    low: float = 0.0
    high: float = 1.0
    clamps: bool = False

    def outcome(self, reward: Any) -> float:
        """Return a reward as a number in [0, 1]; raise RewardError if it is none.

        Yes and no may be given as true and false where rewards go from 0 to 1.
        """
        asked = isinstance(reward, bool) and (self.low, self.high) == (0.0, 1.0)
        number = finite_float(int(reward) if asked else reward)
        if number is None or not (self.clamps or self.low <= number <= self.high):
            raise RewardError(must("a reward", self.rule, kind_of(reward)))
        share = (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)  # rounding must not leave [0, 1]

    def fits(self, reward: Any) -> bool:
        """Say whether a reward is a number between the bounds."""
        try:
            self.outcome(reward)
        except RewardError:
            return False
        return self.low <= float(reward) <= self.high

    def mean(self, share: float) -> float:
        """Return a mean of outcomes in [0, 1] in the owner's unit."""
        return self.low + share * self.width

    @property
    def width(self) -> float:
        """One whole unit of outcomes in the owner's unit."""
        return self.high - self.low

    @property
    def rule(self) -> str:
        """What a reward must be, for messages."""
        if self.clamps:
            return "be a finite number"
        return "be a number in [0, 1]"


def reward_scale(setting: Any) -> RewardScale:
    """Read the setting ``reward`` of an experiment; None stands for numbers in [0, 1]."""
    if setting is None:
        return RewardScale()
    if setting == YES_NO:
        return RewardScale()
    rule = f'be two numbers, the lower one first, or "{YES_NO}"'
    listed = isinstance(setting, Sequence) and not isinstance(setting, str) and len(setting) == 2
    low, high = (finite_float(each) for each in setting) if listed else (None, None)
    if low is None or high is None or not 0 < high - low < float("inf"):
        raise ExperimentError(must("reward", rule, repr(setting)))
    return RewardScale(low, high, clamps=True)
