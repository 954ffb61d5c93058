"""The outbox: decisions, reports that wait to be sent, and the newest verified release.

A client keeps a decision in the outbox until its outcome comes (``kept_decisions.py``), and then
its report. It removes the report when the server has answered for it. The report was privatised
before: the outbox holds the bytes that go over the network. Beside them it holds a number, which
gives their order, when they may be sent, and the experiment, which follows from the release that
the report names. It holds no context, no arm, no reward and nothing else about the person. The
release is public. A random key decides which arms the person keeps (``coins.py``). The outbox also
holds which experiments the person has left and, for a client without a ledger, which ones the
person has reported to.

It is an SQLite file, as the ledger is, and fails closed in the same way. Several processes and
several experiments may share it. Its size is limited: a full outbox takes no further decision, and
never drops old reports to make room. A client holds room on the disk before it spends any ε.

An outbox that was deleted, or replaced by an older copy, cannot be told from a new one.
"""

import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

from sottovoce.device import trail
from sottovoce.device.database import FileKind
from sottovoce.shared.errors import OutboxError, must

MOST_WAITING = 100_000
"""The most decisions and reports that an outbox keeps, by default."""

ROOM = 64 * 1024
"""More bytes than a decision ever takes on disk, with all that SQLite writes beside it."""

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
    due INTEGER NOT NULL,
    report BLOB NOT NULL
);
CREATE TABLE decision (
    id TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,
    expires INTEGER NOT NULL,
    held INTEGER NOT NULL,
    release BLOB NOT NULL,
    population INTEGER NOT NULL,
    question INTEGER NOT NULL,
    ranking BLOB NOT NULL,
    kept BLOB NOT NULL
);
CREATE TABLE kept (
    experiment TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    link BLOB NOT NULL,
    release BLOB NOT NULL
);
CREATE TABLE sticky (experiment TEXT PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE reported (experiment TEXT PRIMARY KEY);
CREATE TABLE departed (experiment TEXT PRIMARY KEY);
""",
    version=3,
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
    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open the file, or what is kept in memory, for one transaction."""

    def oldest(self, limit: int, *, experiment: str) -> list[Waiting]:
        """Return the reports of an experiment that have waited longest, and may be sent."""
        asked = {"experiment": experiment, "limit": limit, "now": self._now()}
        with self.transaction() as database:
            rows = database.execute(self._oldest, asked)
            reports = [Waiting(*row) for row in rows]
        if not all(isinstance(each.report, bytes) for each in reports):
            raise OutboxError(must(self._what, "hold reports", "something else"))
        return reports

    def _now(self) -> float:
        """Return the time by which reports may be sent."""
        return time.time()

    def claim(self, reports: Sequence[Waiting]) -> list[Waiting]:
        """Return those that are still here; whoever claims them gives them to the network now."""
        return list(reports)

    @abstractmethod
    def put_off(self, numbers: Sequence[int], *, seconds: float) -> None:
        """Let reports wait that the server cannot read now, and perhaps can later."""

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""
        with self.transaction() as database:
            rows = [(number,) for number in numbers]
            return database.executemany("DELETE FROM waiting WHERE number = ?", rows).rowcount

    def count(self, *, experiment: str) -> int:
        """Return how many reports of an experiment wait."""
        with self.transaction() as database:
            return int(database.execute(self._count, {"experiment": experiment}).fetchone()[0])


class Outbox(Reports):
    """An outbox on disk or in memory.

    path: the file; it is made on the first use. Without a file, all is lost when the process ends.
    most: how many decisions and reports may wait in it.
    now: seconds since 1970, by which reports become due.
    """

    _oldest = (
        "SELECT number, report FROM waiting WHERE experiment = :experiment AND due <= :now"
        " ORDER BY number LIMIT :limit"
    )

    def __init__(
        self,
        path: str | PathLike[str] | None,
        *,
        most: int = MOST_WAITING,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._most = most
        self._clock = now
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

    def _now(self) -> float:
        return self._clock()

    @contextmanager
    def room(self) -> Iterator[None]:
        """Hold as much of the disk as a decision may take, or raise OutboxError.

        What is spent meanwhile may take the last of a disk that is nearly full. The decision must
        fit all the same: its ε would be lost.
        """
        self._check_count()
        if self._path is None:
            yield
            return
        with ExitStack() as held:
            try:
                # It has no name: also of a process that is killed nothing stays.
                file = held.enter_context(TemporaryFile(dir=self._path.absolute().parent))
                file.write(bytes(ROOM))
                file.flush()
            except OSError as error:
                raise OutboxError(
                    f"the outbox {self._path} must have room on its disk; {error.strerror};"
                    " nothing was written"
                ) from error
            yield

    def _check_count(self) -> None:
        """Raise OutboxError if the outbox is full."""
        with self.transaction() as database:
            counts = "SELECT (SELECT count(*) FROM waiting) + (SELECT count(*) FROM decision)"
            (waiting,) = database.execute(counts).fetchone()
            if waiting >= self._most:
                rule = f"hold at most {self._most} decisions and reports: send some first"
                raise OutboxError(must("an outbox", rule, f"{waiting} that wait"))

    def put(self, report: bytes, *, experiment: str, due: int = 0) -> None:
        """Keep a report; with a file, that is on disk when this returns."""
        with self.transaction() as database:
            put_report(database, report, experiment=experiment, due=due)

    def claim(self, reports: Sequence[Waiting]) -> list[Waiting]:
        """Note on disk that they leave now: their ε is spent for good (``trail.py``)."""
        with self.transaction() as database:
            there = trail.claim(database, [each.number for each in reports])
        return [each for each in reports if each.number in there]

    def put_off(self, numbers: Sequence[int], *, seconds: float) -> None:
        """Let reports wait that the server cannot read now, and perhaps can later."""
        with self.transaction() as database:
            rows = [(int(self._now() + seconds), number) for number in numbers]
            database.executemany("UPDATE waiting SET due = ? WHERE number = ?", rows)

    def remove(self, numbers: Sequence[int]) -> int:
        """Forget reports, and return how many of them were still here."""
        removed = super().remove(numbers)
        with self.transaction() as database:
            trail.forget(database, numbers)
        return removed

    def due(self, *, experiment: str) -> int:
        """Return how many reports of an experiment may be sent now."""
        statement = "SELECT count(*) FROM waiting WHERE experiment = ? AND due <= ?"
        with self.transaction() as database:
            return int(database.execute(statement, (experiment, self._now())).fetchone()[0])

    def leave(self, *, experiment: str) -> None:
        """Forget all about an experiment but that the person has left it."""
        with self.transaction() as database:
            for statement in (
                "DELETE FROM waiting WHERE experiment = ?",
                "DELETE FROM decision WHERE experiment = ?",
                "DELETE FROM kept WHERE experiment = ?",
                "DELETE FROM sticky WHERE experiment = ?",
                "INSERT OR IGNORE INTO departed VALUES (?)",
            ):
                database.execute(statement, (experiment,))
            trail.leave(database, experiment)

    def has_left(self, *, experiment: str) -> bool:
        """Say whether the person has left an experiment."""
        with self.transaction() as database:
            statement = "SELECT count(*) FROM departed WHERE experiment = ?"
            return bool(database.execute(statement, (experiment,)).fetchone()[0])

    def note_report(self, *, experiment: str) -> bool:
        """Note that the person reports to an experiment; return whether it is the first time."""
        with self.transaction() as database:
            statement = "INSERT OR IGNORE INTO reported VALUES (?)"
            return database.execute(statement, (experiment,)).rowcount == 1

    def kept(self, *, experiment: str) -> Kept | None:
        """Return the newest kept release. The caller verifies it again."""
        with self.transaction() as database:
            return _kept(database, experiment)

    def keep(
        self,
        new: Kept,
        *,
        experiment: str,
        instead_of: Kept | None,
        followed: Sequence[trail.Followed] = (),
        after: int | None = None,
    ) -> Counter[int] | None:
        """Keep a release in the place of another one; return None if that was not there any more.

        Then another thread or process has moved on in the meantime.

        followed: releases to note as followed.
        after: where the releases end that a restored server still has; None if it has all. What
            was made for the others and never sent is erased: how many that have cost ε is returned,
            by version (``trail.py``).
        """
        with self.transaction() as database:
            if _kept(database, experiment) != instead_of:
                return None
            row = (experiment, new.version, new.link, new.release)
            database.execute("REPLACE INTO kept VALUES (?, ?, ?, ?)", row)
            erased: Counter[int] = Counter()
            trail.note_followed(database, experiment, followed[:-1])
            if after is not None:
                erased = trail.abandon(database, experiment, after=after)
            trail.note_followed(database, experiment, followed[-1:])
            return erased

    def trail(self, *, experiment: str) -> trail.Trail:
        """Return which releases of an experiment were followed."""
        with self.transaction() as database:
            return trail.trail_of(database, experiment)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the file, or what is kept in memory, for one transaction; an error rolls back."""
        if self._path is None:
            # A fork copies the memory: each copy would send its reports, and report once.
            if self._process != os.getpid():
                trouble = "an outbox in memory must be used where it was made; got another process"
                raise OutboxError(trouble)
            self._memory.execute("BEGIN")
            try:
                yield self._memory
            except BaseException:
                self._memory.execute("ROLLBACK")
                raise
            self._memory.execute("COMMIT")
            return
        with _OUTBOX.transaction(self._path) as database:
            _OUTBOX.check(database, self._path)
            yield database


def put_report(database: sqlite3.Connection, report: bytes, *, experiment: str, due: int) -> None:
    """Keep a report, within a transaction. due: when it may be sent, in seconds since 1970."""
    statement = "INSERT INTO waiting (experiment, due, report) VALUES (?, ?, ?)"
    database.execute(statement, (experiment, due, report))


def _kept(database: sqlite3.Connection, experiment: str) -> Kept | None:
    statement = "SELECT version, link, release FROM kept WHERE experiment = ?"
    row = database.execute(statement, (experiment,)).fetchone()
    if row is None:
        return None
    if [type(each) for each in row] != [int, bytes, bytes]:
        raise OutboxError(must("an outbox", "hold the release that was followed", "something else"))
    return Kept(*row)
