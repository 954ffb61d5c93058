"""Small SQLite files, in which a device keeps what must survive a restart."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sottovoce.shared.errors import SottovoceError, must


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind of file, told from others by an application id and a version.

    what, name: how to call it, such as "a privacy ledger" and "ledger".
    error: what is raised where a file is of another kind or cannot be used.
    tables: how its tables are made, statement by statement.
    version: of the tables. A file of another version is refused.
    older: what to do with a file of an older version.
    """

    what: str
    name: str
    application: int
    error: type[SottovoceError]
    tables: str
    version: int = 1
    older: str = "it cannot be used any more"

    def create(self, database: sqlite3.Connection) -> None:
        """Make the tables in an empty file, and mark it."""
        for statement in self.tables.strip().split(";\n"):
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {self.application}")
        database.execute(f"PRAGMA user_version = {self.version}")

    def check(self, database: sqlite3.Connection, path: Path) -> None:
        """Refuse a file of another kind."""
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if (application, version) != (self.application, self.version):
            came = "another file"
            if application == self.application:
                hint = f": {self.older}" if version < self.version and self.older else ""
                came = f"one of version {version}{hint}"
            raise self.error(must(str(path), f"be {self.what} of version {self.version}", came))

    @contextmanager
    def transaction(self, path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a file for one transaction, and close it; an error rolls back."""
        try:
            with closing(connect(path, mode="rwc" if create else "rw")) as database:
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise self.error(
                f"the {self.name} {path} must be readable and writable; {error};"
                " nothing was written"
            ) from error


def connect(path: Path, *, mode: str = "rw", timeout: float = 10) -> sqlite3.Connection:
    """Open a file so that a loss of power undoes nothing and what is deleted is gone."""
    # As a URI, so that SQLite does not give a special meaning to names such as ":memory:".
    address = f"{path.absolute().as_uri()}?mode={mode}"
    database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=timeout)
    try:
        # With FULL, a loss of power could undo the last commit: ε would be spent again.
        database.execute("PRAGMA synchronous = EXTRA")
        # Deleted reports are overwritten on disk.
        database.execute("PRAGMA secure_delete = ON")
    except BaseException:
        database.close()
        raise
    return database
