"""A whole database → one SQLite file, and back: for backups, whatever database runs.

The file is a store by itself: every command that reads a database can read it. Nothing but the
drivers is needed. A copy is of one moment, and nobody waits for it: SQLite copies a snapshot of its
WAL, PostgreSQL reads in one transaction that sees no later one.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from sottovoce.server.store import schema
from sottovoce.server.store.database import Database
from sottovoce.server.store.postgres import driver_of
from sottovoce.server.store.sqlite import Sqlite
from sottovoce.shared.errors import StoreError, must

# Rows that are written at once.
AT_ONCE = 10_000


def copy_out(database: Database, path: Path) -> None:
    """Write all of a database, as of one moment, to a new SQLite file."""
    with database.errors_translated():
        if isinstance(database, Sqlite):
            _copy_sqlite(database, path)
        else:
            _copy_rows(database, path)
    settle(path)


def copy_in(path: Path, database: Database, *, replace: bool) -> None:
    """Fill a PostgreSQL database from such a file, in one transaction; nothing or all.

    replace: whether there may be something, which is then gone.
    """
    with (
        closing(_opened(path)) as source,
        database.transaction(writes=True) as connection,
    ):
        refuse_company(connection)
        names = tables_of(source)
        if not replace and _has_experiments(connection):
            raise StoreError(must("the database to restore to", "be empty", "one with experiments"))
        connection.execute(text(f"TRUNCATE {', '.join(names)}"))
        for name in names:
            _copy_table(source, connection, name)
        connection.execute(
            text(
                "SELECT setval(pg_get_serial_sequence('experiment', 'id'),"
                " greatest((SELECT max(id) FROM experiment), 1))"
            )
        )


def refuse_company(connection: Connection) -> None:
    """Raise StoreError if anybody else is connected to this PostgreSQL database."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    query += " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    if connection.execute(text(query)).scalar():
        rule = "be used by nobody else: stop the server"
        raise StoreError(must("a database to restore", rule, "one in use"))


def tables_of(source: sqlite3.Connection) -> list[str]:
    """Return the tables that a store has, in an order in which they can be filled."""
    rows = source.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name <> 'migration' ORDER BY name <> 'experiment', rowid"
    )
    return [name for (name,) in rows]


def _copy_sqlite(database: Sqlite, path: Path) -> None:
    with closing(database.raw()) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)  # in one step: it reads one snapshot, and others go on writing


def _copy_rows(database: Database, path: Path) -> None:
    copy = Sqlite(path)
    schema.migrate(copy)
    copy.engine.dispose()
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute("BEGIN")
        connected = database.engine.connect()
        with connected.execution_options(isolation_level="REPEATABLE READ") as connection:
            schema.check(connection)
            for name in tables_of(target):
                columns = _columns(target, name)
                marks = ", ".join("?" * len(columns))
                insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
                for rows in _rows(connection, name, columns):
                    target.executemany(insert, rows)
        target.execute("COMMIT")


def _rows(connection: Connection, name: str, columns: list[str]) -> Iterator[list[Any]]:
    """Read a table in pieces. Its name and its columns are those of the migrations."""
    query = text(f"SELECT {', '.join(columns)} FROM {name}")  # noqa: S608
    streamed = connection.execution_options(stream_results=True, yield_per=AT_ONCE)
    for rows in streamed.execute(query).partitions():
        yield [tuple(row) for row in rows]


def _copy_table(source: sqlite3.Connection, connection: Connection, name: str) -> None:
    columns = _columns(source, name)
    listed = ", ".join(columns)
    rows = source.execute(f"SELECT {listed} FROM {name}")  # noqa: S608
    with (
        driver_of(connection).cursor() as cursor,
        cursor.copy(f"COPY {name} ({listed}) FROM STDIN".encode()) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _columns(source: sqlite3.Connection, name: str) -> list[str]:
    return [row[1] for row in source.execute(f"PRAGMA table_info({name})")]


def _has_experiments(connection: Connection) -> bool:
    return connection.execute(text("SELECT count(*) FROM experiment")).scalar() != 0


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def settle(path: Path) -> None:
    """Leave one file without a WAL beside it, whole and on disk."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            # It stays in WAL mode: whoever reads it then does not change a byte.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            (verdict,) = database.execute("PRAGMA quick_check").fetchone()
    except sqlite3.Error as error:
        verdict = type(error).__name__
    if verdict != "ok":
        raise StoreError("a copy of the database must be whole; it is not: check the database")
    path.with_name(f"{path.name}-migration").unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
