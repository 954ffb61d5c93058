"""Simulated worlds: who comes, and what each arm would bring them.

An environment is any object with the four members of ``Environment``; nothing is registered.
Rewards are 1 with probability ``means`` and 0 otherwise, unless it also has a method
``rewards(rng, contexts, arm) -> (n,)`` with values in [0, 1], for n people who all get one arm.
One whose people are not drawn one by one from a law has a method ``deal(rng, n) -> contexts (n, d),
means (n, K)``, which is asked instead of the two (``Deck`` in lab/data/sample.py). One whose
features are not numbers from 0 to 1 has them as ``features``, a sequence of the schema's: level i
of L is at (i + 1/2)/L. One that changes while people come has ``changes`` and ``at``: see
lab/drift.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature, Numeric

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class People(NamedTuple):
    """People of the target, before they get an arm."""

    contexts: Floats  # (n, d)
    means: Floats  # (n, K) what each arm brings them on average
    outcomes: Floats  # (n, K) what it would bring; 0 rows if 1 with probability ``means``, else 0

    def rewards(self, arms: Counts, rng: np.random.Generator) -> Floats:
        """Return what the arms (n,) bring these people, (n,)."""
        each = np.arange(len(self.means))
        if len(self.outcomes):
            return np.asarray(self.outcomes[each, arms])
        return np.asarray(rng.random(len(each)) < self.means[each, arms], dtype=np.float64)


class Rows(NamedTuple):
    """Logged rows of an auxiliary population: as ``People``, with the arm that each has had."""

    contexts: Floats  # (n, d)
    means: Floats  # (n, K)
    outcomes: Floats  # (n, K)
    arms: Counts  # (n,)

    def rewards(self, rng: np.random.Generator) -> Floats:
        """Return what they got, (n,)."""
        return People(*self[:3]).rewards(self.arms, rng)


class Environment(Protocol):
    """A world that anyone can write."""

    @property
    def arms(self) -> int:
        """The number of arms, K."""

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw n contexts, (n, d) in [0, 1]."""

    def means(self, contexts: Floats) -> Floats:
        """Return f_k(x) of each arm, (n, K) in [0, 1]."""


@dataclass(frozen=True, slots=True)
class _Uniform:
    """Uniform contexts."""

    arms: int = 2
    dimension: int = 2

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw uniform contexts."""
        return rng.random((n, self.dimension))


@dataclass(frozen=True, slots=True)
class Exponential(_Uniform):
    """The reward functions of the paper's section 4.1, on uniform contexts.

    f_k(x) = 2e/(1+e), e = exp(-2K²(x¹ - centre_k)²).

    printed: centres k/K, k = 1..K, as the paper prints them; otherwise k/(K+1), as the authors'
        experiments had them.
    """

    arms: int = 3
    printed: bool = False

    def means(self, contexts: Floats) -> Floats:
        """Return a bump for each arm along the first axis."""
        centres = np.arange(1, self.arms + 1) / (self.arms if self.printed else self.arms + 1)
        # 2e/(1+e) = 2 - 2/(1+e), in one array: the lab calls this for every person.
        values = contexts[:, :1] - centres
        values *= values
        values *= -2 * self.arms**2
        np.exp(values, out=values)
        values += 1
        np.divide(-2, values, out=values)
        values += 2
        return values


@dataclass(frozen=True, slots=True)
class Symmetric(_Uniform):
    """The "alternative setting" of the paper's supplement: two arms, d = 2, uniform contexts.

    A pyramid in each quarter of the square; the second arm is best where x¹ and x² lie on the same
    side of 1/2, the first where they do not, and no cut along one axis tells them apart.
    """

    def means(self, contexts: Floats) -> Floats:
        """Return 1/2 ± half a pyramid of height 1."""
        side = np.sign((contexts[:, 0] - 0.5) * (contexts[:, 1] - 0.5))
        within = np.abs((2 * contexts) % 1 / 2 - 0.25).max(axis=1)
        half = 0.5 * side * (1 - 4 * within)
        return np.stack([0.5 - half, 0.5 + half], axis=1)


@dataclass(frozen=True, slots=True)
class Slope(_Uniform):
    """Two arms, two features: the second arm is better above a slanted line, and clearly so."""

    def means(self, contexts: Floats) -> Floats:
        """Return a steep change across the line ``boundary``."""
        above = contexts[:, 1] - self.boundary(contexts[:, 0])
        second = 0.1 + 0.8 / (1 + np.exp(-16 * above))
        return np.stack([1 - second, second], axis=1)

    def boundary(self, first: Floats) -> Floats:
        """Return where on the second axis the two arms are equally good."""
        return np.asarray(0.65 - 0.3 * first)


@dataclass(frozen=True, slots=True)
class Shifted:
    """The same rewards on other contexts: density 2^γ·(d+γ)/d·‖x - 1/2‖∞^γ (covariate shift).

    Departs from the paper: it prints the inverse of this normalising constant.

    authors: draw the radius as the authors' experiments did, u^(1/(d(γ+1))), where that density
        needs u^(1/(d+γ)); the two differ unless γ = 0 or d = 1.
    """

    environment: Environment
    gamma: float
    authors: bool = False

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return self.environment.dimension

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw a point on the surface of the cube, and move it towards the centre."""
        d, gamma = self.dimension, self.gamma
        surface = rng.random((n, d)) - 0.5
        surface /= 2 * np.abs(surface).max(axis=1, keepdims=True)
        power = 1 / (d * (gamma + 1)) if self.authors else 1 / (d + gamma)
        return np.asarray(0.5 + surface * rng.random((n, 1)) ** power)

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment itself says."""
        return self.environment.means(contexts)

    def __getattr__(self, name: str) -> Any:
        # Rewards that are not 0 or 1 stay as the environment draws them, if it does.
        if name == "rewards":
            return getattr(self.environment, name)
        raise AttributeError(name)

    def density(self, contexts: Floats) -> Floats:
        """Return the density of the contexts."""
        d, gamma = self.dimension, self.gamma
        far = np.abs(contexts - 0.5).max(axis=-1)
        return np.asarray(2**gamma * (d + gamma) / d * far**gamma)


def schema_of(environment: Environment) -> Sequence[Feature]:
    """Return the features of an environment: its own, or numbers from 0 to 1."""
    numbers = [Numeric(f"x{axis + 1}", 0, 1) for axis in range(environment.dimension)]
    features: Sequence[Feature] = getattr(environment, "features", numbers)
    return features


def world_at(environment: Environment, people: int) -> Environment:
    """Return an environment as it is when so many people have come."""
    at = getattr(environment, "at", None)
    if at is None:
        return environment
    now: Environment = at(people)
    return now


def behaviour(arms: int, kappa: float) -> Floats:
    """Return a behaviour policy with exploration coefficient κ: from κ/K up to (2-κ)/K."""
    if not 0 <= kappa <= 1:
        raise ExperimentError(must("kappa", "lie in [0, 1]", kappa))
    return np.linspace(kappa / arms, (2 - kappa) / arms, arms)


def regret_at_random(environment: Environment, *, people: int = 200_000) -> float:
    """Return what one person loses on average when arms are pulled at random."""
    return float(losses_at_random(environment, people=people).mean())


def losses_at_random(environment: Environment, *, people: int = 200_000) -> Floats:
    """Return what each of some people loses in expectation when arms are pulled at random."""
    means = environment.means(environment.contexts(np.random.default_rng(0), people))
    return np.asarray(means.max(axis=1) - means.mean(axis=1))


def draw_people(environment: Environment, rng: np.random.Generator, n: int) -> People:
    """Draw people. What an environment of a user's own returns is checked here."""
    deal = getattr(environment, "deal", None)
    if deal is not None:
        dealt, brings = deal(rng, n)
        contexts = _in_unit_interval(dealt, (n, environment.dimension), "deal(rng, n)")
        means = _in_unit_interval(brings, (n, environment.arms), "deal(rng, n)")
    else:
        contexts = _in_unit_interval(
            environment.contexts(rng, n), (n, environment.dimension), "contexts(rng, n)"
        )
        means = means_at(environment, contexts)
    rewards = getattr(environment, "rewards", None)
    if rewards is None:
        return People(contexts, means, np.empty((0, environment.arms)))
    # Each person gets one arm, so drawing what every arm would bring is the same in law.
    columns = [
        _in_unit_interval(rewards(rng, contexts, arm), (n,), "rewards(rng, contexts, arm)")
        for arm in range(environment.arms)
    ]
    return People(contexts, means, np.stack(columns, axis=1))


def means_at(environment: Environment, contexts: Floats) -> Floats:
    """Return f_k at each context, checked."""
    shape = (len(contexts), environment.arms)
    return _in_unit_interval(environment.means(contexts), shape, "means(contexts)")


def _in_unit_interval(values: Any, shape: tuple[int, ...], what: str) -> Floats:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ExperimentError(must(f"an environment's {what}", f"have shape {shape}", array.shape))
    lowest, highest = (array.min(), array.max()) if array.size else (0.0, 0.0)
    if not (lowest >= 0 and highest <= 1):
        came = "NaN" if np.isnan(array).any() else f"{lowest:g} to {highest:g}"
        raise ExperimentError(must(f"an environment's {what}", "lie in [0, 1]", came))
    return array
