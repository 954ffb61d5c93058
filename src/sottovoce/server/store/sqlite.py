"""SQLite: one file, which several processes of one machine may use at once."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, QueuePool, create_engine, event
from sqlalchemy.exc import DisconnectionError

from sottovoce.server.store.chained import hash_after
from sottovoce.server.store.database import (
    PATIENCE_SECONDS,
    Database,
    DuplicateNonce,
    LearnerLock,
    check_published,
)
from sottovoce.server.store.log import ExperimentLog, must_exist
from sottovoce.shared.errors import StoreError, StoreFull, must

# Marks the file as a store, so that no other database is ever taken for one ("SovS").
APPLICATION_ID = 0x536F7653
# WAL: readers and the writer do not wait for each other. FULL: on disk when a commit returns.
# Nonces are random and so touch every page of their index: a cache that holds it (16 MiB), and
# a WAL that takes many batches before it is copied to the file (64,000 pages), double the speed.
SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -16384",
    "PRAGMA wal_autocheckpoint = 64000",
)
# Rows of one statement. Python gives its lock away at each statement and may wait long for it, so
# there should be few statements. Some builds of SQLite refuse more than 999 parameters.
ROWS_AT_ONCE = 250

END = """
SELECT id, coalesce((SELECT max(position) FROM report WHERE experiment = id), 0),
    (SELECT max(version) FROM release WHERE experiment = id), chained.position, chained.hash
FROM experiment LEFT JOIN chained ON chained.experiment = id WHERE fingerprint = ?
"""

# What the database must be or do, by SQLite's own code of the error.
_RULES = {
    sqlite3.SQLITE_NOTADB: "be an SQLite file",
    sqlite3.SQLITE_CANTOPEN: "be a file that exists and can be opened",
    sqlite3.SQLITE_BUSY: f"be free within {PATIENCE_SECONDS} seconds",
    sqlite3.SQLITE_READONLY: "be writable",
    sqlite3.SQLITE_CORRUPT: "be undamaged",
    sqlite3.SQLITE_FULL: "have room on its disk",
}


class Sqlite(Database):
    """One file."""

    driver_errors = sqlite3.Error

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        # The connection used last has most of the file in its cache: take that one first.
        engine = create_engine(
            "sqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_use_lifo=True,
            hide_parameters=True,
        )
        event.listen(engine, "begin", _begin)
        event.listen(engine, "connect", self._note_file)
        event.listen(engine, "checkout", self._check_file)
        super().__init__(engine)

    def prepare(self) -> None:
        """Make the file where there is none."""
        if not self.path.parent.is_dir():
            folder = repr(str(self.path.parent))
            raise StoreError(must("the database", "be in a folder that exists", folder))
        self.path.touch()
        # Changing to WAL needs the file for oneself, and SQLite does not wait for that by itself.
        with closing(self._lock("migration", patience=PATIENCE_SECONDS)):
            self._connect().close()

    def lock_schema(self, connection: Connection) -> None:
        """Mark the file as ours; SQLite has one transaction at a time that writes."""
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")

    def append(
        self,
        connection: Connection,
        fingerprint: str,
        reports: Sequence[tuple[bytes, bytes]],
        *,
        published: int,
    ) -> None:
        """Write many rows with each statement. SQLite has one transaction at a time that writes."""
        driver = _driver(connection)
        found = driver.execute(END, (fingerprint,)).fetchone() or (None, 0, 0, 0, "")
        experiment, after = must_exist(found[0], fingerprint), found[1]
        check_published(found[2], published=published)
        ordered = sorted(reports)
        bodies = [body for _, body in ordered]
        if after and found[3] == after:  # the usual case, without a detour
            new = (after + len(bodies), hash_after(found[4], bodies), experiment)
            driver.execute("UPDATE chained SET position = ?, hash = ? WHERE experiment = ?", new)
        else:
            log = ExperimentLog(connection, experiment)
            log.extend_chain(fingerprint, after=after, bodies=bodies)
        for some in _pieces(ordered):
            values = (experiment, after, *chain.from_iterable(some))
            driver.execute(_insert_statement(len(some)), values)
            after += len(some)

    def known(
        self, connection: Connection, fingerprint: str, nonces: Sequence[bytes]
    ) -> set[bytes]:
        """Ask in pieces."""
        experiment = ExperimentLog.of(connection, fingerprint).experiment
        driver = _driver(connection)
        found: set[bytes] = set()
        for some in _pieces(nonces):
            rows = driver.execute(_known_query(len(some)), (experiment, *some))
            found.update(nonce for (nonce,) in rows)
        return found

    def raw(self) -> sqlite3.Connection:
        """Open the file once more, outside of the pool."""
        return self._connect()

    def is_alone(self) -> bool:
        """Say whether no other connection is open, in this process or another.

        In WAL mode each one holds a lock on the file for as long as it is open.
        """
        self.engine.dispose()
        with closing(_open(self.path, mode="rw", patience=0)) as alone:
            try:
                alone.execute("PRAGMA locking_mode = EXCLUSIVE")
                alone.execute("BEGIN EXCLUSIVE")
                alone.execute("ROLLBACK")
            except sqlite3.OperationalError as error:
                if _code(error) == sqlite3.SQLITE_BUSY:
                    return False
                raise
        return True

    def try_lock(self, experiment: int, *, fingerprint: str) -> LearnerLock | None:
        """Lock a file beside the database. The operating system frees it when the process dies."""
        with self.errors_translated():
            try:
                lock = self._lock(f"learner-{fingerprint}", patience=0)
            except sqlite3.OperationalError as error:
                if _code(error) == sqlite3.SQLITE_BUSY:
                    return None
                raise
            try:
                connection = self.engine.connect()
                # The learner alone erases: what it erases is overwritten, not only set free.
                _driver(connection).execute("PRAGMA secure_delete = ON")
                connection.detach()  # from the pool: others need its connections
            except BaseException:
                lock.close()
                raise

        def release() -> None:
            connection.close()
            lock.close()

        return LearnerLock(connection, release)

    def forget(self, connection: Connection) -> None:
        """Copy the WAL to the file, and empty it; if others read just now, the next time."""
        cursor = connection.connection.cursor()  # of a connection that is in no pool
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.fetchall()
        cursor.close()

    def translate(self, error: BaseException) -> StoreError:
        """Name SQLite's own code of the error."""
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        if name == "SQLITE_CONSTRAINT_UNIQUE":
            return DuplicateNonce("a nonce must be new to the log; one is not")
        # The index of the WAL is a file of its own, and may find the disk full first.
        full = _code(error) == sqlite3.SQLITE_FULL or name == "SQLITE_IOERR_SHMSIZE"
        code = sqlite3.SQLITE_FULL if full else _code(error)
        rule = _RULES.get(code, "be readable, writable and migrated")
        return (StoreFull if full else StoreError)(f"the database must {rule}; {name}")

    def _file(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            raise StoreError("the database must be a file that exists; it is gone") from None
        return found.st_dev, found.st_ino

    def _note_file(self, _connection: object, record: Any) -> None:
        record.info["file"] = self._file()

    def _check_file(self, _connection: object, record: Any, _proxy: object) -> None:
        """Write to no file that was deleted or replaced: an open one can still be written to."""
        if record.info["file"] != self._file():
            raise DisconnectionError("the file is another one now")

    def _connect(self) -> sqlite3.Connection:
        connection = _open(self.path, mode="rw", patience=PATIENCE_SECONDS)
        try:
            (kind,) = connection.execute("PRAGMA application_id").fetchone()
            if kind not in (0, APPLICATION_ID):
                raise StoreError(must("the database", "be a new file or a store", "another file"))
            for setting in SETTINGS:
                connection.execute(setting)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock(self, name: str, *, patience: float) -> sqlite3.Connection:
        """Lock an empty database beside the main one, until the connection is closed."""
        beside = self.path.with_name(f"{self.path.name}-{name}")
        lock = _open(beside, mode="rwc", patience=patience)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except BaseException:
            lock.close()
            raise
        return lock


def _open(path: Path, *, mode: str, patience: float) -> sqlite3.Connection:
    # As an address, so that a file is made only where that is wanted, and no name has a meaning
    # of its own. Transactions are begun by hand, see _begin.
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=patience,
        check_same_thread=False,
    )


def _driver(connection: Connection) -> sqlite3.Connection:
    driver: sqlite3.Connection | None = connection.connection.driver_connection
    if driver is None:
        raise sqlite3.OperationalError("the connection is closed")
    return driver


@cache
def _known_query(count: int) -> str:
    marks = ", ".join("?" * count)
    # Only question marks are put in.
    return f"SELECT nonce FROM report WHERE experiment = ? AND nonce IN ({marks})"  # noqa: S608


@cache
def _insert_statement(count: int) -> str:
    """Write so many reports after a position.

    OR ROLLBACK: a row that could not be written would undo the transaction, not the statement
    alone, so SQLite need not note how to undo the statement; that is a third of the time.
    """
    rows = ", ".join(f"({place}, ?, ?)" for place in range(1, count + 1))
    # Only places and question marks are put in.
    query = f"SELECT ?, ? + column1, column2, column3 FROM (VALUES {rows})"  # noqa: S608
    return f"INSERT OR ROLLBACK INTO report (experiment, position, nonce, body) {query}"


def _begin(connection: Connection) -> None:
    # One that reads first and writes later could find that another has written in between.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _code(error: BaseException) -> int:
    """Return the code of an error without what SQLite adds to it in the upper bits."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _pieces(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), ROWS_AT_ONCE):
        yield items[start : start + ROWS_AT_ONCE]
