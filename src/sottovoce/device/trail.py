"""Which releases a device has followed, so that it can follow a server that was restored.

A server that was restored from a backup has lost its newest releases. It says so in a signed
amendment, a RESTORE, which names the last release that it still has, and goes on from there in a
new branch (``releases.py`` checks that it does). What the device made for a lost release cannot be
read any more:

- A report that was given to the network may have been seen: its ε is spent. It stays in the outbox
  and is offered again now and then, the same bytes, which costs nothing: perhaps the server finds
  its release again.
- A report that was never given to the network, and a decision without a report yet, are erased,
  and their ε is given back to the ledger.

Proof that this keeps the budget. What anybody outside ever sees of this person is the reports that
were given to the network, and when; each report is ε-LDP by itself. Which ones are erased follows
from the releases and from when requests were made, and both are public: no erasure depends on a
context, an arm or an outcome. So the law of all that is seen is that of the reports that were
sent, and their ε add up; an erased report is a draw that nobody, not even this device, looks at
again. A report is noted in ``tried``, on disk, before its first request is made, and only what is
not noted there is erased, in one transaction; only then is ε given back. So a crash in between
wastes budget, never privacy.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.shared import wire
from sottovoce.shared.signed import Point

MOST_FOLLOWED = 4096
"""How many releases of an experiment a device remembers to have followed; the oldest go first."""

# Made where they are first needed: an outbox of before has none, and is used all the same.
TABLES = (
    """CREATE TABLE IF NOT EXISTS followed (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        experiment TEXT NOT NULL,
        version INTEGER NOT NULL,
        link BLOB NOT NULL,
        release BLOB NOT NULL,
        lost INTEGER NOT NULL DEFAULT 0,
        UNIQUE (experiment, link)
    )""",
    "CREATE TABLE IF NOT EXISTS tried (number INTEGER PRIMARY KEY)",
)


@dataclass(frozen=True, slots=True)
class Trail:
    """The releases of one experiment that a device has followed.

    points: those that stand. lost: the links of those that a restore has taken back.
    """

    points: tuple[Point, ...] = ()
    lost: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Followed:
    """A release that a device follows or has followed: its place, and its id in reports."""

    point: Point
    release: bytes


def trail_of(database: sqlite3.Connection, experiment: str) -> Trail:
    """Read which releases were followed."""
    _make(database)
    rows = database.execute(
        "SELECT version, link, lost FROM followed WHERE experiment = ?", (experiment,)
    ).fetchall()
    points = tuple(Point(version, link) for version, link, lost in rows if not lost)
    return Trail(points, frozenset(link for _, link, lost in rows if lost))


def note_followed(
    database: sqlite3.Connection, experiment: str, followed: Sequence[Followed]
) -> None:
    """Note releases that are followed."""
    _make(database)
    statement = "INSERT OR IGNORE INTO followed (experiment, version, link, release)"
    rows = [(experiment, *each.point, each.release) for each in followed]
    database.executemany(f"{statement} VALUES (?, ?, ?, ?)", rows)
    database.execute(
        "DELETE FROM followed WHERE experiment = ? AND number <="
        " (SELECT max(number) FROM followed WHERE experiment = ?) - ?",
        (experiment, experiment, MOST_FOLLOWED),
    )


def abandon(database: sqlite3.Connection, experiment: str, *, after: int) -> Counter[int]:
    """Leave the releases after a version; erase what was made for them and never sent.

    Return how many that have cost ε were erased, by the version of their release.
    """
    _make(database)
    database.execute(
        "UPDATE followed SET lost = 1 WHERE experiment = ? AND version > ?", (experiment, after)
    )
    rows = database.execute(
        "SELECT release, version FROM followed WHERE experiment = ? AND lost = 1", (experiment,)
    )
    lost: dict[bytes, int] = dict(rows.fetchall())
    erased: Counter[int] = Counter()
    decisions = database.execute(
        "SELECT id, release, kept FROM decision WHERE experiment = ?", (experiment,)
    ).fetchall()
    for number, release, kept in decisions:
        if release in lost:
            database.execute("DELETE FROM decision WHERE id = ?", (number,))
            erased[lost[release]] += bool(kept)  # without a contested cell it has cost nothing
    reports = database.execute(
        "SELECT number, report FROM waiting WHERE experiment = ?"
        " AND number NOT IN (SELECT number FROM tried)",
        (experiment,),
    ).fetchall()
    for number, report in reports:
        if wire.release_of(report) in lost:
            database.execute("DELETE FROM waiting WHERE number = ?", (number,))
            erased[lost[wire.release_of(report)]] += bool(wire.report_from_bytes(report).payload)
    return erased


def claim(database: sqlite3.Connection, numbers: Sequence[int]) -> set[int]:
    """Note that reports are about to be given to the network; return those that are still there."""
    _make(database)
    there = {
        number
        for number in numbers
        if database.execute("SELECT 1 FROM waiting WHERE number = ?", (number,)).fetchone()
    }
    rows = [(number,) for number in sorted(there)]
    database.executemany("INSERT OR IGNORE INTO tried VALUES (?)", rows)
    return there


def leave(database: sqlite3.Connection, experiment: str) -> None:
    """Forget what was followed of an experiment, and which reports have left."""
    _make(database)
    database.execute("DELETE FROM followed WHERE experiment = ?", (experiment,))
    database.execute("DELETE FROM tried WHERE number NOT IN (SELECT number FROM waiting)")


def forget(database: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Forget that reports were given to the network: they are not in the outbox any more."""
    _make(database)
    database.executemany("DELETE FROM tried WHERE number = ?", [(each,) for each in numbers])


def _make(database: sqlite3.Connection) -> None:
    for statement in TABLES:
        database.execute(statement)
