"""The mean regret of a method in one of the paper's worlds."""

from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import regret_at_random
from sottovoce.lab.methods import Playable
from sottovoce.lab.reproduce.cases import MODELS, Model
from sottovoce.lab.simulation import simulate


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
    """Average ``reps`` runs."""
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
