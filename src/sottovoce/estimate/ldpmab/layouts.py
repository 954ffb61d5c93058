"""Which cells were contested in each release, and what reports for it look like."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.ldpmab.laplace import largest_plausible
from sottovoce.shared.release import Cell, Release
from sottovoce.shared.report import Report


@dataclass(frozen=True, slots=True)
class Layout:
    """The contested cells of all releases from ``since`` until the next layout."""

    since: int
    cells: tuple[Cell, ...]


class LdpmabLayouts:
    """The layouts of all releases so far, oldest first. Implements ``Layouts``."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._layouts: list[Layout] = []

    def record(self, release: Release) -> None:
        """Add the newest release."""
        if not self._layouts or self._layouts[-1].cells != release.cells:
            self._layouts.append(Layout(release.version, release.cells))

    def of(self, version: int) -> Layout:
        """Return the layout of a release."""
        return self._layouts[bisect_right(self._layouts, version, key=_since) - 1]

    def check(self, report: Report) -> None:
        """Refuse a payload that is not of its release, or that no device would send."""
        payload = report.payload
        if not isinstance(payload, tuple) or report.question or report.ranking:
            rule = "be numbers, for its method is ldpmab"
            raise ReportRejected(
                Rejection.MALFORMED, must("a report's payload", rule, "something else")
            )
        expected = 2 * len(self.of(report.release).cells)
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
        most = largest_plausible(self._experiment.populations[report.population].epsilon)
        if payload and max(map(abs, payload)) > most:
            raise ReportRejected(
                Rejection.IMPLAUSIBLE,
                f"a report's numbers must lie within ±{most:g}; got a larger one",
            )

    def unpack(self, form: Any, payloads: Any) -> Any:
        """Refuse: its reports are numbers, never bytes."""
        raise AssertionError("ldpmab has no bytes to unpack")

    def to_table(self) -> list[Any]:
        """Write every layout: since when, and its cells."""
        return [[layout.since, layout.cells] for layout in self._layouts]

    @classmethod
    def from_table(cls, release: Release, table: Any) -> "LdpmabLayouts":
        """Read what ``to_table`` wrote when a release was the newest."""
        layouts = cls(release.experiment)
        layouts._layouts = [
            Layout(int(since), tuple((str(path), int(arm)) for path, arm in cells))
            for since, cells in table
        ]
        since = [layout.since for layout in layouts._layouts]
        if since[0] != 1 or since != sorted(set(since)) or since[-1] > release.version:
            raise ValueError("its layouts are not in order")
        if layouts._layouts[-1].cells != release.cells:
            raise ValueError("its last layout is not that of its release")
        return layouts


def _since(layout: Layout) -> int:
    return layout.since
