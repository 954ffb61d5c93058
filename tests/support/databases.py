"""Databases for tests: SQLite files, and a real PostgreSQL that comes as a package.

One PostgreSQL cluster is started for each test process, when it is first asked for, and stopped
and deleted when that process ends. Each test gets a database of its own in it:

    @pytest.fixture(params=KINDS)
    def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
        with new_database(request.param, folder=tmp_path) as url:
            yield url
"""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg

KINDS = ("sqlite", "postgresql")


class Cluster:
    """A PostgreSQL server that listens on a socket in a folder of its own."""

    def __init__(self) -> None:
        self._pgserver: Any = import_module("pgserver")
        folder = Path(tempfile.mkdtemp(prefix="sottovoce-pg-"))
        # For root it adds a user to the machine: one test process at a time.
        name = f"sottovoce-pg-{os.getuid()}.lock"
        with import_module("fasteners").InterProcessLock(Path(tempfile.gettempdir()) / name):
            # It stops the server and deletes the folder when this process ends.
            self._server: Any = self._pgserver.get_server(folder, cleanup_mode="delete")

    def url(self, name: str = "postgres") -> str:
        return str(self._server.get_uri(database=name))

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement as the administrator, outside any transaction."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """Stop at once, as in a crash."""
        self._pg_ctl("-m", "immediate", "-w", "stop")

    def start(self) -> None:
        """Start again; the address stays the same."""
        self._server.ensure_postgres_running()

    def _pg_ctl(self, *arguments: str) -> None:
        server = self._server
        self._pgserver.pg_ctl(list(arguments), pgdata=server.pgdata, user=server.system_user)


@cache
def cluster() -> Cluster:
    """Start the cluster of this test process, once."""
    return Cluster()


@contextmanager
def new_database(kind: str, *, folder: Path) -> Iterator[str]:
    """Give the address of an empty database, and remove it in the end."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'store.db'}"
        return
    name = f"test_{uuid.uuid4().hex}"
    cluster().execute(f"CREATE DATABASE {name}")
    try:
        yield cluster().url(name)
    finally:
        cluster().execute(f"DROP DATABASE {name} WITH (FORCE)")
