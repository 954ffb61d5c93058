"""Amendments: what may follow what, and what an experiment is after them."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment, four_bins, walking
from sottovoce.shared import wire
from sottovoce.shared.amending import after_amendments, amended, continues, draft
from sottovoce.shared.amendment import (
    ADD_ARM,
    ARCHIVE,
    EXTEND_HORIZON,
    KINDS,
    PAUSE,
    RESUME,
    RETIRE_ARM,
    STOP,
    Amendment,
)

MORNING = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def amend(now: sv.Experiment, kind: str, **about: Any) -> sv.Experiment:
    return amended(now, draft(now, kind, by="operator", made=MORNING, **about))


def test_an_amended_experiment_keeps_its_fingerprint_and_says_what_holds_now() -> None:
    first = walking()
    now = amend(first, ADD_ARM, arm="game", cap=0.2)
    now = amend(now, RETIRE_ARM, arm="reminder")
    now = amend(now, EXTEND_HORIZON, horizon=5000)
    assert now.fingerprint == first.fingerprint
    assert now.arms == ("control", "reminder", "coach", "game")
    assert (now.retired, now.caps, now.horizon, now.state) == (
        frozenset({1}),
        {3: 0.2},
        5000,
        "running",
    )
    assert now.populations[0].users == 5000
    assert now.populations[1].behaviour == (0.2, 0.3, 0.5, 0.0)
    assert now.first == first
    assert now.to_table() == first.to_table()
    assert after_amendments(first, now.amendments) == now
    assert (first.retired, first.caps, first.state) == (frozenset(), {}, "running")


def test_each_names_the_one_before() -> None:
    first = experiment()
    one = amend(first, PAUSE)
    two = amend(one, RESUME)
    assert one.amendments[0].before == first.fingerprint
    assert two.amendments[1].before == one.amendments[0].hash
    assert two.amendments[1].hash != one.amendments[0].hash
    late = draft(first, STOP, by="operator", made=MORNING)
    with pytest.raises(sv.ExperimentError, match="must name the amendment before it by its hash"):
        amended(two, late)


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        ([], KINDS.keys() - {RESUME}),
        ([PAUSE], KINDS.keys() - {PAUSE}),
        ([PAUSE, RESUME], KINDS.keys() - {RESUME}),
        ([STOP], {ARCHIVE}),
        ([PAUSE, STOP], {ARCHIVE}),
        ([ARCHIVE], set()),
    ],
)
def test_what_may_follow_what(before: list[str], allowed: set[str]) -> None:
    now = experiment()
    for kind in before:
        now = amend(now, kind)
    taken = set()
    refusals = []
    about: dict[str, dict[str, Any]] = {
        ADD_ARM: {"arm": "game"},
        RETIRE_ARM: {"arm": "coach"},
        EXTEND_HORIZON: {"horizon": 2000},
    }
    for kind in KINDS:
        try:
            amend(now, kind, **about.get(kind, {}))
        except sv.ExperimentError as error:
            refusals.append(str(error))
        else:
            taken.add(kind)
    assert taken == allowed
    assert all(f"an experiment that is {now.state}" in each for each in refusals)


@pytest.mark.parametrize(
    ("kind", "about", "message"),
    [
        (ADD_ARM, {"arm": "coach"}, "an added arm must have a new name"),
        (ADD_ARM, {}, "an amendment of kind 'add arm' must say arm"),
        (ADD_ARM, {"arm": ""}, "an arm must be a non-empty, printable string"),
        (ADD_ARM, {"arm": "game", "cap": 0.0}, "the cap of an amendment must be more than 0"),
        (ADD_ARM, {"arm": "game", "cap": 0.51}, "the cap of an amendment must be more than 0"),
        (PAUSE, {"cap": 0.1}, "the cap of an amendment must be .* for an arm that is added"),
        (PAUSE, {"arm": "coach"}, "an amendment of kind 'pause' must say nothing else"),
        (RETIRE_ARM, {"arm": "game"}, "a retired arm must be one of"),
        (EXTEND_HORIZON, {"horizon": 1000}, "an extended horizon must be more than 1000"),
        (EXTEND_HORIZON, {"horizon": "many"}, "horizon must be a whole number"),
        ("raise epsilon", {}, "an amendment must be one of"),
    ],
)
def test_what_cannot_be_is_refused(kind: str, about: dict[str, Any], message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        amend(experiment(), kind, **about)


def test_two_arms_are_left_at_least() -> None:
    now = amend(experiment(), RETIRE_ARM, arm="coach")
    with pytest.raises(sv.ExperimentError, match="arms must be at least 2 after one is retired"):
        amend(now, RETIRE_ARM, arm="control")
    with pytest.raises(sv.ExperimentError, match=r"must be one of \['control', 'reminder'\]"):
        amend(now, RETIRE_ARM, arm="coach")
    with pytest.raises(sv.ExperimentError, match="an added arm must have a new name"):
        amend(now, ADD_ARM, arm="coach")


def test_an_amendment_is_not_older_than_the_one_before() -> None:
    now = amend(experiment(), PAUSE)
    early = draft(now, RESUME, by="operator", made=MORNING - timedelta(seconds=1))
    with pytest.raises(sv.ExperimentError, match="an amendment must not be older than 2026-03-01T"):
        amended(now, early)


@pytest.mark.parametrize("made", ["yesterday", "2026-03-01", "2026-03-01T09:30:00", "", None, 7])
def test_the_moment_has_one_form(made: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="when an amendment was made must be written as"):
        Amendment(before="", made=made, by="operator", kind=PAUSE)


def test_a_release_carries_the_first_form_and_all_amendments() -> None:
    release = four_bins()
    now = amend(amend(release.experiment, ADD_ARM, arm="game", cap=0.25), PAUSE)
    text = wire.release_to_json(dataclasses.replace(release, experiment=now))
    again = wire.release_from_json(text)
    assert again.experiment == now
    assert wire.release_to_json(again) == text
    assert '"amendments"' not in wire.release_to_json(release)


def test_a_release_that_offers_a_retired_arm_is_refused() -> None:
    release = four_bins()
    now = amend(release.experiment, RETIRE_ARM, arm="coach")
    text = wire.release_to_json(dataclasses.replace(release, experiment=now))
    with pytest.raises(sv.WireError, match=r"the arms of bin .* must not be retired"):
        wire.release_from_json(text)


def test_what_continues_what() -> None:
    first = experiment()
    one = amend(first, ADD_ARM, arm="game")
    two = amend(one, RETIRE_ARM, arm="coach")
    other = amend(one, RETIRE_ARM, arm="reminder")
    assert all(continues(two, each) for each in (first, one, two))
    assert not continues(one, two)  # an older state
    assert not continues(other, two)  # a fork
    assert not continues(experiment(epsilon=2.0), first)


def test_words() -> None:
    made: dict[str, Any] = {"before": "", "made": "2026-03-01T09:30:00Z", "by": "operator"}
    game = Amendment(**made, kind=ADD_ARM, arm="game", cap=0.1)
    assert str(game) == "add arm 'game', for at most 10 % of a bin's people"
    assert str(Amendment(**made, kind=EXTEND_HORIZON, horizon=9000)) == "extend horizon to 9,000"
    assert str(Amendment(**made, kind=PAUSE)) == "pause"
