import os
import re
import shutil
import sqlite3
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sottovoce.device.ledger import Ledger
from sottovoce.server.store import schema
from sottovoce.server.store.store import LoggedRelease, Store
from sottovoce.shared.errors import StoreError, StoreFull
from support.databases import KINDS, cluster, new_database
from support.stores import NAME, change, is_whole, learning, opened, process, query, reports

# The number of the next migration that somebody writes.
NEXT = max(schema._migrations()) + 1


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, folder=tmp_path) as url:
        yield url


@pytest.fixture
def postgres_url(tmp_path: Path) -> Iterator[str]:
    with new_database("postgresql", folder=tmp_path) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = opened(url)
    yield store
    store.close()


# The schema.


def test_several_processes_may_migrate_at_once(url: str) -> None:
    script = """
store = Store.open(sys.argv[1])
print("ready", flush=True); sys.stdin.readline()
store.migrate(); store.check(); print(store.add_experiment("ab", "{}", "first"))
"""
    started = [process(script, url) for _ in range(4)]
    assert [each.stdout and each.stdout.readline() for each in started] == ["ready\n"] * 4
    for each in started:
        assert each.stdin
        each.stdin.write("go\n")
        each.stdin.flush()
    outputs = [each.communicate(timeout=60)[0] for each in started]
    assert sorted(outputs) == ["False\n"] * 3 + ["True\n"]


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(schema.FOLDER, tmp_path / "migrations")
    monkeypatch.setattr(schema, "FOLDER", folder)
    return Path(folder)


def test_adding_a_migration_is_adding_a_file(store: Store, migrations: Path) -> None:
    store.append(NAME, reports(1))
    (migrations / f"{NEXT:04}_more.sql").write_text(
        "CREATE TABLE more (id {number}, thing {bytes});\nINSERT INTO more (thing) VALUES ('x');\n"
    )
    with pytest.raises(
        StoreError, match=f"have version {NEXT} of the schema; got {NEXT - 1}: migrate it"
    ):
        store.check()
    store.migrate()
    store.migrate()
    store.check()
    assert query(store, "SELECT id FROM more") == [(1,)]
    assert query(store, "SELECT version FROM migration ORDER BY version") == [
        (number,) for number in range(1, NEXT + 1)
    ]
    assert store.length(NAME) == 1


def test_a_database_newer_than_the_code_is_refused(store: Store, migrations: Path) -> None:
    (migrations / f"{NEXT:04}_more.sql").write_text("CREATE TABLE more (id {number});\n")
    store.migrate()
    (migrations / f"{NEXT:04}_more.sql").unlink()
    for call in (store.migrate, store.check):
        with pytest.raises(StoreError, match=f"of the schema; got {NEXT}: upgrade sottovoce"):
            call()


def test_a_migration_that_fails_leaves_nothing(store: Store, migrations: Path) -> None:
    (migrations / f"{NEXT:04}_more.sql").write_text("CREATE TABLE more (id {number});\nnonsense;\n")
    with pytest.raises(StoreError, match="the database must be"):
        store.migrate()
    (migrations / f"{NEXT:04}_more.sql").write_text("CREATE TABLE more (id {number});\n")
    store.migrate()


def test_the_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(path.name for path in schema.FOLDER.iterdir())
    assert [name[:5] for name in names] == [f"{n:04}_" for n in range(1, len(names) + 1)]
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", name) for name in names)


def test_a_database_without_a_schema_cannot_be_used(url: str) -> None:
    store = Store.open(url)
    with pytest.raises(StoreError, match="the database must be"):
        store.check()
    store.migrate()
    store.check()
    store.close()


# Trouble.


def test_when_there_is_no_room_nothing_is_half_stored(sqlite_url: str) -> None:
    store = opened(sqlite_url)
    store.append(NAME, reports(1))
    change(store, "PRAGMA max_page_count = 30")
    with pytest.raises(StoreFull, match="the database must have room on its disk; SQLITE_FULL"):
        store.append(NAME, reports(*range(5000)))
    is_whole(store, length=1)
    change(store, "PRAGMA max_page_count = 1000000")
    assert store.append(NAME, reports(*range(5000))).count(True) == 4999
    is_whole(store, length=5000)
    store.close()


def test_when_postgres_has_no_room_nothing_is_half_stored(postgres_url: str) -> None:
    store = opened(postgres_url)
    store.append(NAME, reports(1))
    change(
        store,
        """CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.position > 40 THEN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END IF;
           RETURN NEW; END $$;
           CREATE TRIGGER no_room BEFORE INSERT ON report
           FOR EACH ROW EXECUTE FUNCTION no_room()""",
    )
    with pytest.raises(StoreFull, match="must have room on its disk; DiskFull"):
        store.append(NAME, reports(*range(50)))
    is_whole(store, length=1)
    change(store, "DROP TRIGGER no_room ON report")
    assert store.append(NAME, reports(*range(50))).count(True) == 49
    store.close()


def test_a_connection_that_is_lost_while_reports_are_written_is_not_used_again(
    postgres_url: str,
) -> None:
    store = opened(postgres_url)
    change(
        store,
        """CREATE FUNCTION lost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
           CREATE TRIGGER lost BEFORE INSERT ON report FOR EACH ROW EXECUTE FUNCTION lost()""",
    )
    with pytest.raises(StoreError, match=r"the database must be (reachable|up);"):
        store.append(NAME, reports(*range(50)))
    is_whole(store, length=0)
    change(store, "DROP TRIGGER lost ON report")
    assert all(store.append(NAME, reports(*range(50))))
    store.close()


def test_a_server_that_comes_back_is_used_again(postgres_url: str) -> None:
    store = opened(postgres_url)
    store.append(NAME, reports(1))
    session = learning(store)
    cluster().stop()
    try:
        for call in (store.check, lambda: store.append(NAME, reports(2)), session.saved):
            with pytest.raises(StoreError, match=r"the database must be (reachable|up);"):
                call()
    finally:
        cluster().start()
    store.check()
    assert store.append(NAME, reports(1, 2)) == [False, True]
    # Also when nobody asked in between.
    cluster().stop()
    cluster().start()
    assert store.append(NAME, reports(2, 3)) == [False, True]
    with pytest.raises(StoreError, match="it was closed or lost"):
        session.saved()
    session.close()
    learning(store).close()
    store.close()


def test_a_commit_is_on_disk_whatever_the_server_prefers(postgres_url: str) -> None:
    name = postgres_url.split("/")[3].split("?")[0]
    for setting in ("synchronous_commit = off", "default_transaction_isolation = 'serializable'"):
        cluster().execute(f"ALTER DATABASE {name} SET {setting}")
    store = opened(postgres_url)
    assert query(store, "SHOW synchronous_commit") == [("on",)]
    assert query(store, "SHOW transaction_isolation") == [("read committed",)]
    store.close()


def test_a_commit_is_on_disk_in_sqlite(sqlite_url: str) -> None:
    store = opened(sqlite_url)
    assert query(store, "PRAGMA synchronous") == [(2,)]  # FULL
    assert query(store, "PRAGMA journal_mode") == [("wal",)]
    assert query(store, "PRAGMA foreign_keys") == [(1,)]
    store.close()


def test_an_error_shows_nothing_of_a_report(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = (b"nonce of someone", b"body of someone")
    store.append(NAME, [secret])
    # As if the look into the log had missed it: the database itself refuses, and tells the row.
    monkeypatch.setattr(type(store._database), "known", lambda *_: set())
    with pytest.raises(StoreError, match=r"^a nonce must be new to the log") as caught:
        store.append(NAME, [*reports(1), secret])
    told = "".join(traceback.format_exception(caught.value))
    for part in secret:
        assert part.decode() not in told
        assert part.hex() not in told
    monkeypatch.undo()
    change(store, "ALTER TABLE report RENAME TO elsewhere")
    with pytest.raises(StoreError) as caught:
        store.append(NAME, [secret])
    assert "someone" not in "".join(traceback.format_exception(caught.value))
    change(store, "ALTER TABLE elsewhere RENAME TO report")
    is_whole(store, length=1)


# Addresses.


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://me:hush@host/name", "begin with sqlite:/// or postgresql://; got 'mysql'"),
        ("postgresql+psycopg2://host/name", "got 'postgresql+psycopg2'"),
        ("hush", "begin with sqlite:/// or postgresql://; got an address without ://"),
        ("postgresql://me:hush@host:port/name", "be one of postgresql; got another"),
        ("sqlite://", "be sqlite:/// and the path of a file"),
        ("sqlite:///:memory:", "be sqlite:/// and the path of a file"),
        ("sqlite://hush/path", "be sqlite:/// and the path of a file"),
        ("sqlite:///path?hush=1", "be sqlite:/// and the path of a file"),
    ],
)
def test_an_address_that_cannot_be_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=re.escape(message)) as caught:
        Store.open(url)
    assert "hush" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_server_that_is_not_there_is_told_without_the_password(scheme: str) -> None:
    store = Store.open(f"{scheme}://me:hush@127.0.0.1:1/name")
    with pytest.raises(StoreError, match=r"must be reachable; .*127\.0\.0\.1") as caught:
        store.migrate()
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_opening_does_not_connect_and_only_migrating_makes_a_file(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    store = Store.open(sqlite_url)
    with pytest.raises(
        StoreError, match="be a file that exists and can be opened; SQLITE_CANTOPEN"
    ):
        store.check()
    assert not path.exists()
    store.migrate()
    assert path.exists()
    store.close()


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    with pytest.raises(StoreError, match=f"be in a folder that exists; got '{folder}'"):
        Store.open(f"sqlite:///{folder / 'store.db'}").migrate()


def test_a_file_that_is_not_a_store_is_refused_and_not_touched(tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("not a database " * 100)
    with pytest.raises(StoreError, match="the database must be an SQLite file; SQLITE_NOTADB"):
        Store.open(f"sqlite:///{words}").migrate()
    ledger = tmp_path / "ledger"
    Ledger(ledger, budget=1)
    before = ledger.read_bytes()
    with pytest.raises(StoreError, match="be a new file or a store; got another file"):
        Store.open(f"sqlite:///{ledger}").migrate()
    assert ledger.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="the database must be"):
        Store.open(f"sqlite:///{tmp_path / 'store.db'}").migrate()
    tmp_path.chmod(0o700)


def test_a_learner_that_met_a_busy_database_can_go_on(sqlite_url: str) -> None:
    store = opened(sqlite_url)
    session = learning(store)
    session._lock.connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    session._lock.connection.rollback()
    writer = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="the database must be free within"):
        session.publish([LoggedRelease(2, 0, "second")])
    assert session.saved() is None
    writer.close()
    session.publish([LoggedRelease(2, 0, "second")])
    assert store.newest_versions()[NAME] == 2
    session.close()
    store.close()


def test_a_busy_database_is_waited_for(sqlite_url: str) -> None:
    store = opened(sqlite_url)
    writer = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(store.append, NAME, reports(1))
        time.sleep(0.2)
        assert not waiting.done()
        writer.execute("COMMIT")
        assert waiting.result() == [True]
    writer.close()
    store.close()
