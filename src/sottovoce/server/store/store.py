"""The door to the server's database: experiments, their logs of reports, their releases."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import make_url, text
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.server.store import schema
from sottovoce.server.store.chained import Chained
from sottovoce.server.store.database import Database, DuplicateNonce, LearnerLock, in_transaction
from sottovoce.server.store.log import (
    ExperimentLog,
    Fold,
    LoggedAmendment,
    LoggedRelease,
    Story,
)
from sottovoce.server.store.postgres import Postgres
from sottovoce.server.store.signers import check_signer, signers
from sottovoce.server.store.sqlite import Sqlite
from sottovoce.shared.errors import StoreError, must

__all__ = ["Fold", "LearnerSession", "LoggedAmendment", "LoggedRelease", "Store"]


class Store:
    """One database. Any thread may use it; each call is one transaction.

    If the database goes away, calls raise StoreError until it is back.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str) -> "Store":
        """Understand the address of a database, without connecting to it yet.

        url: ``sqlite:///folder/file.db`` (with a fourth slash for a path from the root) or
        ``postgresql://user:password@host/name``.
        """
        return cls(_database(url))

    def migrate(self) -> None:
        """Bring the schema up to date; several processes may do so at once."""
        schema.migrate(self._database)

    @property
    def database(self) -> Database:
        """What is behind the door, for whoever copies all of it."""
        return self._database

    def check(self) -> None:
        """Raise StoreError if the database cannot be used just now."""
        with self._database.transaction() as connection:
            schema.check(connection)

    def add_experiment(self, fingerprint: str, table: str, first_release: str) -> bool:
        """Add an experiment with its first release; return False if it is there already."""
        query = "INSERT INTO experiment (fingerprint, text) VALUES (:fingerprint, :text)"
        query += " ON CONFLICT (fingerprint) DO NOTHING"
        values = {"fingerprint": fingerprint, "text": table}
        with self._database.transaction(writes=True) as connection:
            is_new = connection.execute(text(query), values).rowcount == 1
            if is_new:
                first = LoggedRelease(1, 0, first_release)
                ExperimentLog.of(connection, fingerprint).add_release(first)
        return is_new

    def experiments(self) -> list[tuple[str, str]]:
        """Return the fingerprint and text of each experiment, oldest first."""
        query = text("SELECT fingerprint, text FROM experiment ORDER BY id")
        with self._database.transaction() as connection:
            return [(fingerprint, table) for fingerprint, table in connection.execute(query)]

    def append(
        self, fingerprint: str, reports: Sequence[tuple[bytes, bytes]], *, published: int = 0
    ) -> list[bool]:
        """Write reports (nonce, body) to the end of the log, each nonce once; all or nothing.

        They are on disk when this returns. True means stored now, False that the nonce was there
        already. Those who append to the same log take turns, so positions have no gap. Reports of
        one call stand in the order of their nonces, which are random: that is quicker, for the
        index of nonces has them together, and tells nothing of who came first. (No report of a call
        can be for a release that follows from another one of it, so any order can be learned.)

        published: a version that must be in the database; StoreBehind is raised if it has gone back
        to before it.
        """
        if not reports:
            return []
        database = self._database
        new, is_new = choose_new(reports, set())
        # Nearly always none was there before, and that is quicker to try than to ask.
        with suppress(DuplicateNonce), database.transaction(writes=True) as connection:
            database.append(connection, fingerprint, new, published=published)
            return is_new
        with database.transaction(writes=True) as connection:
            known = database.known(connection, fingerprint, [nonce for nonce, _ in new])
            new, is_new = choose_new(reports, known)
            if new:
                database.append(connection, fingerprint, new, published=published)
        return is_new

    def read(self, fingerprint: str, *, after: int, limit: int) -> list[bytes]:
        """Return the bodies at the positions after + 1, after + 2, … in order."""
        with self._log(fingerprint) as log:
            return log.read(after=after, limit=limit)

    def chained(self, fingerprint: str) -> Chained:
        """Return the hash of the log."""
        with self._log(fingerprint) as log:
            return log.chained(fingerprint)

    def strangers(self, fingerprint: str) -> int:
        """Return how many rows of the log have a nonce that is not their report's."""
        with self._log(fingerprint) as log:
            return log.strangers()

    def length(self, fingerprint: str) -> int:
        """Return the last position of the log."""
        with self._log(fingerprint) as log:
            return log.length()

    def releases(self, fingerprint: str, *, after: int = 0) -> list[LoggedRelease]:
        """Return the releases of later versions, in order."""
        with self._log(fingerprint) as log:
            return log.releases(after=after)

    def release(self, fingerprint: str, version: int) -> LoggedRelease | None:
        """Return one release, or None if there is none of that version."""
        with self._log(fingerprint) as log:
            return next(iter(log.releases(after=version - 1, until=version)), None)

    def progress(self) -> dict[str, tuple[int, int]]:
        """Return of each experiment how many reports are stored, and how many learned."""
        query = text(
            "SELECT fingerprint,"
            " coalesce((SELECT max(position) FROM report WHERE experiment = id), 0),"
            " coalesce((SELECT position FROM standing WHERE experiment = id), 0) FROM experiment"
        )
        with self._database.transaction() as connection:
            return {row[0]: (row[1], row[2]) for row in connection.execute(query)}

    def note_signer(self, key: str, *, is_new: bool) -> None:
        """Note by which key releases are signed; refuse another one, unless that is meant."""
        with self._database.transaction(writes=True) as connection:
            known = signers(connection)
            if not is_new:
                check_signer(key, known)
            if key not in known:
                connection.execute(text("INSERT INTO signer (key) VALUES (:key)"), {"key": key})

    def check_signer(self, key: str) -> None:
        """Refuse a key that has not signed so far, if another one has."""
        with self._database.transaction() as connection:
            schema.check(connection)
            check_signer(key, signers(connection))

    def is_missing(self) -> bool:
        """Say whether the file of the database is not there."""
        return isinstance(self._database, Sqlite) and not self._database.path.exists()

    def check_room(self) -> None:
        """Write something, to see whether there is room: raise StoreFull if not."""
        with self._database.transaction(writes=True) as connection:
            connection.execute(text("UPDATE signer SET key = key"))

    def newest_versions(self) -> dict[str, int]:
        """Return the newest version of each experiment, in one query."""
        query = "SELECT fingerprint, max(version) FROM experiment JOIN release ON experiment = id"
        with self._database.transaction() as connection:
            rows = connection.execute(text(query + " GROUP BY fingerprint"))
            return {row[0]: row[1] for row in rows}

    def known(self, fingerprint: str, nonces: Sequence[bytes]) -> set[bytes]:
        """Return which of the nonces are in the log."""
        with self._database.transaction(writes=True) as connection:
            return self._database.known(connection, fingerprint, nonces)

    def amendments(self, fingerprint: str) -> list[LoggedAmendment]:
        """Return all amendments of an experiment, in order."""
        with self._log(fingerprint) as log:
            return log.amendments()

    def add_amendment(self, fingerprint: str, number: int, document: str) -> bool:
        """Write an amendment that waits for the learner; return False if the number is taken.

        It is on disk when this returns.
        """
        with self._database.transaction(writes=True) as connection:
            return ExperimentLog.of(connection, fingerprint).add_amendment(number, document)

    def replace_waiting(self, fingerprint: str, number: int, document: str) -> None:
        """Write an amendment in the place of all that wait for the learner."""
        with self._database.transaction(writes=True) as connection:
            log = ExperimentLog.of(connection, fingerprint)
            log.drop_waiting()
            log.add_amendment(number, document)

    def story(self, fingerprint: str, *, until: int) -> Story:
        """Return what the learner has made of the reports up to a position, as of one moment."""
        with self._log(fingerprint) as log:
            return log.story(until=until)

    def catch_up(self, fingerprint: str, story: Story) -> None:
        """Add what another copy of the same database has made of the same reports."""
        with self._database.transaction(writes=True) as connection:
            ExperimentLog.of(connection, fingerprint).catch_up(story)

    def folds(self, fingerprint: str) -> list[Fold]:
        """Return the folds of an experiment, in order."""
        with self._log(fingerprint) as log:
            return log.folds()

    def checkpoint(self, fingerprint: str) -> tuple[int, str] | None:
        """Return the learner at the end of the last fold, and its position."""
        with self._log(fingerprint) as log:
            return log.latest("checkpoint")

    def snapshot(self, fingerprint: str) -> tuple[int, str] | None:
        """Return the learner's newest snapshot, and its position of the log."""
        with self._log(fingerprint) as log:
            return log.latest("standing")

    def learner_session(self, fingerprint: str) -> "LearnerSession | None":
        """Try to become the learner of an experiment; None if another is."""
        with self._log(fingerprint) as log:
            experiment = log.experiment
        lock = self._database.try_lock(experiment, fingerprint=fingerprint)
        return None if lock is None else LearnerSession(self._database, experiment, lock)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._database.engine.dispose()

    @contextmanager
    def _log(self, fingerprint: str) -> Iterator[ExperimentLog]:
        with self._database.transaction() as connection:
            yield ExperimentLog.of(connection, fingerprint)


class LearnerSession:
    """Holds the learner's lock until it is closed, or the process or the connection dies.

    All it does goes over the connection that holds the lock. So one that has lost the lock cannot
    write any more, even if it does not know: every call raises StoreError from then on.

    on_read: called before each piece of the log is read.
    """

    def __init__(self, database: Database, experiment: int, lock: LearnerLock) -> None:
        self.on_read: Callable[[], None] = lambda: None
        self._database = database
        self._experiment = experiment
        self._lock = lock

    def releases(self, *, after: int = 0) -> list[LoggedRelease]:
        """Return the releases of later versions, in order."""
        with self._log() as log:
            return log.releases(after=after)

    def read(self, *, after: int, limit: int) -> list[bytes]:
        """Return the reports at the positions after + 1, after + 2, … in order."""
        self.on_read()
        with self._log() as log:
            return log.read(after=after, limit=limit)

    def length(self) -> int:
        """Return the last position of the log."""
        with self._log() as log:
            return log.length()

    def amendments(self, *, after: int = 0) -> list[LoggedAmendment]:
        """Return the amendments of higher numbers, in order."""
        with self._log() as log:
            return log.amendments(after=after)

    def releases_until(self, position: int, *, after: int) -> list[LoggedRelease]:
        """Return the releases of later versions that follow from the log up to a position."""
        with self._log() as log:
            return log.releases_until(position, after=after)

    def note_day(self, day: str) -> None:
        """Note how long the log is on a day."""
        with self._log(writes=True) as log:
            log.note_day(day)

    def arrived_by(self, day: str) -> int:
        """Return the last position that was there on a day."""
        with self._log() as log:
            return log.arrived_by(day)

    def folds(self) -> list[Fold]:
        """Return all folds, in order."""
        with self._log() as log:
            return log.folds()

    def checkpoint(self) -> tuple[int, str] | None:
        """Return the learner at the end of the last fold, and its position."""
        with self._log() as log:
            return log.latest("checkpoint")

    def fold(self, fold: Fold, learner: str, *, chained: str) -> None:
        """Write a fold with the learner at its end, and the hash of the log up to there."""
        with self._log(writes=True) as log:
            log.add_fold(fold, learner, chained=chained)

    def chained(self, fingerprint: str) -> Chained:
        """Return the hash of the log."""
        with self._log() as log:
            return log.chained(fingerprint)

    def erase(self, fold: Fold, *, until: int) -> None:
        """Empty the bodies of a fold up to a position."""
        with self._log(writes=True) as log:
            log.erase(fold, until=until)

    def forget(self) -> None:
        """Let the database keep no older copy of what was erased, where it would."""
        with self._database.errors_translated():
            self._database.forget(self._lock.connection)

    def saved(self) -> tuple[int, str] | None:
        """Return the newest saved learner: the position it had come to, and its state."""
        with self._log() as log:
            return log.latest("saved")

    def publish(
        self,
        releases: Sequence[LoggedRelease],
        *,
        amendments: Sequence[LoggedAmendment] = (),
        snapshot: tuple[int, str] | None = None,
        saved: tuple[int, str] | None = None,
    ) -> None:
        """Write the next releases, and replace the snapshot and the saved learner; all or nothing.

        The version of the first has to follow the newest, and each the one before.
        amendments: those that waited and were taken, with where.
        """
        with self._log(writes=True) as log:
            for release in releases:
                log.add_release(release)
            for amendment in amendments:
                log.note_amendment(amendment)
            if snapshot is not None:
                log.replace_latest("standing", *snapshot)
            if saved is not None:
                log.replace_latest("saved", *saved)

    def close(self) -> None:
        """Let go of the lock, if it is not lost already."""
        with suppress(StoreError), self._database.errors_translated():
            self._lock.release()

    @contextmanager
    def _log(self, *, writes: bool = False) -> Iterator[ExperimentLog]:
        connection = self._lock.connection
        # SQLAlchemy would quietly connect again, to a session without the lock.
        if connection.closed or connection.invalidated:
            raise StoreError("the learner's session must hold its lock; it was closed or lost")
        with self._database.errors_translated(), in_transaction(connection, writes=writes):
            yield ExperimentLog(connection, self._experiment)


def choose_new(
    reports: Sequence[tuple[bytes, bytes]], known: set[bytes]
) -> tuple[list[tuple[bytes, bytes]], list[bool]]:
    """Return the reports whose nonce comes for the first time, and of each whether it does."""
    seen, new, is_new = set(known), [], []
    for report in reports:
        is_new.append(report[0] not in seen)
        if is_new[-1]:
            seen.add(report[0])
            new.append(report)
    return new, is_new


def _database(url: str) -> Database:
    """Choose the database by the address. Messages show no more of it than its scheme or path."""
    scheme, colon, _ = url.partition("://")
    rule = "begin with sqlite:/// or postgresql://"
    what = "the address of the database"
    if not colon:
        raise StoreError(must(what, rule, "an address without ://"))
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise StoreError(must(what, rule, repr(scheme)))
    try:
        address = make_url(url)
    except (SQLAlchemyError, ValueError):
        raise StoreError(must(what, f"be one of {scheme}", "another")) from None
    if scheme != "sqlite":
        return Postgres(address)
    if address.host or address.query or address.database in (None, "", ":memory:"):
        raise StoreError(must(what, "be sqlite:/// and the path of a file", "something else"))
    return Sqlite(Path(str(address.database)))
