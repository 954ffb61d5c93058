"""Simulated worlds: who comes, and what each arm would bring them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Environment(Protocol):
    """A world that anyone can write; rewards are 1 with probability ``means``, else 0."""

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
class Exponential:
    """The reward functions of the paper's section 4.1, on uniform contexts.

    f_k(x) = 2e/(1+e), e = exp(-2K²(x¹ - centre_k)²).

    printed: centres k/K, k = 1..K, as the paper prints them; otherwise k/(K+1), as the authors'
        experiments had them.
    """

    arms: int = 3
    dimension: int = 2
    printed: bool = False

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw uniform contexts."""
        return rng.random((n, self.dimension))

    def means(self, contexts: Floats) -> Floats:
        """Return a bump for each arm along the first axis."""
        centres = np.arange(1, self.arms + 1) / (self.arms if self.printed else self.arms + 1)
        bump = np.exp(-2 * self.arms**2 * (contexts[:, :1] - centres) ** 2)
        return np.asarray(2 * bump / (1 + bump))


@dataclass(frozen=True, slots=True)
class Slope:
    """Two arms, two features: the second arm is better above a slanted line, and clearly so."""

    arms: int = 2
    dimension: int = 2

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw uniform contexts."""
        return rng.random((n, 2))

    def means(self, contexts: Floats) -> Floats:
        """Return a steep change across the line ``boundary``."""
        above = contexts[:, 1] - self.boundary(contexts[:, 0])
        second = 0.1 + 0.8 / (1 + np.exp(-16 * above))
        return np.stack([1 - second, second], axis=1)

    def boundary(self, first: Floats) -> Floats:
        """Return where on the second axis the two arms are equally good."""
        return np.asarray(0.65 - 0.3 * first)
