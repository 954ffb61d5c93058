"""When the gain shows: a formula, held to hand-computed numbers and to simulated answers."""

import math

import numpy as np
import pytest

from sottovoce.lab.plan.gain import half_width, people_until_gain_shows


def test_the_width_is_that_of_randomised_response_in_two_groups() -> None:
    """β = (e - 1)/(e + 1) = 0.4621; 1/(2·0.1·n·β²) at n = 10,000 is 0.0023416, its root 0.04839."""
    assert half_width(10_000, epsilon=1.0) == pytest.approx(1.5 * 1.96 * 0.04839, rel=1e-3)
    assert half_width(40_000, epsilon=1.0) == pytest.approx(half_width(10_000, epsilon=1.0) / 2)
    assert half_width(10_000, epsilon=1.0, share=0.2) < half_width(10_000, epsilon=1.0)
    assert half_width(10_000, epsilon=4.0) < half_width(10_000, epsilon=1.0)


def test_simulated_answers_vary_as_much_as_the_formula_says() -> None:
    """2,000 experiments: the standard deviation is known to 1.6 %; 8 % is five of these."""
    rng = np.random.default_rng(0)
    signal, group = (math.e - 1) / (math.e + 1), 400
    means = []
    for chance in (0.5, 0.6):  # near 1/2, where the bound is tight
        truth = rng.random((2000, group)) < chance
        told = np.where(rng.random((2000, group)) < (1 + signal) / 2, truth, ~truth)
        means.append(((2 * told - 1) / signal + 1).mean(axis=1) / 2)
    difference = means[1] - means[0]
    assert difference.mean() == pytest.approx(0.1, abs=0.02)
    expected = half_width(group / 0.1, epsilon=1.0) / (1.5 * 1.96)
    assert difference.std() == pytest.approx(expected, rel=0.08)


def test_a_gain_shows_when_it_exceeds_half_of_its_interval() -> None:
    people = np.array([1_000, 10_000, 100_000, 1_000_000])
    gain = np.array([100.0, 1_000.0, 10_000.0, 100_000.0])
    assert people_until_gain_shows(people, gain, epsilon=1.0) == 100_000
    assert people_until_gain_shows(people, -gain, epsilon=1.0) == math.inf


def test_a_gain_that_shows_later_is_foreseen() -> None:
    """With a gain of 0.1 from the beginning half of the interval is 0.1 at n = 20,235."""
    people = np.arange(100, 5_000, 100)
    found = people_until_gain_shows(people, np.arange(10.0, 500.0, 10.0), epsilon=1.0)
    assert found == pytest.approx((1.5 * 1.96 / 0.1) ** 2 / (0.2 * 0.46212**2), rel=0.02)
