"""The learner of a server whose experiment is amended, and the replay that checks it.

Whatever happens to the process, and however often it begins again, the same releases come of a log
and its amendments, each amendment once.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server import following, learning
from sottovoce.server.amendments import text_of
from sottovoce.server.learning import LearnerPool
from sottovoce.server.replay import replay
from sottovoce.server.status import Snapshot
from sottovoce.server.store.store import LearnerSession, LoggedAmendment, LoggedRelease, Store
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import EXTEND_HORIZON, PAUSE, RESUME
from sottovoce.shared.errors import StoreError
from support.amended_story import NAME, PLAN, append, check, play, polled, store_for, story
from support.databases import KINDS
from support.senders import walking
from support.slow import slow_but
from support.stores import change, query


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_for(request.param, tmp_path) as store:
        yield store


def test_the_story_has_steps_before_and_after() -> None:
    log, amendments, releases, learner = story()
    assert learner.experiment.state == "archived"
    assert len(releases) > len(amendments) + 4
    taken = {each.version for each in amendments}
    for low, high in ((100, 330), (640, 900), (900, 1210)):
        steps = [each for each in releases if low <= each.position <= high]
        assert {each.version for each in steps} - taken
    # While it does not run, and after its end, nothing is decided.
    for low, high in ((600, 640), (1210, len(log))):
        late = {each.version for each in releases if low < each.position <= high}
        assert late <= taken


def test_the_same_comes_of_it_without_any_trouble(store: Store) -> None:
    play(store, LearnerPool(store)).close()
    check(store)
    snapshot = store.snapshot(NAME)
    assert snapshot == (len(story().log), Snapshot.of(story().learner).to_json())
    assert any("add arm 'game'" in each.words for each in Snapshot.from_json(snapshot[1]).history)


@pytest.mark.parametrize("save", [True, False])
def test_the_same_comes_of_it_if_the_learner_begins_again_each_time(
    store: Store, save: bool
) -> None:
    pools = [LearnerPool(store)]

    def anew() -> LearnerPool:
        pools[-1].close() if save else pools[-1].abandon()
        pools.append(LearnerPool(store))
        return pools[-1]

    play(store, pools[-1], anew=anew).close()
    check(store)
    change(store, "DELETE FROM saved")
    pool = LearnerPool(store)
    polled(pool)
    assert list(pool._learners) == [NAME]
    pool.close()
    check(store)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_same_comes_of_it_if_writing_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The disk may be full before anything was written; or the answer is lost, and all was."""
    publish, calls = LearnerSession.publish, [0]

    def failing(session: LearnerSession, releases: Any, **notes: Any) -> None:
        calls[0] += 1
        if calls[0] % 3 == 1 and when == "before":
            raise StoreError("as a test has it")
        publish(session, releases, **notes)
        if calls[0] % 3 == 1 and when == "after":
            raise StoreError("as a test has it")

    monkeypatch.setattr(LearnerSession, "publish", failing)
    monkeypatch.setattr(following, "READ_AT_ONCE", 77)
    # One that begins again begins where it was saved, and what waits is taken there.
    monkeypatch.setattr(learning, "SAVE_EVERY", 0.0)
    pool = play(store, LearnerPool(store))
    monkeypatch.undo()
    pool.close()
    check(store)
    assert calls[0] > 3 * len(PLAN)


def test_an_amendment_its_release_and_its_place_are_written_together(store: Store) -> None:
    session = store.learner_session(NAME)
    assert session is not None
    one = story().amendments[0]
    assert store.add_amendment(NAME, 1, one.text)
    assert not store.add_amendment(NAME, 1, "another")
    forged = LoggedAmendment(1, "another", 0, 2)
    with pytest.raises(StoreError, match="wait as it was read until it is taken"):
        session.publish([LoggedRelease(2, 0, "text")], amendments=[forged])
    assert store.newest_versions()[NAME] == 1
    assert store.amendments(NAME) == [LoggedAmendment(1, one.text)]
    session.publish([LoggedRelease(2, 0, "text")], amendments=[one])
    with pytest.raises(StoreError, match="wait as it was read until it is taken"):
        session.publish([LoggedRelease(3, 0, "text")], amendments=[one])
    assert store.newest_versions()[NAME] == 2
    assert store.amendments(NAME) == [one]
    session.close()


def test_an_amendment_that_waits_is_no_trouble(store: Store) -> None:
    play(store, LearnerPool(store)).close()
    last = story().releases[-1]
    assert last.version == story().amendments[-1].version
    change(store, f"DELETE FROM release WHERE version = {last.version}")  # noqa: S608
    change(store, "UPDATE amendment SET position = NULL, version = NULL WHERE number = 8")
    found = replay(store, NAME)
    assert (found.agrees, found.waiting, len(found.amendments)) == (True, 0, 7)


SPOILED = {
    "UPDATE amendment SET text = replace(text, 'Ada', 'Eve') WHERE number = 1": "amendment 2 must",
    "UPDATE amendment SET text = replace(text, 'Ada', 'Eve') WHERE number = 8": "another text",
    "UPDATE amendment SET text = replace(text, '0.2', '0.3') WHERE number = 2": "amendment 3 must",
    "UPDATE amendment SET text = replace(text, ',', ', ') WHERE number = 8": "as it was written",
    "UPDATE amendment SET text = '{}' WHERE number = 3": "amendment 3 must be as it was written",
    "UPDATE amendment SET text = '[' WHERE number = 3": "amendment 3 must be as it was written",
    "DELETE FROM amendment WHERE number = 2": "amendment 2 must be in the database",
    "DELETE FROM amendment WHERE number = 8": "does not follow from the log",
    "DELETE FROM amendment": "cannot be counted",
    "UPDATE amendment SET position = 331 WHERE number = 2": "and was published as if from",
    "UPDATE amendment SET position = 5000 WHERE number = 8": "is noted otherwise",
    "UPDATE amendment SET version = version + 1 WHERE number = 8": "is noted otherwise",
    "UPDATE amendment SET position = 700 WHERE number = 3": "taken in their order",
    "UPDATE amendment SET version = NULL WHERE number = 3": "taken in their order",
    "UPDATE amendment SET position = NULL WHERE number = 3": "taken in their order",
    "UPDATE amendment SET position = NULL, version = NULL WHERE number = 8": "does not follow",
}


@pytest.mark.parametrize("store", slow_but(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize("how", SPOILED)
def test_replay_finds_whatever_was_done_to_an_amendment(
    store: Store, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    play(store, LearnerPool(store)).close()
    change(store, how)
    found = replay(store, NAME)
    assert any(SPOILED[how] in trouble for trouble in found.troubles), found.troubles
    # Nor does a learner go on from it as if nothing was wrong.
    before = store.releases(NAME)
    change(store, "DELETE FROM saved")
    pool = LearnerPool(store)
    pool.poll()
    assert pool._learners == {}
    assert "cannot be learned" in caplog.text
    pool.close()
    assert store.releases(NAME) == before


def test_a_forged_amendment_that_waits_is_not_taken(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    append(store, 0, 250)
    pool = LearnerPool(store)
    polled(pool)
    now = amended(walking(), draft(walking(), PAUSE, by="Ada", made=datetime.now(UTC)))
    later = draft(now, RESUME, by="Ada", made=datetime.now(UTC))
    store.add_amendment(NAME, 1, text_of(later))
    before = store.releases(NAME)
    pool.poll()
    assert "amendment 1 must follow from those before it" in caplog.text
    assert store.releases(NAME) == before
    assert query(store, "SELECT position FROM amendment") == [(None,)]
    assert "amendment 1 must follow" in replay(store, NAME).troubles[0]
    pool.close()


def test_a_saved_learner_that_knows_of_other_amendments_is_not_needed(store: Store) -> None:
    play(store, LearnerPool(store)).close()
    (saved,) = query(store, "SELECT position FROM saved")
    assert saved == (len(story().log),)
    other = sv.Learner(walking())
    other.amend(draft(walking(), EXTEND_HORIZON, by="Eve", made=datetime.now(UTC), horizon=10**6))
    table = json.loads(other.to_json())
    table["release"]["version"] = 2
    session = store.learner_session(NAME)
    assert session is not None
    session.publish([], saved=(0, other.to_json()))
    session.close()
    pool = LearnerPool(store)
    polled(pool)
    pool.close()
    check(store)
