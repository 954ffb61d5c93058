"""The log is chained: whatever is changed, missing or moved in it, a replay finds it."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from sottovoce.server.replay import replay
from sottovoce.server.store.chained import first_hash, hash_after
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import StoreDamaged, StoreError
from sottovoce.shared.wire import nonce_of
from support.databases import KINDS, new_database
from support.learned import NAME, come, newest, opened
from support.senders import report_of
from support.stores import change, query


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, folder=tmp_path) as url:
        yield url


def put(store: Store, table: str, **values: Any) -> None:
    names = ", ".join(f"{name} = :{name}" for name in values if name != "at")
    with store.database.transaction(writes=True) as connection:
        connection.execute(text(f"UPDATE {table} SET {names} WHERE position = :at"), values)  # noqa: S608


def found_in(store: Store) -> tuple[str, ...]:
    try:
        return replay(store, NAME).troubles
    except StoreError as error:
        return (str(error),)


def test_the_hash_is_that_of_the_log_however_it_came(url: str) -> None:
    """In commits of one report, of some, and of more than PostgreSQL takes in one statement."""
    store, rng = opened(url), random.Random(0)
    assert store.chained(NAME).hash == first_hash(NAME)
    for size in (1, 1, 7, 600, 250, 251, 1):
        some = [report_of(newest(store), rng) for _ in range(size)]
        store.append(NAME, [(nonce_of(each), each) for each in some])
        store.append(NAME, [(nonce_of(each), each) for each in some[:3]])  # again: nothing is new
        log = store.read(NAME, after=0, limit=10_000)
        chained = store.chained(NAME)
        assert (chained.position, chained.begins) == (len(log), 0)
        assert chained.hash == hash_after(first_hash(NAME), log)
    assert found_in(store) == ()
    store.close()


def test_a_bit_that_flips_in_any_row_is_found(url: str) -> None:
    """Of its report or of its nonce; before, more than half of them were not."""
    store, rng = opened(url), random.Random(0)
    come(store, 300, seed=1)
    assert found_in(store) == ()
    rows = query(store, "SELECT position, nonce, body FROM report ORDER BY position")
    for position, nonce, body in rng.sample(rows, 12):
        for column, value in (("nonce", bytes(nonce)), ("body", bytes(body))):
            bit = rng.randrange(8 * len(value))
            spoiled = bytearray(value)
            spoiled[bit // 8] ^= 1 << bit % 8
            put(store, "report", at=position, **{column: bytes(spoiled)})
            assert found_in(store), (column, position, bit)
            put(store, "report", at=position, **{column: value})
    assert found_in(store) == ()
    store.close()


SPOILED = {
    "a row is missing": "DELETE FROM report WHERE position = 150",
    "the first is missing": "DELETE FROM report WHERE position = 1",
    "the last is missing": "DELETE FROM report WHERE position = 300",
    "the end is missing": "DELETE FROM report WHERE position > 290",
    "two changed places": """
        UPDATE report SET position = CASE position WHEN -7 THEN 8 ELSE 7 END
        WHERE position IN (-7, -8)""",
    "another hash": "UPDATE chained SET hash = before",
    "a hash of less": "UPDATE chained SET position = position - 1",
    "no hash": "DELETE FROM chained",
}


@pytest.mark.parametrize("how", SPOILED)
def test_what_is_missing_or_elsewhere_is_found(url: str, how: str) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    if how == "two changed places":
        change(store, "UPDATE report SET position = -position WHERE position IN (7, 8)")
    change(store, SPOILED[how])
    if how == "no hash":
        # Of a database of before, or of one in which somebody has tidied up: it is made anew.
        assert found_in(store)
        store.migrate()
        assert found_in(store) == ()
    else:
        assert found_in(store)
    store.close()


def test_nothing_is_stored_at_the_end_of_a_log_that_has_lost_some(url: str) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    change(store, "DELETE FROM report WHERE position > 290")
    report = report_of(newest(store), random.Random(3))
    with pytest.raises(StoreDamaged, match="must have 300 reports; the last 10 are gone"):
        store.append(NAME, [(nonce_of(report), report)])
    assert store.length(NAME) == 290
    store.close()


def test_a_database_of_before_is_chained_where_it_is(url: str) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    hashed = store.chained(NAME)
    change(store, "DROP TABLE chained")
    change(store, "DELETE FROM migration WHERE version = 5")
    store.close()
    store = Store.open(url)
    store.migrate()
    assert store.chained(NAME) == hashed
    assert found_in(store) == ()
    come(store, 300, seed=2)
    assert found_in(store) == ()
    store.close()


def test_reports_of_a_version_that_does_not_chain_are_caught_up(url: str) -> None:
    """While servers are upgraded one by one, an older one may still write."""
    store, rng = opened(url), random.Random(0)
    come(store, 300, seed=1)
    hashed = store.chained(NAME)
    some = sorted((report_of(newest(store), rng) for _ in range(5)), key=nonce_of)
    store.append(NAME, [(nonce_of(each), each) for each in some])
    put(store, "chained", at=hashed.position + 5, position=hashed.position, hash=hashed.hash)
    come(store, 100, seed=2)
    log = store.read(NAME, after=0, limit=1000)
    assert store.chained(NAME).hash == hash_after(first_hash(NAME), log)
    assert found_in(store) == ()
    store.close()
