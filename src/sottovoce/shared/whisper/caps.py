"""Caps: an added arm that only few people of a bin may get while it is compared there.

Where one of the two arms on offer is capped at a share c, people get the other one with probability
1 - c. A device then tells of the outcome of the more frequent arm with probability c/(1 - c) only.
So those who tell of an outcome are a share 2c of the bin's people, and half of them had each arm.

``share_of`` and what follows are plain functions of plain numbers, which the lab compiles.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sottovoce.shared.experiment import Experiment

NO_CAP = 0.5

Numbers = Any
"""A tuple, or an array of the estimator's: numbers or truth values, one for each arm."""


def caps_of(experiment: "Experiment") -> tuple[float, ...]:
    """Return the cap of each arm, (K,)."""
    return tuple(experiment.caps.get(k, NO_CAP) for k in range(len(experiment.arms)))


def share_of(caps: Numbers, arm: int, other: int) -> float:
    """Return how many people get the first of two arms that are compared.

    Where both are capped, nobody without a cap is left to compare them with: they have won.
    """
    if caps[arm] < NO_CAP and caps[other] >= NO_CAP:
        share: float = caps[arm]
        return share
    if caps[other] < NO_CAP and caps[arm] >= NO_CAP:
        rest: float = 1.0 - caps[other]
        return rest
    return NO_CAP


def told_share(caps: Numbers, arm: int, other: int) -> float:
    """Return how many people, with either of two arms, tell of their outcome."""
    return 2.0 * min(share_of(caps, arm, other), share_of(caps, other, arm))


def told_share_of_arm(share: float) -> float:
    """Return how many of the people with an arm tell of their outcome; share: who get that arm."""
    return 1.0 if share <= NO_CAP else (1.0 - share) / share


def needs_uncapped_rival(live: Numbers, caps: Numbers, best: int) -> bool:
    """Say whether a best arm is capped, and some other live arm is not: it is compared with that.

    Two capped arms at once could not both keep their caps.
    """
    if caps[best] >= NO_CAP:
        return False
    others = 0
    for arm in range(len(caps)):
        others += live[arm] and caps[arm] >= NO_CAP
    return others > 0
