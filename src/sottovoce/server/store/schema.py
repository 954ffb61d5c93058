"""The schema, made by numbered files of SQL: to change it, add the next file to migrations/."""

from pathlib import Path

from sqlalchemy import Connection, text

from sottovoce.server.store.database import Database
from sottovoce.server.store.log import ExperimentLog
from sottovoce.shared.errors import StoreError, must

_EXPERIMENTS = "SELECT fingerprint, id FROM experiment"
FOLDER = Path(__file__).parent / "migrations"
# What a migration calls by a name in braces, as each database spells it.
SPELLINGS = {
    "sqlite": {"bytes": "BLOB", "number": "INTEGER PRIMARY KEY", "clustered": "WITHOUT ROWID"},
    "postgresql": {
        "bytes": "BYTEA",
        "number": "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "clustered": "",
    },
}


def migrate(database: Database) -> None:
    """Bring the schema up to date, in one transaction and one process at a time."""
    with database.errors_translated():
        database.prepare()
    with database.transaction(writes=True) as connection:
        database.lock_schema(connection)
        connection.execute(
            text("CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY)")
        )
        applied = _applied(connection)
        for version, path in _migrations().items():
            if version > applied:
                script = path.read_text(encoding="utf-8")
                _apply(connection, script.format(**SPELLINGS[connection.dialect.name]))
                query = text("INSERT INTO migration (version) VALUES (:version)")
                connection.execute(query, {"version": version})
        for fingerprint, number in connection.execute(text(_EXPERIMENTS)).all():
            ExperimentLog(connection, number).catch_up_chain(fingerprint)
        check(connection)


def newest() -> int:
    """Return the version of the schema that this code knows."""
    return max(_migrations())


def check(connection: Connection) -> None:
    """Refuse a schema that is not this code's."""
    applied = _applied(connection)
    if applied != newest():
        rule = f"have version {newest()} of the schema"
        hint = "upgrade sottovoce" if applied > newest() else "migrate it"
        raise StoreError(f"{must('the database', rule, applied)}: {hint}")


def _applied(connection: Connection) -> int:
    return connection.execute(text("SELECT max(version) FROM migration")).scalar() or 0


def _migrations() -> dict[int, Path]:
    """Return the files by their numbers, in order."""
    return {int(path.name[:4]): path for path in sorted(FOLDER.glob("*.sql"))}


def _apply(connection: Connection, script: str) -> None:
    for statement in script.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
