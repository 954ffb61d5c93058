"""What auxiliary data brings, as pages, JSON and metrics have it; worked out now and then."""

import math
import time
from typing import Any

import msgspec

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.learner import Learner

SHARE = 0.05
"""The most of a learner's time that goes into its diagnosis."""


class SourceSummary(msgspec.Struct, frozen=True):
    """One auxiliary population; the fields are those of ``Source``, None where not finite."""

    population: str
    epsilon: float
    reports: int
    expected: int
    worth: float | None
    exploration: float | None
    overlap: float | None
    promises: float | None
    harmful: bool
    effective_users: float | None
    expected_users: float | None


class AuditSummary(msgspec.Struct, frozen=True):
    """The rewards of those who were asked; the fields are those of ``Audit``, likewise."""

    answers: int
    delivered: float | None
    promised: float | None
    at_random: float | None
    standard_error: float | None
    holds: bool
    falls_short: bool


class DiagnosisSummary(msgspec.Struct, frozen=True):
    """A diagnosis that JSON can hold. learned: how many reports it is made from."""

    learned: int
    sources: tuple[SourceSummary, ...] = ()
    audit: AuditSummary | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, learner: Learner) -> "DiagnosisSummary | None":
        """Work it out; None where there is no auxiliary population."""
        if not learner.experiment.auxiliary:
            return None
        return cls.made_from(learner.diagnosis(), learned=sum(learner.status().reports.values()))

    @classmethod
    def made_from(cls, diagnosis: Diagnosis, *, learned: int) -> "DiagnosisSummary":
        """Take over a diagnosis of so many reports."""
        audit = diagnosis.audit
        return cls(
            learned,
            tuple(SourceSummary(**_fields(SourceSummary, each)) for each in diagnosis.sources),
            None if audit is None else AuditSummary(**_fields(AuditSummary, audit)),
            diagnosis.warnings,
        )


def diagnosis_to_table(diagnosis: Diagnosis) -> dict[str, Any]:
    """Write a diagnosis as JSON has it; a number that is not finite is null."""
    summary = DiagnosisSummary.made_from(diagnosis, learned=0)
    table: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(summary, enc_hook=float))
    del table["learned"]
    return table


def _fields(kind: type[msgspec.Struct], source: object) -> dict[str, Any]:
    """Return the fields; None for what JSON cannot hold, such as the error of a mean of nothing."""
    values = {name: getattr(source, name) for name in kind.__struct_fields__}
    infinite = {
        name: None
        for name, value in values.items()
        if isinstance(value, float) and not math.isfinite(value)
    }
    return values | infinite


class DiagnosisCache:
    """The diagnosis of one learner, made anew when there are more reports and it is time."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._kept: DiagnosisSummary | None = None
        self._position = -1
        self._due = -math.inf

    def is_due(self, position: int) -> bool:
        """Say whether the learner is further than what is kept, and may be asked again."""
        has_sources = bool(self._learner.experiment.auxiliary)
        return has_sources and position != self._position and time.monotonic() >= self._due

    def at(self, position: int, *, at_once: bool = False) -> DiagnosisSummary | None:
        """Return the diagnosis, which may be a little old.

        at_once: make a new one even if it is not yet due.
        """
        if self.is_due(position) or (at_once and position != self._position):
            begun = time.monotonic()
            self._kept, self._position = DiagnosisSummary.of(self._learner), position
            now = time.monotonic()
            self._due = now + (now - begun) * (1 / SHARE - 1)
        return self._kept
