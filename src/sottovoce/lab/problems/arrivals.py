"""Who comes: laws of contexts, and a world put together from one of them and some curves."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Floats

Curves = Callable[[Floats], Floats]
"""Contexts (n, d) → f_k of each arm, (n, K)."""

Arrivals = Callable[[np.random.Generator, int, int], Floats]
"""A generator, n and d → contexts (n, d)."""


def uniform(rng: np.random.Generator, n: int, dimension: int) -> Floats:
    """Draw people who are everywhere alike."""
    return rng.random((n, dimension))


def in_a_corner(rng: np.random.Generator, n: int, dimension: int) -> Floats:
    """Draw half of the people from [0, 0.2]^d, and the others from everywhere."""
    contexts = rng.random((n, dimension))
    contexts[rng.random(n) < 0.5] *= 0.2
    return contexts


@dataclass(frozen=True, slots=True)
class Leaning:
    """People whose features each have the density Beta(low, high)."""

    low: float
    high: float

    def __call__(self, rng: np.random.Generator, n: int, dimension: int) -> Floats:
        """Draw people."""
        return rng.beta(self.low, self.high, size=(n, dimension))


@dataclass(frozen=True, slots=True)
class Heaps:
    """People on a few narrow heaps, equally many on each: a normal law around each centre."""

    centres: tuple[tuple[float, ...], ...]
    width: float = 0.03

    def __call__(self, rng: np.random.Generator, n: int, dimension: int) -> Floats:
        """Draw people; who falls off the edge stays on it."""
        heap = rng.integers(len(self.centres), size=n)
        spread = self.width * rng.normal(size=(n, dimension))
        return np.clip(np.array(self.centres)[heap] + spread, 0, 1)


@dataclass(frozen=True, slots=True)
class Problem:
    """An environment put together from who comes and what each arm would bring them."""

    arms: int
    dimension: int
    curves: Curves
    arrivals: Arrivals = uniform

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw who comes."""
        return self.arrivals(rng, n, self.dimension)

    def means(self, contexts: Floats) -> Floats:
        """Return the curves."""
        return self.curves(contexts)
