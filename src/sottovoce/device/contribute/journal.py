"""The journal: how many rows are finished, and the reports that wait to be sent.

With it, each row is reported exactly once, whenever a run is killed. Proof that at most one report
of each row ever leaves this machine:

1. Only reports that were read back from ``waiting`` are sent (``link.py``).
2. ``keep`` writes a report to ``waiting`` and the new count of finished rows in one transaction,
   which is on disk before anything in it can be read back. Rows below the count are never
   privatised again. Several runs may make a report of the same row, but only the one whose
   transaction was committed can be sent. A run that is killed earlier leaves neither that report
   nor the count.
3. A report that is sent again has the same bytes. A server that has it already knows its nonce, and
   nobody on the network learns anything new. A report leaves ``waiting`` only when the server has
   answered.
4. Only one process at a time can use the journal: it holds SQLite's exclusive lock until it ends,
   however it ends. And a file is known by its bytes, whatever its name.

That at least one report of each row arrives follows from 3. The proof needs the journal itself: if
it is deleted, or restored from a copy, rows may be reported a second time, and such a row has spent
2ε. The journal cannot know that, nor that a person is in two different files.
"""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from os import PathLike
from pathlib import Path

from sottovoce.device.database import FileKind, connect
from sottovoce.device.outbox import Reports
from sottovoce.shared import wire
from sottovoce.shared.errors import OutboxError, must

_JOURNAL = FileKind(
    what="a journal",
    name="journal",
    application=0x536F636F,  # "Soco"
    error=OutboxError,
    version=2,
    tables="""
CREATE TABLE pinned (
    experiment TEXT NOT NULL,
    population TEXT NOT NULL,
    epsilon REAL NOT NULL
);
CREATE TABLE files (
    sha256 BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    name BLOB NOT NULL,
    columns BLOB NOT NULL,
    rows INTEGER NOT NULL,
    done INTEGER NOT NULL CHECK (done BETWEEN 0 AND rows)
) WITHOUT ROWID;
CREATE TABLE waiting (
    number INTEGER PRIMARY KEY,
    report BLOB NOT NULL
);
""",
)


@dataclass(frozen=True, slots=True)
class Pins:
    """What a journal is for. Every run with it must be for the same."""

    experiment: str
    population: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class Begun:
    """A file whose rows are being contributed, or were.

    name, columns: hashes of the path and of the columns with which it was begun.
    rows: how many it has. done: how many of them are finished: each has given one report.
    """

    sha256: bytes
    size: int
    name: bytes
    columns: bytes
    rows: int
    done: int = 0


class Journal(Reports):
    """A journal on disk, for this process alone until it is closed.

    path: the file; the first use creates it.
    pins: written once; a journal with other pins is refused.
    """

    # All reports are of one experiment.
    _oldest = (
        "SELECT number, report FROM waiting WHERE number NOT IN (SELECT number FROM temp.off)"
        " ORDER BY number LIMIT :limit"
    )
    _count = "SELECT count(*) FROM waiting WHERE number NOT IN (SELECT number FROM temp.off)"

    def __init__(self, path: str | PathLike[str], *, pins: Pins) -> None:
        self.path = Path(path)
        self._what = f"the journal {self.path}"
        with self._trouble():
            if not self.path.exists():
                _create(self.path, pins)
            self._database = connect(self.path, timeout=0)
        try:
            with self._trouble():
                _JOURNAL.check(self._database, self.path)
                # A transaction that writes nothing takes the lock until the journal is closed.
                self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._database.execute("BEGIN EXCLUSIVE")
                self._database.execute("COMMIT")
                self._database.execute("CREATE TEMP TABLE off (number INTEGER PRIMARY KEY)")
                made_for = [Pins(*row) for row in self._database.execute("SELECT * FROM pinned")]
            if made_for != [pins]:
                known = _names(made_for[0]) if made_for else "some experiment"
                raise OutboxError(must(self._what, f"be for {known}, as it was made", _names(pins)))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the journal and release its lock."""
        self._database.close()

    def files(self) -> list[Begun]:
        """Return every file that was ever begun."""
        query = "SELECT sha256, size, name, columns, rows, done FROM files"
        with self._trouble():
            return [Begun(*row) for row in self._database.execute(query)]

    def begin(self, file: Begun) -> None:
        """Note a file before its first row is finished; a second time, if no row was."""
        with self.transaction() as database:
            database.execute("DELETE FROM files WHERE sha256 = ? AND done = 0", (file.sha256,))
            database.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", astuple(file))

    def keep(self, sha256: bytes, *, rows: tuple[int, int], reports: Iterable[bytes]) -> None:
        """Count rows as finished and keep their reports, both or neither.

        rows: how many were finished before, and how many are now.
        reports: one for each row that is finished now.
        """
        before, now = rows
        # Sorted by their random nonces, so that their order says nothing about the rows.
        new = [(report,) for report in sorted(reports, key=wire.nonce_of)]
        if len(new) != now - before:
            rule = f"get one report for each of {now - before} rows"
            raise OutboxError(must(self._what, rule, len(new)))
        with self.transaction() as database:
            changed = database.execute(
                "UPDATE files SET done = ? WHERE sha256 = ? AND done = ?",
                (now, sha256, before),
            ).rowcount
            if changed != 1:
                rule = f"say that {before} rows are done"
                raise OutboxError(must(self._what, rule, "something else"))
            database.executemany("INSERT INTO waiting (report) VALUES (?)", new)

    def put_off(self, numbers: Sequence[int], *, seconds: float) -> None:
        """Offer reports again in the next run with this journal."""
        with self.transaction() as database:
            rows = [(number,) for number in numbers]
            database.executemany("INSERT OR IGNORE INTO temp.off VALUES (?)", rows)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the journal for one transaction."""
        with self._trouble():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        """Turn any trouble into an error: nothing is sent that is not on disk."""
        try:
            yield
        except sqlite3.Error as error:
            # The lowest byte is the kind of trouble; the others are details.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                rule = "be used by one process at a time; another has it now"
            else:
                rule = f"be readable and writable; {error}"
            raise OutboxError(f"{self._what} must {rule}") from error
        except OSError as error:
            rule = f"be a file that can be made; {error.strerror}"
            raise OutboxError(f"{self._what} must {rule}") from error


def name_of(path: Path) -> bytes:
    """Return the hash of a path: the journal holds no file names."""
    return hashlib.sha256(os.fsencode(path.resolve())).digest()


def _names(pins: Pins) -> str:
    return f"experiment {pins.experiment}, population {pins.population!r}, ε = {pins.epsilon:g}"


def _create(path: Path, pins: Pins) -> None:
    """Create the file under another name, and rename it when it is complete.

    So a journal is never half written, and one that somebody emptied does not pass for a new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".journal-") as folder:
        unnamed = Path(folder) / "journal"
        with closing(connect(unnamed, mode="rwc", timeout=0)) as database:
            database.execute("BEGIN IMMEDIATE")
            _JOURNAL.create(database)
            database.execute("INSERT INTO pinned VALUES (?, ?, ?)", astuple(pins))
            database.execute("COMMIT")
        try:
            # Unlike a rename, a link never overwrites a journal of another process.
            os.link(unnamed, path)
        except FileExistsError:
            return
    if os.name == "posix":
        # So that a loss of power cannot lose the new journal.
        folder_itself = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder_itself)
        finally:
            os.close(folder_itself)
