"""Random histories: people of several populations, in any order, some of them late."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.shared import wire

EPSILONS = [0.5, 1.0, 4.0, 16.0, 64.0, 1024.0]


@dataclass(frozen=True)
class Message:
    """What one user sends, told cell by cell, and the report that carries it."""

    population: int
    values: dict[tuple[str, int], tuple[float, float]]
    report: sv.Report


@dataclass(frozen=True)
class World:
    """Contexts, behaviour and rewards of a random problem."""

    experiment: sv.Experiment
    means: NDArray[np.float64]  # (4, K): the reward of each arm in each quarter of the first axis

    @classmethod
    def random(cls, rng: np.random.Generator, *, users: int, **settings: Any) -> "World":
        arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        auxiliary = [
            sv.Population(
                f"aux {m}", float(rng.choice(EPSILONS)), int(rng.integers(users // 2, users))
            )
            for m in range(rng.integers(0, 3))
        ]
        settings = {
            "horizon": int(rng.integers(users // 2, users)),
            "auxiliary": auxiliary,
            "release_every": int(rng.choice([1, 1, 3, 10])),
            **settings,
        }
        experiment = sv.Experiment(
            arms=[f"arm {k}" for k in range(arms)],
            context=[sv.Numeric(f"x{axis}", 0, 1) for axis in range(d)],
            epsilon=float(rng.choice(EPSILONS)),
            seed=int(rng.integers(1000)),
            **settings,
        )
        return cls(experiment, rng.beta(0.2, 0.2, (4, arms)))

    def message(self, rng: np.random.Generator, release: sv.Release, population: int) -> Message:
        """Draw a user, and privatise with NumPy's noise: these tests are not about the noise."""
        context = rng.random(self.experiment.dimension).tolist()
        path = release.partition.find(context)
        policy = release.policies[path]
        arm = int(rng.choice(policy.arms, p=policy.propensities))
        reward = float(rng.random() < self.means[int(context[0] * 4), arm])
        scale = 4 / self.experiment.populations[population].epsilon
        values = {
            cell: (
                reward * (cell == (path, arm)) + float(rng.laplace(scale=scale)),
                float(cell == (path, arm)) + float(rng.laplace(scale=scale)),
            )
            for cell in release.cells
        }
        return Message(population, values, report_of(release, population, values))


def report_of(
    release: sv.Release, population: int, values: dict[tuple[str, int], tuple[float, float]]
) -> sv.Report:
    """Put values into a report in the order of the release's cells."""
    rewards = tuple(values[cell][0] for cell in release.cells)
    pulls = tuple(values[cell][1] for cell in release.cells)
    return sv.Report(wire.release_id(release), population, bytes(16), rewards + pulls)
