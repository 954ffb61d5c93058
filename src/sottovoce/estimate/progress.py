"""All that a learner knows, and its JSON: a resumed learner goes on bit for bit."""

import json
from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.history import Cut, Dated, Elimination, Event
from sottovoce.estimate.ldpmab import method
from sottovoce.shared.errors import StateError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Cell, Release

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The contested cells of all releases from ``since`` until the next layout."""

    since: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a learner has after some reports.

    version: of the current release.
    layouts: the cells of every release so far, oldest first.
    reports: how many of each population were counted.
    reported: which populations reported since the last step.
    late_reports, dropped_cells: see ``Status``.
    """

    version: int
    state: method.State
    layouts: tuple[Layout, ...]
    reports: tuple[int, ...]
    reported: tuple[bool, ...]
    late_reports: int = 0
    dropped_cells: int = 0
    history: tuple[Dated, ...] = ()

    def layout_of(self, version: int) -> int:
        """Return which layout a release had."""
        return bisect_right([layout.since for layout in self.layouts], version) - 1


def progress_to_json(experiment: Experiment, progress: Progress) -> str:
    """Write a learner. Floats are written so that they read back as the same bits."""
    state = progress.state
    release = Release(experiment, progress.version, state.partition, state.bins)
    return json.dumps(
        {
            "sottovoce": STATE_VERSION,
            "kind": "learner",
            "release": release.to_table(),
            "layouts": [[layout.since, layout.cells] for layout in progress.layouts],
            "reports": progress.reports,
            "reported": progress.reported,
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
            "rewards": state.rewards.tolist(),
            "pulls": state.pulls.tolist(),
            "users": state.users.tolist(),
            "running": state.running.tolist(),
        },
        allow_nan=False,
    )


def progress_from_json(text: str | bytes) -> tuple[Experiment, Progress]:
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


def _read(table: dict[str, Any]) -> tuple[Experiment, Progress]:
    release = Release.from_table(table["release"])
    experiment = release.experiment
    populations, cells = len(experiment.populations), len(release.cells)
    contested = sum(not policy.settled for policy in release.bins)
    layouts = tuple(
        Layout(int(since), tuple((str(path), int(arm)) for path, arm in layout))
        for since, layout in table["layouts"]
    )
    since = [layout.since for layout in layouts]
    if since[0] != 1 or since != sorted(set(since)) or since[-1] > release.version:
        raise ValueError("its layouts are not in order")
    if layouts[-1].cells != release.cells:
        raise ValueError("its last layout is not that of its release")
    progress = Progress(
        version=release.version,
        state=method.State(
            release.partition,
            release.bins,
            rewards=_array(table, "rewards", (populations, cells)),
            pulls=_array(table, "pulls", (populations, cells)),
            users=_counts(table, "users", (populations, contested)),
            running=_array(table, "running", (3, cells)),
        ),
        layouts=layouts,
        reports=tuple(map(int, table["reports"])),
        reported=tuple(map(bool, table["reported"])),
        late_reports=int(table["late_reports"]),
        dropped_cells=int(table["dropped_cells"]),
        history=tuple(Dated(int(entry["reports"]), _event(entry)) for entry in table["history"]),
    )
    if not len(progress.reports) == len(progress.reported) == populations:
        raise ValueError("its counts do not fit its populations")
    if min(*progress.reports, progress.late_reports, progress.dropped_cells) < 0:
        raise ValueError("its counts must not be negative")
    return experiment, progress


def _array(table: dict[str, Any], name: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    array = np.array(table[name], dtype=np.float64)
    if array.size == 0:  # everything is settled, and JSON does not keep the shape of nothing
        array = array.reshape(shape)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {shape} finite numbers")
    return array


def _counts(table: dict[str, Any], name: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    array = _array(table, name, shape)
    if (array < 0).any() or (array != array.round()).any():
        raise ValueError(f"{name} must be whole numbers >= 0")
    return array.astype(np.int64)


def _event(entry: dict[str, Any]) -> Event:
    if entry["kind"] == "Elimination":
        return Elimination(str(entry["path"]), tuple(map(int, entry["arms"])))
    if entry["kind"] == "Cut":
        return Cut(str(entry["path"]), int(entry["axis"]))
    raise ValueError("its history has an event of an unknown kind")
