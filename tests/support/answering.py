"""Releases and people for tests of what a device answers."""

from typing import Any

import sottovoce as sv
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy
from support.examples import experiment

CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED, REWARD, LOGGED_LEVEL = range(8)
AUXILIARY = [
    sv.Population("clinic-b", 8.0, 100, (0.2, 0.3, 0.5)),
    sv.Population("clinic-c", 0.5, 100),
]
AUXILIARY_OF_TWO = [
    sv.Population("clinic-b", 8.0, 100, (0.3, 0.7)),
    sv.Population("clinic-c", 0.5, 100),
]
REWARD_SHARE = 24  # of 160 people who are served: what a learner starts with


def whispering(*, epsilon: float = 1.0, arms: int = 3, **settings: Any) -> sv.Experiment:
    return experiment(
        arms=["control", "reminder", "coach"][:arms],
        epsilon=epsilon,
        method=sv.Whisper(**settings),
        auxiliary=AUXILIARY if arms == 3 else AUXILIARY_OF_TWO,
        name="walking",
    )


def uniform(path: str, *arms: int, waiting: tuple[int, ...] = ()) -> BinPolicy:
    return BinPolicy(path, arms, (1 / len(arms),) * len(arms), waiting)


def four_bins(
    *, epsilon: float = 1.0, arms: int = 3, reward_share: int = REWARD_SHARE, **settings: Any
) -> sv.Release:
    """Two bins for the young, contested; one for the old and light, settled; one for the rest."""
    public = settings.get("public_arms", False)
    young = (
        uniform("00", 0, 2) if public else uniform("00", 0, 2, waiting=()),
        uniform("01", 0, 1, 2) if public else uniform("01", 1, 2, waiting=(0,)),
    )
    if arms == 2:
        young = (uniform("00", 0, 1), uniform("01", 0, 1))
    bins = (*young, uniform("10", 1), uniform("11", 0, 1))
    walking = whispering(epsilon=epsilon, arms=arms, **settings)
    cuts = {"": 0, "0": 1, "1": 1}
    return sv.Release(walking, 7, Partition(2, cuts), bins, reward_share)


def settled_release(**settings: Any) -> sv.Release:
    bins = (uniform("", 1),)
    return sv.Release(whispering(**settings), 3, Partition(2, {}), bins, REWARD_SHARE)


class Purse:
    """A ledger that only counts."""

    def __init__(self) -> None:
        self.spent: list[tuple[float, str, str, int]] = []

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        self.spent.append((epsilon, experiment, name, release))
