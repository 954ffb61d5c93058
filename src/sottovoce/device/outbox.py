"""The outbox: reports that wait to be sent, and the newest release that was verified.

A report is in here, on disk, before anybody tries to send it, and stays until the server has said
what became of it. It was privatised before: the bytes in here are those that go over the network.
Beside them stand a number, which gives their order, and the experiment, which they carry anyway.
There is no time, no context and nothing else about the person. The release is public.

It is an SQLite file, as the ledger is, and fails closed in the same way. Several processes may
share it, and several experiments. It is bounded: a full outbox takes no further report, and a
client asks for room before it spends any ε. The oldest are never dropped to make room.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Protocol

from sottovoce.device.database import FileKind, transaction
from sottovoce.shared.errors import OutboxError, must

MOST_WAITING = 100_000
"""Reports that may wait, unless an outbox is told otherwise."""

_OUTBOX = FileKind(
    what="an outbox",
    application=0x536F7678,  # "Sovx"
    version=1,
    error=OutboxError,
    # AUTOINCREMENT, so that the number of a report that was sent is never given to another one.
    tables="""
CREATE TABLE waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    experiment TEXT NOT NULL,
    report BLOB NOT NULL
);
CREATE TABLE kept (experiment TEXT PRIMARY KEY, release BLOB NOT NULL);
""",
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A report that waits: its number, and the bytes to send."""

    number: int
    report: bytes


class Keeps(Protocol):
    """What a client asks of an outbox. All of it is about one experiment at a time."""

    def check_room(self) -> None:
        """Raise OutboxError unless another report can be put here now."""

    def put(self, report: bytes, *, experiment: str) -> None:
        """Keep a report; it is safe when this returns."""

    def oldest(self, limit: int, *, experiment: str) -> list[Waiting]:
        """Return the reports that have waited longest."""

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""

    def count(self, *, experiment: str) -> int:
        """Return how many reports wait."""

    def kept(self, *, experiment: str) -> bytes | None:
        """Return the newest release that was kept."""

    def keep(self, release: bytes, *, experiment: str, instead_of: Callable[[bytes], bool]) -> None:
        """Keep a release, unless there is one already that it may not replace."""


class Outbox:
    """An outbox on disk.

    path: the file; it is made on the first use.
    most: how many reports may wait in it.
    """

    def __init__(self, path: str | PathLike[str], *, most: int = MOST_WAITING) -> None:
        self.path = Path(path)
        self._most = most
        with self._transaction(create=True) as database:
            (kind,) = database.execute("PRAGMA application_id").fetchone()
            # An empty file is a new one, too: another process may have made it a moment ago.
            if kind == 0 and not database.execute("SELECT * FROM sqlite_master").fetchall():
                _OUTBOX.create(database)
            _OUTBOX.check(database, self.path)

    def check_room(self) -> None:
        """Raise OutboxError unless another report can be put here now."""
        with self._checked() as database:
            _check_room(_count(database), most=self._most)

    def put(self, report: bytes, *, experiment: str) -> None:
        """Keep a report; it is on disk when this returns."""
        with self._checked() as database:
            _check_room(_count(database), most=self._most)
            database.execute(
                "INSERT INTO waiting (experiment, report) VALUES (?, ?)", (experiment, report)
            )

    def oldest(self, limit: int, *, experiment: str) -> list[Waiting]:
        """Return the reports that have waited longest."""
        with self._checked() as database:
            rows = database.execute(
                "SELECT number, report FROM waiting WHERE experiment = ? ORDER BY number LIMIT ?",
                (experiment, limit),
            )
            reports = [Waiting(*row) for row in rows]
        if not all(isinstance(each.report, bytes) for each in reports):
            raise OutboxError(must(f"the outbox {self.path}", "hold reports", "something else"))
        return reports

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""
        with self._checked() as database:
            rows = [(number,) for number in numbers]
            return database.executemany("DELETE FROM waiting WHERE number = ?", rows).rowcount

    def count(self, *, experiment: str) -> int:
        """Return how many reports wait."""
        with self._checked() as database:
            statement = "SELECT count(*) FROM waiting WHERE experiment = ?"
            return int(database.execute(statement, (experiment,)).fetchone()[0])

    def kept(self, *, experiment: str) -> bytes | None:
        """Return the newest release that was kept; it is to be verified again."""
        with self._checked() as database:
            return _kept(database, experiment)

    def keep(self, release: bytes, *, experiment: str, instead_of: Callable[[bytes], bool]) -> None:
        """Keep a release, unless there is one already that it may not replace."""
        with self._checked() as database:
            old = _kept(database, experiment)
            if old is None or instead_of(old):
                database.execute("REPLACE INTO kept VALUES (?, ?)", (experiment, release))

    @contextmanager
    def _checked(self) -> Iterator[sqlite3.Connection]:
        with self._transaction() as database:
            _OUTBOX.check(database, self.path)
            yield database

    def _transaction(self, *, create: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self.path, _OUTBOX, what=f"the outbox {self.path}", create=create)


@dataclass(slots=True)
class MemoryOutbox:
    """The outbox of a client that was given no file: it lasts as long as the process."""

    most: int = MOST_WAITING
    _waiting: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    _kept: dict[str, bytes] = field(default_factory=dict)
    _newest: int = 0

    def check_room(self) -> None:
        """Raise OutboxError unless another report can be put here now."""
        _check_room(len(self._waiting), most=self.most)

    def put(self, report: bytes, *, experiment: str) -> None:
        """Keep a report."""
        self.check_room()
        self._newest += 1
        self._waiting[self._newest] = (experiment, report)

    def oldest(self, limit: int, *, experiment: str) -> list[Waiting]:
        """Return the reports that have waited longest."""
        mine = [(number, each) for number, each in self._waiting.items() if each[0] == experiment]
        return [Waiting(number, report) for number, (_, report) in mine[:limit]]

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""
        return sum(self._waiting.pop(number, None) is not None for number in numbers)

    def count(self, *, experiment: str) -> int:
        """Return how many reports wait."""
        return sum(each == experiment for each, _ in self._waiting.values())

    def kept(self, *, experiment: str) -> bytes | None:
        """Return the newest release that was kept."""
        return self._kept.get(experiment)

    def keep(self, release: bytes, *, experiment: str, instead_of: Callable[[bytes], bool]) -> None:
        """Keep a release, unless there is one already that it may not replace."""
        old = self._kept.get(experiment)
        if old is None or instead_of(old):
            self._kept[experiment] = release


def _check_room(waiting: int, *, most: int) -> None:
    if waiting >= most:
        rule = f"hold at most {most} reports: send them before there are more"
        raise OutboxError(must("an outbox", rule, f"{waiting} that wait"))


def _count(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT count(*) FROM waiting").fetchone()[0])


def _kept(database: sqlite3.Connection, experiment: str) -> bytes | None:
    statement = "SELECT release FROM kept WHERE experiment = ?"
    row = database.execute(statement, (experiment,)).fetchone()
    return row[0] if row and isinstance(row[0], bytes) else None
