"""Many reports at once leave a learner as the same reports leave it one by one, bit for bit."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import CONTRAST, experiment, grown_whisper, whispering
from sottovoce.shared import wire
from support.histories import World
from support.slow import slow_but
from support.spoiled import cut_at_random, spoil, verdict
from support.whispers import number, person

REASONS = sv.Rejection
# The end of an experiment is known to the server; its learner counts what comes all the same.
REASONS_OF_LEARNERS = set(REASONS) - {REASONS.ARCHIVED, REASONS.LOST_RELEASE}

SETTINGS: list[dict[str, Any]] = [
    {"epsilon": 1.0},
    {"epsilon": 2.0},
    {"epsilon": 4.0},
    {"epsilon": 64.0},
    {"epsilon": 2.0, "guarantee": "certified"},
    {"epsilon": 1.0, "public_arms": True},
    {"epsilon": 4.0, "public_arms": True},
]
each_setting = pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda each: " ".join(map(str, each.values()))
)


def whispered(rng: random.Random, learner: sv.Learner, count: int) -> list[bytes]:
    """Reports of all populations, served and logged, late and spoiled, as a learner grows."""
    releases = [learner.release()]
    reports = []
    for _ in range(count):
        release = rng.choice(releases) if rng.random() < 0.2 else learner.release()
        population = rng.choice([0, 0, 0, 1, 2])
        logged = rng.random() < (0.5 if population else 0.1)
        report = person(rng, release, population=population, logged=logged)
        data = wire.report_to_bytes(report)
        if rng.random() < 0.3:
            data = spoil(rng, data)
        reports.append(data)
        verdict(learner.receive, data)
        if releases[-1].version != learner.release().version:
            releases.append(learner.release())
    return reports


def numbered(rng: np.random.Generator, world: World, count: int) -> list[bytes]:
    """The same of the other method."""
    learner, dice = sv.Learner(world.experiment), random.Random(int(rng.integers(1000)))
    releases = [learner.release()]
    reports = []
    for _ in range(count):
        release = dice.choice(releases) if dice.random() < 0.2 else learner.release()
        population = dice.randrange(len(world.experiment.populations))
        report = world.message(rng, release, population).report
        data = wire.report_to_bytes(replace(report, nonce=dice.randbytes(16)))
        if dice.random() < 0.2:
            data = spoil(dice, data)
        reports += [data] * dice.choice([1, 1, 1, 2])
        verdict(learner.receive, data)
        if releases[-1].version != learner.release().version:
            releases.append(learner.release())
    return reports


def compare(
    learner: sv.Learner, reports: list[bytes], rng: random.Random, *, most: int
) -> set[sv.Rejection | None]:
    """Hand reports over one by one, and in pieces; return all verdicts there were."""
    start = learner.to_json()
    one_by_one, at_once = sv.Learner.from_json(start), sv.Learner.from_json(start)
    seen: set[sv.Rejection | None] = set()
    for piece in cut_at_random(rng, reports, most=most):
        verdicts = [verdict(one_by_one.receive, data) for data in piece]
        assert at_once.receive_many(piece) == verdicts
        assert at_once.status() == one_by_one.status()
        seen.update(verdicts)
        if rng.random() < 0.1:
            assert at_once.to_json() == one_by_one.to_json()
            at_once = sv.Learner.from_json(at_once.to_json())
    assert at_once.to_json() == one_by_one.to_json()
    assert at_once.history() == one_by_one.history()
    whole = sv.Learner.from_json(start)
    whole.receive_many(reports)
    assert whole.to_json() == one_by_one.to_json()
    return seen


@each_setting
@pytest.mark.parametrize(("release_every", "most"), slow_but([250], [(20, 50), (250, 600)]))
def test_whispers_in_pieces_count_as_one_by_one(
    settings: dict[str, Any], release_every: int, most: int
) -> None:
    rng = random.Random(release_every)
    learner = sv.Learner(whispering(**settings, release_every=release_every))
    reports = whispered(rng, sv.Learner(learner.experiment), 2000)
    seen = compare(learner, reports, rng, most=most)
    assert seen == {None, *REASONS_OF_LEARNERS} - {REASONS.IMPLAUSIBLE}
    after = sv.Learner(learner.experiment)
    after.receive_many(reports)
    assert after.release().version > 2
    assert after.status().late_reports > 100


@pytest.mark.parametrize("settings", [{}, {"epsilon": 1.0}, {"public_arms": True}])
def test_a_grown_learner_goes_on_the_same(settings: dict[str, Any]) -> None:
    learner, rng = grown_whisper(**settings), random.Random(8)
    reports = whispered(rng, sv.Learner.from_json(learner.to_json()), 300)
    compare(learner, reports, rng, most=200)


@pytest.mark.parametrize("preset", ["paper", "authors"])
@pytest.mark.parametrize("release_every", [1, 10, 64])
def test_numbers_in_pieces_count_as_one_by_one(preset: Any, release_every: int) -> None:
    rng = np.random.default_rng(release_every)
    settings = experiment(
        epsilon=64.0,
        horizon=400,
        release_every=release_every,
        method=sv.Ldpmab(preset, c=0.1),
        auxiliary=[sv.Population("clinic-b", 16.0, 100)],
    )
    world = World(settings, rng.beta(0.3, 0.3, (4, 3)))
    reports = numbered(rng, world, 600)
    seen = compare(sv.Learner(settings), reports, random.Random(1), most=90)
    rare = {REASONS.IMPLAUSIBLE, REASONS.UNKNOWN_QUESTION}  # by luck, and never
    assert seen | rare == {None, *REASONS_OF_LEARNERS}


def test_a_release_that_is_published_on_the_way_is_known_from_then_on() -> None:
    """The 20th report that is counted brings the next release; a refused one does not count."""
    rng = random.Random(3)
    learner = sv.Learner(whispering())
    while True:  # until the next look at the sums changes something
        old = learner.release()
        good = [wire.report_to_bytes(person(rng, old)) for _ in range(20)]
        ahead = sv.Learner.from_json(learner.to_json())
        ahead.receive_many(good)
        if ahead.release() != old:
            break
        learner = ahead
    new = ahead.release()
    counted = sum(learner.status().reports.values())
    early = [wire.report_to_bytes(person(rng, new, population=1)) for _ in range(3)]
    verdicts = learner.receive_many([*early[:2], *good, early[2]])
    assert verdicts == [REASONS.UNKNOWN_RELEASE] * 2 + [None] * 21
    assert learner.release() == new
    assert sum(learner.status().reports.values()) == counted + 21
    assert learner.status().late_reports == ahead.status().late_reports


@pytest.mark.parametrize("rows", range(0, 200, 20))
def test_what_people_are_worth_is_added_up_alike(rows: int) -> None:
    """Logged rows are worth fractions of people, and rounded sums depend on how they are added."""
    rng = random.Random(rows)
    learner = sv.Learner(whispering(epsilon=8.0, release_every=200))
    release = learner.release()
    populations = [1] * rows + [2] * (200 - rows)
    logs = [person(rng, release, population=each, logged=True) for each in populations]
    learner.receive_many([wire.report_to_bytes(report) for report in logs])
    people = [wire.report_to_bytes(person(rng, release)) for _ in range(200)]
    compare(learner, people, rng, most=100)


def test_refused_reports_change_nothing() -> None:
    learner, rng = grown_whisper(), random.Random(5)
    before = learner.to_json()
    good = wire.report_to_bytes(person(rng, learner.release()))
    bad = [good[:-1], good[:10], b"", good[:4] + bytes(8) + good[12:]] * 30
    assert None not in learner.receive_many(bad)
    assert learner.receive_many([]) == []
    assert learner.to_json() == before


def test_a_set_that_is_none_spoils_only_itself() -> None:
    """Also where it is the first of many that are alike."""
    learner = grown_whisper()
    first = person(random.Random(0), learner.release(), question=number(CONTRAST, 0))
    good = wire.report_to_bytes(first)
    bad = good[:-1] + b"\xff"  # at ε = 8 a set is one of few cells, far below 128
    for reports in ([bad, *[good] * 40], [*[good] * 40, bad], [bad, good], [bad], [bad] * 40):
        alone, together = grown_whisper(), grown_whisper()
        expected = [verdict(alone.receive, data) for data in reports]
        assert together.receive_many(reports) == expected
        assert expected[reports.index(bad)] is REASONS.MALFORMED
        assert expected.count(None) == reports.count(good)
        assert together.to_json() == alone.to_json()


def test_reports_where_everything_is_settled_are_counted() -> None:
    learner = sv.Learner(whispering(epsilon=64.0, horizon=60, release_every=10))
    rng = random.Random(0)

    def means(point: tuple[float, ...], arm: int) -> float:
        return float(arm == 1)

    while learner.status().contested_cells:
        report = person(rng, learner.release(), means=means)
        learner.receive_many([wire.report_to_bytes(report)])
    reports = [wire.report_to_bytes(person(rng, learner.release())) for _ in range(35)]
    reports.insert(7, reports[0] + b"\1")
    seen = compare(learner, reports, rng, most=30)
    assert seen == {None, REASONS.WRONG_LENGTH}
