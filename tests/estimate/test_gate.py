"""A gate gives the learner's own verdict, and keeps no sums."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import experiment, whispering
from sottovoce.estimate.gate import Gate
from sottovoce.shared import wire
from support.histories import World
from support.slow import slow_but
from support.spoiled import NONCE, cut_at_random, spoil, verdict
from support.whispers import SETTINGS, each_setting, person, send

REASONS = sv.Rejection
# The end of an experiment is known to the server; its learner counts what comes all the same.
REASONS_OF_GATES = set(REASONS) - {REASONS.ARCHIVED, REASONS.LOST_RELEASE}


def gate_of(releases: list[sv.Release]) -> Gate:
    """A gate that has read each release from the wire."""
    gate = Gate(releases[0].experiment)
    for release in releases:
        gate.publish(wire.release_from_json(wire.release_to_json(release)))
    return gate


def verdicts_of(learner: sv.Learner, reports: list[bytes]) -> list[sv.Rejection | None]:
    """What a learner says of each report, had it come first."""
    saved = learner.to_json()
    found = []
    for data in reports:
        found.append(verdict(learner.receive, data))
        if found[-1] is None:
            learner = sv.Learner.from_json(saved)
    return found


@pytest.mark.parametrize("settings", slow_but([{}, {"public_arms": True}], SETTINGS), ids=str)
def test_a_gate_says_what_a_learner_says(settings: dict[str, Any]) -> None:
    rng = random.Random(6)
    learner = sv.Learner(whispering(**settings))
    releases = send(learner, rng, 400, target_only="guarantee" in settings)
    reports = []
    for _ in range(800):
        population = rng.randrange(3)
        logged = rng.random() < 0.5
        release = rng.choice([*releases, releases[-1], releases[-1]])
        report = person(rng, release, population=population, logged=logged)
        data = wire.report_to_bytes(report)
        reports.append(spoil(rng, data) if rng.random() < 0.7 else data)
    gate = gate_of(releases)
    assert gate.newest == learner.release().version
    expected = verdicts_of(learner, reports)
    assert gate.check_many(reports) == expected
    assert [gate.check_many([data])[0] for data in reports] == expected
    pieces = cut_at_random(rng, reports, most=90)
    assert [each for piece in pieces for each in gate.check_many(piece)] == expected
    assert set(expected) == {None, *REASONS_OF_GATES} - {REASONS.IMPLAUSIBLE}


def test_a_gate_says_what_a_learner_of_the_other_method_says() -> None:
    rng, dice = np.random.default_rng(2), random.Random(2)
    settings = experiment(
        epsilon=64.0,
        horizon=300,
        release_every=10,
        method=sv.Ldpmab("paper", c=0.1),
        auxiliary=[sv.Population("clinic-b", 16.0, 100)],
    )
    world = World(settings, rng.beta(0.3, 0.3, (4, 3)))
    learner = sv.Learner(settings)
    releases = [learner.release()]
    for _ in range(300):
        population = int(rng.integers(2))
        learner.receive(world.message(rng, learner.release(), population).report)
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    assert len(releases) > 2
    reports = []
    for _ in range(300):
        report = world.message(rng, dice.choice(releases), dice.randrange(2)).report
        if dice.random() < 0.1:
            report = replace(report, payload=(1e9,) * len(report.payload))
        data = wire.report_to_bytes(report)
        reports.append(spoil(dice, data) if dice.random() < 0.6 else data)
    expected = verdicts_of(learner, reports)
    assert gate_of(releases).check_many(reports) == expected
    assert set(expected) == {None, *REASONS_OF_GATES} - {REASONS.UNKNOWN_QUESTION}


def test_each_release_is_known_from_when_it_is_published() -> None:
    learner, rng = sv.Learner(whispering()), random.Random(0)
    releases = send(learner, rng, 600)
    assert len(releases) > 3
    reports = [wire.report_to_bytes(person(rng, release)) for release in releases]
    gate = Gate(learner.experiment)
    assert gate.newest == 0
    for published in range(len(releases) + 1):
        unknown = len(releases) - published
        expected = [None] * published + [REASONS.UNKNOWN_RELEASE] * unknown
        assert gate.check_many(reports) == expected
        assert gate.newest == published
        if unknown:
            gate.publish(releases[published])


def test_releases_are_published_in_order() -> None:
    learner = sv.Learner(whispering())
    releases = send(learner, random.Random(0), 600)
    gate = Gate(learner.experiment)
    with pytest.raises(sv.StateError, match="the next release must be version 1; got 2"):
        gate.publish(releases[1])
    gate.publish(releases[0])
    for wrong in (0, 2):
        with pytest.raises(sv.StateError, match="the next release must be version 2"):
            gate.publish(releases[wrong])
    stranger = sv.Learner(whispering(epsilon=3.0)).release()
    with pytest.raises(sv.StateError, match="a release must be of experiment"):
        gate.publish(replace(stranger, version=2))
    assert gate.newest == 1
    gate.publish(releases[1])


def test_more_reports_than_are_read_at_once_get_a_verdict_each() -> None:
    learner = sv.Learner(whispering(epsilon=1.0))
    good = wire.report_to_bytes(person(random.Random(0), learner.release()))
    reports = [good] * 20_000
    for place in (0, 8191, 8192, 19_999):
        reports[place] = good[:-1]
    verdicts = gate_of([learner.release()]).check_many(reports)
    refused = {place for place, reason in enumerate(verdicts) if reason is not None}
    assert len(verdicts) == 20_000
    assert refused == {0, 8191, 8192, 19_999}


@each_setting
def test_a_header_is_all_but_the_nonce_and_the_set(settings: dict[str, Any]) -> None:
    rng = random.Random(1)
    release = sv.Learner(whispering(**settings)).release()
    for _ in range(50):
        report = person(rng, release)
        data = wire.report_to_bytes(report)
        header = wire.header_of_set(data)
        assert isinstance(report.payload, bytes)
        assert header is not None
        assert header + report.payload == data[: NONCE.start] + data[NONCE.stop :]
        for length in range(37):
            assert wire.header_of_set(data[:length]) is None
    numbers = wire.report_to_bytes(sv.Report(bytes(12), 0, bytes(16), (0.5,) * 9))
    assert wire.header_of_set(numbers) is None
