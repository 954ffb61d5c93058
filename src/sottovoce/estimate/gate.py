"""The gate: which reports are counted, and why the others are not. It keeps no sums.

A learner has one, and so has a server that must answer before anything is learned: both give the
same verdict at the same release, for it is the same code.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared import wire
from sottovoce.shared.errors import Refused, Rejection, ReportRejected, StateError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.methods import method_part
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report

AT_ONCE = 8192
"""How many reports are read at once, at most: enough to be fast, few enough to fit in a cache."""

Bytes = NDArray[np.uint8]
Values = NDArray[np.int8]
Flags = NDArray[np.bool_]


def rejected(reason: Rejection, what: str, rule: str, came: object) -> ReportRejected:
    """Return the error for a report that breaks a rule."""
    return ReportRejected(reason, must(what, rule, came))


class PastReleases(Protocol):
    """What each release so far has asked for, by one method."""

    def record(self, release: Release) -> None:
        """Add the newest release."""

    def check(self, report: Report) -> Hashable | None:
        """Refuse what does not fit its release; return the form of its bytes, if it has any.

        All is checked but what the bytes hold. Bytes of one form are equally long, and are unpacked
        together. ``str`` of a form says what they must hold.
        """

    def unpack(self, form: Any, payloads: Bytes) -> tuple[Values, Flags]:
        """Read bytes of one form, (n, length); return values (n, …) and which rows are valid (n,).

        Rows that no device sends are all 0.
        """


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports that are to be counted, and differ in nothing but their nonces and their bytes.

    report: speaks for all of them, but for its bytes.
    count: how many there are.
    values (rows, …): their bytes, unpacked; a row of zeros is not counted. None without bytes.
    """

    report: Report
    count: int
    values: Values | None


class Gate:
    """Knows what every release has asked for, from the first to the newest."""

    def __init__(
        self, experiment: Experiment, past: PastReleases | None = None, *, newest: int = 0
    ) -> None:
        self.experiment = experiment
        self.newest = newest
        if past is None:
            past = method_part(experiment.settings.name, "estimate").past_releases(experiment)
        self._past = cast(PastReleases, past)

    def publish(self, release: Release) -> None:
        """Take reports for the next release, too."""
        if release.experiment.fingerprint != self.experiment.fingerprint:
            rule = f"be of experiment {self.experiment.fingerprint}"
            raise StateError(must("a release", rule, release.experiment.fingerprint))
        if release.version != self.newest + 1:
            rule = f"be version {self.newest + 1}"
            raise StateError(must("the next release", rule, release.version))
        self._past.record(release)
        self.newest = release.version

    def check_many(self, reports: Sequence[bytes]) -> list[Rejection | None]:
        """Say of each compact report why it is not counted, or None."""
        verdicts: list[Rejection | None] = []
        for start in range(0, len(reports), AT_ONCE):
            verdicts += self.read_many(reports[start : start + AT_ONCE])[0]
        return verdicts

    def read(self, report: Report) -> Batch:
        """Return a report that is to be counted, or raise ReportRejected."""
        form = self._check(report)
        if form is None:
            return Batch(report, 1, None)
        payload = np.frombuffer(cast(bytes, report.payload), dtype=np.uint8)
        values, valid = self._past.unpack(form, payload[np.newaxis])
        if not valid[0]:
            what, came = "a report's payload", "something else"
            raise rejected(Rejection.MALFORMED, what, f"be {form}", came)
        return Batch(report, 1, values)

    def read_many(self, reports: Sequence[bytes]) -> tuple[list[Rejection | None], list[Batch]]:
        """Return the verdict on each compact report, and those that are to be counted.

        Reports without bytes come one by one and in order.
        """
        verdicts: list[Rejection | None] = [None] * len(reports)
        batches: list[Batch] = []
        packed: dict[Hashable, list[tuple[Report, list[int]]]] = {}
        for indices in _alike(reports):
            try:
                report = wire.report_from_bytes(reports[indices[0]])
                form = self._check(report)
            except Refused as refused:
                for index in indices:
                    verdicts[index] = refused.reason
                continue
            if form is None:
                batches.append(Batch(report, len(indices), None))
            else:
                packed.setdefault(form, []).append((report, indices))
        for form, alike in packed.items():
            order = [index for _, indices in alike for index in indices]
            length = len(cast(bytes, alike[0][0].payload))  # of each; and the payload comes last
            payloads = b"".join([reports[index][-length:] for index in order])
            data = np.frombuffer(payloads, dtype=np.uint8).reshape(len(order), length)
            values, valid = self._past.unpack(form, data)
            for row in np.flatnonzero(~valid).tolist():
                verdicts[order[row]] = Rejection.MALFORMED
            end = 0
            for report, indices in alike:
                start, end = end, end + len(indices)
                if count := int(np.count_nonzero(valid[start:end])):
                    batches.append(Batch(report, count, values[start:end]))
        return verdicts, batches

    def _check(self, report: Report) -> Hashable | None:
        if not isinstance(report, Report):
            came = f"a {type(report).__name__}: decode it with sottovoce.wire"
            raise rejected(Rejection.MALFORMED, "what a learner gets", "be a Report", came)
        fingerprint = self.experiment.fingerprint
        if report.experiment != fingerprint:
            what, rule = "a report's experiment", f"be {fingerprint}"
            raise rejected(Rejection.UNKNOWN_EXPERIMENT, what, rule, report.experiment)
        if not 1 <= report.release <= self.newest:
            what, rule = "a report's release", f"lie between 1 and {self.newest}"
            raise rejected(Rejection.UNKNOWN_RELEASE, what, rule, report.release)
        populations = self.experiment.populations
        if not 0 <= report.population < len(populations):
            what, rule = "a report's population", f"be below {len(populations)}"
            raise rejected(Rejection.UNKNOWN_POPULATION, what, rule, report.population)
        return self._past.check(report)


def _alike(reports: Sequence[bytes]) -> list[list[int]]:
    """Return the indices of reports that differ in nothing but nonce and bytes; others alone."""
    groups: dict[Hashable, list[int]] = {}
    for index, data in enumerate(reports):
        header = wire.header_of_set(data)
        key = index if header is None else (header, len(data))
        if key in groups:
            groups[key].append(index)
        else:
            groups[key] = [index]
    return list(groups.values())
