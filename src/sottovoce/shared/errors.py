"""Every error this package raises on purpose.

SottovoceError
├── ExperimentError     an experiment, schema or method that cannot be
├── ContextError        a person's features do not fit the public schema
├── RewardError         an outcome outside [0, 1]
├── DeviceError         the device was used out of order
├── LedgerError         the privacy ledger cannot be trusted, so nothing is spent
│   └── BudgetSpent     the budget would be exceeded
├── OutboxError         reports that wait to be sent cannot be kept or read
├── TransportError      no answer came from the server, or one that no server would give
│   └── NoSuchExperiment  the server has no such experiment
├── SignatureError      a release that nobody trusted has signed
├── ForkError           a release that does not continue the history followed so far
├── RowsError           a custodian's file that cannot be used
├── PolicyError         a policy that cannot be read, or not be exported
├── StoreError          the server's database cannot be used just now
│   ├── StoreDamaged    what the database holds does not follow from its log
│   ├── StoreBehind     the database has lost what it had, and nothing was stored
│   └── StoreFull       the database has no room left, and nothing was stored
├── Refused             a message that was not taken, with its ``Rejection``
│   ├── ReportRejected  a report that cannot be counted
│   └── WireError       bytes or JSON that are not a message of this package
├── StateError          a saved learner that cannot be resumed
└── MissingExtra        an optional dependency that is not installed; an ImportError, too

House rule: a message says what, the rule, and what came (see ``must``). It never holds a raw
context or reward: of those, only the kind of value that came (see ``kind_of``). An answer of the
server leaves out what came (see ``SottovoceError.requirement``).
"""

import math
from dataclasses import dataclass
from enum import Enum
from numbers import Real


@dataclass(frozen=True, slots=True)
class Requirement:
    """A rule that was broken. hint: what to do, where that is not plain, after a semicolon."""

    what: str
    rule: str
    came: str
    hint: str

    def __str__(self) -> str:
        return f"{self.what} must {self.rule}; got {self.came}{self.hint}"

    @property
    def without_value(self) -> str:
        """The message without what came."""
        return f"{self.what} must {self.rule}{self.hint}"


class SottovoceError(ValueError):
    """The root of the tree above."""

    def __init__(self, message: str | Requirement) -> None:
        super().__init__(message)

    @property
    def requirement(self) -> str:
        """The message without what came, which may be anything, even the data of a person."""
        message = self.args[0]
        return message.without_value if isinstance(message, Requirement) else str(message)


class ExperimentError(SottovoceError):
    """An experiment, schema or method that cannot be."""


class ContextError(SottovoceError):
    """A person's features do not fit the public schema."""


class RewardError(SottovoceError):
    """An outcome outside [0, 1]."""


class DeviceError(SottovoceError):
    """The device was used out of order."""


class LedgerError(SottovoceError):
    """The privacy ledger cannot be trusted, so nothing is spent."""


class BudgetSpent(LedgerError):
    """The budget would be exceeded."""


class OutboxError(SottovoceError):
    """Reports that wait to be sent cannot be kept or read."""


class TransportError(SottovoceError):
    """No answer came from the server, or one that no server would give."""


class NoSuchExperiment(TransportError):
    """The server has no such experiment."""


class SignatureError(SottovoceError):
    """A release that nobody trusted has signed."""


class ForkError(SottovoceError):
    """A release that does not continue the history that was followed so far."""


class RowsError(SottovoceError):
    """A custodian's file that cannot be used."""


class PolicyError(SottovoceError):
    """A policy that cannot be read, or not be exported."""


class StoreError(SottovoceError):
    """The server's database cannot be used just now."""


class StoreDamaged(StoreError):
    """What the database holds does not follow from its log."""


class StoreBehind(StoreError):
    """The database is older than what was published from it, and nothing was stored."""


class StoreFull(StoreError):
    """The database has no room left, and nothing was stored."""


class StateError(SottovoceError):
    """A saved learner that cannot be resumed."""


class MissingExtra(SottovoceError, ImportError):
    """An optional dependency that is not installed."""


class Rejection(Enum):
    """Why a report was not counted; a server counts each by its value."""

    UNKNOWN_RELEASE = "unknown release"
    LOST_RELEASE = "lost release"
    UNKNOWN_POPULATION = "unknown population"
    UNKNOWN_QUESTION = "unknown question"
    WRONG_LENGTH = "wrong length"
    NOT_FINITE = "not finite"
    IMPLAUSIBLE = "implausible"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    NEWER_WIRE = "newer wire version"
    ARCHIVED = "archived"

    @property
    def may_pass(self) -> bool:
        """Whether the same report may be taken later: the server cannot read it yet, or lost it."""
        return self in (Rejection.UNKNOWN_RELEASE, Rejection.LOST_RELEASE, Rejection.NEWER_WIRE)


class Refused(SottovoceError):
    """A message that was not taken."""

    def __init__(self, reason: Rejection, message: str | Requirement) -> None:
        super().__init__(message)
        self.reason = reason


class ReportRejected(Refused):
    """A report that cannot be counted."""


class WireError(Refused):
    """Bytes or JSON that are not a message of this package."""


def must(what: str, rule: str, came: object, *, hint: str = "") -> Requirement:
    """Return the one template for messages: ``epsilon must be finite and > 0; got -1``."""
    return Requirement(what, rule, str(came), f"; {hint}" if hint else "")


def malformed(what: str, rule: str, came: object) -> WireError:
    """Return the error for a message of another form than it must have."""
    return WireError(Rejection.MALFORMED, must(what, rule, came))


def kind_of(value: object) -> str:
    """Name the kind of a raw value without showing it."""
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, Real):
        if value != value:
            return "NaN"
        return "an infinite number" if value in (math.inf, -math.inf) else "another number"
    return "nothing" if value is None else f"a {type(value).__name__}"
