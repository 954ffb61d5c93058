"""The privacy ledger: the ε that a person has spent, and the most that they will spend.

Budgets add up (sequential composition). So the ledger adds every ε over all experiments, exactly,
and refuses a report that would exceed the budget: for a lifetime, or for any stretch of so many
days. It is an SQLite file. Spending is one transaction, which is on disk before the device makes
the report: a crash wastes budget, never privacy, and two processes cannot spend the same ε. If the
ledger cannot be read, understood or written, the device spends nothing and reports nothing.

A budget for a time trusts the device's clock. Where the clock is set back, what was spent later
counts as well. Where it is set ahead, what was spent before is over too soon.
"""

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Protocol

from sottovoce.device.database import FileKind
from sottovoce.shared import check
from sottovoce.shared.durations import duration
from sottovoce.shared.errors import BudgetSpent, LedgerError, must

_LEDGER = FileKind(
    what="a privacy ledger",
    name="ledger",
    application=0x536F766F,  # "Sovo"
    error=LedgerError,
    tables="""
CREATE TABLE budget (epsilon REAL NOT NULL CHECK (epsilon > 0), per TEXT, since TEXT);
CREATE TABLE spent (
    moment TEXT NOT NULL,
    experiment TEXT NOT NULL,
    name TEXT NOT NULL,
    release INTEGER NOT NULL,
    epsilon REAL NOT NULL CHECK (epsilon > 0)
);
""",
    version=2,
)
_FROM_VERSION_1 = (
    "ALTER TABLE budget ADD COLUMN per TEXT",
    "ALTER TABLE budget ADD COLUMN since TEXT",
    "PRAGMA user_version = 2",
)
"""What brings a ledger of before up to date: its budget is for a lifetime."""

_SECOND = timedelta(seconds=1)
"""Moments are noted in whole seconds, rounded down."""


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
    budget: the most ε that may be spent, over all experiments. It is written into the file, and a
        file with another budget is refused: see ``change``.
    per: the budget is for any stretch of this length, such as "30 days". Without it, it is for a
        lifetime.
    now: seconds since 1970; for tests.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        budget: float,
        per: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self.budget = check.epsilon(budget, what="the ledger's budget")
        self.per = per
        self._length = _length(per)
        self._now = now
        # Created only if there is no file: an emptied ledger does not pass for a new one.
        with self._checked(create=not self.path.exists()):
            pass

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Record the cost of one report on disk, or raise LedgerError and record nothing."""
        cost = check.epsilon(epsilon)
        with self._checked() as database:
            left = self._left(_entries(database))
            if Fraction(cost) > left:
                rule = f"be at most {float(max(left, Fraction(0)))!r}, what is left"
                raise BudgetSpent(must("what a report spends", rule, cost))
            moment = self._moment()
            row = (moment, experiment, name, release, cost)
            database.execute("INSERT INTO spent VALUES (?, ?, ?, ?, ?)", row)

    def give_back(self, *, experiment: str, release: int, count: int) -> None:
        """Take back the cost of reports that were erased before they were ever sent.

        Of the reports on one release, the oldest entries go: what stays counted is at least as
        recent as what was sent, so that no stretch of time is left that holds less than was spent.
        """
        with self._checked() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS given_back (moment TEXT NOT NULL,"
                " experiment TEXT NOT NULL, release INTEGER NOT NULL, epsilon REAL NOT NULL)"
            )
            rows = database.execute(
                "SELECT rowid, epsilon FROM spent WHERE experiment = ? AND release = ?"
                " ORDER BY rowid LIMIT ?",
                (experiment, release, count),
            ).fetchall()
            for number, epsilon in rows:
                database.execute("DELETE FROM spent WHERE rowid = ?", (number,))
                row = (self._moment(), experiment, release, epsilon)
                database.execute("INSERT INTO given_back VALUES (?, ?, ?, ?)", row)

    def entries(self) -> list[LedgerEntry]:
        """Return the cost of every report so far, oldest first."""
        with self._checked() as database:
            return _entries(database)

    @property
    def left(self) -> float:
        """The ε that may be spent now."""
        return float(max(self._left(self.entries()), Fraction(0)))

    @classmethod
    def change(
        cls, path: str | PathLike[str], *, budget: float, per: str | None = None
    ) -> "Ledger":
        """Give an existing ledger another budget, and return it; what was spent stays counted.

        A larger budget, or one for a shorter time, gives away more of the person: ask them. A
        smaller one holds from now on. It may be less than what was spent: then nothing is reported
        until it fits again. The receipt lists all budgets.
        """
        ledger = cls.read(path)
        row = (check.epsilon(budget, what="the ledger's budget"), per, ledger._moment())
        _length(per)
        with ledger._checked() as database:
            database.execute("INSERT INTO budget VALUES (?, ?, ?)", row)
        return cls(path, budget=budget, per=per)

    def receipt(self) -> str:
        """Return a text for the person whose budget this is: what was spent, when and on what."""
        with self._checked() as database:
            entries, budgets = _entries(database), _budgets(database)
            back = _given_back(database)
        spent, left = _total(entries), max(self._left(entries), Fraction(0))
        kind = "lifetime budget " if self.per is None else "budget          "
        lines = [
            "Privacy receipt",
            f"  {kind} {_budget_in_words(self.budget, self.per)}",
            f"  spent            ε = {float(spent):g} in {len(entries)} reports",
            f"  left             ε = {float(left):g}",
            *(
                f"  given back       ε = {cost:g}, for {count} reports never sent"
                for count, cost in back
            ),
            *(
                f"  budget before    {_budget_in_words(each, per)}, until {until}"
                for (each, per, _), (_, _, until) in pairwise(budgets)
            ),
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
            _bring_up_to_date(database)
            budgets = _budgets(database)
        if not budgets:
            raise LedgerError(must(f"the ledger {path}", "state its budget", "none"))
        return cls(path, budget=budgets[-1][0], per=budgets[-1][1])

    def _left(self, entries: list[LedgerEntry]) -> Fraction:
        """Return what is left of the budget; less than 0 if it was made smaller."""
        if self._length is not None:
            # A moment was rounded down: its entry counts for a second more.
            begin = datetime.fromtimestamp(self._now(), UTC) - self._length - _SECOND
            entries = [each for each in entries if _read_moment(each.moment) > begin]
        return Fraction(self.budget) - _total(entries)

    def _moment(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds")

    @contextmanager
    def _checked(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, and refuse it if it is not this ledger."""
        with _LEDGER.transaction(self.path, create=create) as database:
            if create and not database.execute("SELECT * FROM sqlite_master").fetchall():
                _LEDGER.create(database)
                row = (self.budget, self.per, self._moment())
                database.execute("INSERT INTO budget VALUES (?, ?, ?)", row)
            _bring_up_to_date(database)
            _LEDGER.check(database, self.path)
            budgets = _budgets(database)
            newest = [(budget, _length(per)) for budget, per, _ in budgets[-1:]]
            if newest != [(self.budget, self._length)]:
                made = _budget_in_words(*budgets[-1][:2]) if budgets else "stated"
                rule = f"be {made}, as {self.path} has it"
                came = _budget_in_words(self.budget, self.per)
                hint = "to give it another one, call Ledger.change"
                raise LedgerError(must("the ledger's budget", rule, came, hint=hint))
            yield database


def _bring_up_to_date(database: sqlite3.Connection) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if (application, version) == (_LEDGER.application, 1):
        for statement in _FROM_VERSION_1:
            database.execute(statement)


def _budgets(database: sqlite3.Connection) -> list[tuple[float, str | None, str | None]]:
    """Return every budget that the ledger has had, with its time and its beginning; newest last."""
    return list(database.execute("SELECT epsilon, per, since FROM budget ORDER BY rowid"))


def _length(per: str | None) -> timedelta | None:
    return None if per is None else duration(per, what="the time of a ledger's budget")


def _budget_in_words(budget: float, per: str | None) -> str:
    return f"ε = {budget:g}" + ("" if per is None else f" in any {per}")


def _read_moment(moment: str) -> datetime:
    try:
        read = datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        read = datetime.min
    if read.tzinfo is None:
        raise LedgerError("a ledger must say when each report was made; it is damaged")
    return read


def _entries(database: sqlite3.Connection) -> list[LedgerEntry]:
    rows = database.execute("SELECT moment, experiment, name, release, epsilon FROM spent")
    entries = [LedgerEntry(*row) for row in rows]
    for entry in entries:
        if not isinstance(entry.epsilon, float) or not 0 < entry.epsilon < math.inf:
            raise LedgerError("what a ledger says was spent must be finite and > 0; it is damaged")
    return entries


def _given_back(database: sqlite3.Connection) -> list[tuple[int, float]]:
    """Return for how many reports ε was given back, and how much; nothing if for none."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'given_back'").fetchone():
        return []
    costs = [cost for (cost,) in database.execute("SELECT epsilon FROM given_back")]
    return [(len(costs), math.fsum(costs))] if costs else []


def _total(entries: list[LedgerEntry]) -> Fraction:
    return sum((Fraction(entry.epsilon) for entry in entries), Fraction(0))
