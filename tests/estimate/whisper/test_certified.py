"""Certified means certified: over many runs, best arms are dropped at most as often as promised.

Each run counts as one error at most, however many arms it drops wrongly. If the chance of an error
were δ, a check would fail with the probability that a binomial count exceeds its mean by five
standard deviations: less than 1e-6.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.estimate.history import Elimination
from sottovoce.lab.environments import Environment, Exponential, Floats
from sottovoce.lab.simulation import Result, simulate
from support.slow import slow_but

DELTA = 0.1
RUNS = 1000
MOST = DELTA * RUNS + 5 * (DELTA * (1 - DELTA) * RUNS) ** 0.5


@dataclass(frozen=True)
class Alike:
    """All arms are the same, and so each of them is best everywhere: the hardest case."""

    arms: int = 3
    dimension: int = 2

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, self.dimension))

    def means(self, contexts: Floats) -> Floats:
        return np.full((len(contexts), self.arms), 0.5)


@dataclass(frozen=True)
class Close:
    """Small gaps that change their sign, on contexts far from uniform."""

    arms: int = 2
    dimension: int = 1

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.beta(0.5, 1.5, size=(n, 1))

    def means(self, contexts: Floats) -> Floats:
        gap = 0.05 * np.sin(9 * contexts[:, 0])
        return np.stack([0.5 + gap, 0.5 - gap], axis=1)


def wrong_drops(result: Result, environment: Environment, people: Floats) -> int:
    """Count the eliminations of an arm that is best on average in its bin."""
    means = environment.means(people)
    wrong = 0
    for dated in result.history:
        if isinstance(dated.event, Elimination):
            box = np.array(result.release.partition.box(dated.event.path))
            inside = ((people >= box[:, 0]) & (people < box[:, 1])).all(axis=1)
            average = means[inside].mean(axis=0)
            wrong += any(average[arm] >= average.max() - 1e-12 for arm in dated.event.arms)
    return wrong


def errors(environment: Environment, method: sv.Whisper, *, epsilon: float, n: int) -> int:
    """Count the runs with at least one wrong drop."""
    people = environment.contexts(np.random.default_rng(1), 20_000)
    return sum(
        wrong_drops(
            simulate(environment, method=method, epsilon=epsilon, n=n, seed=seed),
            environment,
            people,
        )
        > 0
        for seed in range(RUNS)
    )


@pytest.mark.parametrize("epsilon", slow_but([64.0], [1.0, 4.0, 64.0]))
@pytest.mark.parametrize(
    "environment", slow_but([Alike()], [Alike(), Close(), Exponential()]), ids=repr
)
def test_a_certified_learner_hardly_ever_drops_a_best_arm(
    environment: Environment, epsilon: float
) -> None:
    certified = sv.Whisper("certified", delta=DELTA)
    assert errors(environment, certified, epsilon=epsilon, n=4000) <= MOST


@pytest.mark.slow
def test_without_the_proof_the_same_check_fails() -> None:
    assert errors(Alike(), sv.Whisper("regret"), epsilon=4.0, n=4000) > MOST


def test_a_certified_learner_does_drop_arms() -> None:
    result = simulate(
        Exponential(), method=sv.Whisper("certified", delta=DELTA), epsilon=4, n=40_000, seed=0
    )
    assert sum(isinstance(dated.event, Elimination) for dated in result.history) >= 4
