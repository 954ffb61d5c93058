"""Axes of numbers get scales from what people say about thresholds; nothing is decided before."""

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import CONTRAST, LOGGED_SCALE, SCALE, experiment, unit_cube, whispering
from sottovoce.estimate.whisper.anew import begin_anew
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.publish import release_of
from sottovoce.estimate.whisper.scale import add_places, believe, carry_over, scale_axes, set_scale
from sottovoce.estimate.whisper.shapes import (
    CENTRES,
    OTHERS,
    STEEPNESSES,
    TARGET,
    mean_shape,
    quantile,
    shape_at,
)
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.shared import wire
from sottovoce.shared.whisper.questions import Question
from sottovoce.shared.whisper.thresholds import THRESHOLDS
from support.insides import whisper_state_of
from support.states import Floats, placed_state
from support.whispers import number, person, tell_places, told_place

HIDDEN = 0.01
"""Half of the people of the long tail are below this position."""


def long_tailed(rng: random.Random, axis: int) -> float:
    """A log-normal number along the first axis, and a uniform one along the second."""
    if axis == 1:
        return rng.random()
    return min(HIDDEN * math.exp(rng.gauss(0.0, 1.0)), 1.0)


def told(rng: random.Random, release: sv.Release, **who: Any) -> sv.Report:
    return told_place(rng, release, place=long_tailed, **who)


def taught(seed: int = 0, **settings: Any) -> sv.Learner:
    """A learner that knows where people are."""
    learner = sv.Learner(whispering(**settings))
    tell_places(learner, random.Random(seed), place=long_tailed, population=0)
    return learner


def weights_of(centre: float, log_steepness: float = 0.0) -> Floats:
    """It is certain that everybody's shape is this one."""
    weights = np.zeros((2, CENTRES, STEEPNESSES))
    at = {shape_at(i, j): (i, j) for i in range(CENTRES) for j in range(STEEPNESSES)}
    weights[:, *at[centre, log_steepness]] = 1.0
    return weights


def share_below(position: float) -> float:
    """How many people of the long tail are below a position."""
    return 0.5 * (1 + math.erf(math.log(position / HIDDEN) / math.sqrt(2)))


# --- which axes get scales ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_long_tail_gets_a_scale_near_its_quarters_and_an_even_axis_keeps_its_own(
    seed: int,
) -> None:
    """Quarters to 0.2 of the people, twice what the learner asks for; the seeds are fixed."""
    release = taught(seed).release()
    assert release.partition.scales.keys() == {0}
    for quarter in (0.25, 0.5, 0.75):
        assert share_below(release.partition.position(0, quarter)) == pytest.approx(
            quarter, abs=0.2
        )
    assert (release.scale_share, release.thresholds) == (0, ())


def test_devices_that_tell_where_they_are_give_their_axis_a_scale() -> None:
    """Real devices and their randomness, at ε = 8: half of the people to 0.3 of them.

    By chance it fails less than once in 10^6 runs: some 50 answers about the threshold nearest to
    the middle have a standard deviation of 0.07.
    """
    context = [sv.Numeric("income", 0, 1000), sv.Numeric("age", 18, 90)]
    public = experiment(context=context, epsilon=8.0, release_every=20, method="whisper")
    learner, rng = sv.Learner(public), random.Random(1)
    for _ in range(1500):
        device = sv.Device(learner.release())
        device.choose({"income": 1000 * long_tailed(rng, 0), "age": rng.uniform(18, 90)})
        learner.receive(device.report(reward=float(rng.random() < 0.5)))
        if not learner.release().scale_share:
            break
    release = learner.release()
    assert release.scale_share == 0
    assert share_below(release.partition.position(0, 0.5)) == pytest.approx(0.5, abs=0.3)


def test_nobody_is_asked_where_they_are_where_no_axis_is_a_number() -> None:
    levels = [sv.Categorical("city", ("Rome", "Oslo", "Bern")), sv.Ordinal("dose", ("low", "high"))]
    release = sv.Learner(whispering(context=levels)).release()
    assert (release.scale_share, release.thresholds) == (0, ())


def test_the_first_release_asks_about_numbers_that_everybody_has() -> None:
    mixed = [
        sv.Categorical("city", ("Rome", "Oslo", "Bern")),
        sv.Numeric("age", 18, 90),
        sv.Numeric("income", 0, 1e6, optional=True),
    ]
    release = sv.Learner(whispering(context=mixed)).release()
    assert 0 < release.scale_share < 160
    assert [bool(each) for each in release.thresholds] == [False, True, False, False]
    assert release.partition.scales == {}


def test_fewer_are_asked_the_fewer_axes_are_in_question_and_nobody_in_the_end() -> None:
    learner, rng = sv.Learner(whispering()), random.Random(3)
    shares = [learner.release().scale_share]
    while learner.release().scale_share:
        learner.receive(told(rng, learner.release()))
        shares.append(learner.release().scale_share)
    assert all(before >= after for before, after in pairwise(shares))
    assert shares[-1] == 0


def test_answers_of_the_target_and_of_others_are_added_up_by_their_noise() -> None:
    """At ε = 1 an answer counts less than at ε = 8, by its variance: (1/β)², that is coth²(ε/2)."""
    learner = sv.Learner(whispering(release_every=10))
    assert [each.epsilon for each in learner.experiment.populations] == [8.0, 6.0, 1.0]
    release = learner.release()
    row = release.thresholds[0] - 1
    told = {0: [0.0, 0.0], 1: [0.0, 0.0]}
    asked = [(SCALE, 0, 4), (LOGGED_SCALE, 1, 3), (LOGGED_SCALE, 2, 2), (SCALE, 2, 1)]
    for kind, population, count in asked:
        signal = math.tanh(learner.experiment.populations[population].epsilon / 2)
        for each in range(count):
            payload = bytes([each % 2])
            question = Question(kind, 0, row).number(learner.experiment)
            nonce = bytes([kind, population, each, *bytes(13)])
            ident = wire.release_id(release)
            learner.receive(sv.Report(ident, population, nonce, payload, question))
            group = min(population, 1)
            told[group][0] += signal**2
            told[group][1] += (2 * (each % 2) - 1) / signal * signal**2
    state = whisper_state_of(learner)
    for group, (precision, vector) in told.items():
        assert state.scale_told.precision[group, 0, row] == pytest.approx(precision)
        assert state.scale_told.vector[group, 0, row] == pytest.approx(vector)
    assert not np.delete(state.scale_told.precision, row, axis=2).any()
    assert not state.scale_told.precision[:, 1].any()
    for other in (state.served, state.logged, state.mass_told, state.rows_told):
        assert not other.precision.any()


def test_a_threshold_is_read_by_the_position_it_stands_for() -> None:
    """If everybody is below the lowest threshold that was asked about, the scale is below, too."""
    known = constants(unit_cube(d=1))
    for row, upper in [(3, False), (23, True)]:
        state = initial_state(known)
        add_places(state, TARGET, 0, row, 300.0, 300.0 if upper else -300.0, 1.0)
        scale_axes(state, known)
        middle = state.scale[0, 16]
        assert (middle > THRESHOLDS[row]) == upper
        assert (middle < THRESHOLDS[row]) != upper


# --- auxiliary data -------------------------------------------------------------------------------


def tell_all(state: State, group: int, below: Callable[[float], float], much: float) -> None:
    """Tell of every threshold along the first axis, without noise."""
    for row, threshold in enumerate(THRESHOLDS):
        add_places(state, group, 0, row, much, much * (1 - 2 * below(threshold)), 1.0)


def test_others_stretch_an_axis_for_half_of_the_people_and_the_target_alone_for_all() -> None:
    """Others are below 0.01 for the most part. Nothing is known of the target; then it tells."""
    known = constants(unit_cube(d=1))
    state = initial_state(known)
    tell_all(state, OTHERS, share_below, 100.0)
    scale_axes(state, known)
    assert state.scaled[0]
    for share in (0.25, 0.5, 0.75):
        place = state.scale[0, int(32 * share)]
        assert (share_below(place) + place) / 2 == pytest.approx(share, abs=0.05)
    for below, middle in [(share_below, HIDDEN), (lambda place: place, 0.5)]:
        state = initial_state(known)
        tell_all(state, OTHERS, share_below, 100.0)
        tell_all(state, TARGET, below, 100.0)
        scale_axes(state, known)
        assert state.scaled[0]
        assert state.scale[0, 16] == pytest.approx(middle, rel=0.2)


def test_the_target_is_asked_on_until_somebody_is_known() -> None:
    known = constants(unit_cube(d=1))
    weights = np.empty((2, CENTRES, STEEPNESSES))
    for group in (TARGET, OTHERS):
        state = initial_state(known)
        add_places(state, group, 0, 13, 3.0, 2.0, 1.0)
        assert believe(state, 0, weights) == (group, False)
        tell_all(state, group, share_below, 100.0)
        assert believe(state, 0, weights) == (group, True)


def test_what_others_are_not_asked_leaves_the_target_as_it_is() -> None:
    """Without others, both shapes are the target's."""
    known = constants(unit_cube(d=1))
    state, weights = initial_state(known), np.empty((2, CENTRES, STEEPNESSES))
    tell_all(state, TARGET, share_below, 0.2)
    believe(state, 0, weights)
    assert (weights[TARGET] == weights[OTHERS]).all()


@pytest.mark.parametrize("ours", [(0.0, 1.0), (-3.0, 0.5), (4.0, 2.0)], ids=str)
@pytest.mark.parametrize("theirs", [(0.0, 1.0), (-6.0, 2.0)], ids=str)
def test_quantiles_of_two_shapes_are_where_so_many_of_both_are(
    ours: tuple[float, float], theirs: tuple[float, float]
) -> None:
    for share in (0.03, 0.5, 0.9):
        place = quantile(ours, theirs, share)
        logit = math.log(place / (1 - place))
        below = [1 / (1 + math.exp(-each[1] * (logit - each[0]))) for each in (ours, theirs)]
        assert sum(below) / 2 == pytest.approx(share, abs=1e-6)
        alone = quantile(ours, ours, share)
        odds = math.log(share / (1 - share))
        assert math.log(alone / (1 - alone)) == pytest.approx(ours[0] + odds / ours[1])


def test_a_mean_shape_is_the_only_one_there_is() -> None:
    assert mean_shape(weights_of(-4.0)[0]) == pytest.approx((-4.0, 1.0))


# --- before an axis has its scale -----------------------------------------------------------------


def test_no_arm_is_dropped_and_no_bin_is_split_before_it_is_known_where_people_are() -> None:
    learner, rng = sv.Learner(whispering(horizon=2000)), random.Random(0)
    for _ in range(1200):
        question = number(CONTRAST, rng.randrange(2))
        learner.receive(person(rng, learner.release(), question=question))
    assert not learner.history()
    assert learner.release().scale_share > 0
    tell_places(learner, rng)
    for _ in range(100):
        learner.receive(person(rng, learner.release()))
    assert len(learner.history()) > 0


def test_what_was_told_of_unequal_halves_is_carried_over() -> None:
    """Σ = s·((2r - 1)·g + 4r(1 - r)·effect), so it measures the effect: exactly."""
    known = constants(unit_cube(arms=2, d=1, behaviours=(None,)))
    rng = np.random.default_rng(0)
    for upper, logged in [(0.05, False), (0.8, False), (0.5, True), (0.1, True)]:
        state = initial_state(known)
        told_of = state.logged if logged else state.served
        mean, effect = rng.normal(0, 0.1, 2), rng.normal(0, 0.1, 2)
        share, rows = 0.7, np.array([0.3, 0.4])
        root = rng.normal(0, 1, (2, 2))
        precision = root @ root.T * 50
        factor = 2 * rows if logged else np.full(2, share)
        of_mean, of_effect = 2 * upper - 1, 4 * upper * (1 - upper)
        told_of.precision[0, 1, 1] = precision
        told_of.vector[0, 1, 1] = precision @ (factor * (of_mean * mean + of_effect * effect))
        carry_over(told_of, 0, 1, 0, upper, factor * mean)
        now = told_of.precision[0, 1, 1]
        assert now == pytest.approx(precision * of_effect**2)
        assert told_of.vector[0, 1, 1] == pytest.approx(now @ (factor * effect))


def test_answers_about_unequal_halves_say_nothing_of_a_slope_that_is_not_there() -> None:
    """Nearly all people are in the lower half: what is seen along the axis is their mean."""
    known = constants(unit_cube(arms=2, d=1))
    state, upper = initial_state(known), 0.05
    g, much = np.array([0.2, -0.2]), 4000.0
    for index, of_mean in [(0, 1.0), (1, 2 * upper - 1)]:
        state.served.precision[0, 0, index] = much * np.eye(2)
        state.served.vector[0, 0, index] = much * of_mean * g
    state.mass_told.precision[0, 0, 1] = 5.0
    set_scale(state, known, 0, weights_of(-4.0), upper)
    assert np.abs(state.served.vector[0, 0, 1]).max() < 0.01 * much * 0.2
    assert state.scale[0, 16] == pytest.approx(1 / (1 + math.exp(4.0)))
    assert not state.mass_told.precision[0, 0, 1]  # it was the share of other halves
    assert state.scaled_since[0] == state.totals[0].release


def test_late_answers_about_halves_that_are_no_more_are_left_out() -> None:
    """About the axis with a scale they are of no use; along the other one nothing changed."""
    learner = taught()
    first = sv.Learner(learner.experiment).release()
    for axis, counts in [(0, False), (1, True)]:
        before = whisper_state_of(learner).served.precision[0, 0].copy()
        mark, rng = whisper_state_of(learner).scaled_since[axis], random.Random(0)
        assert (mark > first.version) == (not counts)
        for _ in range(20):
            learner.receive(person(rng, first, question=number(CONTRAST, axis)))
        state = whisper_state_of(learner)
        assert len(learner.release().bins) == 1
        assert (state.served.precision[0, 0, 1 + axis] != before[1 + axis]).any() == counts
    for _ in range(20):
        learner.receive(person(rng, learner.release(), question=number(CONTRAST, 0)))
    assert (whisper_state_of(learner).served.precision[0, 0, 1] != before[1]).any()


def test_answers_to_the_release_that_brought_a_scale_count() -> None:
    learner, rng = sv.Learner(whispering()), random.Random(0)
    while not (release := learner.release()).partition.scales:
        learner.receive(told(rng, release))
    assert whisper_state_of(learner).scaled_since[0] == release.version
    before = whisper_state_of(learner).served.precision[0, 0, 1].copy()
    for _ in range(20):
        learner.receive(person(rng, release, question=number(CONTRAST, 0)))
    assert (whisper_state_of(learner).served.precision[0, 0, 1] != before).any()


# --- splits, saving, beginning anew ---------------------------------------------------------------


def test_bins_are_split_on_the_scale_where_devices_split_them() -> None:
    learner, rng = taught(horizon=4000), random.Random(1)
    knots = learner.release().partition.scales[0]
    for _ in range(1200):
        learner.receive(person(rng, learner.release()))
    release, state = learner.release(), whisper_state_of(learner)
    assert release.partition.scales == {0: knots}
    paths = {"": 0}
    for path, axis in sorted(release.partition.cuts.items(), key=lambda cut: len(cut[0])):
        node = paths[path]
        child = int(state.tree.child[node])
        paths |= {path + "0": child, path + "1": child + 1}
        low, high = release.partition.edges(path)[axis]
        assert state.tree.middle[node] == release.partition.position(axis, (low + high) / 2)
    assert 0 in release.partition.cuts.values()


def test_a_learner_that_begins_anew_keeps_its_scales() -> None:
    learner = taught()
    old = whisper_state_of(learner)
    known = constants(learner.experiment)
    new = begin_anew(old, known)
    for name in ("scale", "scaled", "scaled_since", "thresholds"):
        assert (getattr(new, name) == getattr(old, name)).all()
    for now, before in zip(new.scale_told, old.scale_told, strict=True):
        assert (now == before).all()
    release = release_of(learner.experiment, new)
    assert release.partition.scales == learner.release().partition.scales
    assert (release.scale_share, release.thresholds) == (0, ())


def test_a_learner_that_begins_anew_goes_on_to_ask() -> None:
    learner, rng = sv.Learner(whispering()), random.Random(0)
    for _ in range(20):
        learner.receive(told(rng, learner.release()))
    old, known = whisper_state_of(learner), constants(learner.experiment)
    release = release_of(learner.experiment, begin_anew(old, known))
    assert release.scale_share == learner.release().scale_share > 0
    assert release.thresholds == learner.release().thresholds


@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0}, {"public_arms": True}], ids=str)
def test_a_learner_that_is_saved_while_places_wait_goes_on_bit_for_bit(
    settings: dict[str, Any],
) -> None:
    rng = random.Random(5)
    stays = sv.Learner(whispering(**settings))
    moves = sv.Learner.from_json(stays.to_json())
    waited, old = 0, [stays.release()]
    for count in range(700):
        release = rng.choice(old) if rng.random() < 0.2 else stays.release()
        population = rng.choice([0, 0, 1, 2])
        logged = rng.random() < 0.5
        if release.thresholds:
            report = told(rng, release, population=population, logged=logged)
        else:
            report = person(rng, release, population=population, logged=logged)
        stays.receive(report)
        moves.receive(report)
        if count % 7 == 0:
            waited += bool(json.loads(moves.to_json())["places"])
            moves = sv.Learner.from_json(moves.to_json())
            old.append(stays.release())
        assert moves.release() == stays.release()
    assert moves.to_json() == stays.to_json()
    assert waited > 10
    assert stays.release().partition.scales


def waiting() -> dict[str, Any]:
    """A saved learner in which answers about places wait."""
    learner, rng = sv.Learner(whispering()), random.Random(2)
    for _ in range(33):
        learner.receive(told(rng, learner.release(), population=rng.randrange(3), logged=True))
    table: dict[str, Any] = json.loads(learner.to_json())
    assert len(table["places"]) > 1
    return table


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (0, 3),  # no such population
        (0, -1),
        (0, 0.5),
        (0, "0"),
        (1, 0),  # another question
        (1, 18),
        (1, 132),  # no question
        (1, -1),
        (1, "24"),
        (1, None),
        (2, -1),
        (2, 0),  # nobody, who told something
        (2, 2.5),
        (2, "many"),
        (2, None),
        (2, 10**6),  # more than there were reports
        (3, 100),
        (3, -100),
        (3, 0.5),
        (3, True),
        (3, None),
    ],
)
def test_places_that_wait_and_nobody_told_are_refused(column: int, value: Any) -> None:
    table = waiting()
    row = table["places"][0]
    row[column] = value
    if column == 2 and value == 0:
        row[3] = 1
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    "places",
    [
        lambda rows: [*rows, rows[0]],  # twice
        lambda rows: [row[:3] for row in rows],
        lambda rows: [[*row, 0] for row in rows],
        lambda rows: None,
        lambda rows: "",
        lambda rows: 5,
    ],
)
def test_a_list_of_places_that_is_none_is_refused(places: Any) -> None:
    table = waiting()
    sv.Learner.from_json(json.dumps(table))
    table["places"] = places(table["places"])
    if table["places"] == "":
        table.pop("places")
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state["scale"][0].reverse(),
        lambda state: state["scale"][0].__setitem__(5, state["scale"][0][6]),
        lambda state: state["scale"][0].__setitem__(16, 0.9),
        lambda state: state["scale"][1].__setitem__(16, 0.51),  # it is not in the release
        lambda state: state["scale_told.precision"][0][0].__setitem__(3, -1.0),
        lambda state: state["scaled_since"].__setitem__(0, 0),  # it has a scale in the release
        lambda state: state["scaled_since"].__setitem__(1, 2),
        lambda state: state["thresholds"].__setitem__(0, 99),
        lambda state: state["thresholds"].pop(),
        lambda state: state["scale"].pop(),
        lambda state: state["scaled"].append(True),
    ],
)
def test_a_state_with_scales_that_cannot_be_is_refused(damage: Any) -> None:
    learner, rng = sv.Learner(whispering()), random.Random(0)
    while not learner.release().partition.scales or not learner.release().scale_share:
        learner.receive(told(rng, learner.release()))
    table = json.loads(learner.to_json())
    sv.Learner.from_json(json.dumps(table))
    damage(table["state"])
    with pytest.raises(sv.StateError, match="must be complete and consistent"):
        sv.Learner.from_json(json.dumps(table))


# --- reports that are refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"payload": b""}, "WRONG_LENGTH"),
        ({"payload": b"\0\0"}, "WRONG_LENGTH"),
        ({"payload": b"\2"}, "MALFORMED"),
        ({"payload": (0.5,)}, "MALFORMED"),
        ({"ranking": (0, 1, 2)}, "MALFORMED"),
        ({"question": 132}, "UNKNOWN_QUESTION"),
        ({"population": 3}, "UNKNOWN_POPULATION"),
    ],
)
def test_a_bad_report_about_a_place_is_refused_and_changes_nothing(
    change: dict[str, Any], reason: str
) -> None:
    learner = sv.Learner(whispering())
    report = told(random.Random(0), learner.release())
    before = learner.to_json()
    with pytest.raises(sv.ReportRejected) as caught:
        learner.receive(replace(report, **change))
    assert caught.value.reason is sv.Rejection[reason]
    assert learner.to_json() == before
    learner.receive(report)
    assert json.loads(learner.to_json())["places"] == [
        [0, report.question, 1, 2 * report.payload[0] - 1]
    ]


def test_a_state_in_which_places_are_known_asks_nobody() -> None:
    state: State = placed_state(constants(unit_cube(d=2)))
    assert state.scaled.all()
    assert not state.thresholds.any()
