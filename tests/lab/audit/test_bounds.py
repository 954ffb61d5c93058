"""The bounds hold at their error rate, by exact sums over all counts."""

import math

import numpy as np
import pytest
from scipy import stats

from sottovoce.lab.audit.bounds import epsilon_bounds, greatest_probability, least_probability


@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5, 0.93])
@pytest.mark.parametrize("runs", [1, 20, 300])
@pytest.mark.parametrize("rate", [0.2, 0.01])
def test_each_limit_fails_no_more_often_than_stated(chance: float, runs: int, rate: float) -> None:
    hits = np.arange(runs + 1)
    weights = stats.binom.pmf(hits, runs, chance)
    too_high = least_probability(hits, runs, error_rate=rate) > chance
    too_low = greatest_probability(hits, runs, error_rate=rate) < chance
    assert weights[too_high].sum() <= rate
    assert weights[too_low].sum() <= rate


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_a_bound_exceeds_the_truth_no_more_often_than_stated(epsilon: float) -> None:
    runs, rate, likely = 150, 0.1, 0.6
    hits = np.arange(runs + 1)
    one = stats.binom.pmf(hits, runs, likely)
    other = stats.binom.pmf(hits, runs, likely / math.exp(epsilon))
    bounds = epsilon_bounds(hits[:, None], hits[None, :], runs=(runs, runs), error_rate=rate)
    failed = float((np.outer(one, other) * (bounds > epsilon)).sum())
    assert 0 < failed <= rate


def test_more_runs_bring_the_bound_closer() -> None:
    found = [
        float(epsilon_bounds(0.5 * runs, 0.05 * runs, runs=(runs, runs), error_rate=1e-3))
        for runs in (100, 1_000, 100_000)
    ]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(math.log(10), abs=0.1)


def test_nothing_seen_bounds_nothing() -> None:
    for hits in (0, 1, 50, 100):
        assert epsilon_bounds(hits, hits, runs=(100, 100), error_rate=0.01) < 0
