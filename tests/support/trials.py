"""Logged trials whose truth is known."""

from dataclasses import dataclass

import numpy as np

import sottovoce as sv
from sottovoce.lab.environments import Counts, Floats
from sottovoce.lab.logs.log import Log

SCHEMA = (sv.Numeric("x", 0, 1), sv.Numeric("y", 0, 1))


@dataclass(frozen=True)
class Trial:
    """Three arms; the first is best where x is small, the second where it is not.

    least: the least propensity of an arm; who got which depends on y.
    """

    least: float = 0.15

    def means(self, contexts: Floats) -> Floats:
        """What each arm brings."""
        far = contexts[:, 0] > 0.6
        return np.stack([0.7 - 0.4 * far, 0.3 + 0.3 * far, np.full(len(far), 0.4)], axis=1)

    def chances(self, contexts: Floats) -> Floats:
        """How likely each arm was."""
        rest = 1 - 3 * self.least
        often = rest * contexts[:, 1]
        return np.stack([self.least + often, self.least + rest - often, 0 * often + self.least], 1)

    def log(self, rng: np.random.Generator, n: int) -> Log:
        """Draw a log of so many rows."""
        contexts = rng.random((n, 2))
        chances = self.chances(contexts)
        chosen = (rng.random((n, 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
        rows = np.arange(n)
        rewards = (rng.random(n) < self.means(contexts)[rows, chosen]).astype(np.float64)
        given = chances[rows, chosen]
        return Log("trial", ("a", "b", "c"), SCHEMA, contexts, chosen, rewards, given)

    def value(self, policy: "Policy") -> float:
        """What a policy brings, on average over very many people."""
        contexts = np.random.default_rng(99).random((400_000, 2))
        return float((policy(contexts) * self.means(contexts)).sum(axis=1).mean())


class Policy:
    """Chances of three arms: some arm for everybody, or the best one where x is small."""

    def __init__(self, arm: int, other: int | None = None) -> None:
        self.arm, self.other = arm, arm if other is None else other

    def __call__(self, contexts: Floats) -> Floats:
        arms: Counts = np.where(contexts[:, 0] > 0.5, self.other, self.arm)
        return np.eye(3)[arms]
