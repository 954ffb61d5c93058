"""What every method must do: in the learner."""

import itertools
import json
import math
import random
from dataclasses import asdict, fields, replace
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import (
    ADDS_FLOATS,
    MOST,
    PLACES,
    Make,
    anybody,
    device_of,
    grown,
    report_of,
    settled,
)
from sottovoce.estimate import history
from sottovoce.estimate.diagnosis import Diagnosis, Source
from sottovoce.estimate.history import Certificate
from sottovoce.estimate.learner import Status
from sottovoce.estimate.method import CellEstimate, learner_method
from sottovoce.shared import wire
from support.spoiled import cut_at_random, spoil, verdict


def test_a_learner_counts_the_reports_of_real_devices(make: Make) -> None:
    rng, learner = random.Random(4), sv.Learner(make())
    expected = {"target": 0, "clinic-b": 0, "clinic-c": 0}
    for m, logged in itertools.product(range(3), (False, True)):
        for _ in range(17):
            learner.receive(report_of(rng, learner.release(), population=m, logged=logged))
            expected[learner.experiment.populations[m].name] += 1
            assert learner.status().reports == expected


def wrong_reports(report: sv.Report, not_yet: bytes) -> list[tuple[sv.Rejection, sv.Report]]:
    """Reports with one thing wrong, each with why it is refused."""
    because = sv.Rejection
    payload: Any = report.payload
    longer = payload + (b"\0" if isinstance(payload, bytes) else (0.0,))
    wrong = [
        (because.UNKNOWN_RELEASE, replace(report, release=bytes(12))),
        (because.UNKNOWN_RELEASE, replace(report, release=not_yet)),
        (because.UNKNOWN_POPULATION, replace(report, population=3)),
        (because.WRONG_LENGTH, replace(report, payload=longer)),
        (because.WRONG_LENGTH, replace(report, payload=report.payload[:-1])),
    ]
    if isinstance(report.payload, bytes):
        garbage = b"\xff" * len(report.payload)
        return [
            *wrong,
            (because.UNKNOWN_QUESTION, replace(report, question=2**16 - 1)),
            (because.MALFORMED, replace(report, payload=garbage)),
            (because.MALFORMED, replace(report, payload=(0.5, 0.5))),
        ]
    return [
        *wrong,
        (because.MALFORMED, replace(report, question=1)),
        (because.MALFORMED, replace(report, payload=b"\1")),
        (because.NOT_FINITE, replace(report, payload=(math.nan, *report.payload[1:]))),
        (because.IMPLAUSIBLE, replace(report, payload=(1e9, *report.payload[1:]))),
    ]


def test_what_is_wrong_is_refused_with_its_reason_and_changes_nothing(make: Make) -> None:
    learner = sv.Learner(make())
    rng = random.Random(5)
    for _ in range(3):
        learner.receive(anybody(rng, learner.release()))
    before = learner.to_json()
    report = report_of(rng, learner.release())
    for reason, wrong in wrong_reports(
        report, wire.release_id(replace(learner.release(), version=2))
    ):
        with pytest.raises(sv.ReportRejected) as caught:
            learner.receive(wrong)
        assert caught.value.reason is reason
        if isinstance(wrong.payload, bytes) or not wrong.question:  # it has a compact form
            assert learner.receive_many([wire.report_to_bytes(wrong)]) == [reason]
        assert learner.to_json() == before
    others: list[Any] = ["a report", b"sv", None, {"payload": []}]
    for thing in others:
        with pytest.raises(sv.ReportRejected) as caught:
            learner.receive(thing)
        assert caught.value.reason is sv.Rejection.MALFORMED
    garbage = [b"", b"sv", b"some other bytes", wire.report_to_bytes(report)[:-1] + b"??"]
    assert None not in learner.receive_many(garbage)
    assert learner.to_json() == before
    learner.receive(report)
    assert learner.to_json() != before


def history_of(make: Make, rng: random.Random, count: int, **settings: Any) -> list[bytes]:
    """Reports for all releases so far, some of them late and some of them spoiled."""
    learner = sv.Learner(make(**settings))
    releases: list[sv.Release] = [learner.release()]
    reports: list[bytes] = []
    after = 0  # reports since the second release
    while len(reports) < count or (after < 100 and len(reports) < MOST):
        after += len(releases) > 1
        release = rng.choice(releases) if rng.random() < 0.5 else learner.release()
        data = wire.report_to_bytes(anybody(rng, release))
        if rng.random() < 0.2:
            data = spoil(rng, data)
        reports.append(data)
        verdict(learner.receive, data)
        if releases[-1].version != learner.release().version:
            releases.append(learner.release())
    assert len(releases) > 1
    return reports


def test_many_reports_at_once_are_as_one_by_one_bit_for_bit(make: Make) -> None:
    rng = random.Random(6)
    reports = history_of(make, rng, 300, epsilon=16.0)
    one_by_one, at_once = (sv.Learner(make(epsilon=16.0)) for _ in range(2))
    seen: set[sv.Rejection | None] = set()
    for piece in cut_at_random(rng, reports, most=60):
        verdicts = [verdict(one_by_one.receive, data) for data in piece]
        assert at_once.receive_many(piece) == verdicts
        assert at_once.to_json() == one_by_one.to_json()
        seen |= set(verdicts)
    assert None in seen
    assert len(seen) > 3
    assert one_by_one.status().late_reports > 0


def test_the_order_of_reports_between_two_steps_does_not_matter(
    make: Make, table: dict[str, Any]
) -> None:
    rng, compare = random.Random(7), same if table["name"] not in ADDS_FLOATS else close
    learners = [sv.Learner(make(epsilon=16.0)) for _ in range(2)]
    for step in range(MOST // 10):
        release = learners[0].release()
        compare(release.to_table(), learners[1].release().to_table())
        if step >= 30 and release.version > 1:
            break
        reports = [anybody(rng, release) for _ in range(10)]  # until the next step
        for learner in learners:
            # Where sums are floats, so are chances, and the texts may differ in their last digits.
            mine = wire.release_id(learner.release())
            for report in reports:
                learner.receive(replace(report, release=mine))
            rng.shuffle(reports)
    first, second = (json.loads(learner.to_json()) for learner in learners)
    assert release.version > 1
    ids = first.pop("ids"), second.pop("ids")
    assert compare is close or ids[0] == ids[1]
    compare(first, second)


def same(one: Any, other: Any) -> None:
    """Bit for bit."""
    assert one == other


def close(one: Any, other: Any) -> None:
    """The same, but for the rounding of floats."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for each, another in zip(one, other, strict=True):
            close(each, another)
    else:
        assert one == (pytest.approx(other, rel=1e-9, abs=1e-9) if type(one) is float else other)


def test_a_learner_that_was_saved_goes_on_bit_for_bit(make: Make) -> None:
    rng = random.Random(8)
    reports = history_of(make, rng, 150, epsilon=16.0)
    learner = resumed = sv.Learner(make(epsilon=16.0))
    for start in range(0, len(reports), 7):  # at steps and between them
        resumed = sv.Learner.from_json(resumed.to_json())
        assert resumed.release() == learner.release()
        learner.receive_many(reports[start : start + 7])
        if resumed is not learner:
            resumed.receive_many(reports[start : start + 7])
        assert resumed.to_json() == learner.to_json()
        assert resumed.status() == learner.status()
        assert resumed.history() == learner.history()
        assert resumed.certificates() == learner.certificates()
        assert resumed.estimates() == learner.estimates()
        assert resumed.diagnosis() == learner.diagnosis()


def test_a_saved_learner_that_is_damaged_is_refused(make: Make) -> None:
    text = grown(make).to_json()
    state = json.loads(text)
    own = learner_method(make()).begin(make()).to_table().keys()
    for key in own:
        without = {name: value for name, value in state.items() if name != key}
        with pytest.raises(sv.StateError, match="a saved learner must be complete"):
            sv.Learner.from_json(json.dumps(without))
    with pytest.raises(sv.StateError, match="cut off or damaged"):
        sv.Learner.from_json(text[:-10])


def test_late_reports_are_taken(make: Make) -> None:
    learner = grown(make, epsilon=64.0, release_every=5)
    first = sv.Learner(learner.experiment).release()
    rng, late = random.Random(9), learner.status().late_reports
    for count in range(1, 31):
        release = first if count % 2 else sv.Learner.from_json(learner.to_json()).release()
        was_late = release.version < learner.release().version
        learner.receive(anybody(rng, release))
        late += was_late
        assert learner.status().late_reports == late
    assert late >= 15


def test_every_release_is_valid_on_the_wire_and_follows_the_last(make: Make) -> None:
    rng, learner = random.Random(10), sv.Learner(make(epsilon=64.0))
    releases = [learner.release()]
    for count in range(MOST):
        if count >= 400 and len(releases) > 1:
            break
        learner.receive(anybody(rng, learner.release()))
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    assert [release.version for release in releases] == list(range(1, len(releases) + 1))
    assert len(releases) > 1
    for release in releases:
        assert wire.release_from_json(wire.release_to_json(release)) == release
        assert release.experiment == learner.experiment
        assert [policy.path for policy in release.bins] == list(release.partition.leaves())


def test_what_a_learner_says_is_of_the_documented_types(make: Make) -> None:
    for learner in (sv.Learner(make()), grown(make, epsilon=64.0), settled(make)):
        check_status(learner)
        arms, paths = list(learner.experiment.arms), set(learner.release().policies)
        estimates = learner.estimates()
        assert isinstance(estimates, list)
        # Every arm in every bin, settled ones too.
        assert [(each.path, each.arm) for each in estimates] == [
            (policy.path, arm) for policy in learner.release().bins for arm in arms
        ]
        policies = learner.release().policies
        for each in estimates:
            assert each.live == (arms.index(each.arm) in policies[each.path].live)
        for estimate in estimates:
            assert isinstance(estimate, CellEstimate)
            assert estimate.arm in arms
            assert estimate.path in paths
            known = [each for each in (estimate.estimate, estimate.radius) if each is not None]
            assert all(type(each) is float and math.isfinite(each) for each in known)
            assert len(known) in (0, 2)
        check_history(learner)
        diagnosis = learner.diagnosis()
        assert isinstance(diagnosis, Diagnosis)
        assert all(isinstance(each, Source) for each in diagnosis.sources)
        names = [population.name for population in learner.experiment.auxiliary]
        assert [each.population for each in diagnosis.sources] == names
        assert sorted(diagnosis.best_first()) == sorted(names)
        assert all(isinstance(each, str) for each in diagnosis.warnings)
        said: list[Any] = [*estimates, *learner.certificates(), *diagnosis.sources]
        for each in (*said, learner.status()):  # all that a server writes down
            table = asdict(each)
            assert json.loads(json.dumps(table, allow_nan=False)).keys() == table.keys()


def check_status(learner: sv.Learner) -> None:
    status, release = learner.status(), learner.release()
    assert isinstance(status, Status)
    assert status.reports.keys() == {each.name for each in learner.experiment.populations}
    counts = [getattr(status, each.name) for each in fields(Status) if each.name != "reports"]
    assert all(type(each) is int and each >= 0 for each in (*counts, *status.reports.values()))
    assert status.release == release.version
    assert status.bins == len(release.bins)
    assert status.settled_bins == sum(len(each.arms) == 1 for each in release.bins)


def check_history(learner: sv.Learner) -> None:
    arms = range(len(learner.experiment.arms))
    dated = learner.history()
    assert isinstance(dated, tuple)
    times = [each.reports for each in dated]
    assert times == sorted(times)
    assert all(each % learner.experiment.release_every == 0 for each in times)
    for each in dated:
        assert isinstance(each.event, history.Event)
        if isinstance(each.event, history.Elimination):
            assert set(each.event.arms) <= set(arms)
    certificates = learner.certificates()
    assert isinstance(certificates, tuple)
    for certificate in certificates:
        assert isinstance(certificate, Certificate)
        assert {certificate.dropped, certificate.winner} <= set(learner.experiment.arms)
        assert certificate.statistic >= certificate.boundary
        assert 1 < certificate.release <= learner.release().version


def test_people_who_all_like_one_arm_get_it_in_the_end(make: Make) -> None:
    learner = settled(make)
    best = learner.experiment.arms[1]
    assert {device_of(learner.release()).choose(context) for context in PLACES} == {best}
    dropped = [
        arm
        for dated in learner.history()
        if isinstance(dated.event, history.Elimination)
        for arm in dated.event.arms
    ]
    assert set(dropped) == {0, 2}
    assert learner.status().contested_cells == 0
