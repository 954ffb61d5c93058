import json
from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment, grown
from sottovoce.estimate.history import Split
from sottovoce.shared import wire
from support.histories import report_of


def flat_report(release: sv.Release, value: float = 0.0) -> sv.Report:
    return report_of(release, 0, dict.fromkeys(release.cells, (value, value)))


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"release": bytes(12)}, "UNKNOWN_RELEASE", "a report's release must be the id of one of"),
        ({"release": b""}, "UNKNOWN_RELEASE", "a report's release must be the id of one of"),
        ({"population": 2}, "UNKNOWN_POPULATION", "a report's population must be below 2; got 2"),
        ({"population": -1}, "UNKNOWN_POPULATION", "got -1"),
        ({"payload": (0.0,) * 3}, "WRONG_LENGTH", "must have .* numbers; got 3"),
        ({"payload": ()}, "WRONG_LENGTH", "must have .* numbers; got 0"),
        ({"payload": "nan"}, "NOT_FINITE", "a report's numbers must be finite"),
        ({"payload": "inf"}, "NOT_FINITE", "a report's numbers must be finite"),
        ({"payload": "1e9"}, "IMPLAUSIBLE", "a report's numbers must lie within"),
    ],
)
def test_a_bad_report_is_refused_with_its_reason_and_changes_nothing(
    change: dict[str, Any], reason: str, message: str
) -> None:
    learner = grown()
    good = flat_report(learner.release())
    if isinstance(change.get("payload"), str):
        change = {"payload": (float(change["payload"]), *good.payload[1:])}
    before = learner.to_json()
    with pytest.raises(sv.ReportRejected, match=message) as caught:
        learner.receive(replace(good, **change))
    assert caught.value.reason is sv.Rejection[reason]
    assert learner.to_json() == before
    learner.receive(good)
    assert learner.to_json() != before


def test_what_an_honest_device_may_send_is_taken() -> None:
    """Up to 64 scales of noise, 4/ε each: beyond that once in e^64 numbers."""
    learner = sv.Learner(experiment())
    good = flat_report(learner.release())
    learner.receive(replace(good, payload=(255.0, *good.payload[1:])))
    for value in (258.0, -258.0):
        with pytest.raises(sv.ReportRejected, match="must lie within ±257"):
            learner.receive(replace(good, payload=(value, *good.payload[1:])))


def test_the_next_release_is_not_known_before_it_is_published() -> None:
    learner = grown()
    coming = replace(learner.release(), version=learner.release().version + 1)
    early = replace(flat_report(learner.release()), release=wire.release_id(coming))
    with pytest.raises(sv.ReportRejected, match="release must be the id of one of") as caught:
        learner.receive(early)
    assert caught.value.reason is sv.Rejection.UNKNOWN_RELEASE


def saved(learner: sv.Learner, key: str) -> Any:
    return json.loads(learner.to_json())[key]


def test_a_late_report_whose_cells_are_all_gone_is_counted_as_dropped() -> None:
    learner = grown()
    first = sv.Learner(learner.experiment).release()
    now = learner.status()
    assert now.bins > 1  # so the one bin of the first release is gone
    before = [saved(learner, key) for key in ("rewards", "pulls", "users")]
    learner.receive(flat_report(first, value=1.0))
    assert learner.status().late_reports == now.late_reports + 1
    assert learner.status().dropped_cells == now.dropped_cells + len(first.cells)
    assert [saved(learner, key) for key in ("rewards", "pulls", "users")] == before


def test_a_late_report_counts_for_the_cells_that_still_stand() -> None:
    # Grow until a release has lost some of the cells of an older one, and kept some.
    reports = 100
    older = grown(reports=reports, horizon=100).release()
    while True:
        reports += 10
        learner = grown(reports=reports, horizon=100)
        now = learner.release()
        standing = [cell for cell in now.cells if cell in older.cells]
        if 0 < len(standing) < len(older.cells):
            break
        older = now
    before, dropped = learner.status(), len(older.cells) - len(standing)
    rewards, users = saved(learner, "rewards")[0], saved(learner, "users")[0]
    learner.receive(flat_report(older, value=1.0))
    assert learner.status().dropped_cells == before.dropped_cells + dropped
    grew = [after - then for after, then in zip(saved(learner, "rewards")[0], rewards, strict=True)]
    assert grew == pytest.approx([float(cell in standing) for cell in now.cells])
    # One user in each bin that stands, none in the others.
    bins = list(dict.fromkeys(path for path, _ in now.cells))
    grew = [after - then for after, then in zip(saved(learner, "users")[0], users, strict=True)]
    assert grew == [int(path in {path for path, _ in standing}) for path in bins]


def test_a_bin_with_too_few_users_is_left_alone() -> None:
    # Read to the letter, r = 0/0 = 0 < τ would cut the root at the first report.
    learner = sv.Learner(experiment(release_every=1, method=sv.Ldpmab("paper", c=1e-9)))
    for _ in range(40):  # log²(1000) = 47.7 users are needed
        learner.receive(flat_report(learner.release(), value=0.5))
    assert learner.release().version == 1
    for _ in range(8):
        learner.receive(flat_report(learner.release(), value=0.5))
    assert [type(dated.event) for dated in learner.history()] == [Split]


def test_sums_of_exactly_zero_decide_nothing() -> None:
    learner = sv.Learner(experiment(release_every=1, method=sv.Ldpmab("paper", c=1e-9)))
    for _ in range(100):
        learner.receive(flat_report(learner.release(), value=0.0))
    assert learner.release().version == 1
    assert all(cell.estimate is cell.radius is None for cell in learner.estimates())


def test_the_learner_looks_once_in_release_every_reports() -> None:
    learner = sv.Learner(experiment(release_every=60, method=sv.Ldpmab("paper", c=1e-9)))
    for count in range(1, 121):
        learner.receive(flat_report(learner.release(), value=0.5))
        assert bool(learner.history()) == (count >= 60)
    assert {dated.reports for dated in learner.history()} == {60, 120}


def test_a_settled_experiment_takes_empty_reports() -> None:
    learner = sv.Learner(experiment(release_every=1, method=sv.Ldpmab("paper", c=1e-9)))
    values = {("", 0): (0.9, 1.0), ("", 1): (0.5, 1.0), ("", 2): (0.1, 1.0)}
    for _ in range(60):
        release = learner.release()
        if not release.cells:
            break
        learner.receive(report_of(release, 0, {cell: values[cell] for cell in release.cells}))
    assert learner.status().settled_bins == 1
    assert [policy.arms for policy in learner.release().bins] == [(0,)]
    learner.receive(report_of(learner.release(), 0, {}))
    assert learner.status().contested_cells == 0


def test_status_tells_how_far_the_learner_has_come() -> None:
    learner = grown()
    status = learner.status()
    assert sum(status.reports.values()) == 400
    assert set(status.reports) == {"target", "clinic-b"}
    assert status.bins == len(learner.release().bins)
    assert status.contested_cells == len(learner.release().cells)
