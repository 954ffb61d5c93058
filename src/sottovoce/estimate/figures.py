"""Figures for the owner of an experiment, each with the interval that it is known to.

Shares are of the target's people. All intervals are normal ones, figure ± radius, with their level.
"""

from dataclasses import dataclass
from statistics import NormalDist

from sottovoce.shared.reward import RewardScale

LEVEL = 0.95
"""How often an interval holds what it is about."""

DEVIATIONS = NormalDist().inv_cdf(0.5 + LEVEL / 2)
"""How many standard errors the radius of such an interval is: 1.96."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a method makes of a question: a mean, and its standard error."""

    mean: float
    error: float

    @property
    def radius(self) -> float:
        """Half the width of its interval."""
        return DEVIATIONS * self.error


@dataclass(frozen=True, slots=True)
class Worth:
    """What a method makes of a policy.

    mean: the mean outcome, in [0, 1].
    shares (K,): of the target's people, those who get each arm.
    """

    mean: Known
    shares: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class BinPeople:
    """How many people are in a bin.

    share: of the target's people. people: the same of those who have reported so far.
    """

    path: str
    share: float
    share_radius: float
    people: float
    people_radius: float
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class ArmEstimate:
    """What is known of an arm over all bins.

    estimate: the mean reward if everybody had it, in the owner's unit.
    share: of the target's people, those who get it by the current release. people: the same of
        those who have reported so far.
    """

    arm: str
    estimate: float
    radius: float
    share: float
    share_radius: float
    people: float
    people_radius: float
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Value:
    """What people would get on average by a policy, in the owner's unit.

    policy: its name. reports: how many of the target's people have reported.
    """

    policy: str
    estimate: float
    radius: float
    reports: int
    level: float = LEVEL


def value_of(name: str, known: Known, rewards: RewardScale, *, reports: int) -> Value:
    """Return a value in the owner's unit."""
    radius = rewards.width * known.radius
    return Value(name, rewards.mean(known.mean), radius, reports)
