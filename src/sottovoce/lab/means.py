"""Means over repetitions, and how far to trust them."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sottovoce.lab.environments import regret_at_random
from sottovoce.lab.methods import Playable
from sottovoce.lab.reproduce.cases import MODELS, Model
from sottovoce.lab.simulation import simulate
from sottovoce.lab.sweeps import Run


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over repetitions."""

    mean: float
    sd: float
    reps: int

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None for one run."""
        return None if self.reps == 1 else self.sd / math.sqrt(self.reps)

    @property
    def half_width(self) -> float:
        """Half of the 95 % confidence interval of the mean (Student's t); NaN for one run."""
        if self.standard_error is None:
            return math.nan
        return float(stats.t.ppf(0.975, self.reps - 1)) * self.standard_error


def mean_of(values: list[float]) -> Mean:
    """Average values."""
    mean = math.fsum(values) / len(values)
    square = math.fsum((value - mean) ** 2 for value in values)
    return Mean(mean, math.sqrt(square / max(1, len(values) - 1)), len(values))


def mean_regrets(runs: Iterable[Run]) -> list[Mean]:
    """Average the regret of each setting of a sweep, in the order of the settings."""
    values: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        values[run.setting].append(run.figures["regret"])
    return [mean_of(values[setting]) for setting in sorted(values)]


@dataclass(frozen=True, slots=True)
class MeanRegret:
    """What people would lose, on average over runs, and what they would lose at random."""

    regret_mean: float
    standard_error: float | None
    regret_at_random: float


def mean_regret(
    model: Model,
    *,
    method: Playable,
    epsilon: float,
    n: int,
    release_every: int,
    reps: int,
    seed: int,
) -> MeanRegret:
    """Average ``reps`` runs of a method in one of the paper's worlds."""
    environment = MODELS[model]
    regrets = [
        simulate(
            environment,
            method=method,
            epsilon=epsilon,
            n=n,
            seed=seed + repetition,
            release_every=release_every,
        ).regret[-1]
        for repetition in range(reps)
    ]
    error = float(np.std(regrets, ddof=1)) / reps**0.5 if reps > 1 else None
    return MeanRegret(
        regret_mean=float(np.mean(regrets)),
        standard_error=error,
        regret_at_random=n * regret_at_random(environment),
    )
