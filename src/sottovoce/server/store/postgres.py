"""PostgreSQL: a server, which any number of machines may use at once."""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.errors import DiskFull, UniqueViolation
from sqlalchemy import URL, Connection, create_engine, event, text

from sottovoce.server.store.database import (
    PATIENCE_SECONDS,
    Database,
    DuplicateNonce,
    LearnerLock,
    check_published,
)
from sottovoce.server.store.log import ExperimentLog, must_exist
from sottovoce.shared.errors import StoreError, StoreFull

# The first half of every advisory lock of ours ("Sovo"); the second is the experiment's number,
# or 0 for the schema.
LOCK = 0x536F766F
# Set here, not left to the server's defaults: a commit that returned is on disk. And a
# machine that vanishes must not hold a lock for long: its connection is given up within a minute.
SETTINGS = f"""
SET synchronous_commit = on;
SET lock_timeout = '{PATIENCE_SECONDS}s';
SET idle_in_transaction_session_timeout = '60s';
SET tcp_keepalives_idle = 20;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3;
"""
# What the address may say otherwise, as libpq names it.
ADDRESS = {
    "application_name": "sottovoce",
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}

# More reports than these are copied in, which is what PostgreSQL is fastest at.
FEW = 500

LOCKED = """
SELECT id, (SELECT max(version) FROM release WHERE experiment = id)
FROM experiment WHERE fingerprint = %s FOR NO KEY UPDATE
"""
END = """
SELECT coalesce(max(position), 0) FROM report
WHERE experiment = (SELECT id FROM experiment WHERE fingerprint = %s)
"""
KNOWN = """
SELECT nonce FROM report
WHERE experiment = (SELECT id FROM experiment WHERE fingerprint = %s) AND nonce = ANY (%b)
"""
APPENDED = """
INSERT INTO report (experiment, position, nonce, body)
SELECT id, last + place, new.nonce, new.body
FROM experiment
CROSS JOIN LATERAL (
    SELECT coalesce(max(position), 0) AS last FROM report WHERE experiment = id
) AS report_end
CROSS JOIN unnest(%b::bytea[], %b::bytea[]) WITH ORDINALITY AS new (nonce, body, place)
WHERE fingerprint = %s
"""

# What the database must be or do, by the first two letters of the SQLSTATE.
_RULES = {
    "08": "be reachable",
    "28": "let us in",
    "3D": "exist",
    "40": "let transactions end",
    "42": "be migrated",
    "53": "have resources left",
    "55": f"be free within {PATIENCE_SECONDS} seconds",
    "57": "be up",
}


class Postgres(Database):
    """One database of a server. It has to be reached directly or through a pooler of sessions."""

    driver_errors = psycopg.Error

    def __init__(self, url: URL) -> None:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg", query={**ADDRESS, **url.query}),
            # Each statement has to see what was committed before it began, not before the
            # transaction did: those who append wait for their turn in the midst of one.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            use_native_hstore=False,
            hide_parameters=True,
        )
        event.listen(engine, "connect", _settle)
        super().__init__(engine)

    def prepare(self) -> None:
        """Nothing: the database is made by whoever runs the server."""

    def lock_schema(self, connection: Connection) -> None:
        """Wait for any other migration to end, however long that takes."""
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock, 0)"), {"lock": LOCK})

    def append(
        self,
        connection: Connection,
        fingerprint: str,
        reports: Sequence[tuple[bytes, bytes]],
        *,
        published: int,
    ) -> None:
        """Lock the experiment's row, then write.

        Each statement sees what was committed before it began, and the first one waits until
        whoever appended before has committed. Only those who append wait for each other: a release
        may be published meanwhile.
        """
        driver = driver_of(connection)
        ordered = sorted(reports)
        with driver.pipeline():
            locked = driver.execute(LOCKED, (fingerprint,))
            end = driver.execute(END, (fingerprint,))
        found, newest = locked.fetchone() or (None, 0)
        experiment = must_exist(found, fingerprint)
        check_published(newest, published=published)
        after = (end.fetchone() or (0,))[0]
        log = ExperimentLog(connection, experiment)
        log.extend_chain(fingerprint, after=after, bodies=[body for _, body in ordered])
        if len(ordered) <= FEW:
            nonces, bodies = ([*each] for each in zip(*ordered, strict=True))
            driver.execute(APPENDED, (nonces, bodies, fingerprint))
            return
        columns = "report (experiment, position, nonce, body)"
        with (
            driver.cursor() as cursor,
            cursor.copy(f"COPY {columns} FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.set_types(("int4", "int8", "bytea", "bytea"))
            for position, (nonce, body) in enumerate(ordered, after + 1):
                copy.write_row((experiment, position, nonce, body))

    def known(
        self, connection: Connection, fingerprint: str, nonces: Sequence[bytes]
    ) -> set[bytes]:
        """Ask for all at once, when it is our turn."""
        driver = driver_of(connection)
        with driver.pipeline():
            driver.execute(LOCKED, (fingerprint,))
            found = driver.execute(KNOWN, (fingerprint, list(nonces)), binary=True)
        return {nonce for (nonce,) in found.fetchall()}

    def try_lock(self, experiment: int, *, fingerprint: str) -> LearnerLock | None:
        """Lock within a session: who loses the session loses the lock, and cannot write either."""
        key = {"lock": LOCK, "experiment": experiment}
        with self.errors_translated():
            connection = self.engine.connect()
            try:
                with connection.begin():
                    query = text("SELECT pg_try_advisory_lock(:lock, :experiment)")
                    ours = connection.execute(query, key).scalar_one()
                if ours:
                    connection.detach()  # from the pool: nobody else may get this session
            except BaseException:
                connection.invalidate()  # with whatever lock it has
                raise
            if not ours:
                connection.close()
                return None

        def release() -> None:
            try:
                if not connection.invalidated:
                    # The server would do it by itself, but a moment later.
                    unlock = text("SELECT pg_advisory_unlock(:lock, :experiment)")
                    with connection.begin():
                        connection.execute(unlock, key)
            finally:
                connection.close()

        return LearnerLock(connection, release)

    def forget(self, connection: Connection) -> None:
        """Leave it to autovacuum, which goes over the table by itself."""

    def translate(self, error: BaseException) -> StoreError:
        """Name the kind of the error; its text may show the values of a row."""
        state = getattr(error, "sqlstate", None)
        kind = type(error).__name__ + (f" ({state})" if state else "")
        if isinstance(error, UniqueViolation):
            return DuplicateNonce("a nonce must be new to the log; one is not")
        if isinstance(error, DiskFull):
            return StoreFull(f"the database must have room on its disk; {kind}")
        if state is None and isinstance(error, psycopg.OperationalError):
            # An error of the connection, not of a statement: its text holds no value.
            kind = str(error).partition("\n")[0]
            return StoreError(f"the database must be reachable; {kind}")
        rule = _RULES.get((state or "")[:2], "be readable and writable")
        return StoreError(f"the database must {rule}; {kind}")


def _settle(connection: psycopg.Connection[Any], _record: object) -> None:
    connection.execute(SETTINGS)
    connection.commit()


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Return the connection below SQLAlchemy's."""
    driver: psycopg.Connection[Any] | None = connection.connection.driver_connection
    if driver is None:
        raise psycopg.OperationalError("the connection is closed")
    return driver
