"""What people tell of their reward in their bin: the gate, the sums, and late answers."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pytest

import sottovoce as sv
from factories import BIN_MASS, BIN_REWARD, whispering
from sottovoce.device.whisper.subset import whisper
from sottovoce.estimate.tree import node_paths
from sottovoce.estimate.whisper.amend import amend
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.publish import release_of
from sottovoce.estimate.whisper.state import State
from sottovoce.shared import wire
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM
from sottovoce.shared.whisper.cells import all_bins_mechanism
from sottovoce.shared.whisper.subset import unpack
from support.crowds import estimator_on, settled, tree
from support.insides import whisper_state_of
from support.whispers import Seeded

# On the wire, with two features: after 8 kinds with 3 patterns, and 2 with 27 thresholds of each.
NUMBERS = {BIN_REWARD: 132, BIN_MASS: 133}
EPSILON = 8.0


def learner_on(experiment: sv.Experiment, state: State) -> sv.Learner:
    learner = sv.Learner(experiment)
    learner._estimator = estimator_on(experiment, state)
    return learner


def grown(**settings: Any) -> sv.Learner:
    """Eight bins, two of them settled."""
    experiment = whispering(**{"epsilon": EPSILON, "release_every": 40, **settings})
    return learner_on(experiment, tree(experiment))


def told(
    release: sv.Release, kind: int, path: str, value: float = 1.0, *, seed: int = 0
) -> sv.Report:
    """Somebody of a bin tells what they are asked."""
    rng = random.Random(seed)
    place = [policy.path for policy in release.bins].index(path)
    mechanism = all_bins_mechanism(release.experiment.epsilon, len(release.bins)).mechanism
    payload = whisper(mechanism, cell=place, value=value, draws=Seeded(rng))
    named = wire.release_id(release)
    return sv.Report(named, 0, rng.randbytes(16), payload, NUMBERS[kind])


def values_of(release: sv.Release, reports: list[sv.Report]) -> Any:
    """The sums of the values that the reports give to each bin."""
    mechanism = all_bins_mechanism(release.experiment.epsilon, len(release.bins)).mechanism
    return np.sum([unpack(mechanism, cast(bytes, each.payload)) for each in reports], axis=0)


def leaves_of(learner: sv.Learner) -> dict[str, int]:
    paths = {path: node for node, path in enumerate(node_paths(whisper_state_of(learner)))}
    return {policy.path: paths[policy.path] for policy in learner.release().bins}


def handed_over(learner: sv.Learner, reports: list[sv.Report]) -> State:
    """The state once these reports have been handed over, before any rule has been applied."""
    for report in reports:
        learner.receive(report)
    estimator: Any = learner._estimator
    estimator._hand_over_all()
    return whisper_state_of(learner)


def mixed(release: sv.Release, kind: int, count: int = 30) -> list[sv.Report]:
    rng, paths = random.Random(kind), [policy.path for policy in release.bins]
    return [
        told(release, kind, rng.choice(paths), rng.choice([1.0, -1.0]), seed=seed)
        for seed in range(count)
    ]


# --- what they are worth --------------------------------------------------------------------------


def assert_told(
    state: State, node: int, policy: sv.BinPolicy, reports: int, total: float, bins: int
) -> None:
    """The precision and vector of one bin: coefficients 2s of arms with the chances s."""
    sets = all_bins_mechanism(EPSILON, bins).mechanism
    variance = sets.noise + state.mass[node, 0] * (sets.inside - sets.noise)
    c = np.zeros(state.live.shape[1])
    for arm, chance in zip(policy.arms, policy.propensities, strict=True):
        c[arm] = 2 * chance
    served = state.served
    expected = reports / variance * np.outer(c, c)
    assert served.precision[node, 0, 0] == pytest.approx(expected)
    assert served.vector[node, 0, 0] == pytest.approx(total / (sets.signal * variance) * c)
    assert not served.precision[node, 0, 1:].any()
    assert not served.precision[node, 1:].any()


def test_rewards_of_all_bins_are_added_by_the_arms_on_offer_there_settled_or_not() -> None:
    learner = grown()
    release = learner.release()
    assert [policy.settled for policy in release.bins].count(True) == 2
    reports = mixed(release, BIN_REWARD)
    sums, nodes = values_of(release, reports), leaves_of(learner)
    state = handed_over(learner, reports)
    for policy, total in zip(release.bins, sums, strict=True):
        assert_told(state, nodes[policy.path], policy, 30, total, 8)
    assert not state.mass_told.precision.any()
    assert (state.totals[0].target, state.totals[0].paid) == (30, 30)
    assert state.totals[0].audit_answers == 0  # the audit counts those who tell nothing else


def test_people_of_all_bins_are_counted_settled_or_not() -> None:
    learner = grown()
    release = learner.release()
    reports = mixed(release, BIN_MASS)
    sums, nodes = values_of(release, reports), leaves_of(learner)
    state = handed_over(learner, reports)
    sets = all_bins_mechanism(EPSILON, 8).mechanism
    for policy, total in zip(release.bins, sums, strict=True):
        node = nodes[policy.path]
        variance = sets.noise + state.mass[node, 0] * (sets.inside - sets.noise)
        assert state.mass_told.precision[node, 0, 0] == pytest.approx(30 / variance)
        assert state.mass_told.vector[node, 0, 0] == pytest.approx(total / sets.signal / variance)
        assert not state.mass_told.precision[node, :, 1:].any()
    assert not state.served.precision.any()


def test_where_an_arm_is_capped_each_counts_by_its_chance() -> None:
    first = whispering(epsilon=EPSILON, arms=2, release_every=40)
    at = datetime(2026, 3, 1, tzinfo=UTC)
    made = draft(first, ADD_ARM, by="operator", made=at, arm="c", cap=0.125)
    second = amended(first, made)
    before = tree(first)
    state = amend(before, constants(first), constants(second))
    learner = learner_on(second, state)
    release = learner.release()
    unequal = [policy for policy in release.bins if min(policy.propensities) == 0.125]
    assert unequal
    reports = mixed(release, BIN_REWARD)
    sums, nodes = values_of(release, reports), leaves_of(learner)
    after = handed_over(learner, reports)
    for policy, total in zip(release.bins, sums, strict=True):
        assert_told(after, nodes[policy.path], policy, 30, total, 8)


# --- late ones ------------------------------------------------------------------------------------


def test_late_answers_are_read_as_their_own_release_meant_them() -> None:
    """Also of a bin that was contested then, and is settled now, and the other way round."""
    learner = grown()
    then = learner.release()
    estimator: Any = learner._estimator
    state, nodes = whisper_state_of(learner), leaves_of(learner)
    closed, opened = then.contested[0].path, next(p.path for p in then.bins if p.settled)
    state.pair[nodes[closed]] = state.pair[nodes[closed], 0]
    state.live[nodes[closed]] = False
    state.live[nodes[closed], state.pair[nodes[closed], 0]] = True
    state.pair[nodes[opened]] = (0, 1)
    state.live[nodes[opened], :2] = True
    listed = list(state.contested[: state.totals[0].contested])
    listed[listed.index(nodes[closed])] = nodes[opened]
    state.contested[: len(listed)] = listed
    state.totals[0].release += 1
    estimator.release = replace_release(learner, state)
    now = learner.release()
    assert now.policies[closed].settled
    assert not now.policies[opened].settled
    reports = mixed(then, BIN_REWARD)
    sums = values_of(then, reports)
    after = handed_over(learner, reports)
    for policy, total in zip(then.bins, sums, strict=True):
        assert_told(after, nodes[policy.path], policy, 30, total, 8)
    assert learner.status().late_reports == 30
    assert learner.status().dropped_cells == 0


def replace_release(learner: sv.Learner, state: State) -> sv.Release:
    estimator: Any = learner._estimator
    release = release_of(learner.experiment, state)
    estimator.gate.publish(release)
    return release


def test_answers_about_a_bin_that_was_split_since_or_is_of_another_tree_tell_nothing() -> None:
    learner = grown()
    then = learner.release()
    estimator: Any = learner._estimator
    state, nodes = whisper_state_of(learner), leaves_of(learner)
    gone = then.contested[0].path
    bins = tuple(policy for policy in then.bins if policy.path != gone)
    children = tuple(replace(then.policies[gone], path=gone + side) for side in "01")
    now = replace(
        then,
        version=then.version + 1,
        bins=tuple(sorted((*bins, *children), key=lambda policy: policy.path)),
    )
    estimator.gate.publish(now)
    estimator.release = replace(now, bins=bins)  # the state has no nodes for the two
    reports = mixed(then, BIN_REWARD)
    state.totals[0].release += 1
    for report in reports:
        learner.receive(report)
    assert learner.status().dropped_cells == 30
    estimator._hand_over_all()
    assert not state.served.precision[nodes[gone]].any()
    assert (
        state.served.precision[[nodes[policy.path] for policy in bins]].any(axis=(1, 2, 3, 4)).all()
    )

    other = grown()
    whisper_state_of(other).totals[0].first_release = then.version + 1
    after = handed_over(other, mixed(other.release(), BIN_REWARD))
    assert not after.served.precision.any()
    assert after.totals[0].target == 30


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"population": 1}, "UNKNOWN_QUESTION", "only the target's people are asked"),
        ({"payload": b""}, "WRONG_LENGTH", "a packed set must take"),
        ({"payload": bytes(9)}, "WRONG_LENGTH", "a packed set must take"),
        ({"ranking": (0, 1, 2)}, "MALFORMED", "ranking must be left out"),
        ({"question": 134}, "UNKNOWN_QUESTION", "be one that its experiment asks"),
    ],
)
@pytest.mark.parametrize("kind", [BIN_REWARD, BIN_MASS])
def test_a_bad_report_about_all_bins_is_refused_and_changes_nothing(
    kind: int, changes: dict[str, Any], reason: str, message: str
) -> None:
    learner = grown()
    good = told(learner.release(), kind, learner.release().bins[0].path)
    with pytest.raises(sv.ReportRejected, match=message) as caught:
        learner.receive(replace(good, **changes))
    assert caught.value.reason is sv.Rejection[reason]
    assert sum(learner.status().reports.values()) == 0
    learner.receive(good)
    assert sum(learner.status().reports.values()) == 1


@pytest.mark.parametrize("kind", [BIN_REWARD, BIN_MASS])
@pytest.mark.parametrize("settings", [{"public_arms": True}, {"guarantee": "certified"}], ids=str)
def test_where_nobody_is_asked_about_all_bins_a_report_is_refused(
    settings: dict[str, Any], kind: int
) -> None:
    learner = grown(**settings)
    report = told(learner.release(), kind, learner.release().bins[0].path)
    with pytest.raises(sv.ReportRejected, match="be one that its experiment asks"):
        learner.receive(report)


@pytest.mark.parametrize("kind", [BIN_REWARD, BIN_MASS])
def test_for_a_release_with_one_bin_a_report_about_all_bins_is_refused(kind: int) -> None:
    learner = sv.Learner(whispering())
    with pytest.raises(sv.ReportRejected, match="its release has one bin"):
        learner.receive(told(learner.release(), kind, ""))


def test_many_at_once_count_as_one_by_one_also_where_nothing_is_contested() -> None:
    experiment = whispering(epsilon=EPSILON, release_every=40)
    one_by_one, at_once = (learner_on(experiment, settled(experiment)) for _ in range(2))
    release = one_by_one.release()
    assert not release.contested
    reports = [*mixed(release, BIN_REWARD), *mixed(release, BIN_MASS)[:5]]
    reports = [replace(each, nonce=bytes([n] * 16)) for n, each in enumerate(reports)]
    for each in reports:
        one_by_one.receive(each)
    packed = [wire.report_to_bytes(each) for each in reports]
    assert at_once.receive_many(packed) == [None] * 35
    assert at_once.to_json() == one_by_one.to_json()
    tallies = json.loads(at_once.to_json())["tallies"]
    assert [each[2] for each in tallies] == [132, 133]
