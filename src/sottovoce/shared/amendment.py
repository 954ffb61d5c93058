"""Amendments: what an operator may change about a running experiment, as documents.

An amendment adds an arm, retires one, extends the horizon, pauses, resumes, stops or archives. It
cannot say anything else: what is private, ε, the populations and the features stay as they were in
the first form. What an amendment does to an experiment is in ``amending.py``.

One kind changes nothing about the experiment: RESTORE says that the server has lost the newest part
of its history, and from which release it goes on. It is made by ``sottovoce restore``, never asked
for over the network.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sottovoce.shared import check
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import ExperimentError, must

RUNNING, PAUSED, STOPPED, ARCHIVED = "running", "paused", "stopped", "archived"

ADD_ARM, RETIRE_ARM, EXTEND_HORIZON = "add arm", "retire arm", "extend horizon"
PAUSE, RESUME, STOP, ARCHIVE = "pause", "resume", "stop", "archive"
RESTORE = "restore"

KINDS: dict[str, str | None] = {
    ADD_ARM: "arm",
    RETIRE_ARM: "arm",
    EXTEND_HORIZON: "horizon",
    PAUSE: None,
    RESUME: None,
    STOP: None,
    ARCHIVE: None,
}
"""Every kind of amendment that an operator asks for, with the key that says what it is about."""

_BRANCH = ("release", "link", "branch")
_NEXT_STATE = {PAUSE: PAUSED, RESUME: RUNNING, STOP: STOPPED, ARCHIVE: ARCHIVED}

MOST_ARMS = 255
"""How many arms an experiment may have in all, retired ones too: a report ranks them in a byte."""

WRITTEN = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """One change to a running experiment.

    before: the hash of the amendment before; of the first one, the experiment's fingerprint.
    made: when, in UTC, such as 2026-03-01T09:30:00Z. by: who, as the operator wants to be named.
    kind: one of ``KINDS``. arm: the arm that is added or retired. horizon: the new one.
    cap: how many of a bin's people may get an added arm while it is compared there; None for no
        limit but the method's own.
    release, link: of a RESTORE, the last release that the server still has, and its link in the
        chain. What was published after it is lost. branch: 32 random hexadecimal digits, so that
        what comes next never has the text of anything that was lost.
    """

    before: str
    made: str
    by: str
    kind: str
    arm: str | None = None
    horizon: int | None = None
    cap: float | None = None
    release: int | None = None
    link: str | None = None
    branch: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in (*KINDS, RESTORE):
            raise ExperimentError(must("an amendment", f"be one of {list(KINDS)}", repr(self.kind)))
        check.name(self.by, what="who makes an amendment")
        _check_moment(self.made)
        about = _BRANCH if self.kind == RESTORE else (KINDS[self.kind],)
        for key in ("arm", "horizon", *_BRANCH):
            if (getattr(self, key) is not None) != (key in about):
                said = [each for each in about if each]
                rule = f"say {' and '.join(said)}" if said else "say nothing else"
                raise ExperimentError(must(f"an amendment of kind {self.kind!r}", rule, key))
        if self.release is not None:
            check.whole_number(self.release, what="the release of a restore", least=1)
            for key, digits in (("link", 64), ("branch", 32)):
                if not re.fullmatch(f"[0-9a-f]{{{digits}}}", str(getattr(self, key))):
                    rule = f"be {digits} hexadecimal digits"
                    raise ExperimentError(must(f"the {key} of a restore", rule, "another text"))
        if self.arm is not None:
            check.name(self.arm, what="an arm")
        if self.horizon is not None:
            check.whole_number(self.horizon, what="horizon", least=1)
        if self.cap is not None:
            cap = check.finite_float(self.cap)
            if self.kind != ADD_ARM or cap is None or not 0 < cap <= 0.5:
                rule = "be more than 0 and at most 0.5, for an arm that is added"
                raise ExperimentError(must("the cap of an amendment", rule, repr(self.cap)))
            object.__setattr__(self, "cap", cap)

    @property
    def hash(self) -> str:
        """The SHA-256 of the amendment, which the next one names."""
        return hashlib.sha256(canonical_json(self.to_table())).hexdigest()

    def to_table(self) -> dict[str, Any]:
        """Write the amendment for the wire."""
        table = {"before": self.before, "made": self.made, "by": self.by, "kind": self.kind}
        about = ("arm", "horizon", "cap", *_BRANCH)
        extra = {key: getattr(self, key) for key in about}
        return {**table, **{key: value for key, value in extra.items() if value is not None}}

    @classmethod
    def from_table(cls, table: Any) -> "Amendment":
        """Read what ``to_table`` wrote."""
        known = {"before", "made", "by", "kind", "arm", "horizon", "cap", *_BRANCH}
        entries = check.known_keys(table, what="an amendment", known=known)
        if missing := sorted({"before", "made", "by", "kind"} - entries.keys()):
            raise ExperimentError(f"an amendment must say {missing}")
        return cls(**entries)

    def __str__(self) -> str:
        """Return it in words, such as "add arm 'coach', for at most 10 % of a bin's people"."""
        words = self.kind
        if self.arm is not None:
            words += f" {self.arm!r}"
        if self.horizon is not None:
            words += f" to {self.horizon:,}"
        if self.cap is not None:
            words += f", for at most {100 * self.cap:g} % of a bin's people"
        if self.release is not None and self.branch is not None:
            words += f" from release {self.release:,}, as branch {self.branch[:8]}"
        return words


def amendments_from_tables(tables: Any) -> tuple[Amendment, ...]:
    """Read the amendments of a release."""
    if not isinstance(tables, list):
        raise ExperimentError(must("amendments", "be a list of tables", type(tables).__name__))
    return tuple(Amendment.from_table(each) for each in tables)


def state_after(amendments: Sequence[Amendment]) -> str:
    """Return whether an experiment is running, paused, stopped or archived."""
    states = [_NEXT_STATE[each.kind] for each in amendments if each.kind in _NEXT_STATE]
    return states[-1] if states else RUNNING


def _check_moment(made: Any) -> None:
    rule = "be written as 2026-03-01T09:30:00Z"
    try:
        fits = datetime.strptime(made, WRITTEN).replace(tzinfo=UTC).strftime(WRITTEN) == made
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ExperimentError(must("when an amendment was made", rule, repr(made)))
