"""A fixed set of problems of many kinds, to see whether a method does well beyond the paper's two.

All of them are for tuning: they were in view when the rules of ``whisper`` were chosen, so that
figures on them say how well it was fitted. (Until the rebuild of November 2026 the last nine were
called held out. They were published and looked at while rules changed, and so they were not.) For
problems that nobody has seen, see benchmarks/held_out.py.

Each is a world put together from a law of contexts, who comes, and the curves of its arms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Environment, Floats

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


FULL_TURN = 6.28
"""2π, as the first figures were made with it."""


@dataclass(frozen=True, slots=True)
class Waves:
    """Smooth, rugged curves without any pattern: a few plane waves for each arm.

    f_k(x) = 1/(1 + exp(-3·Σ_j a_kj·cos(w_kj·x + b_kj))), j = 1..6, with normal a (variance 1/6)
    and w (standard deviation 3·frequency), uniform b; the seed fixes them all.
    """

    arms: int
    dimension: int
    seed: int
    frequency: float = 1.0

    def __call__(self, contexts: Floats) -> Floats:
        """Return f_k at each context."""
        rng = np.random.default_rng(self.seed)
        shape = (self.arms, 6)
        directions = rng.normal(size=(*shape, self.dimension)) * self.frequency * 3
        phases = rng.random(shape) * FULL_TURN
        heights = rng.normal(size=shape) / np.sqrt(6)
        turns = contexts @ directions.reshape(-1, self.dimension).T + phases.ravel()
        waves = np.cos(turns).reshape(-1, *shape)
        return np.asarray(1 / (1 + np.exp(-3 * (waves * heights).sum(axis=2))))


def slope(contexts: Floats) -> Floats:
    """Return 1/2 ± 0.4·(x¹ - x²): two arms; further features, if any, do not matter."""
    above = 0.4 * (contexts[:, 0] - contexts[:, 1])
    return np.stack([0.5 + above, 0.5 - above], axis=1)


def sines(contexts: Floats) -> Floats:
    """Return 1/2 + 0.1·(sin, cos, 0) of a full turn: three arms, small gaps."""
    turn = FULL_TURN * contexts[:, 0]
    return np.asarray(0.5 + 0.1 * np.stack([np.sin(turn), np.cos(turn), 0 * turn], axis=1))


def stripes(contexts: Floats) -> Floats:
    """Return 1/2 ± 0.4·cos(4πx): two arms that take turns, and are equal on average."""
    wave = 0.4 * np.cos(4 * np.pi * contexts[:, 0])
    return np.stack([0.5 + wave, 0.5 - wave], axis=1)


def step(contexts: Floats) -> Floats:
    """Return 0.7 below x = 0.3 and 0.3 above it for the first arm, 1/2 for the second."""
    first = np.where(contexts[:, 0] < 0.3, 0.7, 0.3)
    return np.stack([first, np.full(len(contexts), 0.5)], axis=1)


def small_gap(contexts: Floats) -> Floats:
    """Return 1/2 ± 0.06, the sign that of x¹ - 0.4: two arms."""
    side = 0.06 * np.sign(contexts[:, 0] - 0.4)
    return np.stack([0.5 + side, 0.5 - side], axis=1)


@dataclass(frozen=True, slots=True)
class OneBest:
    """Every arm rises along one axis, and the order of the arms is the same everywhere.

    f_k(x) = base + rise·x^axis + extra_k.
    """

    base: float
    rise: float
    axis: int
    extra: tuple[float, ...]

    def __call__(self, contexts: Floats) -> Floats:
        """Return f_k at each context."""
        common = self.base + self.rise * contexts[:, [self.axis]]
        return np.asarray(common + np.array(self.extra))


@dataclass(frozen=True, slots=True)
class RareRewards:
    """Hardly anybody gets a reward, whatever the arm: f_k(x) = 0.05 + 0.02·cos(2π(x¹ - k/K))."""

    arms: int

    def __call__(self, contexts: Floats) -> Floats:
        """Return f_k at each context."""
        turn = contexts[:, :1] - np.arange(self.arms) / self.arms
        return np.asarray(0.05 + 0.02 * np.cos(2 * np.pi * turn))


TUNING: Mapping[str, Environment] = {
    "waves, 5 arms, 2 features": Problem(5, 2, Waves(5, 2, seed=1)),
    "slope, 2 arms, 4 features": Problem(2, 4, slope),
    "sines, 3 arms, 1 feature": Problem(3, 1, sines),
    "one arm best, 4 arms, 3 features": Problem(4, 3, OneBest(0.4, 0.2, 0, (0, 0.15, 0, 0.05))),
    "crowded corner, 3 arms, 2 features": Problem(3, 2, Waves(3, 2, seed=5), in_a_corner),
    "all alike, 3 arms, 2 features": Problem(3, 2, OneBest(0.5, 0, 0, (0,) * 3)),
    "stripes, 2 arms, 1 feature": Problem(2, 1, stripes),
    "waves, 8 arms, 2 features": Problem(8, 2, Waves(8, 2, seed=11)),
    "step, 2 arms, 1 feature": Problem(2, 1, step),
    "waves, 3 arms, 4 skewed features": Problem(3, 4, Waves(3, 4, seed=12), Leaning(0.5, 1.5)),
    "one arm best, 6 arms, 3 features": Problem(6, 3, OneBest(0.3, 0.3, 1, (0, 0, 0.3, 0, 0, 0))),
    "small gap, 2 arms, 2 features": Problem(2, 2, small_gap),
    "slow waves, 4 arms, 3 central features": Problem(
        4, 3, Waves(4, 3, seed=13, frequency=0.6), Leaning(2, 2)
    ),
    "all alike, 4 arms, 2 features": Problem(4, 2, OneBest(0.2, 0.6, 0, (0,) * 4)),
    "rare rewards, 3 arms, 2 features": Problem(3, 2, RareRewards(3)),
    "people on heaps, 3 arms, 3 features": Problem(
        *(3, 3, Waves(3, 3, seed=21)),
        Heaps(((0.1, 0.2, 0.7), (0.4, 0.9, 0.3), (0.6, 0.4, 0.5), (0.9, 0.7, 0.9))),
    ),
}
