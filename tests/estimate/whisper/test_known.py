"""What is known of all bins, and what a policy would bring by it."""

import random
from functools import cache
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import ARMS, grown_whisper, whispering
from sottovoce.estimate.figures import DEVIATIONS
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.known import (
    Known,
    _evidence,
    _Picture,
    known_of,
    measured_everywhere,
)
from sottovoce.estimate.whisper.measurement import bin_shares, measured
from sottovoce.estimate.whisper.state import Information
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import uniform
from support.insides import whisper_state_of
from support.whispers import send, tell_places


@cache
def saved(horizon: int, auxiliary: bool) -> str:
    others: dict[str, Any] = {} if auxiliary else {"auxiliary": []}
    learner = sv.Learner(whispering(horizon=horizon, release_every=50, **others))
    rng = random.Random(1)
    tell_places(learner, rng)
    send(learner, rng, 2500, target_only=not auxiliary)
    return learner.to_json()


def learned(*, horizon: int = 2000, auxiliary: bool = False) -> sv.Learner:
    """A learner that has split bins and settled most."""
    return sv.Learner.from_json(saved(horizon, auxiliary))


def known(learner: sv.Learner) -> Known:
    return known_of(whisper_state_of(learner), constants(learner.experiment))


def test_settled_bins_and_dropped_arms_keep_their_estimates() -> None:
    learner = learned()
    release = learner.release()
    assert len(release.bins) > 2
    assert sum(policy.settled for policy in release.bins) > 1
    found = learner.estimates()
    assert len(found) == len(release.bins) * len(ARMS)
    assert all(each.level == 0.95 and each.radius for each in found)
    assert {each.live for each in found} == {True, False}


def test_shares_of_bins_add_up_to_all_people_and_arms_to_one() -> None:
    for learner in (learned(), learned(auxiliary=True), grown_whisper()):
        bins, arms = learner.people(), learner.arms()
        assert [each.path for each in bins] == [each.path for each in learner.release().bins]
        assert sum(each.share for each in bins) == pytest.approx(1)
        assert sum(each.share for each in arms) == pytest.approx(1)
        people = learner.status().reports["target"]
        assert sum(each.people for each in arms) == pytest.approx(people)
        assert all(0 <= each.share_radius < 1 and each.level == 0.95 for each in bins)
        assert all(0 <= each.share_radius < 1 and each.level == 0.95 for each in arms)


def test_shares_add_up_where_the_noise_says_that_nobody_is_in_a_bin() -> None:
    learner = learned()
    state = whisper_state_of(learner)
    nodes = int(state.totals[0].nodes)
    leaves = np.flatnonzero(state.tree.child[:nodes] == np.arange(nodes))
    state.mass_told.precision[leaves[0], 0, 0] = 1e4
    state.mass_told.vector[leaves[0], 0, 0] = -1e4
    share = known(learner).people[0].share[leaves]
    assert share.sum() == pytest.approx(1)
    assert (share > 0).all()


@pytest.mark.parametrize("auxiliary", [False, True])
def test_what_is_measured_is_what_the_learner_measures(auxiliary: bool) -> None:
    learner = learned(auxiliary=auxiliary)
    state, fixed = whisper_state_of(learner), constants(learner.experiment)
    people, arms = known(learner).people, fixed.arms
    for m, group in enumerate(people):
        for index in (0, 1):
            precision, vector = measured_everywhere(state, fixed, group, m, index)
            for node in range(int(state.totals[0].nodes)):
                shares = bin_shares(state, fixed, node)
                shares.share[m] = group.share[node]
                shares.rows[m] = group.share[node] * fixed.behaviour[m]
                if not fixed.known[m]:
                    continue
                state.bias[node] = 0.0
                told = Information(np.empty((arms, arms)), np.empty(arms))
                measured(state, node, m, index, shares, told)
                assert precision[node] == pytest.approx(told.precision)
                assert vector[node] == pytest.approx(told.vector)


def test_an_interval_of_one_bin_is_that_of_the_noise_and_the_prior() -> None:
    # Nothing is split, and everybody is in the only bin: no share to err in.
    learner = sv.Learner(whispering(epsilon=1.0, auxiliary=[], release_every=50, horizon=10**6))
    rng = random.Random(3)
    tell_places(learner, rng)
    send(learner, rng, 200, target_only=True)
    assert len(learner.release().bins) == 1
    state = whisper_state_of(learner)
    told = state.served.precision[0, 0, 0]
    prior = np.linalg.inv(0.25**2 * np.eye(3) + 0.5**2)
    covariance = np.linalg.inv(told + prior)
    mean = covariance @ state.served.vector[0, 0, 0]
    for arm, each in enumerate(learner.estimates()):
        assert each.estimate == pytest.approx(0.5 + mean[arm])
        assert each.radius == pytest.approx(DEVIATIONS * covariance[arm, arm] ** 0.5)
        value = learner.value(f"always:{each.arm}")
        assert (value.estimate, value.radius) == pytest.approx((each.estimate, each.radius))


def test_what_is_not_known_of_who_is_where_makes_intervals_of_bins_wider() -> None:
    learner = learned()
    state, fixed = whisper_state_of(learner), constants(learner.experiment)
    found = known(learner)
    people, nothing = found.people, np.zeros_like(found.mean)
    told = _evidence(_Picture(state, fixed, people, found.mean, nothing, blurred=True)).own
    precision, _ = measured_everywhere(state, fixed, people[0], 0, 0)
    assert (people[0].error > 0.01).sum() > 2
    for node, error in enumerate(people[0].error):
        # An error of the share is one of g by as many per cent: J becomes (J⁻¹ + error²·g·gᵀ)⁻¹.
        spread = error**2 * np.outer(found.mean[node], found.mean[node])
        expected = np.linalg.solve(np.eye(3) + precision[node] @ spread, precision[node])
        assert told[node] == pytest.approx(expected, abs=1e-9)


def test_the_value_of_a_release_is_between_those_of_its_bins() -> None:
    learner = learned()
    release = learner.release()
    value = learner.value(release)
    assert (value.policy, value.level) == (f"release {release.version}", 0.95)
    assert value.reports == learner.status().reports["target"]
    share = {each.path: each.share for each in learner.people()}
    of = {(each.path, each.arm): each.estimate for each in learner.estimates()}
    sum_of_bins = sum(
        share[policy.path] * chance * (of[policy.path, ARMS[arm]] or 0.0)
        for policy in release.bins
        for arm, chance in zip(policy.arms, policy.propensities, strict=True)
    )
    # Bins are shrunk a little more, each by itself.
    assert value.estimate == pytest.approx(sum_of_bins, abs=0.5 * value.radius)
    assert 0 < value.radius < 1


def test_a_policy_may_be_an_older_release_a_file_or_one_arm() -> None:
    learner = learned()
    first = sv.Learner(learner.experiment).release()
    arms = [learner.value(f"always:{arm}") for arm in ARMS]
    half = learner.value(first)  # two arms, half of the people each, everywhere
    offered = [arms[arm].estimate for arm in first.bins[0].arms]
    assert half.estimate == pytest.approx(sum(offered) / 2)
    best = learner.value(sv.Policy(learner.release()))
    assert best.policy == f"the best arms of release {learner.release().version}"
    settled = all(policy.settled for policy in learner.release().bins)
    if settled:
        assert best.estimate == pytest.approx(learner.value(learner.release()).estimate)


def test_what_is_not_known_of_who_is_where_makes_the_value_of_a_policy_less_sure() -> None:
    learner = learned()
    sure = learner.value(learner.release()).radius
    state = whisper_state_of(learner)
    for told in (state.mass_told.precision, state.mass_told.vector):
        told *= 0.01
    again: Any = learner._estimator
    again._all_known = None
    assert learner.value(learner.release()).radius > sure


def test_a_policy_that_cuts_across_bins_has_its_pieces_of_them() -> None:
    learner = sv.Learner(whispering(epsilon=8.0, auxiliary=[], release_every=1200, horizon=10**6))
    rng = random.Random(3)
    tell_places(learner, rng)
    send(learner, rng, 1200, target_only=True)
    assert len(learner.release().bins) <= 2
    # By the truth, the first arm is better in the upper half of the first feature.
    experiment = learner.experiment
    scales = learner.release().partition.scales
    parts = Partition(2, {"": 0, "0": 0, "1": 0}, scales=scales)

    def policy(*arms: int) -> sv.Release:
        paths = ("00", "01", "10", "11")
        bins = tuple(uniform(path, [arm]) for path, arm in zip(paths, arms, strict=True))
        return sv.Release(experiment, 1, parts, bins)

    right, wrong = learner.value(policy(1, 0, 1, 0)), learner.value(policy(0, 1, 0, 1))
    both = sv.Release(experiment, 1, Partition(2, {}), (uniform("", [0, 1]),))
    mixed = learner.value(both)
    assert right.estimate > mixed.estimate > wrong.estimate
    assert (right.estimate + wrong.estimate) / 2 == pytest.approx(mixed.estimate, abs=1e-9)
    assert right.radius > mixed.radius


def test_values_are_in_the_unit_of_the_owner() -> None:
    one = sv.Learner(whispering(auxiliary=[], release_every=50))
    minutes = sv.Learner(whispering(auxiliary=[], release_every=50, reward=(10, 70)))
    for learner in (one, minutes):
        rng = random.Random(3)
        tell_places(learner, rng)
        send(learner, rng, 300, target_only=True)
    plain, scaled = one.value("always:coach"), minutes.value("always:coach")
    assert scaled.estimate == pytest.approx(10 + 60 * plain.estimate)
    assert scaled.radius == pytest.approx(60 * plain.radius)
    assert minutes.arms()[2].estimate == scaled.estimate


def test_without_reports_nothing_is_known_of_a_policy() -> None:
    learner = sv.Learner(whispering())
    assert learner.arms() == []
    with pytest.raises(sv.ExperimentError, match="must have reports; got none: nothing is known"):
        learner.value("always:coach")
