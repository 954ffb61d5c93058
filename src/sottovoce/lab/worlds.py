"""Worlds beyond the paper's: many features, levels, long tails, rows that mislead in places.

Some stand alone; others wrap an environment and change one thing about it. Those that wrap draw
rewards that are 0 or 1, whatever the wrapped environment does. Worlds that change while people come
are in lab/drift.py, those with missing values in lab/missing.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from scipy.special import ndtr, ndtri

from sottovoce.lab.environments import Environment, Floats, schema_of
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Categorical, Feature, Numeric


@dataclass(frozen=True, slots=True)
class Widened:
    """The same rewards, with irrelevant uniform features added until there are ``dimension``."""

    environment: Environment
    dimension: int

    def __post_init__(self) -> None:
        least = self.environment.dimension
        check.whole_number(self.dimension, what="the dimension of a widened world", least=least)

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def features(self) -> Sequence[Feature]:
        """Those of the environment, then numbers."""
        own = list(schema_of(self.environment))
        more = self.dimension - self.environment.dimension
        return own + [Numeric(f"more {number + 1}", 0, 1) for number in range(more)]

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw from the environment, and the other features uniformly."""
        own = self.environment.contexts(rng, n)
        return np.hstack([own, rng.random((n, self.dimension - own.shape[1]))])

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment says about its own features."""
        return self.environment.means(contexts[:, : self.environment.dimension])


@dataclass(frozen=True, slots=True)
class Linear:
    """Two arms whose difference is linear in the first features, on uniform contexts.

    f_k(x) = 1/2 ± 0.4·Σ_j s_j·(2x_j - 1)/r, j = 1..r, with signs s = +1, -1, +1, …: the arms
    differ by up to 0.8, in two opposite corners of the r features that matter.

    relevant: r.
    """

    dimension: int = 2
    relevant: int = 2
    arms: int = field(default=2, init=False)

    def __post_init__(self) -> None:
        check.whole_number(self.relevant, what="the features that matter", least=1)
        check.whole_number(self.dimension, what="the dimension", least=self.relevant)

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw uniform contexts."""
        return rng.random((n, self.dimension))

    def means(self, contexts: Floats) -> Floats:
        """Return two planes."""
        signs = np.where(np.arange(self.relevant) % 2, -1.0, 1.0)
        above = 0.4 * (2 * contexts[:, : self.relevant] - 1) @ signs / self.relevant
        return np.stack([0.5 + above, 0.5 - above], axis=1)


@dataclass(frozen=True, slots=True)
class Stripes:
    """Two arms that take turns along the first feature, on uniform contexts.

    f_k(x) = 1/2 ± 0.4·sin(π·turns·x¹): as many stripes of the same width as there are turns.
    """

    turns: int
    dimension: int = 2
    arms: int = field(default=2, init=False)

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw uniform contexts."""
        return rng.random((n, self.dimension))

    def means(self, contexts: Floats) -> Floats:
        """Return two waves."""
        wave = 0.4 * np.sin(np.pi * self.turns * contexts[:, 0])
        return np.stack([0.5 + wave, 0.5 - wave], axis=1)


@dataclass(frozen=True, slots=True)
class Xor:
    """Two arms whose order depends on two features, neither of which says anything alone.

    f_k(x) = 1/2 ± effect·sign((x¹ - 1/2)(x² - 1/2)), on uniform contexts.
    """

    dimension: int = 6
    effect: float = 0.3
    arms: int = field(default=2, init=False)

    def __post_init__(self) -> None:
        check.whole_number(self.dimension, what="the dimension", least=2)
        _check_effect(self.effect)

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw uniform contexts."""
        return rng.random((n, self.dimension))

    def means(self, contexts: Floats) -> Floats:
        """Return 1/2 ± effect."""
        above = self.effect * np.sign((contexts[:, 0] - 0.5) * (contexts[:, 1] - 0.5))
        return np.stack([0.5 + above, 0.5 - above], axis=1)


@dataclass(frozen=True, slots=True)
class LevelsInTurns:
    """Two arms, and one feature with L equally likely levels that have no order.

    f_k = 1/2 ± effect·s_l, where the sign s_l of level l = 0..L-1 is +1, -1, +1, … in turns, or,
    sorted by effect, +1 for the first half of the levels and -1 for the others.
    """

    levels: int
    effect: float = 0.2
    in_turns: bool = True
    arms: int = field(default=2, init=False)
    dimension: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        check.whole_number(self.levels, what="levels", least=2)
        _check_effect(self.effect)

    @property
    def features(self) -> Sequence[Feature]:
        """One without an order."""
        names = tuple(f"group {number + 1}" for number in range(self.levels))
        return [Categorical("group", names)]

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw levels: each has the middle of its share of [0, 1]."""
        return np.asarray((rng.integers(self.levels, size=(n, 1)) + 0.5) / self.levels)

    def means(self, contexts: Floats) -> Floats:
        """Return 1/2 ± effect."""
        level = np.minimum((contexts[:, 0] * self.levels).astype(np.int64), self.levels - 1)
        against = level % 2 == 1 if self.in_turns else 2 * level >= self.levels
        above = np.where(against, -self.effect, self.effect)
        return np.stack([0.5 + above, 0.5 - above], axis=1)


@dataclass(frozen=True, slots=True)
class LongTails:
    """The same people and rewards, but each feature is measured on a scale with a long tail.

    The value of a feature is v = exp(σ·Φ⁻¹(u)), u its place in the environment: log-normal where
    u is uniform. The schema's bounds are 0 and the quantile ``top`` of v, so that the position is
    min(v/v_top, 1), and most people are crowded near 0. Rewards depend on u, as before; those
    beyond ``top`` count as being at it.
    """

    environment: Environment
    sigma: float = 1.2
    top: float = 0.999

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ExperimentError(must("sigma", "be > 0", self.sigma))
        if not 0 < self.top < 1:
            raise ExperimentError(must("top", "lie between 0 and 1", self.top))

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return self.environment.dimension

    @property
    def highest(self) -> float:
        """v_top, the upper bound of each feature."""
        return float(np.exp(self.sigma * NormalDist().inv_cdf(self.top)))

    @property
    def features(self) -> Sequence[Feature]:
        """Numbers from 0 to v_top."""
        return [Numeric(f"x{axis + 1}", 0, self.highest) for axis in range(self.dimension)]

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw from the environment, and stretch."""
        values = np.exp(self.sigma * ndtri(self.environment.contexts(rng, n)))
        return np.asarray(np.minimum(values / self.highest, 1))

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment says about the quantiles."""
        return self.environment.means(self.quantiles(contexts))

    def quantiles(self, contexts: Floats) -> Floats:
        """Return u of each position, (n, d)."""
        with np.errstate(divide="ignore"):  # log 0 = -∞, whose quantile is 0
            return np.asarray(ndtr(np.log(contexts * self.highest) / self.sigma))


@dataclass(frozen=True, slots=True)
class PartlyOther:
    """The same people, but other rewards in a part of the space: for rows that mislead there.

    Where x^axis < share, each arm has the rewards of the next one, and the last those of the
    first, so that the best arms differ there. For uniform contexts that is ``share`` of the people.

    axis: counted from 0; the second is irrelevant to ``Exponential``.
    """

    environment: Environment
    share: float
    axis: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ExperimentError(must("share", "lie in [0, 1]", self.share))
        if not 0 <= self.axis < self.environment.dimension:
            rule = f"be one of the {self.environment.dimension} of the environment, from 0 on"
            raise ExperimentError(must("axis", rule, self.axis))

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
        """Return what the environment says, about the next arm in a part of the space."""
        means = self.environment.means(contexts)
        there = contexts[:, [self.axis]] < self.share
        return np.where(there, np.roll(means, -1, axis=1), means)


def _check_effect(effect: float) -> None:
    if not 0 <= effect <= 0.5:
        raise ExperimentError(must("effect", "lie in [0, 1/2]", effect))
