"""The learner's own session with the database: one at a time for each experiment."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sqlalchemy import Connection

from sottovoce.server.store import log
from sottovoce.server.store.database import Database, LearnerLock, in_transaction
from sottovoce.server.store.log import LoggedRelease
from sottovoce.shared.errors import StoreError


class LearnerSession:
    """Holds the learner's lock until it is closed, or the process or the connection dies.

    All it does goes over the connection that holds the lock. So one that has lost the lock cannot
    write any more, even if it does not know: every call raises StoreError from then on.
    """

    def __init__(self, database: Database, experiment: int, lock: LearnerLock) -> None:
        self._database = database
        self._experiment = experiment
        self._lock = lock

    def releases(self, *, after: int = 0) -> list[LoggedRelease]:
        """Return the releases of later versions, in order."""
        with self._transaction() as connection:
            return log.releases(connection, self._experiment, after=after)

    def read(self, *, after: int, limit: int) -> list[bytes]:
        """Return the reports at the positions after + 1, after + 2, … in order."""
        with self._transaction() as connection:
            return log.read(connection, self._experiment, after=after, limit=limit)

    def length(self) -> int:
        """Return the last position of the log."""
        with self._transaction() as connection:
            return log.length(connection, self._experiment)

    def saved(self) -> tuple[int, str] | None:
        """Return the newest saved learner: the position it had come to, and its state."""
        with self._transaction() as connection:
            return log.latest(connection, self._experiment, "saved")

    def publish(
        self,
        releases: Sequence[LoggedRelease],
        *,
        snapshot: tuple[int, str] | None = None,
        saved: tuple[int, str] | None = None,
    ) -> None:
        """Write the next releases, and replace the snapshot and the saved learner; all or nothing.

        The version of the first has to follow the newest, and each the one before.
        """
        with self._transaction(writes=True) as connection:
            for release in releases:
                log.add_release(connection, self._experiment, release)
            if snapshot is not None:
                log.replace_latest(connection, self._experiment, "standing", snapshot)
            if saved is not None:
                log.replace_latest(connection, self._experiment, "saved", saved)

    def close(self) -> None:
        """Let go of the lock, if it is not lost already."""
        with suppress(StoreError), self._database.errors_translated():
            self._lock.release()

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        connection = self._lock.connection
        # SQLAlchemy would quietly connect again, to a session without the lock.
        if connection.closed or connection.invalidated:
            raise StoreError("the learner's session must hold its lock; it was closed or lost")
        with self._database.errors_translated(), in_transaction(connection, writes=writes):
            yield connection
