"""The gate: which reports are counted, and why the others are not. It keeps no sums.

A learner has one, and so has a server that must answer before anything is learned: both give the
same verdict at the same release, for it is the same code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from sottovoce.estimate.ldpmab.layouts import LdpmabLayouts
from sottovoce.estimate.whisper.layouts import WhisperLayouts
from sottovoce.estimate.whisper.unpack import Values, unpack_many
from sottovoce.shared import wire
from sottovoce.shared.errors import Refused, Rejection, ReportRejected, StateError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.method import Ldpmab
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.subset import SignedSubset, unpack

AT_ONCE = 8192
"""How many reports are read at once, at most: enough to be fast, few enough to fit in a cache."""


class Layouts(Protocol):
    """What each release so far has asked for, by one method."""

    def record(self, release: Release) -> None:
        """Add the newest release."""

    def check(self, report: Report) -> SignedSubset | None:
        """Refuse what does not fit its release; return how its set is to be unpacked, if any.

        All is checked but what the bytes of a set hold.
        """


@dataclass(frozen=True, slots=True)
class Pile:
    """Reports that are to be counted, and differ in nothing but their nonces and their sets.

    report: speaks for all of them, but for its set.
    count: how many there are.
    values (rows, cells): their sets; a row of zeros is not counted. None where there are no sets.
    """

    report: Report
    count: int
    values: Values | None


class Gate:
    """Knows what every release has asked for, from the first to the newest."""

    def __init__(
        self, experiment: Experiment, layouts: Layouts | None = None, *, newest: int = 0
    ) -> None:
        self.experiment = experiment
        self.newest = newest
        self._layouts = _open_layouts(experiment) if layouts is None else layouts

    def publish(self, release: Release) -> None:
        """Take reports for the next release, too."""
        if release.experiment.fingerprint != self.experiment.fingerprint:
            rule = f"be of experiment {self.experiment.fingerprint}"
            raise StateError(must("a release", rule, release.experiment.fingerprint))
        if release.version != self.newest + 1:
            rule = f"be version {self.newest + 1}"
            raise StateError(must("the next release", rule, release.version))
        self._layouts.record(release)
        self.newest = release.version

    def check_many(self, reports: Sequence[bytes]) -> list[Rejection | None]:
        """Say of each compact report why it is not counted, or None."""
        verdicts: list[Rejection | None] = []
        for start in range(0, len(reports), AT_ONCE):
            verdicts += self.read_many(reports[start : start + AT_ONCE])[0]
        return verdicts

    def read(self, report: Report) -> Pile:
        """Return a report that is to be counted, or raise ReportRejected."""
        mechanism = self._check(report)
        if mechanism is None:
            return Pile(report, 1, None)
        values = unpack(mechanism, cast(bytes, report.payload))
        return Pile(report, 1, np.array([values], dtype=np.int8))

    def read_many(self, reports: Sequence[bytes]) -> tuple[list[Rejection | None], list[Pile]]:
        """Return the verdict on each compact report, and those that are to be counted.

        Reports without sets come one by one and in order.
        """
        verdicts: list[Rejection | None] = [None] * len(reports)
        piles: list[Pile] = []
        packed: dict[SignedSubset, list[tuple[Report, list[int]]]] = {}
        for places in _sort(reports):
            try:
                report = wire.report_from_bytes(reports[places[0]])
                mechanism = self._check(report)
            except Refused as refused:
                for place in places:
                    verdicts[place] = refused.reason
                continue
            if mechanism is None:
                piles.append(Pile(report, len(places), None))
            else:
                packed.setdefault(mechanism, []).append((report, places))
        for mechanism, alike in packed.items():
            order = [place for _, places in alike for place in places]
            length = mechanism.length  # of each, as was checked; and the set comes last
            sets = b"".join([reports[place][-length:] for place in order])
            data = np.frombuffer(sets, dtype=np.uint8).reshape(len(order), length)
            values, valid = unpack_many(mechanism, data)
            for row in np.flatnonzero(~valid).tolist():
                verdicts[order[row]] = Rejection.MALFORMED
            end = 0
            for report, places in alike:
                start, end = end, end + len(places)
                if count := int(np.count_nonzero(valid[start:end])):
                    piles.append(Pile(report, count, values[start:end]))
        return verdicts, piles

    def _check(self, report: Report) -> SignedSubset | None:
        if not isinstance(report, Report):
            came = f"a {type(report).__name__}: decode it with sottovoce.wire"
            raise ReportRejected(
                Rejection.MALFORMED, must("what a learner gets", "be a Report", came)
            )
        fingerprint = self.experiment.fingerprint
        if report.experiment != fingerprint:
            raise ReportRejected(
                Rejection.UNKNOWN_EXPERIMENT,
                must("a report's experiment", f"be {fingerprint}", report.experiment),
            )
        if not 1 <= report.release <= self.newest:
            raise ReportRejected(
                Rejection.UNKNOWN_RELEASE,
                must("a report's release", f"lie between 1 and {self.newest}", report.release),
            )
        populations = self.experiment.populations
        if not 0 <= report.population < len(populations):
            raise ReportRejected(
                Rejection.UNKNOWN_POPULATION,
                must("a report's population", f"be below {len(populations)}", report.population),
            )
        return self._layouts.check(report)


def _open_layouts(experiment: Experiment) -> Layouts:
    if isinstance(experiment.settings, Ldpmab):
        return LdpmabLayouts(experiment)
    return WhisperLayouts(experiment)


def _sort(reports: Sequence[bytes]) -> list[list[int]]:
    """Return the places of reports that differ in nothing but nonce and set; all others alone."""
    sorted_out: list[list[int]] = []
    known: dict[tuple[bytes, int], list[int]] = {}
    for place, data in enumerate(reports):
        header = wire.header_of_set(data)
        if header is None:
            sorted_out.append([place])
            continue
        key = (header, len(data))
        if key in known:
            known[key].append(place)
        else:
            known[key] = [place]
            sorted_out.append(known[key])
    return sorted_out
