"""What every method must do: when an operator amends a running experiment."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import MOST, Make, anybody, device_of, grown, report_of, settled
from factories import ARMS
from sottovoce.shared import wire
from sottovoce.shared.amending import draft
from sottovoce.shared.amendment import (
    ADD_ARM,
    ARCHIVE,
    EXTEND_HORIZON,
    PAUSE,
    RESUME,
    RETIRE_ARM,
    STOP,
)

MORNING = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
UNKNOWN = [sv.Population("clinic-b", 8.0, 100), sv.Population("clinic-c", 0.5, 100)]


def amend(learner: sv.Learner, kind: str, **about: Any) -> None:
    learner.amend(draft(learner.experiment, kind, by="operator", made=MORNING, **about))


def of_two_arms(make: Make, **settings: Any) -> sv.Learner:
    """A learner that knows two arms well; the third is to come."""
    return grown(make, arms=ARMS[:2], auxiliary=UNKNOWN, **settings)


def test_each_amendment_makes_a_release_and_is_in_the_history(make: Make) -> None:
    learner = grown(make)
    for kind, about in [(PAUSE, {}), (EXTEND_HORIZON, {"horizon": 900}), (STOP, {}), (ARCHIVE, {})]:
        before, reports = learner.release(), sum(learner.status().reports.values())
        amend(learner, kind, **about)
        release = learner.release()
        assert release.version == before.version + 1
        assert release.bins == before.bins
        assert release.experiment == learner.experiment
        last = learner.history()[-1]
        assert (last.reports, last.event) == (
            reports,
            sv.Amended(release.version, learner.experiment.amendments[-1]),
        )
        assert sv.Learner.from_json(learner.to_json()).to_json() == learner.to_json()
    assert learner.experiment.horizon == 900


def test_an_amendment_that_is_refused_changes_nothing(make: Make) -> None:
    learner = grown(make)
    before = learner.to_json()
    with pytest.raises(sv.ExperimentError, match="must be one of"):
        amend(learner, RESUME)
    with pytest.raises(sv.ExperimentError, match="an extended horizon must be more than"):
        amend(learner, EXTEND_HORIZON, horizon=1)
    with pytest.raises(sv.ExperimentError, match="a retired arm must be one of"):
        amend(learner, RETIRE_ARM, arm="tea")
    assert learner.to_json() == before


@pytest.mark.parametrize("kind", [PAUSE, STOP, ARCHIVE])
def test_reports_are_counted_and_no_step_is_taken_unless_it_is_running(
    make: Make, kind: str
) -> None:
    rng, learner = random.Random(1), sv.Learner(make(epsilon=64.0))
    running = learner.release()
    amend(learner, kind)
    release, count = learner.release(), sum(learner.status().reports.values())
    history = learner.history()
    for number in range(1, 301):
        learner.receive(anybody(rng, running))  # under way
        assert sum(learner.status().reports.values()) == count + number
    assert learner.release() == release
    assert learner.history() == history
    if kind == PAUSE:
        amend(learner, RESUME)
        for _ in range(MOST):
            learner.receive(anybody(rng, learner.release()))
            if learner.release().version > release.version + 1:
                return
        raise AssertionError("a learner that goes on must decide again")


def test_a_new_arm_is_live_in_every_bin_and_an_old_one_may_win_or_lose_as_before(
    make: Make,
) -> None:
    learner = settled(make, arms=ARMS[:2], auxiliary=UNKNOWN)
    before = learner.release()
    assert all(policy.settled for policy in before.bins)
    amend(learner, ADD_ARM, arm="coach")
    release = learner.release()
    assert release.experiment.arms == ARMS
    assert [policy.path for policy in release.bins] == [policy.path for policy in before.bins]
    for policy in release.bins:
        assert policy.live == tuple(sorted((*before.policies[policy.path].live, 2)))
        assert 2 in policy.arms
    assert learner.status().contested_cells == sum(len(each.live) for each in release.bins)
    assert {each.arm for each in learner.estimates() if each.live} == {ARMS[1], ARMS[2]}


def test_a_new_arm_that_all_like_gets_all_in_the_end(make: Make) -> None:
    rng, learner = random.Random(2), settled(make, arms=ARMS[:2], auxiliary=UNKNOWN)
    amend(learner, ADD_ARM, arm="coach")
    for _ in range(MOST):
        if not learner.release().contested:
            break
        device = device_of(learner.release())
        arm = device.choose({"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)})
        learner.receive(device.report(reward=float(arm == "coach")))
    assert {policy.arms for policy in learner.release().bins} == {(2,)}


def test_reports_for_releases_before_an_arm_came_are_counted_as_they_were_meant(
    make: Make,
) -> None:
    """They have the form of an experiment with two arms, which is another than with three."""
    learner = of_two_arms(make, epsilon=4.0, release_every=50)
    rng, old = random.Random(3), learner.release()
    late = [
        report_of(rng, old, population=m, logged=logged)
        for _ in range(10)
        for m, logged in [(0, False), (1, True), (2, True), (0, True)]
    ]
    untouched = sv.Learner.from_json(learner.to_json())
    amend(learner, ADD_ARM, arm="coach")
    for report in late:
        learner.receive(report)
        untouched.receive(report)
    assert learner.status().reports == untouched.status().reports
    assert learner.status().late_reports == untouched.status().late_reports + len(late)
    resumed = sv.Learner.from_json(learner.to_json())
    for _ in range(120):
        report = anybody(rng, learner.release())
        for each in (learner, resumed):
            each.receive(report)
    assert resumed.to_json() == learner.to_json()
    # Of an arm that their experiment did not have, nobody can tell.
    wrong = report_of(rng, learner.release())
    if wrong.ranking:
        moved = sv.Report(
            wire.release_id(old), 0, wrong.nonce, wrong.payload, wrong.question, wrong.ranking
        )
        with pytest.raises(sv.ReportRejected):
            learner.receive(moved)


def test_nobody_gets_a_retired_arm_and_somebody_retired_it(make: Make) -> None:
    learner = settled(make)
    best = learner.experiment.arms[1]
    amend(learner, RETIRE_ARM, arm=best)
    rng, first = random.Random(4), learner.release()
    # It had won everywhere: those that lost to it come back.
    assert all(policy.live == (0, 2) for policy in first.bins)
    for _ in range(300):
        release = learner.release()
        assert all(1 not in policy.live for policy in release.bins)
        device = device_of(release)
        arm = device.choose({"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)})
        assert arm != best
        learner.receive(device.report(reward=float(arm == learner.experiment.arms[2])))
    retired = sv.Retirement(first.version, best, "operator", "2026-03-01T09:30:00Z")
    assert learner.retirements() == (retired,)
    assert sv.Learner.from_json(learner.to_json()).retirements() == (retired,)


def amended_run(rng: random.Random, learner: sv.Learner) -> Iterator[bytes | tuple[str, Any]]:
    """What happens to a learner: reports, some of them late, and amendments."""
    changes: dict[int, tuple[str, dict[str, Any]]] = {
        45: (ADD_ARM, {"arm": "coach"}),
        120: (PAUSE, {}),
        135: (EXTEND_HORIZON, {"horizon": 5000}),
        150: (RESUME, {}),
        200: (RETIRE_ARM, {"arm": "control"}),
    }
    releases = [learner.release()]
    for count in range(300):
        release = rng.choice(releases) if rng.random() < 0.4 else releases[-1]
        yield wire.report_to_bytes(anybody(rng, release))
        if count in changes:
            yield changes[count]
        now = learner.release()
        if now.version != releases[-1].version and now.experiment.state == "running":
            releases.append(now)


def test_the_same_reports_and_amendments_at_the_same_places_give_the_same_releases(
    make: Make,
) -> None:
    experiment = make(arms=ARMS[:2], auxiliary=UNKNOWN, epsilon=16.0)
    learner, steps = sv.Learner(experiment), []
    for each in amended_run(random.Random(5), learner):
        steps.append(each)
        if isinstance(each, bytes):
            assert learner.receive_many([each]) == [None]
        else:
            amend(learner, each[0], **each[1])
    assert len(learner.experiment.amendments) == 5
    again = sv.Learner(experiment)
    waiting: list[bytes] = []
    ended: list[bytes | tuple[str, Any] | None] = [*steps, None]
    for number, step in enumerate(ended):
        if isinstance(step, bytes):
            waiting.append(step)
            continue
        assert set(again.receive_many(waiting)) <= {None}
        waiting.clear()
        if step is not None:
            amend(again, step[0], **step[1])
        if number % 2:
            again = sv.Learner.from_json(again.to_json())
    assert again.to_json() == learner.to_json()
    assert again.history() == learner.history()
    assert again.status() == learner.status()
    assert wire.release_from_json(wire.release_to_json(again.release())) == learner.release()


def test_a_cap_is_kept_or_refused(make: Make) -> None:
    learner = of_two_arms(make)
    settings = learner.experiment.settings
    before = learner.to_json()
    if settings.name != "whisper" or settings.arms_are_public:
        with pytest.raises(sv.ExperimentError, match="an added arm must have no cap"):
            amend(learner, ADD_ARM, arm="coach", cap=0.1)
        assert learner.to_json() == before
        return
    amend(learner, ADD_ARM, arm="coach", cap=0.1)
    rng = random.Random(6)
    for _ in range(200):
        for policy in learner.release().bins:
            if 2 in policy.arms and not policy.settled:
                assert dict(zip(policy.arms, policy.propensities, strict=True))[2] == 0.1
        learner.receive(anybody(rng, learner.release()))
    assert sv.Learner.from_json(learner.to_json()).to_json() == learner.to_json()
