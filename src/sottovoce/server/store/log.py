"""The queries that both databases understand, each on a connection that is in a transaction.

Texts that may be large are packed with zlib.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, text

from sottovoce.shared.errors import StoreDamaged, StoreError, must

# The tables that hold the newest text of each experiment only: the saved learner, the snapshot.
LatestText = Literal["saved", "standing"]


@dataclass(frozen=True, slots=True)
class LoggedRelease:
    """One published release.

    position: how many reports of the log it follows from. text: the release in canonical JSON.
    """

    version: int
    position: int
    text: str


def experiment_of(connection: Connection, fingerprint: str) -> int:
    """Return an experiment's number."""
    query = text("SELECT id FROM experiment WHERE fingerprint = :fingerprint")
    number = connection.execute(query, {"fingerprint": fingerprint}).scalar()
    return must_exist(number, fingerprint)


def must_exist(number: int | None, fingerprint: str) -> int:
    """Return the number of an experiment, if there is one."""
    if number is None:
        raise StoreError(must("an experiment", "be in the database", repr(fingerprint)))
    return number


def add_experiment(connection: Connection, fingerprint: str, table: str, first: str) -> bool:
    """Add an experiment with its first release, unless it is there already."""
    query = text(
        "INSERT INTO experiment (fingerprint, text) VALUES (:fingerprint, :text)"
        " ON CONFLICT (fingerprint) DO NOTHING"
    )
    added = connection.execute(query, {"fingerprint": fingerprint, "text": table}).rowcount == 1
    if added:
        experiment = experiment_of(connection, fingerprint)
        add_release(connection, experiment, LoggedRelease(1, 0, first))
    return added


def experiments(connection: Connection) -> list[tuple[str, str]]:
    """Return the fingerprint and text of each experiment, oldest first."""
    rows = connection.execute(text("SELECT fingerprint, text FROM experiment ORDER BY id"))
    return [(fingerprint, table) for fingerprint, table in rows]


def length(connection: Connection, experiment: int) -> int:
    """Return the last position of the log."""
    query = text("SELECT max(position) FROM report WHERE experiment = :experiment")
    return connection.execute(query, {"experiment": experiment}).scalar() or 0


def read(connection: Connection, experiment: int, *, after: int, limit: int) -> list[bytes]:
    """Return the bodies at the positions after + 1, after + 2, … in order."""
    query = text(
        "SELECT body FROM report WHERE experiment = :experiment AND position > :after"
        " ORDER BY position LIMIT :limit"
    )
    values = {"experiment": experiment, "after": after, "limit": limit}
    return list(connection.execute(query, values).scalars())


def newest(connection: Connection, experiment: int) -> int:
    """Return the newest version."""
    query = text("SELECT max(version) FROM release WHERE experiment = :experiment")
    return connection.execute(query, {"experiment": experiment}).scalar() or 0


def newest_versions(connection: Connection) -> dict[str, int]:
    """Return the newest version of each experiment."""
    query = text(
        "SELECT fingerprint, max(version) FROM experiment JOIN release ON experiment = id"
        " GROUP BY fingerprint"
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def releases(
    connection: Connection, experiment: int, *, after: int, until: int | None = None
) -> list[LoggedRelease]:
    """Return the releases of the versions after + 1, …, until (the newest if None), in order."""
    query = "SELECT version, position, text FROM release WHERE experiment = :experiment"
    query += " AND version > :after" + ("" if until is None else " AND version <= :until")
    values = {"experiment": experiment, "after": after, "until": until}
    rows = connection.execute(text(query + " ORDER BY version"), values)
    return [LoggedRelease(version, position, _unpack(packed)) for version, position, packed in rows]


def add_release(connection: Connection, experiment: int, release: LoggedRelease) -> None:
    """Write the next release; it has to follow the newest."""
    after = newest(connection, experiment)
    if release.version != after + 1:
        raise StoreError(must("the version of a release", f"be {after + 1}", release.version))
    query = text(
        "INSERT INTO release (experiment, version, position, text)"
        " VALUES (:experiment, :version, :position, :text)"
    )
    values = {
        "experiment": experiment,
        "version": release.version,
        "position": release.position,
        "text": _pack(release.text),
    }
    connection.execute(query, values)


def latest(connection: Connection, experiment: int, table: LatestText) -> tuple[int, str] | None:
    """Return the newest text of a kind, and the position of the log that it follows from."""
    # A table's name cannot be a parameter; LatestText has the two that there are.
    query = text(f"SELECT position, text FROM {table} WHERE experiment = :experiment")  # noqa: S608
    row = connection.execute(query, {"experiment": experiment}).one_or_none()
    return None if row is None else (row[0], _unpack(row[1]))


def replace_latest(
    connection: Connection, experiment: int, table: LatestText, new: tuple[int, str]
) -> None:
    """Put a text in the place of the one before."""
    query = text(
        f"INSERT INTO {table} (experiment, position, text)"  # noqa: S608  as in ``latest``
        " VALUES (:experiment, :position, :text) ON CONFLICT (experiment)"
        " DO UPDATE SET position = excluded.position, text = excluded.text"
    )
    values = {"experiment": experiment, "position": new[0], "text": _pack(new[1])}
    connection.execute(query, values)


def choose_new(
    reports: Sequence[tuple[bytes, bytes]], known: set[bytes]
) -> tuple[list[tuple[bytes, bytes]], list[bool]]:
    """Return the reports whose nonce comes for the first time, and of each whether it does."""
    seen = set(known)
    new = []
    is_new = []
    for report in reports:
        is_new.append(report[0] not in seen)
        if is_new[-1]:
            seen.add(report[0])
            new.append(report)
    return new, is_new


def _pack(text: str) -> bytes:
    return zlib.compress(text.encode())


def _unpack(packed: bytes) -> str:
    try:
        return zlib.decompress(packed).decode()
    except (zlib.error, UnicodeDecodeError, TypeError):
        raise StoreDamaged("a text in the database must be as it was written; it is not") from None
