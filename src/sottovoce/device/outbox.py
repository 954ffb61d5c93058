"""The outbox: reports that wait to be sent, and the newest verified release.

A client writes a report to the outbox, on disk, before it tries to send it, and removes it when the
server has answered for it. The report was privatised before: the outbox holds the bytes that go
over the network. Beside them it holds a number, which gives their order, and the experiment, which
the report names anyway. It holds no time, no context and nothing else about the person. The release
is public.

It is an SQLite file, as the ledger is, and fails closed in the same way. Several processes and
several experiments may share it. Its size is limited: a full outbox takes no further report, and
never drops old ones to make room. A client asks for room before it spends any ε.
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
"""The most reports that an outbox keeps, by default."""

_OUTBOX = FileKind(
    what="an outbox",
    application=0x536F7678,  # "Sovx"
    version=1,
    error=OutboxError,
    # AUTOINCREMENT, so that no two reports ever have the same number.
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
    """A report in the outbox: its number, and the bytes to send."""

    number: int
    report: bytes


class Keeps(Protocol):
    """What a client needs of an outbox. Each call is about one experiment."""

    def check_room(self) -> None:
        """Raise OutboxError unless another report can be put here now."""

    def put(self, report: bytes, *, experiment: str) -> None:
        """Keep a report; it is safe when this returns."""

    def oldest(self, limit: int, *, experiment: str) -> list[Waiting]:
        """Return the reports that have waited longest."""

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""

    def count(self, *, experiment: str) -> int:
        """Return how many reports are in the outbox."""

    def kept(self, *, experiment: str) -> bytes | None:
        """Return the newest kept release."""

    def keep(self, release: bytes, *, experiment: str, instead_of: Callable[[bytes], bool]) -> None:
        """Keep a release, unless the outbox has one that it may not replace."""


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
        """Return how many reports are in the outbox."""
        with self._checked() as database:
            statement = "SELECT count(*) FROM waiting WHERE experiment = ?"
            return int(database.execute(statement, (experiment,)).fetchone()[0])

    def kept(self, *, experiment: str) -> bytes | None:
        """Return the newest kept release. The caller verifies it again."""
        with self._checked() as database:
            return _kept(database, experiment)

    def keep(self, release: bytes, *, experiment: str, instead_of: Callable[[bytes], bool]) -> None:
        """Keep a release, unless the outbox has one that it may not replace."""
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
    """The outbox of a client without a file: in memory, lost when the process ends."""

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
        """Return how many reports are in the outbox."""
        return sum(each == experiment for each, _ in self._waiting.values())

    def kept(self, *, experiment: str) -> bytes | None:
        """Return the newest kept release."""
        return self._kept.get(experiment)

    def keep(self, release: bytes, *, experiment: str, instead_of: Callable[[bytes], bool]) -> None:
        """Keep a release, unless the outbox has one that it may not replace."""
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
