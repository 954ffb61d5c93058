"""The files in which a device keeps what must survive it: small SQLite databases."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sottovoce.shared.errors import SottovoceError


@contextmanager
def open_database(
    path: Path, trouble: Callable[[sqlite3.Error], SottovoceError], *, create: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open, fail closed on any trouble, and always close; an error rolls back."""
    try:
        # As an address, so that SQLite gives no name a meaning of its own, such as ":memory:".
        address = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=10)
        try:
            # Beyond FULL: after a loss of power, what was spent must not be unspent.
            connection.execute("PRAGMA synchronous = EXTRA")
            # What is deleted is overwritten, and not only forgotten.
            connection.execute("PRAGMA secure_delete = ON")
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise trouble(error) from error
