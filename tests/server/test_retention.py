"""Reports that are kept no longer: the same releases come of it, and a hash of what was there.

Days are made up. Whatever happens to the process, whatever was done to the database: nothing is
erased that cannot be worked out again from what is left, and nobody goes on from what was changed.
"""

import hashlib
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server import retention
from sottovoce.server.learning import LearnerPool
from sottovoce.server.replay import replay
from sottovoce.server.retention import whole_days
from sottovoce.server.store.store import LearnerSession, Store
from sottovoce.shared.errors import StoreError
from sottovoce.shared.wire import nonce_of
from support.amended_story import NAME, append, check, polled, store_for, story
from support.databases import KINDS
from support.slow import slow_but
from support.stores import change, query

KEEP = timedelta(days=90)
FIRST_DAY = date(2026, 3, 1)
# Erased in one go by the server: so many that tests would do it at once.
FEW = 170


@pytest.fixture(params=KINDS)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A store, on the first day."""
    monkeypatch.setattr(retention, "ERASED_AT_ONCE", FEW)
    on(0, monkeypatch)
    with store_for(request.param, tmp_path) as store:
        yield store


def on(day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "today", lambda: FIRST_DAY + timedelta(days=day))


def night(pool: LearnerPool, day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a day begin, and the server do all that it has to do then, whatever gets in its way."""
    on(day, monkeypatch)
    for _ in range(16):
        polled(pool)


def live(store: Store, pool: LearnerPool, start: int, end: int) -> None:
    """Let the reports after one position come, up to another, and all amendments among them."""
    for each in story().amendments:
        position = each.position or 0
        if start <= position < end:
            append(store, start, position)
            polled(pool)
            assert store.add_amendment(NAME, each.number, each.text)
            polled(pool)
            start = position
    append(store, start, end)
    polled(pool)


def bodies(store: Store) -> list[bytes]:
    rows = query(store, "SELECT body FROM report ORDER BY position")
    return [bytes(body) for (body,) in rows]


def erased(store: Store) -> int:
    """How many reports from the first on are erased; the others are as they came."""
    found = bodies(store)
    count = sum(not body for body in found)
    assert sorted(found[count:]) == sorted(story().log[count : len(found)])
    return count


def hash_of(*folds: tuple[list[bytes], str]) -> str:
    """The hash of folds, each of its reports and its checkpoint's text, as the server says it."""
    position, hashed = 0, hashlib.sha256(b"sottovoce fold 1\n" + bytes.fromhex(NAME)).digest()
    for reports, learner in folds:
        position += len(reports)
        whole = b"".join(len(each).to_bytes(4, "little") + each for each in reports)
        hashed = hashlib.sha256(
            hashed
            + position.to_bytes(8, "little")
            + hashlib.sha256(whole).digest()
            + hashlib.sha256(learner.encode()).digest()
        ).digest()
    return hashed.hex()


def checkpoint(store: Store) -> str:
    found = store.checkpoint(NAME)
    assert found is not None
    return found[1]


def test_reports_are_erased_when_they_are_old_enough_and_not_a_day_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = LearnerPool(store, keep=KEEP)
    live(store, pool, 0, 700)
    for day, count in ((1, 0), (90, 0), (91, 0), (92, 700)):
        night(pool, day, monkeypatch)  # those that came on day 0 are noted when day 1 begins
        assert (day, erased(store)) == (day, count)
    pool.close()


def test_all_goes_on_the_same_from_what_is_left(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folds, with amendments before, between and after them, and restarts without a saved
    learner after each; late reports are for releases of before the folds."""
    ends = [0, 700, 1000, len(story().log)]
    folds: list[tuple[list[bytes], str]] = []
    for number, (start, end) in enumerate(pairwise(ends)):
        pool = LearnerPool(store, keep=KEEP)
        on(100 * number, monkeypatch)
        polled(pool)
        live(store, pool, start, end)
        kept = bodies(store)
        for day in (1, 92):
            night(pool, 100 * number + day, monkeypatch)
        pool.abandon()
        change(store, "DELETE FROM saved")
        assert erased(store) == end
        folds.append((kept[start:], checkpoint(store)))
        found = replay(store, NAME)
        assert (found.troubles, found.folded, found.reports) == ((), end, end)
        assert found.folded_hash == hash_of(*folds)
    pool = LearnerPool(store, keep=KEEP)
    polled(pool)
    assert list(pool._learners) == [NAME]
    pool.close()
    check(store)
    assert checkpoint(store) == story().learner.to_json()


def test_a_report_that_was_erased_is_not_counted_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = LearnerPool(store, keep=KEEP)
    live(store, pool, 0, 400)
    for day in (1, 92):
        night(pool, day, monkeypatch)
    assert erased(store) == 400
    some = [(nonce_of(each), each) for each in story().log[:400]]
    assert store.append(NAME, some) == [False] * 400
    pool.close()


def test_nothing_of_what_was_erased_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the file of SQLite nor beside it; PostgreSQL leaves it to autovacuum."""
    on(0, monkeypatch)
    with store_for("sqlite", tmp_path) as store:
        pool = LearnerPool(store, keep=KEEP)
        live(store, pool, 0, 700)

        def there() -> int:
            text = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
            # The nonce stays in an index of its own: it is the whole report that must be gone.
            return sum(each in text for each in story().log[:700])

        assert there() == 700
        for day in (1, 92):
            night(pool, day, monkeypatch)
        assert erased(store) == 700
        assert there() == 0
        pool.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["fold", "erase", "note_day"])
def test_a_fold_that_is_interrupted_goes_on_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: str, when: str
) -> None:
    """The disk may be full before anything was written; or the process dies when all was."""
    pool = LearnerPool(store, keep=KEEP)
    live(store, pool, 0, 700)
    does, calls = getattr(LearnerSession, what), [0]

    def failing(session: LearnerSession, *args: Any, **named: Any) -> None:
        calls[0] += 1
        if calls[0] % 2 and when == "before":
            raise StoreError("as a test has it")
        does(session, *args, **named)
        if calls[0] % 2 and when == "after":
            raise StoreError("as a test has it")

    monkeypatch.setattr(LearnerSession, what, failing)
    for day in (1, 92):
        night(pool, day, monkeypatch)
    assert erased(store) == 700
    assert calls[0] >= 1 + (when == "before")
    assert len(store.folds(NAME)) == 1
    live(store, pool, 700, len(story().log))
    pool.close()
    check(store)


def test_reports_that_another_history_came_of_are_not_erased(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool = LearnerPool(store, keep=KEEP)
    live(store, pool, 0, 700)
    change(store, "UPDATE release SET position = position + 1 WHERE version = 3")
    for day in (1, 92):
        night(pool, day, monkeypatch)
    assert erased(store) == 0
    assert store.folds(NAME) == []
    assert "no report of" in caplog.text
    live(store, pool, 700, 800)  # learning goes on
    assert store.snapshot(NAME) is not None
    pool.close()


SPOILED = {
    "UPDATE fold SET position = position - 1": "must follow from those before",
    "UPDATE fold SET reports = learner": "must follow from those before",
    "UPDATE fold SET learner = reports": "must follow from those before",
    "UPDATE fold SET hash = reports": "must follow from those before",
    "UPDATE fold SET number = 2": "must follow from those before",
    "DELETE FROM checkpoint": "the checkpoint must be that of fold 1",
    "UPDATE checkpoint SET position = 699": "the checkpoint must be that of fold 1",
    "UPDATE checkpoint SET text = (SELECT text FROM standing)": "must be that of fold 1",
    "UPDATE release SET position = position + 2000 WHERE version = 3": "than was folded",
    "DELETE FROM release WHERE version = 3": "release 3",
    "DELETE FROM fold": "",
    "DELETE FROM amendment WHERE number = 2": "amendment 2 must be in the database",
    "UPDATE report SET body = '' WHERE position = 710": "cannot be counted",
}


@pytest.mark.parametrize("store", slow_but(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize("how", SPOILED)
def test_replay_finds_whatever_was_done_to_what_is_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    pool = LearnerPool(store, keep=KEEP)
    live(store, pool, 0, 700)
    for day in (1, 92):
        night(pool, day, monkeypatch)
    live(store, pool, 700, 760)
    pool.close()
    assert replay(store, NAME).agrees
    change(store, how)
    try:
        found = replay(store, NAME)
    except sv.SottovoceError as error:
        troubles = [str(error)]
    else:
        troubles = list(found.troubles)
    assert any(SPOILED[how] in trouble for trouble in troubles), troubles
    # Nor does a learner go on from it as if nothing was wrong.
    before = store.releases(NAME)
    change(store, "DELETE FROM saved")
    pool = LearnerPool(store)
    pool.poll()
    if not how.startswith(("UPDATE release", "DELETE FROM release", "UPDATE report")):
        assert pool._learners == {}
    pool.close()
    assert store.releases(NAME) == before


@pytest.mark.parametrize("hours", [0, 12, 23, 25, 36])
def test_only_days_are_known_of_when_a_report_came(hours: int) -> None:
    with pytest.raises(sv.ExperimentError, match="keep-reports must be a whole number of days"):
        whole_days(timedelta(hours=hours))
    assert whole_days(KEEP) == KEEP
