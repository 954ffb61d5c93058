"""How far the rewards of auxiliary populations lie from the target's."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from factories import unit_cube
from sottovoce.estimate.whisper.bias import log_likelihood, weigh_rows
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import blur
from sottovoce.estimate.whisper.state import Information, State, initial_state
from support.states import SEEDS, random_precisions


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bias_is_one_more_variance_of_what_others_tell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    precision = random_precisions(rng, (3, 3), scale=100.0)
    mean, bias = rng.normal(0, 0.2, 3), rng.uniform(0.01, 0.5)
    told = Information(precision.copy(), precision @ mean)
    blur(told, bias)
    expected = np.linalg.inv(np.linalg.inv(precision) + bias**2 * np.eye(3))
    assert told.precision == pytest.approx(expected, rel=1e-6)
    assert told.vector == pytest.approx(expected @ mean, rel=1e-6)


def test_nothing_told_stays_nothing_and_no_bias_changes_nothing() -> None:
    nothing = Information(np.zeros((2, 2)), np.zeros(2))
    blur(nothing, 0.3)
    assert not nothing.precision.any()
    assert not nothing.vector.any()
    precision = np.array([[5.0, -5.0], [-5.0, 5.0]])  # a difference alone: it has no inverse
    told = Information(precision.copy(), np.array([1.0, -1.0]))
    blur(told, 0.0)
    assert (told.precision == precision).all()
    blur(told, 10.0)  # a bias by which the difference says nothing
    assert told.precision == pytest.approx(np.array([[1, -1], [-1, 1]]) / 200, rel=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_likelihood_is_that_of_a_normal_law(seed: int) -> None:
    """Relative to the law of the same answers from arms that are all alike."""
    rng = np.random.default_rng(seed)
    covariance = random_precisions(rng, (3, 3), scale=0.1)
    precision = random_precisions(rng, (3, 3), scale=50.0)
    answer = rng.normal(0, 0.3, 3)
    noise = np.linalg.inv(precision)
    found = log_likelihood(Information(precision, precision @ answer), covariance)
    with_bias = multivariate_normal(np.zeros(3), noise + covariance).logpdf(answer)
    without = multivariate_normal(np.zeros(3), noise).logpdf(answer)
    assert found == pytest.approx(with_bias - without, rel=1e-6, abs=1e-6)


def two_bins(known: Constants, *, target: tuple[float, float]) -> State:
    """Two settled halves, in which others say +0.2 for the first arm's lead, very surely.

    target: what the target's own people say of that lead, in each half.
    """
    state = initial_state(known)
    totals = state.totals[0]
    totals.nodes, totals.contested, totals.served = 3, 2, 100
    state.tree.child[:3] = [1, 1, 2]
    state.contested[:2] = [1, 2]
    state.mass[:3], state.bias[:3] = 0.5, state.bias[0]
    contrast = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for node in (1, 2):
        # Sums without the shares: half of the people are in the bin, and rows count twice.
        state.logged.precision[node, 1, 0] = 1e6 * np.eye(2)
        state.logged.vector[node, 1, 0] = 0.5 * 1e6 * np.array([0.1, -0.1])
        state.served.precision[node, 0, 0] = 4000.0 * contrast
        lead = target[node - 1]
        state.served.vector[node, 0, 0] = 0.5 * 4000.0 * lead * np.array([1.0, -1.0])
    return state


def test_where_the_target_agrees_others_are_believed_and_where_it_does_not_they_are_not() -> None:
    known = constants(unit_cube(behaviours=((0.5, 0.5),)))
    agree, differ = two_bins(known, target=(0.2, 0.2)), two_bins(known, target=(0.2, -0.4))
    weigh_rows(differ, known)
    assert (differ.bias[:3] == 0.03).all()  # before the audit had its say
    for state in (agree, differ):
        state.totals[0].checked = 1
        weigh_rows(state, known)
    assert (agree.bias[1:3] < 0.05).all()
    assert differ.bias[2] > 0.4
    assert differ.bias[1] < differ.bias[2] / 2
    # One bin that differs is a reason to believe less in others.
    assert differ.bias[1] > agree.bias[1]


def test_without_auxiliary_populations_there_is_no_bias_to_learn() -> None:
    known = constants(unit_cube())
    state = initial_state(known)
    before = float(state.bias[0])
    weigh_rows(state, known)
    assert state.bias[0] == before
