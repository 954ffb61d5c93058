"""The learner of a server, and the replay that checks it, when the database is not as it should be.

A log of real reports is in the database; what else is there gets lost, spoiled or forged.
"""

import logging
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server import following, learning
from sottovoce.server.learning import ExperimentLearner, LearnerPool, learn_until
from sottovoce.server.replay import replay
from sottovoce.server.status import Snapshot
from sottovoce.server.store.store import LearnerSession, Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import StoreError
from sottovoce.shared.wire import nonce_of
from support.databases import KINDS, new_database
from support.relearning import relearn
from support.senders import report_of, walking
from support.slow import slow_but
from support.stores import change, query

NAME = walking().fingerprint
OTHER = "0123456789abcdef"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, folder=tmp_path) as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store with one experiment, its log, and nothing learned yet."""
    store = Store.open(url)
    store.migrate()
    add(store, walking())
    # Within one call they are put in another order. Up to a step of the learner, that is the same.
    every = walking().release_every
    for start in range(0, len(log()), every):
        store.append(NAME, [(nonce_of(each), each) for each in log()[start : start + every]])
    yield store
    store.close()


def add(store: Store, experiment: sv.Experiment) -> None:
    first = wire.release_to_json(sv.Learner(experiment).release())
    text = canonical_json(experiment.to_table()).decode()
    store.add_experiment(experiment.fingerprint, text, first)


@cache
def log() -> tuple[bytes, ...]:
    """Reports of real devices, each for the newest release."""
    learner, rng = sv.Learner(walking()), random.Random(0)
    reports: list[bytes] = []
    while len(reports) < 1500 or learner.release().version < 4:
        reports.append(report_of(learner.release(), rng))
        learner.receive(wire.report_from_bytes(reports[-1]))
    return tuple(reports)


def learn(store: Store, *, turns: int = 3) -> LearnerPool:
    pool = LearnerPool(store)
    for _ in range(turns):
        pool.poll()
    return pool


def check(store: Store) -> None:
    """What is published is what follows from the log, all of it."""
    assert store.releases(NAME) == relearn(store, walking())[1]
    found = replay(store, NAME)
    assert (found.troubles, found.waiting, found.reports) == ((), 0, len(log()))


def test_a_learner_learns_the_log_and_stops_where_it_will_go_on(store: Store) -> None:
    learn(store).close()
    check(store)
    snapshot = store.snapshot(NAME)
    learned = Snapshot.of(relearn(store, walking())[0])
    assert snapshot == (len(log()), learned.to_json())
    release, rng = relearn(store, walking())[0].release(), random.Random(1)
    more = [report_of(release, rng) for _ in range(250)]
    store.append(NAME, [(nonce_of(each), each) for each in more])
    learn(store).close()
    assert store.releases(NAME) == relearn(store, walking())[1]
    assert (store.snapshot(NAME) or (0,))[0] == len(log()) + 250


SPOILED = {
    "gone": "DELETE FROM saved",
    "no text": "UPDATE saved SET text = nonce FROM report WHERE report.position = 1",
    "of a log that was longer": "UPDATE saved SET position = position + 1",
    "of a log that was shorter": "UPDATE saved SET position = position - 1",
    "ahead of what was published": "DELETE FROM release WHERE version >= 3",
}


@pytest.mark.parametrize("url", slow_but(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize("how", SPOILED)
def test_a_saved_learner_that_does_not_fit_is_not_needed(store: Store, how: str) -> None:
    learn(store).close()
    change(store, SPOILED[how])
    learn(store).close()
    check(store)


def test_an_older_saved_learner_goes_over_what_was_published_since(store: Store) -> None:
    at = store.releases(NAME)
    assert len(at) == 1
    session = store.learner_session(NAME)
    assert session is not None
    learner = sv.Learner(walking())
    learner.receive_many(store.read(NAME, after=0, limit=70))
    session.publish([], saved=(70, learner.to_json()))
    session.close()
    learn(store).abandon()
    check(store)
    assert query(store, "SELECT position FROM saved") == [(70,)]
    learn(store).close()
    check(store)


def test_releases_that_do_not_follow_are_left_alone_and_the_others_go_on(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    learn(store).close()
    forge(store)
    change(store, "DELETE FROM saved")
    forged = store.releases(NAME)
    other = other_experiment()
    add(store, other)
    pool = learn(store)
    assert list(pool._learners) == [other.fingerprint]
    assert "must follow from its log" in caplog.text
    assert caplog.text.count("cannot be learned") == 1
    assert store.releases(NAME) == forged
    # The lock is free: whoever is not put off may look.
    session = store.learner_session(NAME)
    assert session is not None
    session.close()
    pool.close()
    assert "another text" in replay(store, NAME).troubles[0]


def other_experiment() -> sv.Experiment:
    experiment = walking()
    return sv.Experiment(
        name="other", arms=experiment.arms, context=experiment.context, epsilon=8.0
    )


def forge(store: Store) -> None:
    """Put the text of the first release in the place of the second."""
    text = "(SELECT text FROM release WHERE version = 1)"
    # The text is the one above.
    change(store, f"UPDATE release SET text = {text} WHERE version = 2")  # noqa: S608


def test_an_experiment_that_cannot_be_read_does_not_keep_the_others(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.add_experiment(OTHER, '{"method": "of a later version"}', "its first release")
    learn(store).close()
    check(store)
    assert f"experiment {OTHER} cannot be learned" in caplog.text


def test_nor_does_one_that_meets_a_mistake_of_ours(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = other_experiment()
    add(store, other)
    turn = ExperimentLearner.poll

    def mistaken(follower: ExperimentLearner) -> bool:
        if follower._learner.experiment.name == "other":
            raise ZeroDivisionError
        return turn(follower)

    monkeypatch.setattr(ExperimentLearner, "poll", mistaken)
    learn(store).close()
    check(store)
    assert f"experiment {other.fingerprint} cannot be learned" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_what_could_not_be_published_is_learned_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The learner in memory is ahead of the database then, and must not stay so."""
    publish, turns = LearnerSession.publish, iter(range(1000))
    failures = [0]

    def failing(session: LearnerSession, releases: Any, **notes: Any) -> None:
        failures[0] += 1
        if failures[0] % 2:
            raise StoreError("the database must have room on its disk; as a test has it")
        publish(session, releases, **notes)

    monkeypatch.setattr(LearnerSession, "publish", failing)
    monkeypatch.setattr(learning, "LONGEST_PAUSE_IN_TROUBLE", 0.01)
    monkeypatch.setattr(following, "READ_AT_ONCE", 333)
    monkeypatch.setattr(following, "MOST_BYTES", 10_000)
    learn_until(lambda: store.newest_versions()[NAME] >= 4 or next(turns) > 200, store)
    monkeypatch.undo()
    learn(store, turns=9).close()
    check(store)
    assert failures[0] > 2
    assert caplog.text.count("as a test has it") >= 1


def test_a_database_that_is_away_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(learning, "LONGEST_PAUSE_IN_TROUBLE", 0.01)
    turns = iter(range(1000))
    learn_until(lambda: next(turns) > 20, Store.open(f"sqlite:///{tmp_path}/nowhere/store.db"))
    assert len(caplog.records) == 1


FORGED = {
    "with another text": "another text",
    "DELETE FROM release WHERE version = 2": "release 2 is missing",
    "UPDATE release SET position = position + 1 WHERE version = 3": "release 3 follows from",
    "DELETE FROM report WHERE position > 900": "does not follow from the log",
    "DELETE FROM report WHERE position IN (70, 900)": "before number 1001 of the log is missing",
    "DELETE FROM report WHERE position = 1450": "goes up to",
    "UPDATE standing SET position = position + 1": "has counted",
}


@pytest.mark.parametrize("url", slow_but(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize("how", FORGED)
def test_replay_says_where_the_database_disagrees(store: Store, how: str) -> None:
    learn(store).close()
    check(store)
    if how.startswith("with"):
        forge(store)
    else:
        change(store, how)
    found = replay(store, NAME)
    assert not found.agrees
    assert any(FORGED[how] in trouble for trouble in found.troubles), found.troubles


def test_replay_waits_for_nobody(store: Store) -> None:
    """What the learner has not got to is no trouble; nor is a log that grows meanwhile."""
    found = replay(store, NAME)
    assert found.agrees
    assert found.waiting == found.releases - 1 > 0
    report = report_of(sv.Learner(walking()).release(), random.Random())
    grown = replay(store, NAME, each=lambda n: store.append(NAME, [(nonce_of(report), report)]))
    assert (grown.agrees, grown.reports) == (True, found.reports)
