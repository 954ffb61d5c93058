"""Bins learn from their kin: against one joint normal law, written out in full."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from sottovoce.estimate.whisper.board import Board, begin

from sottovoce.estimate.whisper import answers, kin, rules
from sottovoce.estimate.whisper.constants import Constants, constants
from support.boards import (
    NODES,
    REPORTS,
    SERVED,
    SMOOTHED,
    Floats,
    centred_square,
    estimated,
    experiment,
    random_infos,
)


def spoken(rng: np.random.Generator, board: Board, node: int, *, many: float = 300.0) -> None:
    """Let all populations tell something at random about one bin."""
    _, groups, places, arms = board.lean.shape
    board.info[node] = random_infos(rng, (groups, places, arms, arms), scale=many)
    board.lean[node] = many * rng.normal(0, 0.3, (groups, places, arms))
    board.logged_info[node] = random_infos(rng, (groups, places, arms, arms), scale=many)
    board.logged_lean[node] = many * rng.normal(0, 0.3, (groups, places, arms))
    board.mass_info[node] = rng.exponential(many, (groups, places))
    expected = board.mass[node][:, None] * np.ones(places)
    expected[:, 1:] *= rng.uniform(-0.6, 0.6, (groups, places - 1))  # halves that are unequal
    board.mass_lean[node] = board.mass_info[node] * expected


def family(seed: int, arms: int, d: int) -> tuple[Board, Constants]:
    """A tree of nine bins, in each of which something was told, also before it was cut."""
    rng = np.random.default_rng(seed)
    behaviour = tuple(rng.dirichlet(np.ones(arms) * 5).tolist())
    known = constants(experiment(arms=arms, d=d, behaviours=(behaviour, None)))
    board = begin(known)
    for node in (0, 2, 1, 3):  # a first cut, one above and one below, and one below that
        spoken(rng, board, node)
        found = estimated(board, known, node)
        rules.cut(board, known, node, int(rng.integers(d)), *vars(found).values())
    for node in range(9):
        spoken(rng, board, node)
        board.live[node, rng.integers(arms)] = rng.random() < 0.5
    board.outlook[:9, 0] = board.mass[:9, 0]  # as a step would have it
    return board, known


@dataclass
class Joint:
    """The states of all bins as one normal vector, (g, slope_1 … slope_d) of one after the other.

    covariance: before anything was told. info, lean: what was told of each bin.
    """

    board: Board
    covariance: Floats
    info: Floats
    lean: Floats

    def below(self, node: int) -> set[int]:
        """A bin, and all that it was cut into."""
        child = int(self.board.child[node])
        halves = () if child == node else (child, child + 1)
        return {node}.union(*(self.below(half) for half in halves))

    def given(self, told: set[int], node: int) -> tuple[Floats, Floats]:
        """Mean and covariance of the state of one bin, given what was told of some."""
        nodes, width = self.lean.shape
        info, lean = np.zeros((nodes * width, nodes * width)), np.zeros(nodes * width)
        for each in told:
            block = slice(each * width, (each + 1) * width)
            info[block, block], lean[block] = self.info[each], self.lean[each]
        # (C⁻¹ + J)⁻¹ = (1 + CJ)⁻¹C, for C has no inverse: the mean of a half has no noise.
        left = np.eye(nodes * width) + self.covariance @ info
        covariance: Floats = np.linalg.solve(left, self.covariance).astype(np.float64)
        block = slice(node * width, (node + 1) * width)
        return (covariance @ lean)[block], covariance[block, block]


def joint(board: Board, known: Constants) -> Joint:
    """Write the model out: a half is its parent ± a slope, and has 3/4 of its slopes and some own.

    Along the cut it has half of that.
    """
    nodes, arms, d = int(board.totals[NODES]), known.arms, known.dimension
    width, one = arms * (1 + d), np.eye(arms)
    # All states as a sum of what is each bin's own: roots[node] @ own.
    roots, own = np.zeros((nodes, width, nodes * width)), np.zeros((nodes * width, nodes * width))
    roots[0, :, :width] = np.eye(width)
    own[:width, :width] = np.kron(np.diag([0.25**2, *[0.2**2] * d]), one)
    for node in range(nodes):
        if board.child[node] == node:
            continue
        for half in (board.child[node], board.child[node] + 1):
            passage = np.diag([1.0, *[0.75] * d])
            passage[0, 1 + board.axis[node]] = board.away[half]
            passage[1 + board.axis[node], 1 + board.axis[node]] = 0.375
            roots[half] = np.kron(passage, one) @ roots[node]
            block = slice(half * width, (half + 1) * width)
            roots[half, :, block] += np.eye(width)
            own[block, block] = np.kron(np.diag([0.0, *board.anew[half]]), one)
    everyone = roots.reshape(nodes * width, nodes * width)
    info, lean = np.zeros((nodes, width, width)), np.zeros((nodes, width))
    groups = board.mass.shape[1]
    share, upper, rows = np.empty(groups), np.empty((groups, d)), np.empty((groups, arms))
    for node in range(nodes):
        answers.shares(board, known, node, share, upper, rows)
        for m in range(groups):
            for place in range(1 + d):
                measured = np.zeros(1 + d)  # g, or (2r - 1)·g + 4r(1 - r)·slope
                measured[0] = 1.0
                if place > 0:
                    r = upper[m, place - 1]
                    measured[0], measured[place] = 2 * r - 1, 4 * r * (1 - r)
                design = np.kron(measured, one)  # (K, (1+d)K)
                served, logged = share[m] * one, np.diag(2 * rows[m])
                weight = served @ board.info[node, m, place] @ served
                weight += logged @ board.logged_info[node, m, place] @ logged
                told = served @ board.lean[node, m, place]
                told += logged @ board.logged_lean[node, m, place]
                info[node] += design.T @ weight @ design
                lean[node] += design.T @ told
    return Joint(board, everyone @ own @ everyone.T, info, lean)


def settle(board: Board, known: Constants) -> None:
    """Go through the tree until nothing is expected that was not expected before."""
    for _ in range(300):
        before = board.anew.copy()
        kin.smooth(board, known)
        if np.abs(board.anew - before).max() <= 1e-15:
            return
    raise AssertionError("what is expected does not come to rest")


def priors(board: Board, node: int) -> tuple[Floats, Floats]:
    """Mean (1+d, K) and covariance (1+d, K, K) of each part of the state of a bin."""
    covariance = np.linalg.inv(board.prior_info[node])
    return np.einsum("jab,jb->ja", covariance, board.prior_lean[node]), covariance


SHAPES = pytest.mark.parametrize(("arms", "d"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)])
SEEDS = pytest.mark.parametrize("seed", range(3))


@SHAPES
@SEEDS
def test_every_bin_begins_with_all_that_was_told_of_others(seed: int, arms: int, d: int) -> None:
    board, known = family(seed, arms, d)
    settle(board, known)
    law = joint(board, known)
    for node in range(1, 9):
        mean, covariance = law.given(set(range(9)) - law.below(node), node)
        means, covariances = priors(board, node)
        assert means.ravel() == pytest.approx(mean, rel=1e-7, abs=1e-9)
        for place in range(1 + d):
            block = slice(place * arms, (place + 1) * arms)
            assert covariances[place] == pytest.approx(
                covariance[block, block], rel=1e-7, abs=1e-12
            )


@SHAPES
def test_half_of_what_is_known_of_a_slope_is_expected_anew_of_each_half(arms: int, d: int) -> None:
    """Of its square around the mean of the live arms, given all answers; half of it along the cut.

    And a little of the unknown.
    """
    board, known = family(7, arms, d)
    settle(board, known)
    law = joint(board, known)
    for node in range(9):
        if board.child[node] == node:
            continue
        mean, covariance = law.given(set(range(9)), node)
        for half in (board.child[node], board.child[node] + 1):
            for j in range(d):
                live = (1 + j) * arms + np.flatnonzero(board.live[half])
                square = centred_square(mean[live], covariance[np.ix_(live, live)])
                square *= 0.5 if j == board.axis[node] else 1.0
                low, high = board.edges[half, j]
                expected = 0.5 * (0.95 * square + 0.05 * (0.2 * (high - low)) ** 2)
                assert board.anew[half, j] == pytest.approx(expected, rel=1e-7)


@SHAPES
def test_the_first_pass_goes_up_with_what_was_expected_and_down_with_what_is(
    arms: int, d: int
) -> None:
    """With one cut: the sibling tells by the old expectation, and the half listens by the new."""
    rng = np.random.default_rng(5)
    known = constants(experiment(arms=arms, d=d))
    board = begin(known)
    spoken(rng, board, 0)
    rules.cut(board, known, 0, d - 1, *vars(estimated(board, known)).values())
    for node in range(3):
        spoken(rng, board, node)
    old = board.anew.copy()
    kin.smooth(board, known)
    new = board.anew.copy()
    assert np.abs(new[1:3] - old[1:3]).min() > 1e-6
    for half, sibling in ((1, 2), (2, 1)):
        board.anew[half], board.anew[sibling] = new[half], old[sibling]
        mean, covariance = joint(board, known).given({0, sibling}, half)
        means, covariances = priors(board, half)
        assert means.ravel() == pytest.approx(mean, rel=1e-7, abs=1e-9)
        spread = np.diag(covariance).reshape(1 + d, arms)
        assert np.array([np.diag(each) for each in covariances]) == pytest.approx(spread, rel=1e-7)


@pytest.mark.parametrize("leaf", [4, 5, 6, 7, 8])
def test_a_bin_is_not_told_what_it_has_told_itself(
    leaf: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kin, "expect", lambda *_: None)  # with what is expected held as it is
    board, known = family(3, 2, 2)
    kin.smooth(board, known)
    before = board.prior_info.copy(), board.prior_lean.copy()
    spoken(np.random.default_rng(leaf), board, leaf, many=1e5)
    kin.smooth(board, known)
    for old, new in zip(before, (board.prior_info, board.prior_lean), strict=True):
        assert new[leaf] == pytest.approx(old[leaf], rel=1e-9, abs=1e-9)
        for other in set(range(1, 9)) - {leaf}:
            above = leaf in Joint(board, *[np.empty(0)] * 3).below(other)
            same = np.allclose(new[other], old[other], rtol=1e-6)
            assert same == above  # a bin it was cut from tells it on, and need not be told


def test_what_only_one_bin_has_told_moves_all_but_itself() -> None:
    board, known = family(4, 3, 2)
    for name in ("lean", "logged_lean"):
        told = getattr(board, name)
        told[[node for node in range(9) if node != 5]] = 0.0
    settle(board, known)
    assert board.lean[5].any()
    for node in range(1, 9):
        mean, _ = priors(board, node)
        # Bin 1 was cut into 5 and 6, and has told the others what it knows of 5.
        assert (np.abs(mean).max() < 1e-12) == (node in (1, 5))


def straight(many: float) -> tuple[Board, Constants]:
    """Everywhere a straight line along the first feature, and nothing along the second."""
    known = constants(experiment(arms=2, d=2))
    board = begin(known)
    for node, axis in ((0, 1), (1, 0), (2, 0), (3, 1)):
        rules.cut(board, known, node, axis, *vars(estimated(board, known, node)).values())
    steep = np.array([0.8, -0.8])
    for node in range(9):
        share = board.mass[node, 0]
        (low, high), _ = board.edges[node]
        board.info[node, 0] = many * np.eye(2)
        board.lean[node, 0, 0] = many * share * steep * ((low + high) / 2 - 0.5)
        board.lean[node, 0, 1] = many * share * steep * (high - low) / 4
    settle(board, known)
    return board, known


def test_of_a_feature_that_matters_nowhere_less_is_expected_the_more_was_told() -> None:
    boards = [straight(many)[0] for many in (1e1, 1e2, 1e3, 1e4, 1e8)]
    for less, more in itertools.pairwise(boards):
        assert (more.anew[1:9, 1] < less.anew[1:9, 1]).all()
    known = boards[-1]
    heights = known.edges[1:9, 1, 1] - known.edges[1:9, 1, 0]
    # In the end, 5 % of the 0.2² of an edge of length 1 that nobody knows of, and half of it anew.
    assert known.anew[1:9, 1] == pytest.approx(0.5 * 0.05 * (0.2 * heights) ** 2, rel=0.01)


def test_of_a_feature_that_matters_as_much_is_expected_as_was_seen() -> None:
    board, _ = straight(1e8)
    for node in (0, 1, 2, 3):
        low, high = board.edges[node, 0]
        slope = 0.8 * (high - low) / 4  # of the one arm, and the other's is as steep downwards
        for half in (board.child[node], board.child[node] + 1):
            low, high = board.edges[half, 0]
            seen = 2 * slope**2 * (0.5 if board.axis[node] == 0 else 1.0)
            expected = 0.5 * (0.95 * seen + 0.05 * (0.2 * (high - low)) ** 2)
            assert board.anew[half, 0] == pytest.approx(expected, rel=0.01)
            assert board.anew[half, 0] > 3 * board.anew[half, 1]


@pytest.mark.parametrize(
    ("nodes", "reports", "last", "due"),
    [
        (1, 10**6, 0, False),  # nobody has kin
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
    known = constants(experiment())
    board = begin(known)
    board.totals[[NODES, REPORTS, SMOOTHED]] = nodes, reports, last
    assert kin.is_due(board) == due


@pytest.mark.parametrize(("since", "due"), [(179, False), (180, True)])
def test_a_step_goes_through_the_tree_when_it_is_time(since: int, due: bool) -> None:
    board, known = family(1, 2, 2)
    board.totals[[REPORTS, SMOOTHED, SERVED]] = 1000 + since, 1000, 0
    board.totals[1] = 0  # no bin is looked at, so that nothing else changes
    before = board.prior_lean.copy()
    rules.step(board, known)
    assert board.totals[SMOOTHED] == (1000 + since if due else 1000)
    assert (board.prior_lean[1:9] != before[1:9]).any() == due
    assert (board.prior_lean[0] == before[0]).all()
