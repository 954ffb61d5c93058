"""Amendments with ``ldpmab``: a bin counts a user for all of its arms or for none."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import PLACES, device_of
from factories import ARMS, experiment
from sottovoce.estimate.ldpmab.estimator import LdpmabEstimator
from sottovoce.estimate.ldpmab.state import State
from sottovoce.shared.amending import draft
from sottovoce.shared.amendment import ADD_ARM, RETIRE_ARM


def amend(learner: sv.Learner, kind: str, arm: str) -> None:
    made = datetime(2026, 3, 1, tzinfo=UTC)
    learner.amend(draft(learner.experiment, kind, by="operator", made=made, arm=arm))


def state_of(learner: sv.Learner) -> State:
    estimator: Any = learner._estimator
    assert isinstance(estimator, LdpmabEstimator)
    return estimator.state


def told(rng: random.Random, release: sv.Release) -> sv.Report:
    device = device_of(release)
    arm = device.choose(rng.choice(PLACES))
    return device.report(reward=0.8 if arm == ARMS[1] else 0.4)


@pytest.fixture
def learner() -> sv.Learner:
    """One that has heard people of two or three arms, in one bin."""
    return sv.Learner(experiment(epsilon=64.0, horizon=10**6, release_every=1000))


def test_a_bin_that_gets_another_arm_begins_its_sums_anew(learner: sv.Learner) -> None:
    rng = random.Random(0)
    for _ in range(40):
        learner.receive(told(rng, learner.release()))
    assert state_of(learner).users[0].tolist() == [40]
    amend(learner, ADD_ARM, "tea")
    state = state_of(learner)
    assert state.users[0].tolist() == [0]
    assert not state.pulls[0].any()
    assert not state.rewards[0].any()
    assert learner.release().bins[0].arms == (0, 1, 2, 3)
    assert set(learner.release().bins[0].propensities) == {0.25}


def test_reports_for_releases_before_that_are_not_read_there(learner: sv.Learner) -> None:
    rng, old = random.Random(1), learner.release()
    amend(learner, ADD_ARM, "tea")
    for resumed in (learner, sv.Learner.from_json(learner.to_json())):
        for _ in range(5):
            resumed.receive(told(rng, old))
        assert state_of(resumed).users[0].tolist() == [0]
        assert not state_of(resumed).pulls[0].any()
        assert resumed.status().late_reports == 5
        assert resumed.status().dropped_cells == 15
        resumed.receive(told(rng, resumed.release()))
        assert state_of(resumed).users[0].tolist() == [1]


def test_a_bin_that_loses_an_arm_keeps_the_sums_of_the_others(learner: sv.Learner) -> None:
    rng, old = random.Random(2), learner.release()
    for _ in range(40):
        learner.receive(told(rng, learner.release()))
    before = state_of(learner).pulls[0].copy()
    amend(learner, RETIRE_ARM, ARMS[1])
    state = state_of(learner)
    assert state.users[0].tolist() == [40]
    assert state.pulls[0, :, :2].tolist() == before[:, [0, 2]].tolist()
    assert learner.release().bins[0].arms == (0, 2)
    learner.receive(told(rng, old))  # late, and of two arms that are still there
    assert state.users[0].tolist() == [41]
