"""What becomes of a bin that is split."""

import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import unit_cube
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import BinEstimate, bin_shares, estimate, mixing
from sottovoce.estimate.whisper.publish import release_of
from sottovoce.estimate.whisper.split import split
from sottovoce.estimate.whisper.state import State, has_room, initial_state, with_room
from sottovoce.estimate.whisper.step import step
from support.states import (
    Floats,
    believing,
    centred_square,
    events_of,
    placed_state,
    random_precisions,
    with_levels,
)


def random_split(seed: int) -> tuple[State, Constants, BinEstimate, int, int]:
    """A bin somewhere in the tree that is split along some axis with an order."""
    rng = np.random.default_rng(seed)
    arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    known = constants(unit_cube(arms=arms, d=d, behaviours=(None,)))
    state = initial_state(known)
    node = 0
    for _ in range(int(rng.integers(0, 4))):
        state = with_room(state, known)
        split(state, known, node, int(rng.integers(d)), estimate(state, known, 0))
        node = int(state.totals[0].nodes) - 1 - int(rng.integers(2))
    return tell_and_split(rng, state, known, node, int(rng.integers(d)))


def tell_and_split(
    rng: np.random.Generator, state: State, known: Constants, node: int, axis: int
) -> tuple[State, Constants, BinEstimate, int, int]:
    """Let rows of logs tell something of a bin, and split it."""
    state.live[node] = rng.random(known.arms) < 0.8
    state.live[node, :2] = True
    mass, logged = state.mass_told, state.logged
    mass.precision[node] = rng.exponential(1e4, mass.precision[node].shape)
    mass.vector[node] = mass.precision[node] * rng.normal(0, 0.1, mass.vector[node].shape)
    logged.precision[node] = random_precisions(rng, logged.precision[node].shape, scale=1e3)
    logged.vector[node] = rng.normal(0, 1e2, logged.vector[node].shape)
    found = estimate(state, known, node)
    split(state, known, node, axis, found)
    return state, known, found, node, axis


@pytest.fixture(params=range(20))
def splitting(request: pytest.FixtureRequest) -> Any:
    return random_split(request.param)


def test_a_split_loses_nobody(splitting: Any) -> None:
    state, _, found, node, axis = splitting
    lower = state.tree.child[node]
    assert lower == state.totals[0].nodes - 2
    halves = state.mass[lower : lower + 2]
    assert halves.sum(axis=0) == pytest.approx(found.people.share, rel=1e-12)
    part = np.clip(found.people.part[:, axis], 0.01, 0.99)
    assert halves[1] == pytest.approx(found.people.share * part, rel=1e-12)
    assert (halves > 0).all()
    assert (halves <= 1).all()


def test_the_halves_of_a_bin_have_its_mean_together_and_twice_its_effect_between_them(
    splitting: Any,
) -> None:
    state, known, found, node, axis = splitting
    lower = state.tree.child[node]
    means, spreads = [], []
    for half in (lower, lower + 1):
        covariance = np.linalg.inv(state.prior.precision[half, 0])
        spreads.append(covariance)
        means.append(covariance @ state.prior.vector[half, 0])
    # Of those who told: only logged rows did, each arm's by the square of its share of the people.
    rows = bin_shares(state, known, node).rows
    each = np.diagonal(state.logged.precision[node, :, 0], axis1=1, axis2=2)
    told = (rows**2 * each).sum(axis=1)
    r = (told * found.people.part[:, axis]).sum() / told.sum()
    assert (1 - r) * means[0] + r * means[1] == pytest.approx(found.mean, abs=1e-9)
    assert means[1] - means[0] == pytest.approx(2 * found.effect[axis], abs=1e-9)
    # The variance of g + shift·slope, with the two independent.
    for side, (shift, spread) in enumerate(zip((-2 * r, 2 * (1 - r)), spreads, strict=True)):
        assert state.shift[lower + side] == pytest.approx(shift, rel=1e-6, abs=1e-9)
        expected = found.covariance + shift**2 * found.effect_covariance[axis]
        assert spread == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_halves_are_right_when_only_a_lopsided_population_has_told() -> None:
    """Nine tenths of its people are in the upper half, and the target's people are not known."""
    known = constants(unit_cube(arms=2, d=1, behaviours=((0.5, 0.5),)))
    state = initial_state(known)
    state.bias[:] = 0.0  # others are believed as they are
    truth = np.array([0.3, -0.3])  # g in the upper half; the other way round in the lower half
    many = 1e7
    state.rows_told.precision[0, 1] = many
    state.rows_told.vector[0, 1, 0], state.rows_told.vector[0, 1, 1] = many * 0.5, many * 0.5 * 0.8
    state.logged.precision[0, 1] = many * np.eye(2)
    state.logged.vector[0, 1, 0] = many * (0.9 - 0.1) * truth
    state.logged.vector[0, 1, 1] = many * (0.9 + 0.1) * truth
    found = estimate(state, known, 0)
    assert found.mean == pytest.approx(0.8 * truth, abs=1e-3)
    assert found.people.part[:, 0] == pytest.approx([0.5, 0.9], abs=1e-3)
    assert found.effect[0] == pytest.approx(truth, abs=1e-2)
    split(state, known, 0, 0, found)
    for half, sign in ((1, -1), (2, 1)):
        mean = np.linalg.solve(state.prior.precision[half, 0], state.prior.vector[half, 0])
        assert mean == pytest.approx(sign * truth, abs=2e-2)


def test_where_everybody_is_in_one_half_nothing_varies_between_halves() -> None:
    known = constants(unit_cube(arms=2, d=2))
    state = initial_state(known)
    state.mass_told.precision[0, 0] = 1e6
    state.mass_told.vector[0, 0] = [1e6, 1e6, 0.0]  # all in the upper half along the first feature
    state.served.precision[0, 0] = 1e6 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    state.served.vector[0, 0, 0] = [4e5, -4e5]
    state.served.vector[0, 0, 1] = [4e5, -4e5]  # and so the difference is the whole
    found = estimate(state, known, 0)
    assert found.mean[0] - found.mean[1] == pytest.approx(0.4, abs=1e-3)
    assert found.people.part[0, 0] == pytest.approx(1, abs=1e-3)
    assert found.effect[0] == pytest.approx([0.0, 0.0], abs=0.02)
    assert mixing(found.people.part[0, 0]) < 1e-3


def test_the_halves_of_a_bin_tile_it(splitting: Any) -> None:
    state, known, _, node, axis = splitting
    lower = state.tree.child[node]
    low, high = state.tree.edges[node, axis]
    assert state.tree.axis[node] == axis
    assert state.tree.middle[node] == (low + high) / 2
    assert state.tree.edges[lower, axis].tolist() == [low, (low + high) / 2]
    assert state.tree.edges[lower + 1, axis].tolist() == [(low + high) / 2, high]
    for j in range(known.dimension):
        for half in (lower, lower + 1):
            if j != axis:
                assert state.tree.edges[half, j].tolist() == state.tree.edges[node, j].tolist()
    for half in (lower, lower + 1):
        assert state.tree.depth[half] == state.tree.depth[node] + 1
        assert state.tree.child[half] == half
        assert state.tree.middle[half] == math.inf
        assert state.live[half].tolist() == state.live[node].tolist()
        assert not state.served.precision[half].any()
        assert not state.votes[half].any()


def test_every_split_is_logged_with_its_bin_and_feature() -> None:
    known, rng = constants(unit_cube(d=3)), np.random.default_rng(4)
    state = placed_state(known)
    for turn in range(4):
        for node in state.contested[: state.totals[0].contested]:
            slope = rng.normal(0, 0.2, (3, 2))
            state.prior.precision[node] = np.eye(2) * 1e6
            state.prior.vector[node] = 1e6 * np.vstack([np.zeros((1, 2)), slope])
        state.totals[0].served, state.totals[0].reports = 1, 10 * turn
        step(state, known)
    assert set(state.tree.axis[:15]) == {0, 1, 2}
    logged = [
        (each.reports, each.release, each.node, each.axis, each.arm, each.winner)
        for each in events_of(state)
    ]
    assert logged == [
        (10 * state.tree.depth[node], 2 + state.tree.depth[node], node, axis, -1, -1)
        for node, axis in enumerate(state.tree.axis[:15])
    ]


def test_a_half_has_three_quarters_of_the_effects_of_the_whole_and_some_of_its_own(
    splitting: Any,
) -> None:
    """Along the split it has half of that, for its edge is half as long."""
    state, known, found, node, axis = splitting
    live = np.flatnonzero(state.live[node])
    for half in (state.tree.child[node], state.tree.child[node] + 1):
        for j in range(known.dimension):
            expected = centred_square(
                found.effect[j, live], found.effect_covariance[j][np.ix_(live, live)]
            )
            expected *= 0.5 if j == axis else 1.0
            edge = state.tree.edges[half, j, 1] - state.tree.edges[half, j, 0]
            expected = 0.95 * expected + 0.05 * (0.2 * edge) ** 2
            kept = 0.375 if j == axis else 0.75
            covariance = np.linalg.inv(state.prior.precision[half, 1 + j])
            assert state.effect_variance[half, j] == pytest.approx(0.5 * expected, rel=1e-12)
            assert covariance == pytest.approx(
                kept**2 * found.effect_covariance[j] + 0.5 * expected * np.eye(known.arms),
                rel=1e-9,
                abs=1e-15,
            )
            mean = covariance @ state.prior.vector[half, 1 + j]
            assert mean == pytest.approx(kept * found.effect[j], rel=1e-9, abs=1e-12)


def test_no_bin_is_split_more_than_forty_times() -> None:
    known = constants(unit_cube(d=1))
    state = believing(known, [0.0, 0.0], effect=np.array([[0.2, -0.2]]))
    state.tree.depth[0] = 40
    step(state, known)
    assert state.totals[0].nodes == 1
    state.tree.depth[0] = 39
    step(state, known)
    assert state.totals[0].nodes == 3


@pytest.mark.parametrize(("excess", "nodes"), [(0.995, 3), (1.005, 1)])
def test_a_bin_is_split_when_its_variance_is_below_a_share_of_what_varies_inside(
    excess: float, nodes: int
) -> None:
    known = constants(unit_cube(d=1))
    effect_deviation = 0.05
    # For the gap of two arms: twice the variance of a slope, over a straight line; and three times
    # 5 % of what a bin of that size varies by that nobody knows anything of.
    inside = 4 / 3 * 2 * effect_deviation**2 + 3 * 0.05 * 2 * 0.2**2
    deviation = (excess * 0.3 * inside / 2) ** 0.5
    state = believing(
        known, [0.0, 0.0], deviation=deviation, effect_deviation=effect_deviation, served=1
    )
    step(state, known)
    assert state.totals[0].nodes == nodes


@pytest.mark.parametrize(("excess", "nodes"), [(0.995, 3), (1.005, 1)])
@pytest.mark.parametrize("slope", [0.0, 0.03, 0.06, 0.2])
def test_while_nobody_is_served_a_bin_is_split_only_for_slopes_that_were_seen(
    slope: float, excess: float, nodes: int
) -> None:
    known = constants(unit_cube(d=1))
    effect_deviation = 0.05
    # The gap's slope is 2·slope, with twice the variance of one: 0.03 is within noise, 0.06 is not.
    seen = max((2 * slope) ** 2 - 2 * effect_deviation**2, 0.0)
    assert (seen > 0) == (slope > 0.05)
    inside = 4 / 3 * seen + 3 * 0.05 * 2 * 0.2**2
    state = believing(
        known,
        [0.0, 0.0],
        deviation=(excess * 0.3 * inside / 2) ** 0.5,
        effect=np.array([[slope, -slope]]),
        effect_deviation=effect_deviation,
        served=0,
    )
    step(state, known)
    assert state.totals[0].nodes == nodes


def test_a_slope_within_noise_is_split_for_as_soon_as_people_are_served() -> None:
    known = constants(unit_cube(d=1))
    for served, nodes in ((0, 1), (1, 3)):
        state = believing(
            known,
            [0.0, 0.0],
            deviation=0.045,
            effect=np.array([[0.03, -0.03]]),
            effect_deviation=0.05,
            served=served,
        )
        step(state, known)
        assert state.totals[0].nodes == nodes


def test_doubt_about_one_feature_takes_nothing_from_what_was_seen_of_another() -> None:
    known = constants(unit_cube(d=2))
    state = believing(
        known,
        [0.0, 0.0],
        deviation=0.06,
        effect=np.array([[0.1, -0.1], [0.0, 0.0]]),
        effect_deviation=0.05,
        served=0,
    )
    # Of the gap: the variance is 0.0072. Seen is 4/3·(0.04 - 0.005) + 0.008, of which 0.3 is 0.016;
    # of the second feature nothing, though the doubt about it is 0.08.
    state.prior.precision[0, 2] = np.eye(2) / 0.2**2
    step(state, known)
    assert state.totals[0].nodes == 3
    assert state.tree.axis[0] == 0


def test_a_step_never_runs_out_of_room() -> None:
    known = constants(unit_cube(d=1))
    state = placed_state(known)
    for _ in range(9):
        for position in range(state.totals[0].contested):
            node = state.contested[position]
            state.prior.precision[node, 0] = np.eye(2) * 1e8
            state.prior.vector[node, 0] = 0.0
        state = with_room(state, known)
        state.totals[0].served = 1
        step(state, known)
    assert state.totals[0].nodes == 2**10 - 1
    assert state.totals[0].contested == 2**9
    leaves = [n for n in range(state.totals[0].nodes) if state.tree.child[n] == n]
    assert sorted(state.contested[: 2**9].tolist()) == leaves
    assert state.mass[leaves, 0].sum() == pytest.approx(1)


def test_there_is_room_for_bins_that_are_opened_again_and_for_all_that_is_written_down() -> None:
    """A settled bin may be opened and split in one step, and lose its arms over and over."""
    known = constants(unit_cube(d=1))
    state = placed_state(known)
    room = len(state.live)
    state.totals[0].contested = 0
    for nodes, fits in ((room // 2 - 1, True), (room // 2 + 1, False)):
        state.totals[0].nodes = nodes
        assert has_room(state) == fits
    state.totals[0].nodes = 1
    for events, fits in ((len(state.events) - 3, True), (len(state.events) - 2, False)):
        state.totals[0].events = events
        assert has_room(state) == fits
    larger = with_room(state, known)
    assert has_room(larger)
    assert len(larger.events) >= len(state.events) - 2 + 3


# --- levels and places ----------------------------------------------------------------------------


def random_sets(seed: int) -> tuple[State, Constants, BinEstimate, int, int]:
    """A bin that is split into two sets of levels, along the second of three axes."""
    rng = np.random.default_rng(seed)
    arms, levels = int(rng.integers(2, 4)), int(rng.integers(3, 7))
    known = constants(with_levels(0, levels, 3, arms=arms, behaviours=(None,)))
    state = initial_state(known)
    state.level_mass[0, :, 1 : 1 + levels] = rng.dirichlet(np.ones(levels) * 5, 2)
    upper = rng.permutation(np.arange(levels) < rng.integers(1, levels))
    state.upper[0, 1 : 1 + levels] = upper
    return tell_and_split(rng, state, known, 0, 1)


@pytest.fixture(params=range(20))
def by_levels(request: pytest.FixtureRequest) -> Any:
    return random_sets(request.param)


def sets_of(state: State, known: Constants) -> tuple[Any, Any]:
    """The slots of the lower and of the upper part."""
    slots = np.arange(1, known.axes.slots[2])
    return slots[~state.upper[0, slots]], slots[state.upper[0, slots]]


def test_a_split_by_levels_loses_nobody_and_no_level(by_levels: Any) -> None:
    state, known, found, _, _ = by_levels
    lower, upper = sets_of(state, known)
    part = found.people.part
    share = part[:, upper].sum(axis=1) / part[:, [*lower, *upper]].sum(axis=1)
    share = np.clip(share, 0.01, 0.99)
    assert state.mass[1:3].sum(axis=0) == pytest.approx(found.people.share, rel=1e-9)
    assert state.mass[2] == pytest.approx(found.people.share * share, rel=1e-9)
    for node, slots, of_part in ((1, lower, 1 - share), (2, upper, share)):
        expected = np.minimum(part[:, slots] / of_part[:, None], 1)
        assert state.level_mass[node][:, slots] == pytest.approx(expected, rel=1e-9)
        # Other axes have the levels that they had.
        assert state.level_mass[node, :, -3:] == pytest.approx(part[:, -3:])
        held = set(np.flatnonzero(state.holds[node, 1:-3]) + 1)
        assert held == (set(slots.tolist()) if len(slots) > 1 else set())
        assert state.holds[node, [0, -3, -2, -1]].all()
    # A set is no part of an edge, and nobody is above or below its middle.
    assert (state.tree.edges[1:3] == [0, 1]).all()
    assert state.tree.middle[0] == math.inf


def test_two_sets_of_levels_have_the_mean_of_all_together_and_their_own_between_them(
    by_levels: Any,
) -> None:
    state, known, found, _, _ = by_levels
    lower, upper = sets_of(state, known)
    weights: Floats = found.people.part[0]
    means = [weights[some] @ found.effect[some] / weights[some].sum() for some in (lower, upper)]
    priors = [np.linalg.inv(state.prior.precision[part, 0]) for part in (1, 2)]
    low, high = (priors[side] @ state.prior.vector[1 + side, 0] for side in range(2))
    assert high - low == pytest.approx(means[1] - means[0], abs=1e-8)
    r = -state.shift[1] / 2
    assert state.shift[2] == pytest.approx(2 * (1 - r))
    assert (1 - r) * low + r * high == pytest.approx(found.mean, abs=1e-8)
    spread = sum(
        np.einsum(
            "l,lab->ab",
            (weights[some] / weights[some].sum() / 2) ** 2,
            found.effect_covariance[some],
        )
        for some in (lower, upper)
    )
    for side in range(2):
        expected = found.covariance + state.shift[1 + side] ** 2 * spread
        assert priors[side] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_levels_end_when_every_bin_holds_one() -> None:
    """Each split takes levels away from both parts; a single one has nothing left to differ in."""
    known = constants(with_levels(4, 0))
    state = initial_state(known)
    for node, up in ((0, [2, 3]), (1, [0]), (2, [3])):
        state.upper[node, up] = True
        split(state, known, node, 0, estimate(state, known, node))
    held = [np.flatnonzero(state.holds[node, :4]).tolist() for node in range(7)]
    assert held == [[0, 1, 2, 3], [0, 1], [2, 3], [], [], [], []]
    assert state.holds[:7, 4].all()
    assert state.mass[3:7, 0] == pytest.approx(0.25)


@pytest.mark.parametrize("places", [2, 3, 4, 5, 8])
def test_places_in_order_end_when_every_bin_holds_one(places: int) -> None:
    """Bins are halved at midpoints; where one place is left, or none, no half differs."""
    experiment = sv.Experiment(
        arms=["a", "b"],
        context=[
            sv.Ordinal("x", tuple(f"{place}" for place in range(places))),
            sv.Numeric("y", 0, 1),
        ],
        epsilon=1.0,
        horizon=1000,
    )
    known = constants(experiment)
    state = initial_state(known)
    node = 0
    while node < state.totals[0].nodes:
        state = with_room(state, known)
        low, high = state.tree.edges[node, 0]
        inside = [place for place in range(places) if low <= (place + 0.5) / places < high]
        assert state.holds[node, 0] == (len(inside) > 1)
        assert state.holds[node, 1]
        if len(inside) > 1:
            split(state, known, node, 0, estimate(state, known, node))
        node += 1
    leaves = [each for each in range(node) if state.tree.child[each] == each]
    assert len(leaves) >= places


def test_bins_are_not_split_along_what_nobody_differs_in() -> None:
    """One level is left along the first axis, and the number along the second is split instead."""
    known = constants(with_levels(3, 0))
    state = believing(known, [0.0, 0.0], effect=np.array([[0.3, -0.3]] * 3 + [[0.05, -0.05]]))
    state.holds[0, :3] = False
    step(state, known)
    (event,) = events_of(state)
    assert event.axis == 1


def test_the_parts_of_a_split_by_levels_are_where_their_people_go() -> None:
    """A release says who goes up, and finds people in the bins that the learner means."""
    experiment = with_levels(5, 0)
    known = constants(experiment)
    state = initial_state(known)
    state.upper[0, [1, 4]] = True
    split(state, known, 0, 0, estimate(state, known, 0))
    state.pair[1:3] = [0, 1]
    state.contested[:2], state.totals[0].contested = [1, 2], 2
    release = release_of(experiment, state)
    found = [release.partition.find(((level + 0.5) / 5, 0.3)) for level in range(5)]
    assert found == ["0", "1", "0", "0", "1"]
    assert state.mass[1:3, 0] == pytest.approx([0.6, 0.4])
    assert state.level_mass[1, 0, :5][[0, 2, 3]] == pytest.approx(1 / 3)
    assert state.level_mass[2, 0, :5][[1, 4]] == pytest.approx(1 / 2)
