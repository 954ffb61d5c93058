"""What the store asks of a database, and the one door through which its errors leave.

No error of the database driver or of SQLAlchemy gets out: their messages may hold the parameters
of a statement, which are reports. What gets out is a StoreError that names the kind of error.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from sottovoce.shared.errors import StoreBehind, StoreError, must

# How long to wait for a lock that another transaction holds.
PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class LearnerLock:
    """The learner's lock of one experiment, and the connection that goes with it."""

    connection: Connection
    release: Callable[[], None]


class DuplicateNonce(StoreError):
    """A nonce is in the log already; nothing was written."""


def check_published(newest: int | None, *, published: int) -> None:
    """Refuse a database that has gone back: its newest version is older than one that was read."""
    if (newest or 0) < published:
        hint = "see sottovoce restore --declared"
        rule = f"have release {published}, which it had"
        raise StoreBehind(must("the database", rule, f"only {newest or 0}", hint=hint))


class Database(ABC):
    """One database, reached through a pool of connections."""

    # The errors of the driver, for the few places that use it without SQLAlchemy.
    driver_errors: ClassVar[type[Exception]]

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @abstractmethod
    def prepare(self) -> None:
        """Do what must be done before the first connection to a new database."""

    @abstractmethod
    def lock_schema(self, connection: Connection) -> None:
        """Let no other transaction migrate until this one ends."""

    @abstractmethod
    def append(
        self,
        connection: Connection,
        fingerprint: str,
        reports: Sequence[tuple[bytes, bytes]],
        *,
        published: int,
    ) -> None:
        """Write reports (nonce, body) to the end of a log; raise DuplicateNonce if one is in it.

        Nobody else appends to it until the transaction ends. published: a version that the database
        must have; raise StoreBehind if it does not.
        """

    @abstractmethod
    def known(
        self, connection: Connection, fingerprint: str, nonces: Sequence[bytes]
    ) -> set[bytes]:
        """Return which of the nonces are in a log, and let nobody append until we are done."""

    @abstractmethod
    def try_lock(self, experiment: int, *, fingerprint: str) -> LearnerLock | None:
        """Take the learner's lock, or return None if another has it."""

    @abstractmethod
    def forget(self, connection: Connection) -> None:
        """Keep no older copy of what was erased, as far as that is for us to say."""

    @abstractmethod
    def translate(self, error: BaseException) -> StoreError:
        """Say what the database must be or do for an error not to come; show no value."""

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        """Lend a connection for one transaction, which is rolled back if an error leaves it."""
        with (
            self.errors_translated(),
            self.engine.connect() as connection,
            in_transaction(connection, writes=writes),
        ):
            yield connection

    @contextmanager
    def errors_translated(self) -> Iterator[None]:
        """Turn every error of the database into a StoreError that holds no value."""
        try:
            yield
        except (SQLAlchemyError, self.driver_errors, OSError) as error:
            cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
            raise self.translate(cause) from None


@contextmanager
def in_transaction(connection: Connection, *, writes: bool = False) -> Iterator[Connection]:
    """Run one transaction on a connection; one that writes says so at its beginning."""
    connection.execution_options(writes=writes)
    with connection.begin():
        yield connection
