"""What auxiliary data brings, as plain JSON; worked out now and then, for it takes time."""

import math
import time
from dataclasses import asdict
from typing import Any

from sottovoce.estimate.diagnosis import Audit, Diagnosis, Source
from sottovoce.estimate.learner import Learner

SHARE = 0.05
"""The most of a learner's time that goes into its diagnosis; less where it is quick."""


class Watch:
    """The diagnosis of one learner, made anew when there are more reports and it is time."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._kept: dict[str, Any] | None = None
        self._position = -1
        self._due = -math.inf

    def is_due(self, position: int) -> bool:
        """Say whether the learner is further than what is kept, and may be looked at again."""
        there_is_any = bool(self._learner.experiment.auxiliary)
        return there_is_any and position != self._position and time.monotonic() >= self._due

    def at(self, position: int, *, at_once: bool = False) -> dict[str, Any] | None:
        """Return the diagnosis, which may be of a moment ago.

        at_once: however long it takes.
        """
        if self.is_due(position) or (at_once and position != self._position):
            begun = time.monotonic()
            self._kept, self._position = diagnosis_of(self._learner), position
            now = time.monotonic()
            self._due = now + (now - begun) * (1 / SHARE - 1)
        return self._kept


def diagnosis_of(learner: Learner) -> dict[str, Any] | None:
    """Work out the diagnosis as of now; None where there is no auxiliary population."""
    if not learner.experiment.auxiliary:
        return None
    learned = sum(learner.status().reports.values())
    return {"learned": learned, **diagnosis_to_table(learner.diagnosis())}


def diagnosis_to_table(diagnosis: Diagnosis) -> dict[str, Any]:
    """Write a diagnosis as JSON has it; a number that is not finite is null."""
    return {
        "sources": [_source(each) for each in diagnosis.sources],
        "audit": None if diagnosis.audit is None else _audit(diagnosis.audit),
        "warnings": list(diagnosis.warnings),
    }


def _source(source: Source) -> dict[str, Any]:
    table = asdict(source) | {
        "effective_users": source.effective_users,
        "expected_users": source.expected_users,
    }
    return {name: _finite(value) for name, value in table.items()}


def _audit(audit: Audit) -> dict[str, Any]:
    table = asdict(audit) | {"holds": audit.holds, "falls_short": audit.falls_short}
    return {name: _finite(value) for name, value in table.items()}


def _finite(value: Any) -> Any:
    """Leave out what JSON has no word for, such as the error of a mean of nothing."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
