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
class AskedCells:
    """The contested cells of all releases from ``since`` until the next that has others."""

    since: int
    cells: tuple[Cell, ...]


class LdpmabReleases:
    """The contested cells of all releases so far, oldest first. Implements ``PastReleases``."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._asked: list[AskedCells] = []

    def record(self, release: Release) -> None:
        """Add the newest release."""
        if not self._asked or self._asked[-1].cells != release.cells:
            self._asked.append(AskedCells(release.version, release.cells))

    def of(self, version: int) -> AskedCells:
        """Return the contested cells of a release."""
        return self._asked[bisect_right(self._asked, version, key=_since) - 1]

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
        """Write since when other cells were contested, and which."""
        return [[asked.since, asked.cells] for asked in self._asked]

    @classmethod
    def from_table(cls, release: Release, table: Any) -> "LdpmabReleases":
        """Read what ``to_table`` wrote when a release was the newest."""
        past = cls(release.experiment)
        past._asked = [
            AskedCells(int(since), tuple((str(path), int(arm)) for path, arm in cells))
            for since, cells in table
        ]
        since = [asked.since for asked in past._asked]
        if since[0] != 1 or since != sorted(set(since)) or since[-1] > release.version:
            raise ValueError("its past releases are not in order")
        if past._asked[-1].cells != release.cells:
            raise ValueError("its last release is not the one it has")
        return past


def _since(asked: AskedCells) -> int:
    return asked.since
