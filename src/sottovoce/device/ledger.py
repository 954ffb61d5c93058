"""The privacy ledger: the ε that a person has spent, and the most that they will ever spend.

Budgets add up (sequential composition). So the ledger adds every ε over all experiments, exactly,
and refuses a report that would exceed the lifetime budget. It is an SQLite file. Spending is one
transaction, which is on disk before the device makes the report: a crash wastes budget, never
privacy, and two processes cannot spend the same ε. If the ledger cannot be read, understood or
written, the device spends nothing and reports nothing.
"""

import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Protocol

from sottovoce.device.database import FileKind
from sottovoce.shared import check
from sottovoce.shared.errors import BudgetSpent, LedgerError, must

_LEDGER = FileKind(
    what="a privacy ledger",
    name="ledger",
    application=0x536F766F,  # "Sovo"
    error=LedgerError,
    tables="""
CREATE TABLE budget (epsilon REAL NOT NULL CHECK (epsilon > 0));
CREATE TABLE spent (
    moment TEXT NOT NULL,
    experiment TEXT NOT NULL,
    name TEXT NOT NULL,
    release INTEGER NOT NULL,
    epsilon REAL NOT NULL CHECK (epsilon > 0)
);
""",
)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What one report has cost.

    moment: when, in UTC, as ISO 8601 writes it.
    experiment, name: the fingerprint of the experiment, and its name.
    """

    moment: str
    experiment: str
    name: str
    release: int
    epsilon: float


class AnyLedger(Protocol):
    """What a device needs of a ledger: ``Ledger``, or one of your own."""

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Record the cost of one report, or raise LedgerError and record nothing."""


class OneReport:
    """The ledger of a device without a file: it allows a single report in a single process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._spent = False

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Allow the first report only."""
        # A fork copies what is unspent, and the copies do not hear of each other.
        if self._process != os.getpid():
            raise LedgerError(
                "a device without a ledger must report where it was made; got another process"
            )
        with self._lock:
            if self._spent:
                raise BudgetSpent(
                    "a device without a ledger must report at most once; got a second report: "
                    "pass ledger=Ledger(path, budget=…) for one person, or make a new Device for "
                    "each person or logged row"
                )
            self._spent = True


class Ledger:
    """A ledger on disk.

    path: the file; the first use creates it.
    budget: the most ε that may ever be spent, over all experiments. It is written once. A file
        with another budget is refused.
    """

    def __init__(self, path: str | PathLike[str], *, budget: float) -> None:
        self.path = Path(path)
        self.budget = check.epsilon(budget, what="the ledger's budget")
        # Created only if there is no file: an emptied ledger does not pass for a new one.
        with self._checked(create=not self.path.exists()):
            pass

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Record the cost of one report on disk, or raise LedgerError and record nothing."""
        cost = check.epsilon(epsilon)
        with self._checked() as database:
            left = Fraction(self.budget) - _total(_entries(database))
            if Fraction(cost) > left:
                rule = f"be at most {float(left)!r}, what is left"
                raise BudgetSpent(must("what a report spends", rule, cost))
            moment = datetime.now(UTC).isoformat(timespec="seconds")
            row = (moment, experiment, name, release, cost)
            database.execute("INSERT INTO spent VALUES (?, ?, ?, ?, ?)", row)

    def entries(self) -> list[LedgerEntry]:
        """Return the cost of every report so far, oldest first."""
        with self._checked() as database:
            return _entries(database)

    @property
    def left(self) -> float:
        """The ε that may still be spent."""
        return float(Fraction(self.budget) - _total(self.entries()))

    def receipt(self) -> str:
        """Return a text for the person whose budget this is: what was spent, when and on what."""
        entries = self.entries()
        spent = _total(entries)
        lines = [
            "Privacy receipt",
            f"  lifetime budget  ε = {self.budget:g}",
            f"  spent            ε = {float(spent):g} in {len(entries)} reports",
            f"  left             ε = {float(Fraction(self.budget) - spent):g}",
            "",
            f"  {'when (UTC)':<26}{'experiment':<40}{'release':>8}{'ε':>10}",
        ]
        lines += [
            f"  {each.moment:<26}{f'{each.name} ({each.experiment[:16]})':<40}"
            f"{each.release:>8}{each.epsilon:>10g}"
            for each in entries
        ]
        return "\n".join(lines)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Ledger":
        """Open an existing ledger, whatever its budget."""
        if not Path(path).is_file():
            raise LedgerError(must("a ledger", "be an existing file", repr(str(path))))
        with _LEDGER.transaction(Path(path)) as database:
            row = database.execute("SELECT epsilon FROM budget").fetchone()
        if row is None:
            raise LedgerError(must(f"the ledger {path}", "state its budget", "none"))
        return cls(path, budget=row[0])

    @contextmanager
    def _checked(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, and refuse it if it is not this ledger."""
        with _LEDGER.transaction(self.path, create=create) as database:
            if create and not database.execute("SELECT * FROM sqlite_master").fetchall():
                _LEDGER.create(database)
                database.execute("INSERT INTO budget VALUES (?)", (self.budget,))
            _LEDGER.check(database, self.path)
            budgets = [budget for (budget,) in database.execute("SELECT epsilon FROM budget")]
            if budgets != [self.budget]:
                made = f"{budgets[0]:g}" if len(budgets) == 1 else "stated"
                rule = f"be {made} as it was when {self.path} was made"
                raise LedgerError(must("the ledger's budget", rule, self.budget))
            yield database


def _entries(database: sqlite3.Connection) -> list[LedgerEntry]:
    rows = database.execute("SELECT moment, experiment, name, release, epsilon FROM spent")
    entries = [LedgerEntry(*row) for row in rows]
    for entry in entries:
        if not isinstance(entry.epsilon, float) or not 0 < entry.epsilon < math.inf:
            raise LedgerError("what a ledger says was spent must be finite and > 0; it is damaged")
    return entries


def _total(entries: list[LedgerEntry]) -> Fraction:
    return sum((Fraction(entry.epsilon) for entry in entries), Fraction(0))
