"""All that a learner knows, and its JSON: a resumed learner goes on bit for bit."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from sottovoce.estimate.history import DatedEvent, Elimination, Event, Split
from sottovoce.estimate.method import Estimator, learner_method
from sottovoce.shared.errors import StateError, must
from sottovoce.shared.release import Release

STATE_VERSION = 4


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a learner counts, whatever its method.

    reports: how many of each population were counted.
    late_reports, dropped_cells: see ``Status``.
    """

    reports: list[int]
    late_reports: int = 0
    dropped_cells: int = 0
    history: list[DatedEvent] = field(default_factory=list)


def progress_to_json(estimator: Estimator, progress: Progress) -> str:
    """Write a learner. Floats are written so that they read back as the same bits."""
    return json.dumps(
        {
            "sottovoce": STATE_VERSION,
            "kind": "learner",
            "release": estimator.release.to_table(),
            "reports": progress.reports,
            "late_reports": progress.late_reports,
            "dropped_cells": progress.dropped_cells,
            "history": [
                {
                    "reports": dated.reports,
                    "kind": type(dated.event).__name__,
                    **asdict(dated.event),
                }
                for dated in progress.history
            ],
            **estimator.to_table(),
        },
        allow_nan=False,
    )


def progress_from_json(text: str | bytes) -> tuple[Estimator, Progress]:
    """Read a learner; what is truncated, of another version or inconsistent is refused."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateError("a saved learner must be whole JSON; it is cut off or damaged") from error
    if not isinstance(table, dict) or table.get("kind") != "learner":
        raise StateError("a saved learner must say so in 'kind'")
    if table.get("sottovoce") != STATE_VERSION:
        came = repr(table.get("sottovoce"))
        raise StateError(must("the version of a saved learner", f"be {STATE_VERSION}", came))
    try:
        return _read(table)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StateError(f"a saved learner must be complete and consistent; {error}") from error


def _read(table: dict[str, Any]) -> tuple[Estimator, Progress]:
    release = Release.from_table(table["release"])
    experiment = release.experiment
    progress = Progress(
        reports=list(map(int, table["reports"])),
        late_reports=int(table["late_reports"]),
        dropped_cells=int(table["dropped_cells"]),
        history=[DatedEvent(int(entry["reports"]), _event(entry)) for entry in table["history"]],
    )
    if len(progress.reports) != len(experiment.populations):
        raise ValueError("its counts do not fit its populations")
    if min(*progress.reports, progress.late_reports, progress.dropped_cells) < 0:
        raise ValueError("its counts must not be negative")
    return learner_method(experiment).resume(release, table), progress


def _event(entry: dict[str, Any]) -> Event:
    if entry["kind"] == "Elimination":
        return Elimination(str(entry["path"]), tuple(map(int, entry["arms"])))
    if entry["kind"] == "Split":
        return Split(str(entry["path"]), int(entry["axis"]))
    raise ValueError("its history has an event of an unknown kind")
