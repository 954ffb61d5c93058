"""Amendments in the state of ``whisper``: what is kept, what comes back, and what may be proved."""

import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from contracts.methods import device_of
from factories import unit_cube
from sottovoce.estimate.whisper import decisions
from sottovoce.estimate.whisper.amend import amend, leaves
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import Answers, add_answers, estimate
from sottovoce.estimate.whisper.publish import release_of
from sottovoce.estimate.whisper.split import split
from sottovoce.estimate.whisper.state import State, arrays_of, initial_state
from sottovoce.estimate.whisper.step import carry_out, contest, step
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM, EXTEND_HORIZON, RETIRE_ARM
from support.insides import whisper_state_of
from support.slow import slow_but
from support.states import SEEDS

MORNING = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
PEOPLE = 1500
REWARD_DEVIATION = 0.25


def after(experiment: sv.Experiment, kind: str, **about: Any) -> sv.Experiment:
    return amended(experiment, draft(experiment, kind, by="operator", made=MORNING, **about))


def amended_state(
    state: State, experiment: sv.Experiment, kind: str, **about: Any
) -> tuple[State, sv.Experiment]:
    now = after(experiment, kind, **about)
    return amend(state, constants(experiment), constants(now)), now


def of_people(seed: int) -> sv.Learner:
    """A learner of people who like the second arm on the right and the first on the left."""
    rng = random.Random(seed)
    experiment = replace(unit_cube(horizon=6000), epsilon=64.0, release_every=50)
    learner = sv.Learner(experiment)
    for _ in range(PEOPLE):
        context = {"x0": rng.random(), "x1": rng.random()}
        device = device_of(learner.release())
        arm = experiment.arms.index(device.choose(context))
        reward = 0.9 if arm == (context["x0"] > 0.5) else 0.1
        learner.receive(device.report(reward=float(rng.random() < reward)))
    assert len(learner.release().bins) > 1
    return learner


@pytest.mark.parametrize("seed", range(3))
def test_all_that_was_learned_of_the_other_arms_is_kept(seed: int) -> None:
    learner = of_people(seed)
    before = whisper_state_of(learner)
    told = ("served", "logged", "mass", "votes", "tree", "scale", "mass_told", "rows_told")
    kept = {name: array.copy() for name, array in arrays_of(before) if name.startswith(told)}
    old = learner.release()
    learner.amend(draft(learner.experiment, ADD_ARM, by="operator", made=MORNING, arm="new"))
    now = dict(arrays_of(whisper_state_of(learner)))
    for name, array in kept.items():
        same = now[name][tuple(slice(size) for size in array.shape)]
        assert (same == array).all(), name
        # Of the new arm nothing is known.
        assert now[name].sum() == pytest.approx(array.sum()) or name.startswith("tree"), name
    assert [each.path for each in learner.release().bins] == [each.path for each in old.bins]


@pytest.mark.parametrize("seed", range(3))
def test_a_new_arm_is_compared_with_the_best_in_every_bin_by_the_prior_of_the_beginning(
    seed: int,
) -> None:
    learner = of_people(seed)
    champions = {policy.path: policy.arms for policy in learner.release().bins if policy.settled}
    assert champions
    learner.amend(draft(learner.experiment, ADD_ARM, by="operator", made=MORNING, arm="new"))
    for policy in learner.release().bins:
        assert 2 in policy.arms
        if policy.path in champions:
            assert policy.arms == (*champions[policy.path], 2)
    state, known = whisper_state_of(learner), constants(learner.experiment)
    root = estimate(state, known, 0)
    assert root.mean[2] == pytest.approx(0, abs=1e-9)
    assert root.covariance[2, 2] == pytest.approx(REWARD_DEVIATION**2)
    assert np.allclose(root.covariance[2, :2], 0)
    for node in range(state.totals[0].nodes):
        found = estimate(state, known, node)
        assert found.mean[2] == pytest.approx(0, abs=1e-9)
        # Effects of the parents add to it; nothing takes away from it.
        assert found.covariance[2, 2] >= REWARD_DEVIATION**2 * (1 - 1e-9)


def test_of_a_new_arm_only_those_who_came_since_have_paid() -> None:
    learner = of_people(0)
    learner.amend(draft(learner.experiment, ADD_ARM, by="operator", made=MORNING, arm="new"))
    state, known = whisper_state_of(learner), constants(learner.experiment)
    assert decisions.paid_for(state, known, 0, 0, 1) == pytest.approx(PEOPLE)
    state.totals[0].paid += 70
    for best, arm in ((0, 2), (2, 1)):
        assert decisions.paid_for(state, known, 0, best, arm) == pytest.approx(70)
    assert decisions.paid_for(state, known, 0, 0, 1) == pytest.approx(PEOPLE + 70)


def dropped(state: State, known: Constants, node: int, arm: int, winner: int) -> None:
    """Let a bin drop an arm for another."""
    live = state.live[node].copy()
    live[arm] = False
    nothing = np.zeros(known.arms)
    left = np.flatnonzero(live)
    rival = int(left[left != winner][0]) if len(left) > 1 else winner
    upper = np.zeros(state.holds.shape[1], dtype=np.bool_)
    decision = decisions.Decision(live, winner, rival, nothing, nothing, -1, upper)
    carry_out(state, known, node, decision)


def test_arms_that_lost_to_a_retired_one_come_back_and_others_do_not() -> None:
    experiment = unit_cube(arms=5)
    known = constants(experiment)
    state = initial_state(known)
    state.totals[0].paid = 900.0
    dropped(state, known, 0, 0, 1)  # 0 < 1
    split(state, known, 0, 0, estimate(state, known, 0))
    for node in (1, 2):
        contest(state, node)
    dropped(state, known, 1, 1, 2)  # on the left 0 < 1 < 2, and 3 < 4
    dropped(state, known, 1, 3, 4)
    dropped(state, known, 2, 2, 1)  # on the right 0 < 1 and 2 < 1 < 3
    dropped(state, known, 2, 1, 3)
    now, later = amended_state(state, experiment, RETIRE_ARM, arm=experiment.arms[2])
    assert np.flatnonzero(now.live[1]).tolist() == [0, 1, 4]
    assert np.flatnonzero(now.live[2]).tolist() == [3, 4]
    assert now.entered[1, [0, 1], 0].tolist() == [900, 900]
    assert now.entered[1, 4, 0] == 0
    then, last = amended_state(now, later, RETIRE_ARM, arm=experiment.arms[3])
    assert np.flatnonzero(then.live[2]).tolist() == [0, 1, 4]
    for each, state_of_it in ((later, now), (last, then)):
        release = release_of(each, state_of_it)
        assert sv.Release.from_table(release.to_table()) == release


def test_where_nobody_but_the_retired_arm_was_left_all_others_come_back() -> None:
    experiment = unit_cube(arms=3)
    known = constants(experiment)
    state = initial_state(known)
    dropped(state, known, 0, 2, 0)
    dropped(state, known, 0, 0, 1)
    state.totals[0].contested = 0
    now, later = amended_state(state, experiment, RETIRE_ARM, arm=experiment.arms[1])
    assert now.live[0].tolist() == [True, False, True]
    assert sorted(now.pair[0]) == [0, 2]
    assert now.totals[0].contested == 1
    assert release_of(later, now).bins[0].live == (0, 2)


def test_a_longer_horizon_makes_decisions_wait() -> None:
    live = {}
    for horizon in (1000, 1_000_000):
        experiment = unit_cube(arms=2, horizon=1000)
        state = initial_state(constants(experiment))
        totals = state.totals[0]
        totals.paid = totals.target = 990.0
        totals.served = totals.reports = 990
        state.prior.vector[0, 0] = state.prior.precision[0, 0] @ np.array([0.05, 0.0])
        state.scaled[:] = True
        totals.scale_share = 0
        if horizon > 1000:
            state, experiment = amended_state(state, experiment, EXTEND_HORIZON, horizon=horizon)
        step(state, constants(experiment))
        live[horizon] = int(state.live[0].sum())
    assert live == {1000: 1, 1_000_000: 2}


@pytest.mark.parametrize("seed", slow_but(range(4), SEEDS))
def test_the_allowances_of_all_comparisons_add_up_to_delta_whenever_arms_come(seed: int) -> None:
    """Each ordered pair that is ever live in a bin may be an error there."""
    rng, delta = np.random.default_rng(seed), 0.1
    experiment = unit_cube(arms=int(rng.integers(2, 4)), guarantee="certified", delta=delta)
    state = initial_state(constants(experiment))
    total, counted = 0.0, set()

    def count() -> None:
        nonlocal total
        known = constants(experiment)
        for node in leaves(state):
            for a, b in itertools.permutations(np.flatnonzero(state.live[node]).tolist(), 2):
                if (node, a, b) not in counted:
                    counted.add((node, a, b))
                    total += decisions.allowance(state, known, node, a, b)

    before: dict[tuple[int, int, int], float] = {}
    for _ in range(30):
        count()
        if rng.random() < 0.2 and len(experiment.arms) < 8:
            name = f"arm {len(experiment.arms)}"
            state, experiment = amended_state(state, experiment, ADD_ARM, arm=name)
        else:
            known = constants(experiment)
            node = int(rng.choice([each for each in leaves(state) if state.tree.depth[each] < 8]))
            state = amend(state, known, known)  # makes room
            split(state, known, node, 0, estimate(state, known, node))
        known = constants(experiment)
        for node, a, b in counted:  # what was allowed once stays
            allowed = decisions.allowance(state, known, node, a, b)
            assert allowed == before.setdefault((node, a, b), allowed)
    count()
    assert total <= delta * (1 + 1e-12)
    assert total > delta / 4


@pytest.mark.parametrize("seed", SEEDS)
def test_two_capped_arms_are_compared_only_when_all_others_are_gone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        arms = int(rng.integers(2, 6))
        live, caps = rng.random(arms) < 0.7, np.where(rng.random(arms) < 0.5, 0.2, 0.5)
        live[int(rng.integers(arms))] = True
        mean = rng.normal(0, 0.1, arms)
        pair = decisions.choose_pair(live, mean, np.eye(arms), caps)
        best = max(np.flatnonzero(live), key=lambda arm: mean[arm])
        assert pair[0] == best
        assert live[pair[1]]
        assert (pair[0] == pair[1]) == (live.sum() == 1)
        if pair[0] != pair[1] and caps[list(pair)].max() < 0.5:
            assert not (live & (caps == 0.5)).any()


@pytest.mark.parametrize("cap", [0.05, 0.2, 0.45])
def test_answers_of_a_capped_bin_are_taken_for_what_they_are(cap: float) -> None:
    """They measure 2c times the difference: the estimate is right, and known (2c)² as well."""
    experiment = unit_cube(arms=2)
    known, told, reports, gap = constants(experiment), 2 * cap, 1e9, 0.3
    mechanism = np.zeros(
        1, [(name, "f8") for name in ("signal", "noise", "inside")] + [("parts", "i8")]
    )
    record = mechanism.view(np.recarray)[0]
    record.signal, record.noise, record.inside, record.parts = 0.46, 4.7, 4.7, 1
    state = initial_state(known)
    sums = np.array([reports * 0.46 * told * gap])
    add_answers(
        state, known, record, known.questions[0], Answers(0, 0, -1, 0, 0, 1, reports, sums, told)
    )
    found = estimate(state, known, 0)
    assert found.mean[0] - found.mean[1] == pytest.approx(gap, rel=1e-3)
    precision = state.served.precision[0, 0, 0]
    assert precision[0, 0] == pytest.approx(told**2 * reports / 4.7)
    assert precision[0, 1] == pytest.approx(-(told**2) * reports / 4.7)


def test_people_have_paid_by_how_many_of_them_got_the_arm_that_loses() -> None:
    experiment = after(unit_cube(arms=2), ADD_ARM, arm="new", cap=0.1)
    known = constants(experiment)
    state = initial_state(known)
    state.totals[0].paid = 1000.0
    assert decisions.paid_for(state, known, 0, 0, 1) == pytest.approx(1000)
    assert decisions.paid_for(state, known, 0, 0, 2) == pytest.approx(200)
    assert decisions.paid_for(state, known, 0, 2, 0) == pytest.approx(1800)
