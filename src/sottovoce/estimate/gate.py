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

    def check(self, report: Report, version: int) -> Hashable | None:
        """Refuse what does not fit its release; return the form of its bytes, if it has any.

        version: of the release that the report names.

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
    version: of the release that they were made for.
    count: how many there are.
    values (rows, …): their bytes, unpacked; a row of zeros is not counted. None without bytes.
    """

    report: Report
    version: int
    count: int
    values: Values | None


class Gate:
    """Knows what every release has asked for, from the first to the newest.

    ids: of the releases that ``past`` has recorded, the first one first.
    """

    def __init__(
        self,
        experiment: Experiment,
        past: PastReleases | None = None,
        *,
        ids: Sequence[bytes] = (),
    ) -> None:
        self.experiment = experiment
        self._versions = {each: version for version, each in enumerate(ids, start=1)}
        if past is None:
            past = method_part(experiment.settings.name, "estimate").past_releases(experiment)
        self._past = cast(PastReleases, past)

    @property
    def newest(self) -> int:
        """The version of the newest release; 0 before the first."""
        return len(self._versions)

    @property
    def ids(self) -> list[bytes]:
        """The ids of all releases, the first one first."""
        return list(self._versions)

    def publish(self, release: Release) -> None:
        """Take reports for the next release, too."""
        if release.experiment.fingerprint != self.experiment.fingerprint:
            rule = f"be of experiment {self.experiment.fingerprint}"
            raise StateError(must("a release", rule, release.experiment.fingerprint))
        if release.version != self.newest + 1:
            rule = f"be version {self.newest + 1}"
            raise StateError(must("the next release", rule, release.version))
        self._past.record(release)
        self._versions[wire.release_id(release)] = release.version

    def check_many(self, reports: Sequence[bytes]) -> list[Rejection | None]:
        """Say of each compact report why it is not counted, or None."""
        verdicts: list[Rejection | None] = []
        for start in range(0, len(reports), AT_ONCE):
            verdicts += self.read_many(reports[start : start + AT_ONCE])[0]
        return verdicts

    def read(self, report: Report) -> Batch:
        """Return a report that is to be counted, or raise ReportRejected."""
        version, form = self._check(report)
        if form is None:
            return Batch(report, version, 1, None)
        payload = np.frombuffer(cast(bytes, report.payload), dtype=np.uint8)
        values, valid = self._past.unpack(form, payload[np.newaxis])
        if not valid[0]:
            what, came = "a report's payload", "something else"
            raise rejected(Rejection.MALFORMED, what, f"be {form}", came)
        return Batch(report, version, 1, values)

    def read_many(self, reports: Sequence[bytes]) -> tuple[list[Rejection | None], list[Batch]]:
        """Return the verdict on each compact report, and those that are to be counted.

        Reports without bytes come one by one and in order.
        """
        verdicts: list[Rejection | None] = [None] * len(reports)
        batches: list[Batch] = []
        packed: dict[Hashable, list[tuple[Report, int, list[int]]]] = {}
        for indices in _alike(reports):
            try:
                report = wire.report_from_bytes(reports[indices[0]])
                version, form = self._check(report)
            except Refused as refused:
                for index in indices:
                    verdicts[index] = refused.reason
                continue
            if form is None:
                batches.append(Batch(report, version, len(indices), None))
            else:
                packed.setdefault(form, []).append((report, version, indices))
        for form, alike in packed.items():
            order = [index for _, _, indices in alike for index in indices]
            length = len(cast(bytes, alike[0][0].payload))  # of each; and the payload comes last
            payloads = b"".join([reports[index][-length:] for index in order])
            data = np.frombuffer(payloads, dtype=np.uint8).reshape(len(order), length)
            values, valid = self._past.unpack(form, data)
            for row in np.flatnonzero(~valid).tolist():
                verdicts[order[row]] = Rejection.MALFORMED
            end = 0
            for report, version, indices in alike:
                start, end = end, end + len(indices)
                if count := int(np.count_nonzero(valid[start:end])):
                    batches.append(Batch(report, version, count, values[start:end]))
        return verdicts, batches

    def _check(self, report: Report) -> tuple[int, Hashable | None]:
        """Return the version of a report's release, and the form of its bytes."""
        if not isinstance(report, Report):
            came = f"a {type(report).__name__}: decode it with sottovoce.wire"
            raise rejected(Rejection.MALFORMED, "what a learner gets", "be a Report", came)
        version = self._versions.get(report.release)
        if version is None:
            rule = f"be the id of one of {self.newest} releases"
            raise rejected(Rejection.UNKNOWN_RELEASE, "a report's release", rule, "another one")
        populations = self.experiment.populations
        if not 0 <= report.population < len(populations):
            what, rule = "a report's population", f"be below {len(populations)}"
            raise rejected(Rejection.UNKNOWN_POPULATION, what, rule, report.population)
        return version, self._past.check(report, version)


def saved_ids(release: Release, table: dict[str, Any]) -> list[bytes]:
    """Read the ids of all releases up to one from a saved learner; raise ValueError otherwise."""
    ids = [bytes.fromhex(each) for each in table["ids"]]
    if len(set(ids)) != release.version or ids[-1] != wire.release_id(release):
        raise ValueError("the ids of its releases are not those of its release")
    return ids


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
