"""Worlds that change while people come: at once, or step by step.

Such a world has two members more than other environments. ``changes`` says after how many people it
changes, and ``at(people)`` returns the environment that the next person meets when so many have
come. Its other members are those of the beginning. The driver asks, and counts what people lose
against the best arm of the moment.

What changes is the rewards in a part of the space, as in ``PartlyOther``: each arm gets those of
the next one. So arms at random lose the same all the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Environment, Floats, schema_of
from sottovoce.lab.worlds import PartlyOther
from sottovoce.shared import check
from sottovoce.shared.schema import Feature

STEPS = 50
"""In how many steps a slow drift goes its way."""


@dataclass(frozen=True, slots=True)
class _Drift:
    """What all drifts share: who comes, and what the beginning is like."""

    environment: Environment

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return self.environment.dimension

    @property
    def features(self) -> Sequence[Feature]:
        """Those of the environment."""
        return schema_of(self.environment)

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw from the environment."""
        return self.environment.contexts(rng, n)

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment says, as it is in the beginning."""
        return self.environment.means(contexts)


@dataclass(frozen=True, slots=True)
class SuddenDrift(_Drift):
    """After ``swap_at`` people, the best arms are others where x^axis < share, from then on."""

    swap_at: int
    share: float
    axis: int = 1

    def __post_init__(self) -> None:
        check.whole_number(self.swap_at, what="swap_at", least=1)
        PartlyOther(self.environment, self.share, self.axis)  # refuses what is no share or axis

    @property
    def changes(self) -> tuple[int, ...]:
        """After how many people it changes."""
        return (self.swap_at,)

    def at(self, people: int) -> Environment:
        """Return the world as it is when so many people have come."""
        if people < self.swap_at:
            return self.environment
        return PartlyOther(self.environment, self.share, self.axis)


@dataclass(frozen=True, slots=True)
class SlowDrift(_Drift):
    """The part of the space in which best arms are others grows, over so many people.

    It is x^axis < share·s/50 after s/50 of ``over`` people, s = 0..50.
    """

    over: int
    share: float
    axis: int = 1

    def __post_init__(self) -> None:
        check.whole_number(self.over, what="over", least=1)
        PartlyOther(self.environment, self.share, self.axis)

    @property
    def changes(self) -> tuple[int, ...]:
        """After how many people it changes: at each step, the first person for whom it is due."""
        return tuple(dict.fromkeys(-(-step * self.over // STEPS) for step in range(1, STEPS + 1)))

    def at(self, people: int) -> Environment:
        """Return the world as it is when so many people have come."""
        step = min(STEPS, people * STEPS // self.over)
        return PartlyOther(self.environment, self.share * step / STEPS, self.axis)
