"""Which cells were contested in each release, and what reports for it look like."""

import math
from bisect import bisect_right
from operator import itemgetter
from typing import Any

from sottovoce.estimate.gate import rejected
from sottovoce.shared.errors import Rejection, ReportRejected
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.ldpmab.laplace import largest_plausible
from sottovoce.shared.release import Cell, Release
from sottovoce.shared.report import Report


class LdpmabReleases:
    """The contested cells of all releases so far, oldest first. Implements ``PastReleases``.

    They are listed with the first version that had them, once for all until the next that has
    others.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._asked: list[tuple[int, tuple[Cell, ...]]] = []

    def record(self, release: Release) -> None:
        """Add the newest release."""
        if not self._asked or self._asked[-1][1] != release.cells:
            self._asked.append((release.version, release.cells))

    def of(self, version: int) -> tuple[int, tuple[Cell, ...]]:
        """Return the contested cells of a release, after the first version that had them."""
        return self._asked[bisect_right(self._asked, version, key=itemgetter(0)) - 1]

    def check(self, report: Report, version: int) -> None:
        """Refuse a payload that is not of its release, or that no device would send."""
        payload = report.payload
        if not isinstance(payload, tuple) or report.question or report.ranking:
            rule = "be numbers, for its method is ldpmab"
            raise rejected(Rejection.MALFORMED, "a report's payload", rule, "something else")
        expected = 2 * len(self.of(version)[1])
        if len(payload) != expected:
            what, rule = f"a report for release {version}", f"have {expected} numbers"
            raise rejected(Rejection.WRONG_LENGTH, what, rule, len(payload))
        if not all(map(math.isfinite, payload)):
            text = "a report's numbers must be finite; got NaN or infinity"
            raise ReportRejected(Rejection.NOT_FINITE, text)
        most = largest_plausible(self._experiment.populations[report.population].epsilon)
        if payload and max(map(abs, payload)) > most:
            text = f"a report's numbers must lie within ±{most:g}; got a larger one"
            raise ReportRejected(Rejection.IMPLAUSIBLE, text)

    def unpack(self, form: Any, payloads: Any) -> Any:
        """Refuse: its reports are numbers, never bytes."""
        raise AssertionError("ldpmab has no bytes to unpack")

    def to_table(self) -> list[Any]:
        """Write since when other cells were contested, and which."""
        return list(self._asked)

    @classmethod
    def from_table(cls, release: Release, table: Any) -> "LdpmabReleases":
        """Read what ``to_table`` wrote when a release was the newest."""
        past = cls(release.experiment)
        past._asked = [
            (int(since), tuple((str(path), int(arm)) for path, arm in cells))
            for since, cells in table
        ]
        since = [first for first, _ in past._asked]
        if since[0] != 1 or since != sorted(set(since)) or since[-1] > release.version:
            raise ValueError("its past releases are not in order")
        if past._asked[-1][1] != release.cells:
            raise ValueError("its last release is not the one it has")
        return past


past_releases = LdpmabReleases
"""The name by which a learner asks for it."""
