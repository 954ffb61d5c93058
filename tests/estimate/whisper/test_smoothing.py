"""Smoothing over the tree: against one joint normal law, written out in full."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from factories import unit_cube
from sottovoce.estimate.whisper import smoothing
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import bin_shares, estimate
from sottovoce.estimate.whisper.smoothing import smooth
from sottovoce.estimate.whisper.split import split
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.estimate.whisper.step import step
from support.states import Floats, centred_square, random_precisions


def spoken(rng: np.random.Generator, state: State, node: int, *, many: float = 300.0) -> None:
    """Let all populations tell something at random about one bin."""
    _, groups, parts, arms = state.served.vector.shape
    for told in (state.served, state.logged):
        told.precision[node] = random_precisions(rng, (groups, parts, arms, arms), scale=many)
        told.vector[node] = many * rng.normal(0, 0.3, (groups, parts, arms))
    state.mass_told.precision[node] = rng.exponential(many, (groups, parts))
    expected = state.mass[node][:, None] * np.ones(parts)
    expected[:, 1:] *= rng.uniform(-0.6, 0.6, (groups, parts - 1))  # halves that are unequal
    state.mass_told.vector[node] = state.mass_told.precision[node] * expected


def family(seed: int, arms: int, d: int) -> tuple[State, Constants]:
    """A tree of nine bins, in each of which something was told, also before it was split."""
    rng = np.random.default_rng(seed)
    behaviour = tuple(rng.dirichlet(np.ones(arms) * 5).tolist())
    known = constants(unit_cube(arms=arms, d=d, behaviours=(behaviour, None)))
    state = initial_state(known)
    for node in (0, 2, 1, 3):  # a first split, one above and one below, and one below that
        spoken(rng, state, node)
        found = estimate(state, known, node)
        split(state, node, int(rng.integers(d)), found)
    for node in range(9):
        spoken(rng, state, node)
        state.live[node, rng.integers(arms)] = rng.random() < 0.5
    state.forecast.share[:9] = state.mass[:9, 0]  # as a step would have it
    return state, known


@dataclass
class Joint:
    """The unknowns of all bins as one normal vector, (g, slope_1 … slope_d) of one after the other.

    covariance: before anything was told. precision, vector: what was told of each bin.
    """

    state: State
    covariance: Floats
    precision: Floats
    vector: Floats

    def below(self, node: int) -> set[int]:
        """A bin, and all that it was split into."""
        child = int(self.state.tree.child[node])
        halves = () if child == node else (child, child + 1)
        return {node}.union(*(self.below(half) for half in halves))

    def given(self, told: set[int], node: int) -> tuple[Floats, Floats]:
        """Mean and covariance of the unknowns of one bin, given what was told of some."""
        nodes, width = self.vector.shape
        precision, vector = np.zeros((nodes * width, nodes * width)), np.zeros(nodes * width)
        for each in told:
            block = slice(each * width, (each + 1) * width)
            precision[block, block], vector[block] = self.precision[each], self.vector[each]
        # (C⁻¹ + J)⁻¹ = (1 + CJ)⁻¹C, for C has no inverse: the mean of a half has no noise.
        left = np.eye(nodes * width) + self.covariance @ precision
        covariance: Floats = np.linalg.solve(left, self.covariance).astype(np.float64)
        block = slice(node * width, (node + 1) * width)
        return (covariance @ vector)[block], covariance[block, block]


def joint(state: State, known: Constants) -> Joint:
    """Write the model out: a half is its parent ± a slope, and has 3/4 of its slopes and some own.

    Along the split it has half of that.
    """
    nodes, arms, d = int(state.totals[0].nodes), known.arms, known.dimension
    width, one = arms * (1 + d), np.eye(arms)
    # All unknowns as a sum of what is each bin's own: roots[node] @ own.
    roots, own = np.zeros((nodes, width, nodes * width)), np.zeros((nodes * width, nodes * width))
    roots[0, :, :width] = np.eye(width)
    own[:width, :width] = np.kron(np.diag([0.25**2, *[0.2**2] * d]), one)
    for node in range(nodes):
        if state.tree.child[node] == node:
            continue
        for half in (state.tree.child[node], state.tree.child[node] + 1):
            transition = np.diag([1.0, *[0.75] * d])
            transition[0, 1 + state.tree.axis[node]] = state.shift[half]
            transition[1 + state.tree.axis[node], 1 + state.tree.axis[node]] = 0.375
            roots[half] = np.kron(transition, one) @ roots[node]
            block = slice(half * width, (half + 1) * width)
            roots[half, :, block] += np.eye(width)
            own[block, block] = np.kron(np.diag([0.0, *state.slope_variance[half]]), one)
    everyone = roots.reshape(nodes * width, nodes * width)
    precision, vector = np.zeros((nodes, width, width)), np.zeros((nodes, width))
    groups = state.mass.shape[1]
    for node in range(nodes):
        share, upper, rows = bin_shares(state, known, node)
        for m in range(groups):
            for index in range(1 + d):
                measured = np.zeros(1 + d)  # g, or (2r - 1)·g + 4r(1 - r)·slope
                measured[0] = 1.0
                if index > 0:
                    r = upper[m, index - 1]
                    measured[0], measured[index] = 2 * r - 1, 4 * r * (1 - r)
                design = np.kron(measured, one)  # (K, (1+d)K)
                served, logged = share[m] * one, np.diag(2 * rows[m])
                weight = served @ state.served.precision[node, m, index] @ served
                weight += logged @ state.logged.precision[node, m, index] @ logged
                told = served @ state.served.vector[node, m, index]
                told += logged @ state.logged.vector[node, m, index]
                precision[node] += design.T @ weight @ design
                vector[node] += design.T @ told
    return Joint(state, everyone @ own @ everyone.T, precision, vector)


def settle(state: State, known: Constants) -> None:
    """Go through the tree until nothing is expected that was not expected before."""
    for _ in range(300):
        before = state.slope_variance.copy()
        smooth(state, known)
        if np.abs(state.slope_variance - before).max() <= 1e-15:
            return
    raise AssertionError("what is expected does not come to rest")


def priors(state: State, node: int) -> tuple[Floats, Floats]:
    """Mean (1+d, K) and covariance (1+d, K, K) of each of the unknowns of a bin."""
    covariance = np.linalg.inv(state.prior.precision[node])
    return np.einsum("jab,jb->ja", covariance, state.prior.vector[node]), covariance


SHAPES = pytest.mark.parametrize(("arms", "d"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)])
SEEDS = pytest.mark.parametrize("seed", range(3))


@SHAPES
@SEEDS
def test_every_bin_begins_with_all_that_was_told_of_others(seed: int, arms: int, d: int) -> None:
    state, known = family(seed, arms, d)
    settle(state, known)
    law = joint(state, known)
    for node in range(1, 9):
        mean, covariance = law.given(set(range(9)) - law.below(node), node)
        means, covariances = priors(state, node)
        assert means.ravel() == pytest.approx(mean, rel=1e-7, abs=1e-9)
        for index in range(1 + d):
            block = slice(index * arms, (index + 1) * arms)
            assert covariances[index] == pytest.approx(
                covariance[block, block], rel=1e-7, abs=1e-12
            )


@SHAPES
def test_half_of_what_is_known_of_a_slope_is_expected_anew_of_each_half(arms: int, d: int) -> None:
    """Of its square around the mean of the live arms, given all answers, and a little of the prior.

    Half of it along the feature of the split.
    """
    state, known = family(7, arms, d)
    settle(state, known)
    law = joint(state, known)
    for node in range(9):
        if state.tree.child[node] == node:
            continue
        mean, covariance = law.given(set(range(9)), node)
        for half in (state.tree.child[node], state.tree.child[node] + 1):
            for j in range(d):
                live = (1 + j) * arms + np.flatnonzero(state.live[half])
                square = centred_square(mean[live], covariance[np.ix_(live, live)])
                square *= 0.5 if j == state.tree.axis[node] else 1.0
                low, high = state.tree.edges[half, j]
                expected = 0.5 * (0.95 * square + 0.05 * (0.2 * (high - low)) ** 2)
                assert state.slope_variance[half, j] == pytest.approx(expected, rel=1e-7)


@SHAPES
def test_the_first_pass_goes_up_with_what_was_expected_and_down_with_what_is(
    arms: int, d: int
) -> None:
    """With one split: the sibling tells by the old expectation, and the half listens by the new."""
    rng = np.random.default_rng(5)
    known = constants(unit_cube(arms=arms, d=d))
    state = initial_state(known)
    spoken(rng, state, 0)
    split(state, 0, d - 1, estimate(state, known, 0))
    for node in range(3):
        spoken(rng, state, node)
    old = state.slope_variance.copy()
    smooth(state, known)
    new = state.slope_variance.copy()
    assert np.abs(new[1:3] - old[1:3]).min() > 1e-6
    for half, sibling in ((1, 2), (2, 1)):
        state.slope_variance[half], state.slope_variance[sibling] = new[half], old[sibling]
        mean, covariance = joint(state, known).given({0, sibling}, half)
        means, covariances = priors(state, half)
        assert means.ravel() == pytest.approx(mean, rel=1e-7, abs=1e-9)
        spread = np.diag(covariance).reshape(1 + d, arms)
        assert np.array([np.diag(each) for each in covariances]) == pytest.approx(spread, rel=1e-7)


@pytest.mark.parametrize("leaf", [4, 5, 6, 7, 8])
def test_a_bin_is_not_told_what_it_has_told_itself(
    leaf: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With what is expected held as it is.
    monkeypatch.setattr(smoothing, "renew_slope_variance", lambda *_: None)
    state, known = family(3, 2, 2)
    smooth(state, known)
    before = state.prior.precision.copy(), state.prior.vector.copy()
    spoken(np.random.default_rng(leaf), state, leaf, many=1e5)
    smooth(state, known)
    for old, new in zip(before, (state.prior.precision, state.prior.vector), strict=True):
        assert new[leaf] == pytest.approx(old[leaf], rel=1e-9, abs=1e-9)
        for other in set(range(1, 9)) - {leaf}:
            above = leaf in Joint(state, *[np.empty(0)] * 3).below(other)
            same = np.allclose(new[other], old[other], rtol=1e-6)
            assert same == above  # a bin it was split from tells it on, and need not be told


def test_what_only_one_bin_has_told_moves_all_but_itself() -> None:
    state, known = family(4, 3, 2)
    for told in (state.served, state.logged):
        told.vector[[node for node in range(9) if node != 5]] = 0.0
    settle(state, known)
    assert state.served.vector[5].any()
    for node in range(1, 9):
        mean, _ = priors(state, node)
        # Bin 1 was split into 5 and 6, and has told the others what it knows of 5.
        assert (np.abs(mean).max() < 1e-12) == (node in (1, 5))


def straight(many: float) -> tuple[State, Constants]:
    """Everywhere a straight line along the first feature, and nothing along the second."""
    known = constants(unit_cube(arms=2, d=2))
    state = initial_state(known)
    for node, axis in ((0, 1), (1, 0), (2, 0), (3, 1)):
        split(state, node, axis, estimate(state, known, node))
    steep = np.array([0.8, -0.8])
    for node in range(9):
        share = state.mass[node, 0]
        (low, high), _ = state.tree.edges[node]
        state.served.precision[node, 0] = many * np.eye(2)
        state.served.vector[node, 0, 0] = many * share * steep * ((low + high) / 2 - 0.5)
        state.served.vector[node, 0, 1] = many * share * steep * (high - low) / 4
    settle(state, known)
    return state, known


def test_of_a_feature_that_matters_nowhere_less_is_expected_the_more_was_told() -> None:
    states = [straight(many)[0] for many in (1e1, 1e2, 1e3, 1e4, 1e8)]
    for less, more in itertools.pairwise(states):
        assert (more.slope_variance[1:9, 1] < less.slope_variance[1:9, 1]).all()
    known = states[-1]
    heights = known.tree.edges[1:9, 1, 1] - known.tree.edges[1:9, 1, 0]
    # In the end, 5 % of the 0.2² of an edge of length 1 that nobody knows of, and half of it anew.
    assert known.slope_variance[1:9, 1] == pytest.approx(
        0.5 * 0.05 * (0.2 * heights) ** 2, rel=0.01
    )


def test_of_a_feature_that_matters_as_much_is_expected_as_was_seen() -> None:
    state, _ = straight(1e8)
    for node in (0, 1, 2, 3):
        low, high = state.tree.edges[node, 0]
        slope = 0.8 * (high - low) / 4  # of the one arm, and the other's is as steep downwards
        for half in (state.tree.child[node], state.tree.child[node] + 1):
            low, high = state.tree.edges[half, 0]
            seen = 2 * slope**2 * (0.5 if state.tree.axis[node] == 0 else 1.0)
            expected = 0.5 * (0.95 * seen + 0.05 * (0.2 * (high - low)) ** 2)
            assert state.slope_variance[half, 0] == pytest.approx(expected, rel=0.01)
            assert state.slope_variance[half, 0] > 3 * state.slope_variance[half, 1]


@pytest.mark.parametrize(
    ("nodes", "reports", "last", "due"),
    [
        (1, 10**6, 0, False),  # one bin has no others to learn from
        (3, 59, 0, False),  # 20 for each bin
        (3, 60, 0, True),
        (3, 1059, 1000, False),
        (3, 1060, 1000, True),
        (3, 2000, 1901, False),  # a twentieth of all
        (3, 2000, 1900, True),
        (9, 2000, 1821, False),
        (9, 2000, 1820, True),
        (9, 2000, 2000, False),
    ],
)
def test_the_tree_is_gone_through_when_a_twentieth_of_the_reports_and_twenty_a_bin_are_new(
    nodes: int, reports: int, last: int, due: bool
) -> None:
    known = constants(unit_cube())
    state = initial_state(known)
    totals = state.totals[0]
    totals.nodes, totals.reports, totals.smoothed = nodes, reports, last
    assert smoothing.smoothing_is_due(state) == due


@pytest.mark.parametrize(("since", "due"), [(179, False), (180, True)])
def test_a_step_goes_through_the_tree_when_it_is_time(since: int, due: bool) -> None:
    state, known = family(1, 2, 2)
    totals = state.totals[0]
    totals.reports, totals.smoothed, totals.served = 1000 + since, 1000, 0
    totals.contested = 0  # no bin is looked at, so that nothing else changes
    before = state.prior.vector.copy()
    step(state, known)
    assert state.totals[0].smoothed == (1000 + since if due else 1000)
    assert (state.prior.vector[1:9] != before[1:9]).any() == due
    assert (state.prior.vector[0] == before[0]).all()
