"""The mean regret of a method in one of the paper's worlds."""

from dataclasses import dataclass

import numpy as np

from sottovoce.lab.baselines import Baseline
from sottovoce.lab.environments import regret_at_random
from sottovoce.lab.reproduce.cases import MODELS, Model
from sottovoce.lab.simulate import simulate
from sottovoce.shared.method import Method


@dataclass(frozen=True, slots=True)
class Answer:
    """What would happen, on average."""

    regret_mean: float
    standard_error: float | None
    regret_at_random: float


def ask(
    model: Model,
    *,
    method: Method | Baseline | str,
    epsilon: float,
    n: int,
    release_every: int,
    reps: int,
    seed: int,
) -> Answer:
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
    return Answer(
        regret_mean=float(np.mean(regrets)),
        standard_error=error,
        regret_at_random=n * regret_at_random(environment),
    )
