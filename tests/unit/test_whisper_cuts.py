"""What becomes of a bin that is cut."""

import math
from typing import Any

import numpy as np
import pytest
from sottovoce.estimate.whisper.board import Board, begin, roomy

from sottovoce.estimate.whisper import answers, rules
from sottovoce.estimate.whisper.constants import Constants, constants
from support.boards import (
    CONTESTED,
    NODES,
    SERVED,
    Estimate,
    believing,
    centred_square,
    estimated,
    experiment,
    noted,
    random_infos,
)


def random_cut(seed: int) -> tuple[Board, Constants, Estimate, int, int]:
    """A bin somewhere in the tree that is cut along some axis."""
    rng = np.random.default_rng(seed)
    arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    known = constants(experiment(arms=arms, d=d, behaviours=(None,)))
    board = begin(known)
    node = 0
    for _ in range(int(rng.integers(0, 4))):
        board = roomy(board, known)
        rules.cut(board, known, node, int(rng.integers(d)), *vars(estimated(board, known)).values())
        node = int(board.totals[NODES]) - 1 - int(rng.integers(2))
    board.live[node] = rng.random(arms) < 0.8
    board.live[node, :2] = True
    for array in (board.mass_info, board.info, board.logged_info):
        array[node] = 0.0
    board.mass_info[node] = rng.exponential(1e4, board.mass_info[node].shape)
    board.mass_lean[node] = board.mass_info[node] * rng.normal(0, 0.1, board.mass_lean[node].shape)
    board.logged_info[node] = random_infos(rng, board.logged_info[node].shape, scale=1e3)
    board.logged_lean[node] = rng.normal(0, 1e2, board.logged_lean[node].shape)
    found, axis = estimated(board, known, node), int(rng.integers(d))
    rules.cut(board, known, node, axis, *vars(found).values())
    return board, known, found, node, axis


@pytest.fixture(params=range(20))
def cutting(request: pytest.FixtureRequest) -> Any:
    return random_cut(request.param)


def test_a_cut_loses_nobody(cutting: Any) -> None:
    board, _, found, node, axis = cutting
    lower = board.child[node]
    assert lower == board.totals[NODES] - 2
    halves = board.mass[lower : lower + 2]
    assert halves.sum(axis=0) == pytest.approx(found.share, rel=1e-12)
    part = np.clip(found.upper[:, axis], 0.01, 0.99)
    assert halves[1] == pytest.approx(found.share * part, rel=1e-12)
    assert (halves > 0).all()
    assert (halves <= 1).all()


def test_the_halves_of_a_bin_have_its_mean_together_and_twice_its_slope_between_them(
    cutting: Any,
) -> None:
    board, known, found, node, axis = cutting
    lower = board.child[node]
    means, spreads = [], []
    for half in (lower, lower + 1):
        covariance = np.linalg.inv(board.prior_info[half, 0])
        spreads.append(covariance)
        means.append(covariance @ board.prior_lean[half, 0])
    # Of those who told: only logged rows did, each arm's by the square of its share of the people.
    rows = np.empty((len(found.share), known.arms))
    answers.shares(board, known, node, found.share.copy(), found.upper.copy(), rows)
    each = np.diagonal(board.logged_info[node, :, 0], axis1=1, axis2=2)
    told = (rows**2 * each).sum(axis=1)
    r = (told * found.upper[:, axis]).sum() / told.sum()
    assert (1 - r) * means[0] + r * means[1] == pytest.approx(found.mean, abs=1e-9)
    assert means[1] - means[0] == pytest.approx(2 * found.slope[axis], abs=1e-9)
    # The variance of g + away·slope, with the two independent.
    for side, (away, spread) in enumerate(zip((-2 * r, 2 * (1 - r)), spreads, strict=True)):
        assert board.away[lower + side] == pytest.approx(away, rel=1e-6, abs=1e-9)
        expected = found.covariance + away**2 * found.slope_covariance[axis]
        assert spread == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_halves_are_right_when_only_a_lopsided_population_has_told() -> None:
    """Nine tenths of its people are in the upper half, and the target's people are not known."""
    known = constants(experiment(arms=2, d=1, behaviours=((0.5, 0.5),)))
    board = begin(known)
    truth = np.array(
        [0.3, -0.3]
    )  # g in the upper half; in the lower half it is the other way round
    many = 1e7
    board.count_info[0, 1] = many
    board.count_lean[0, 1, 0], board.count_lean[0, 1, 1] = many * 0.5, many * 0.5 * 0.8
    board.logged_info[0, 1] = many * np.eye(2)
    board.logged_lean[0, 1, 0] = many * (0.9 - 0.1) * truth
    board.logged_lean[0, 1, 1] = many * (0.9 + 0.1) * truth
    found = estimated(board, known)
    assert found.mean == pytest.approx(0.8 * truth, abs=1e-3)
    assert found.upper[:, 0] == pytest.approx([0.5, 0.9], abs=1e-3)
    assert found.slope[0] == pytest.approx(truth, abs=1e-2)
    rules.cut(board, known, 0, 0, *vars(found).values())
    for half, sign in ((1, -1), (2, 1)):
        mean = np.linalg.solve(board.prior_info[half, 0], board.prior_lean[half, 0])
        assert mean == pytest.approx(sign * truth, abs=2e-2)


def test_where_everybody_is_in_one_half_nothing_varies_between_halves() -> None:
    known = constants(experiment(arms=2, d=2))
    board = begin(known)
    board.mass_info[0, 0] = 1e6
    board.mass_lean[0, 0] = [1e6, 1e6, 0.0]  # all in the upper half along the first feature
    board.info[0, 0] = 1e6 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    board.lean[0, 0, 0] = [4e5, -4e5]
    board.lean[0, 0, 1] = [4e5, -4e5]  # and so the difference is the whole
    found = estimated(board, known)
    assert found.mean[0] - found.mean[1] == pytest.approx(0.4, abs=1e-3)
    assert found.upper[0, 0] == pytest.approx(1, abs=1e-3)
    assert found.slope[0] == pytest.approx([0.0, 0.0], abs=0.02)
    assert rules.mixing(found.upper[0, 0]) < 1e-3


def test_the_halves_of_a_bin_tile_it(cutting: Any) -> None:
    board, known, _, node, axis = cutting
    lower = board.child[node]
    low, high = board.edges[node, axis]
    assert board.axis[node] == axis
    assert board.middle[node] == (low + high) / 2
    assert board.edges[lower, axis].tolist() == [low, (low + high) / 2]
    assert board.edges[lower + 1, axis].tolist() == [(low + high) / 2, high]
    for j in range(known.dimension):
        for half in (lower, lower + 1):
            if j != axis:
                assert board.edges[half, j].tolist() == board.edges[node, j].tolist()
    for half in (lower, lower + 1):
        assert board.depth[half] == board.depth[node] + 1
        assert board.child[half] == half
        assert board.middle[half] == math.inf
        assert board.live[half].tolist() == board.live[node].tolist()
        assert not board.info[half].any()
        assert not board.ballots[half].any()
    assert noted(board)[-1][2:4] == [node, axis]


def test_a_half_has_three_quarters_of_the_slopes_of_the_whole_and_some_of_its_own(
    cutting: Any,
) -> None:
    """Along the cut it has half of that, for its edge is half as long."""
    board, known, found, node, axis = cutting
    live = np.flatnonzero(board.live[node])
    for half in (board.child[node], board.child[node] + 1):
        for j in range(known.dimension):
            expected = centred_square(
                found.slope[j, live], found.slope_covariance[j][np.ix_(live, live)]
            )
            expected *= 0.5 if j == axis else 1.0
            edge = board.edges[half, j, 1] - board.edges[half, j, 0]
            expected = 0.95 * expected + 0.05 * (0.2 * edge) ** 2
            kept = 0.375 if j == axis else 0.75
            covariance = np.linalg.inv(board.prior_info[half, 1 + j])
            assert board.anew[half, j] == pytest.approx(0.5 * expected, rel=1e-12)
            assert covariance == pytest.approx(
                kept**2 * found.slope_covariance[j] + 0.5 * expected * np.eye(known.arms),
                rel=1e-9,
                abs=1e-15,
            )
            mean = covariance @ board.prior_lean[half, 1 + j]
            assert mean == pytest.approx(kept * found.slope[j], rel=1e-9, abs=1e-12)


def test_no_bin_is_cut_more_than_forty_times() -> None:
    known = constants(experiment(d=1))
    board = believing(known, [0.0, 0.0], slope=np.array([[0.2, -0.2]]))
    board.depth[0] = 40
    rules.step(board, known)
    assert board.totals[NODES] == 1
    board.depth[0] = 39
    rules.step(board, known)
    assert board.totals[NODES] == 3


@pytest.mark.parametrize(("excess", "nodes"), [(0.995, 3), (1.005, 1)])
def test_a_bin_is_cut_when_its_variance_is_below_a_share_of_what_varies_inside(
    excess: float, nodes: int
) -> None:
    known = constants(experiment(d=1))
    slope_deviation = 0.05
    # For the gap of two arms: twice the variance of a slope, over a straight line; and 5 % of what
    # a bin of that size varies by that nobody knows anything of.
    inside = 4 / 3 * 2 * slope_deviation**2 + 0.05 * 2 * 0.2**2
    deviation = (excess * 0.3 * inside / 2) ** 0.5
    board = believing(
        known, [0.0, 0.0], deviation=deviation, slope_deviation=slope_deviation, served=1
    )
    rules.step(board, known)
    assert board.totals[NODES] == nodes


@pytest.mark.parametrize(("excess", "nodes"), [(0.995, 3), (1.005, 1)])
@pytest.mark.parametrize("slope", [0.0, 0.03, 0.06, 0.2])
def test_while_nobody_is_served_a_bin_is_cut_only_for_slopes_that_were_seen(
    slope: float, excess: float, nodes: int
) -> None:
    known = constants(experiment(d=1))
    slope_deviation = 0.05
    # The gap's slope is 2·slope, with twice the variance of one: 0.03 is within noise, 0.06 is not.
    seen = max((2 * slope) ** 2 - 2 * slope_deviation**2, 0.0)
    assert (seen > 0) == (slope > 0.05)
    inside = 4 / 3 * seen + 0.05 * 2 * 0.2**2
    board = believing(
        known,
        [0.0, 0.0],
        deviation=(excess * 0.3 * inside / 2) ** 0.5,
        slope=np.array([[slope, -slope]]),
        slope_deviation=slope_deviation,
        served=0,
    )
    rules.step(board, known)
    assert board.totals[NODES] == nodes


def test_a_slope_within_noise_is_cut_for_as_soon_as_people_are_served() -> None:
    known = constants(experiment(d=1))
    for served, nodes in ((0, 1), (1, 3)):
        board = believing(
            known,
            [0.0, 0.0],
            deviation=0.03,
            slope=np.array([[0.03, -0.03]]),
            slope_deviation=0.05,
            served=served,
        )
        rules.step(board, known)
        assert board.totals[NODES] == nodes


def test_doubt_about_one_feature_takes_nothing_from_what_was_seen_of_another() -> None:
    known = constants(experiment(d=2))
    board = believing(
        known,
        [0.0, 0.0],
        deviation=0.06,
        slope=np.array([[0.1, -0.1], [0.0, 0.0]]),
        slope_deviation=0.05,
        served=0,
    )
    # Of the gap: the variance is 0.0072. Seen is 4/3·(0.04 - 0.005) + 0.008, of which 0.3 is 0.016;
    # of the second feature nothing, though the doubt about it is 0.08.
    board.prior_info[0, 2] = np.eye(2) / 0.2**2
    rules.step(board, known)
    assert board.totals[NODES] == 3
    assert board.axis[0] == 0


def test_a_step_never_runs_out_of_room() -> None:
    known = constants(experiment(d=1))
    board = begin(known)
    for _ in range(9):
        for position in range(board.totals[CONTESTED]):
            node = board.contested[position]
            board.prior_info[node, 0] = np.eye(2) * 1e8
            board.prior_lean[node, 0] = 0.0
        board = roomy(board, known)
        board.totals[SERVED] = 1
        rules.step(board, known)
    assert board.totals[NODES] == 2**10 - 1
    assert board.totals[CONTESTED] == 2**9
    leaves = [n for n in range(board.totals[NODES]) if board.child[n] == n]
    assert sorted(board.contested[: 2**9].tolist()) == leaves
    assert board.mass[leaves, 0].sum() == pytest.approx(1)
