"""``ldpmab`` as the learner uses it: the state of ``method``, and the cells of past releases."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.book import CellEstimate
from sottovoce.estimate.history import Certificate, Event
from sottovoce.estimate.ldpmab import method
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.laplace import largest_plausible
from sottovoce.shared.release import Cell, Release
from sottovoce.shared.report import Report


@dataclass(frozen=True, slots=True)
class Layout:
    """The contested cells of all releases from ``since`` until the next layout."""

    since: int
    cells: tuple[Cell, ...]


class LdpmabBook:
    """Implements ``Book``.

    reported: which populations reported since the last step.
    layouts: the cells of every release so far, oldest first.
    """

    def __init__(
        self,
        release: Release,
        state: method.State,
        layouts: tuple[Layout, ...],
        reported: list[bool],
    ) -> None:
        self.release = release
        self.state = state
        self._constants = constants(release.experiment)
        self._layouts = layouts
        self._reported = reported
        self._standing: dict[int, method.Standing] = {}

    @classmethod
    def begin(cls, experiment: Experiment) -> "LdpmabBook":
        """Open a book: one bin, all arms."""
        state = method.initial(constants(experiment))
        release = Release(experiment, 1, state.partition, state.bins)
        nobody = [False] * len(experiment.populations)
        return cls(release, state, (Layout(1, state.cells),), nobody)

    def check(self, report: Report) -> None:
        """Refuse a payload that is not of this release, or that no device would send."""
        payload = report.payload
        if not isinstance(payload, tuple) or report.question or report.ranking:
            rule = "be numbers, for its method is ldpmab"
            raise ReportRejected(
                Rejection.MALFORMED, must("a report's payload", rule, "something else")
            )
        expected = 2 * len(self._layouts[self._layout_of(report.release)].cells)
        if len(payload) != expected:
            raise ReportRejected(
                Rejection.WRONG_LENGTH,
                must(
                    f"a report for release {report.release}",
                    f"have {expected} numbers",
                    len(payload),
                ),
            )
        if not all(map(math.isfinite, payload)):
            raise ReportRejected(
                Rejection.NOT_FINITE, "a report's numbers must be finite; got NaN or infinity"
            )
        epsilon = self.release.experiment.populations[report.population].epsilon
        most = largest_plausible(epsilon)
        if payload and max(map(abs, payload)) > most:
            raise ReportRejected(
                Rejection.IMPLAUSIBLE,
                f"a report's numbers must lie within ±{most:g}; got a larger one",
            )

    def absorb(self, report: Report) -> int:
        """Add a report to the sums."""
        layout = self._layout_of(report.release)
        standing = self._standing_of(layout)
        self.state = method.absorb(
            self.state,
            cast(tuple[float, ...], report.payload),
            population=report.population,
            standing=standing,
        )
        self._reported[report.population] = True
        return len(self._layouts[layout].cells) - len(standing.cells_now)

    def step(self) -> list[Event]:
        """Bounds → eliminate → refine."""
        experiment = self.release.experiment
        state, events = method.step(
            self.state, self._constants, seed=experiment.seed, reported=self._reported
        )
        if state.bins != self.state.bins:
            version = self.release.version + 1
            self.release = Release(experiment, version, state.partition, state.bins)
        if state.cells != self._layouts[-1].cells:
            self._layouts += (Layout(self.release.version, state.cells),)
            self._standing.clear()
        self.state = state
        self._reported = [False] * len(self._reported)
        return events

    def estimates(self) -> list[CellEstimate]:
        """Return f̃ and r of each contested cell, as the next step would see them."""
        f, r, _ = method.estimate(self.state, self._constants, reported=self._reported)
        arms = self.release.experiment.arms
        numbers = zip(self.release.cells, f.tolist(), r.tolist(), strict=True)
        return [
            CellEstimate(path, arms[arm], estimate if radius else None, radius or None)
            for (path, arm), estimate, radius in numbers
        ]

    def certificates(self) -> tuple[Certificate, ...]:
        """Return none: the paper's method has no certificates."""
        return ()

    def to_table(self) -> dict[str, Any]:
        """Write the sums and the layouts."""
        state = self.state
        return {
            "layouts": [[layout.since, layout.cells] for layout in self._layouts],
            "reported": self._reported,
            "rewards": state.rewards.tolist(),
            "pulls": state.pulls.tolist(),
            "users": state.users.tolist(),
            "running": state.running.tolist(),
        }

    @classmethod
    def from_table(cls, release: Release, table: dict[str, Any]) -> "LdpmabBook":
        """Read what ``to_table`` wrote; what is inconsistent raises ValueError or the like."""
        populations, cells = len(release.experiment.populations), len(release.cells)
        contested = len(release.contested)
        layouts = tuple(
            Layout(int(since), tuple((str(path), int(arm)) for path, arm in layout))
            for since, layout in table["layouts"]
        )
        since = [layout.since for layout in layouts]
        if since[0] != 1 or since != sorted(set(since)) or since[-1] > release.version:
            raise ValueError("its layouts are not in order")
        if layouts[-1].cells != release.cells:
            raise ValueError("its last layout is not that of its release")
        reported = list(map(bool, table["reported"]))
        if len(reported) != populations:
            raise ValueError("its counts do not fit its populations")
        state = method.State(
            release.partition,
            release.bins,
            rewards=_array(table, "rewards", (populations, cells)),
            pulls=_array(table, "pulls", (populations, cells)),
            users=_counts(table, "users", (populations, contested)),
            running=_array(table, "running", (3, cells)),
        )
        return cls(release, state, layouts, reported)

    def _layout_of(self, version: int) -> int:
        return bisect_right([layout.since for layout in self._layouts], version) - 1

    def _standing_of(self, layout: int) -> method.Standing:
        if layout not in self._standing:
            then, now = self._layouts[layout].cells, self._layouts[-1].cells
            self._standing[layout] = method.Standing.of(then, now)
        return self._standing[layout]


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
