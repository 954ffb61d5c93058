"""Worlds in which a value may be missing, at random or not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Environment, Floats, schema_of
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature, Numeric

THERE, MISSING = 0.25, 0.75
"""The two places on the axis that says whether the value is missing."""

PLACES = 32
"""Over how many places of the first axis the rewards of a missing value are averaged."""

OWN = 0.7, 0.3
"""What the last arm and the others bring those whose value is missing, if that matters."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The first feature of an environment, a number, is missing for some people.

    Contexts have an axis more than the environment's, the second: 0.25 if the value is there, 0.75
    if it is missing. A missing value is at 0 on the first axis.

    At random, each value is missing with probability ``share``. Whoever's value is missing has the
    average rewards of the environment over 32 places of the first axis, (i + 1/2)/32: what the
    other features say if the first is uniform.

    matters: the value x is missing with probability 2·share·x, more often if it is large, and
        those whose value is missing have rewards of their own: the last arm brings 0.7, the others
        0.3. A method that takes a missing value for a small one gets them wrong.
    """

    environment: Environment
    share: float
    matters: bool = False

    def __post_init__(self) -> None:
        most = 0.5 if self.matters else 1.0
        if not 0 <= self.share <= most:
            raise ExperimentError(must("share", f"lie in [0, {most:g}]", self.share))
        self._first()

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def dimension(self) -> int:
        """The axes of the environment, and the one that says whether a value is missing."""
        return self.environment.dimension + 1

    @property
    def features(self) -> Sequence[Feature]:
        """Those of the environment, the first of which may be missing."""
        first = self._first()
        optional = Numeric(first.name, first.low, first.high, optional=True)
        return [optional, *schema_of(self.environment)[1:]]

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw from the environment, and then whose value is missing."""
        contexts = self.environment.contexts(rng, n)
        chance = 2 * self.share * contexts[:, 0] if self.matters else self.share
        missing = rng.random(n) < chance
        first = np.where(missing, 0.0, contexts[:, 0])
        whether = np.where(missing, MISSING, THERE)
        return np.column_stack([first, whether, contexts[:, 1:]])

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment says where the value is there."""
        missing = contexts[:, 1] > 0.5
        known = np.delete(contexts, 1, axis=1)
        means = self.environment.means(known).copy()
        means[missing] = self._without(known[missing])
        return means

    def _without(self, contexts: Floats) -> Floats:
        """Return the rewards of those whose value is missing, (n, K)."""
        if self.matters:
            last = np.arange(self.arms) == self.arms - 1
            return np.tile(np.where(last, *OWN), (len(contexts), 1))
        total = np.zeros((len(contexts), self.arms))
        for place in (np.arange(PLACES) + 0.5) / PLACES:
            contexts[:, 0] = place
            total += self.environment.means(contexts)
        return total / PLACES

    def _first(self) -> Numeric:
        first = schema_of(self.environment)[0]
        if not isinstance(first, Numeric):
            raise ExperimentError(must("the first feature", "be a number", type(first).__name__))
        return first
