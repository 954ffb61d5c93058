"""The outbox: reports that wait to be sent, the newest verified release, and what is done once.

A client writes a report to the outbox, on disk, before it tries to send it, and removes it when the
server has answered for it. The report was privatised before: the outbox holds the bytes that go
over the network. Beside them it holds a number, which gives their order, and the experiment, which
follows from the release that the report names. It holds no time, no context and nothing else about
the person. The release is public. So is the coin: the ranking of the next report, where arms are
public. For a client without a ledger, the outbox holds which experiments the person has reported
to.

It is an SQLite file, as the ledger is, and fails closed in the same way. Several processes and
several experiments may share it. Its size is limited: a full outbox takes no further report, and
never drops old ones to make room. A client asks for room before it spends any ε.

An outbox that was deleted, or replaced by an older copy, cannot be told from a new one.
"""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from weakref import finalize

from sottovoce.device.database import FileKind
from sottovoce.shared.errors import DeviceError, OutboxError, must

MOST_WAITING = 100_000
"""The most reports that an outbox keeps, by default."""

_OUTBOX = FileKind(
    what="an outbox",
    name="outbox",
    application=0x536F7678,  # "Sovx"
    error=OutboxError,
    # AUTOINCREMENT, so that no two reports ever have the same number.
    tables="""
CREATE TABLE waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    experiment TEXT NOT NULL,
    report BLOB NOT NULL
);
CREATE TABLE kept (
    experiment TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    link BLOB NOT NULL,
    release BLOB NOT NULL
);
CREATE TABLE coin (experiment TEXT PRIMARY KEY, ranking BLOB NOT NULL);
CREATE TABLE reported (experiment TEXT PRIMARY KEY);
""",
    version=2,
    older="send its reports with the version of sottovoce that made it, then begin with a new file",
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The newest release that was followed: its place in the chain, and the signed document."""

    version: int
    link: bytes
    release: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """A report in the outbox: its number, and the bytes to send."""

    number: int
    report: bytes


class Reports(ABC):
    """Reports that wait to be sent, in the table ``waiting`` of an SQLite file."""

    _what: str  # how errors call the file
    _oldest = (
        "SELECT number, report FROM waiting WHERE experiment = :experiment"
        " ORDER BY number LIMIT :limit"
    )
    _count = "SELECT count(*) FROM waiting WHERE experiment = :experiment"

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open the file, or what is kept in memory, for one transaction."""

    def oldest(self, limit: int, *, experiment: str) -> list[Waiting]:
        """Return the reports of an experiment that have waited longest."""
        with self._transaction() as database:
            rows = database.execute(self._oldest, {"experiment": experiment, "limit": limit})
            reports = [Waiting(*row) for row in rows]
        if not all(isinstance(each.report, bytes) for each in reports):
            raise OutboxError(must(self._what, "hold reports", "something else"))
        return reports

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""
        with self._transaction() as database:
            rows = [(number,) for number in numbers]
            return database.executemany("DELETE FROM waiting WHERE number = ?", rows).rowcount

    def count(self, *, experiment: str) -> int:
        """Return how many reports of an experiment wait."""
        with self._transaction() as database:
            return int(database.execute(self._count, {"experiment": experiment}).fetchone()[0])


class Outbox(Reports):
    """An outbox on disk or in memory.

    path: the file; it is made on the first use. Without a file, all is lost when the process ends.
    most: how many reports may wait in it.
    """

    def __init__(self, path: str | PathLike[str] | None, *, most: int = MOST_WAITING) -> None:
        self._most = most
        self._path = None if path is None else Path(path)
        self._what = f"the outbox {self._path}"
        self._process = os.getpid()
        if self._path is None:
            # Steps of a client may run in several threads, but only one at a time.
            self._memory = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False
            )
            finalize(self, self._memory.close)
            _OUTBOX.create(self._memory)
            return
        with _OUTBOX.transaction(self._path, create=True) as database:
            (kind,) = database.execute("PRAGMA application_id").fetchone()
            # An empty file is a new one, too: another process may have made it a moment ago.
            if kind == 0 and not database.execute("SELECT * FROM sqlite_master").fetchall():
                _OUTBOX.create(database)
            _OUTBOX.check(database, self._path)

    def check_room(self, *, experiment: str, coin: bytes = b"") -> None:
        """Raise OutboxError unless another report can be put here now, made with this coin."""
        with self._transaction() as database:
            self._check_room(database)
            _check_coin(database, experiment, coin)

    def put(self, report: bytes, *, experiment: str, coin: bytes = b"") -> None:
        """Keep a report, and forget its coin; with a file, that is on disk when this returns."""
        with self._transaction() as database:
            self._check_room(database)
            _check_coin(database, experiment, coin)
            database.execute("DELETE FROM coin WHERE experiment = ?", (experiment,))
            statement = "INSERT INTO waiting (experiment, report) VALUES (?, ?)"
            database.execute(statement, (experiment, report))

    def coin(self, drawn: bytes, *, experiment: str) -> bytes:
        """Return the coin of the next report: the one that is here, otherwise the one drawn now."""
        with self._transaction() as database:
            database.execute("INSERT OR IGNORE INTO coin VALUES (?, ?)", (experiment, drawn))
            coin = _coin(database, experiment)
        if coin is None or sorted(coin) != sorted(drawn):
            raise OutboxError(must(self._what, "hold an order of the arms", "something else"))
        return coin

    def note_report(self, *, experiment: str) -> bool:
        """Note that the person reports to an experiment; return whether it is the first time."""
        with self._transaction() as database:
            statement = "INSERT OR IGNORE INTO reported VALUES (?)"
            return database.execute(statement, (experiment,)).rowcount == 1

    def kept(self, *, experiment: str) -> Kept | None:
        """Return the newest kept release. The caller verifies it again."""
        with self._transaction() as database:
            return _kept(database, experiment)

    def keep(self, new: Kept, *, experiment: str, instead_of: Kept | None) -> bool:
        """Keep a release in the place of another one; return whether that was still there.

        If it was not, another thread or process has moved on in the meantime.
        """
        with self._transaction() as database:
            if _kept(database, experiment) != instead_of:
                return False
            row = (experiment, new.version, new.link, new.release)
            database.execute("REPLACE INTO kept VALUES (?, ?, ?, ?)", row)
            return True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        if self._path is None:
            # A fork copies the memory: each copy would send its reports, and report once.
            if self._process != os.getpid():
                trouble = "an outbox in memory must be used where it was made; got another process"
                raise OutboxError(trouble)
            yield self._memory
            return
        with _OUTBOX.transaction(self._path) as database:
            _OUTBOX.check(database, self._path)
            yield database

    def _check_room(self, database: sqlite3.Connection) -> None:
        (waiting,) = database.execute("SELECT count(*) FROM waiting").fetchone()
        if waiting >= self._most:
            rule = f"hold at most {self._most} reports: send them before there are more"
            raise OutboxError(must("an outbox", rule, f"{waiting} that wait"))


def _coin(database: sqlite3.Connection, experiment: str) -> bytes | None:
    statement = "SELECT ranking FROM coin WHERE experiment = ?"
    row = database.execute(statement, (experiment,)).fetchone()
    return row[0] if row and isinstance(row[0], bytes) else None


def _check_coin(database: sqlite3.Connection, experiment: str, coin: bytes) -> None:
    """Refuse a coin that a report was made with since. An empty one is of private arms."""
    if coin and _coin(database, experiment) != coin:
        raise DeviceError(
            "a choice must be made with the ranking of the next report; another report was made"
            " with this one: choose again"
        )


def _kept(database: sqlite3.Connection, experiment: str) -> Kept | None:
    statement = "SELECT version, link, release FROM kept WHERE experiment = ?"
    row = database.execute(statement, (experiment,)).fetchone()
    if row is None:
        return None
    if [type(each) for each in row] != [int, bytes, bytes]:
        raise OutboxError(must("an outbox", "hold the release that was followed", "something else"))
    return Kept(*row)
