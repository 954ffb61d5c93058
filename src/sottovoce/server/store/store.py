"""The door to the server's database: experiments, their logs of reports, their releases."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from sottovoce.server.store import log, schema
from sottovoce.server.store.database import Database, DuplicateNonce
from sottovoce.server.store.log import LoggedRelease
from sottovoce.server.store.postgres import Postgres
from sottovoce.server.store.session import LearnerSession
from sottovoce.server.store.sqlite import Sqlite
from sottovoce.shared.errors import StoreError, must

__all__ = ["LearnerSession", "LoggedRelease", "Store"]


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

    def check(self) -> None:
        """Raise StoreError if the database cannot be used just now."""
        with self._database.transaction() as connection:
            schema.check(connection)

    def add_experiment(self, fingerprint: str, text: str, first_release: str) -> bool:
        """Add an experiment with its first release; return False if it is there already."""
        with self._database.transaction(writes=True) as connection:
            return log.add_experiment(connection, fingerprint, text, first_release)

    def experiments(self) -> list[tuple[str, str]]:
        """Return the fingerprint and text of each experiment, oldest first."""
        with self._database.transaction() as connection:
            return log.experiments(connection)

    def append(self, fingerprint: str, reports: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """Write reports (nonce, body) to the end of the log, each nonce once; all or nothing.

        They are on disk when this returns. True means stored now, False that the nonce was there
        already. Those who append to the same log take turns, so positions have no gap. Reports of
        one call stand in the order of their nonces, which are random: that is quicker, for the
        index of nonces has them together, and tells nothing of who came first. (No report of a call
        can be for a release that follows from another one of it, so any order can be learned.)
        """
        if not reports:
            return []
        database = self._database
        new, is_new = log.choose_new(reports, set())
        # Nearly always none was there before, and that is quicker to try than to ask.
        with suppress(DuplicateNonce), database.transaction(writes=True) as connection:
            database.append(connection, fingerprint, new)
            return is_new
        with database.transaction(writes=True) as connection:
            known = database.known(connection, fingerprint, [nonce for nonce, _ in new])
            new, is_new = log.choose_new(reports, known)
            if new:
                database.append(connection, fingerprint, new)
        return is_new

    def read(self, fingerprint: str, *, after: int, limit: int) -> list[bytes]:
        """Return the bodies at the positions after + 1, after + 2, … in order."""
        with self._database.transaction() as connection:
            experiment = log.experiment_of(connection, fingerprint)
            return log.read(connection, experiment, after=after, limit=limit)

    def length(self, fingerprint: str) -> int:
        """Return the last position of the log."""
        with self._database.transaction() as connection:
            return log.length(connection, log.experiment_of(connection, fingerprint))

    def releases(self, fingerprint: str, *, after: int = 0) -> list[LoggedRelease]:
        """Return the releases of later versions, in order."""
        with self._database.transaction() as connection:
            experiment = log.experiment_of(connection, fingerprint)
            return log.releases(connection, experiment, after=after)

    def release(self, fingerprint: str, version: int) -> LoggedRelease | None:
        """Return one release, or None if there is none of that version."""
        with self._database.transaction() as connection:
            experiment = log.experiment_of(connection, fingerprint)
            found = log.releases(connection, experiment, after=version - 1, until=version)
            return found[0] if found else None

    def newest(self, fingerprint: str) -> int:
        """Return the newest version of an experiment's releases."""
        with self._database.transaction() as connection:
            return log.newest(connection, log.experiment_of(connection, fingerprint))

    def newest_versions(self) -> dict[str, int]:
        """Return the newest version of each experiment, in one query."""
        with self._database.transaction() as connection:
            return log.newest_versions(connection)

    def snapshot(self, fingerprint: str) -> tuple[int, str] | None:
        """Return the learner's newest snapshot, and its position of the log."""
        with self._database.transaction() as connection:
            experiment = log.experiment_of(connection, fingerprint)
            return log.latest(connection, experiment, "standing")

    def learner_session(self, fingerprint: str) -> LearnerSession | None:
        """Try to become the learner of an experiment; None if another is."""
        with self._database.transaction() as connection:
            experiment = log.experiment_of(connection, fingerprint)
        lock = self._database.try_lock(experiment, fingerprint=fingerprint)
        return None if lock is None else LearnerSession(self._database, experiment, lock)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._database.engine.dispose()


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
