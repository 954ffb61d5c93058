"""What each release so far has asked for: its bins, and what reports for it look like."""

from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import replace
from operator import itemgetter
from typing import Any, cast

from sottovoce.estimate.gate import Bytes, Flags, Values, rejected
from sottovoce.estimate.whisper.unpack import unpack_many
from sottovoce.shared.amending import amended as amended_experiment
from sottovoce.shared.errors import Rejection
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import BinPolicy, Release, uniform
from sottovoce.shared.report import Report
from sottovoce.shared.whisper.cells import CellLayout, lay_out, one_cell_mechanism
from sottovoce.shared.whisper.questions import EVERYBODY, question_of, questions_of
from sottovoce.shared.whisper.subset import SignedSubset


class WhisperReleases:
    """The bins of all releases so far, settled ones, too; only what changes is kept.

    Implements ``PastReleases``.

    For each path, the versions from which on it had another policy; None once it was cut. And the
    versions from which on each amendment held: what a report means follows from the experiment as
    it was in its release. And since when so many people have been in the baseline group.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._changes: dict[str, list[tuple[int, BinPolicy | None]]] = {}
        self._layouts: dict[tuple[int, int, bool, bool], CellLayout | None] = {}
        self._amended: list[tuple[int, Experiment]] = [(0, experiment)]
        self._shares: list[tuple[int, int]] = []

    def record(self, release: Release) -> None:
        """Add the newest release."""
        if release.experiment.amendments != self._amended[-1][1].amendments:
            self._amended.append((release.version, release.experiment))
        if not self._shares or self._shares[-1][1] != release.baseline_share:
            self._shares.append((release.version, release.baseline_share))
        now = {policy.path: policy for policy in release.bins}
        for path in [*self._changes, *(path for path in now if path not in self._changes)]:
            changes = self._changes.setdefault(path, [])
            if (changes[-1][1] if changes else None) != now.get(path):
                changes.append((release.version, now.get(path)))
        self._layouts.clear()

    def experiment(self, version: int) -> Experiment:
        """Return the experiment as it was in a release."""
        return self._amended[bisect_right(self._amended, version, key=itemgetter(0)) - 1][1]

    def share(self, version: int) -> int:
        """Return how many people were in the baseline group in a release."""
        return self._shares[bisect_right(self._shares, version, key=itemgetter(0)) - 1][1]

    def shares(self) -> list[list[int]]:
        """Return every share, with the version from which on it held."""
        return [list(each) for each in self._shares]

    def read_shares(self, table: Any, release: Release) -> None:
        """Read what ``shares`` wrote when a release was the newest; nothing without a baseline."""
        if release.experiment.compared_with is None:
            self._shares = [(1, 0)]
            return
        self._shares = [(int(since), int(share)) for since, share in table]
        since = [each for each, _ in self._shares]
        if since[0] != 1 or since != sorted(set(since)) or since[-1] > release.version:
            raise ValueError("its shares of the baseline are not in order")
        if self.share(release.version) != release.baseline_share:
            raise ValueError("its last release is not the one it has")

    def settled(self, version: int) -> bool:
        """Say whether every bin of a release was settled."""
        return self.layout(version, population=0, by_arm=False) is None

    def bins(self, version: int) -> tuple[BinPolicy, ...]:
        """Return the bins of a release, in order."""
        found = []
        for _, changes in sorted(self._changes.items()):
            place = bisect_right(changes, version, key=itemgetter(0))
            if place and (policy := changes[place - 1][1]):
                found.append(policy)
        return tuple(found)

    def layout(
        self, version: int, *, population: int, by_arm: bool, settled: bool = False
    ) -> CellLayout | None:
        """Return the cells of a release as a population's people saw them.

        settled: whether settled bins have a cell, too.
        """
        key = (version, population, by_arm, settled)
        if key not in self._layouts:
            self._layouts[key] = lay_out(
                tuple(each for each in self.bins(version) if settled or not each.settled),
                self.experiment(version),
                population=population,
                by_arm=by_arm,
                settled=settled,
            )
        return self._layouts[key]

    def check(self, report: Report, version: int) -> SignedSubset | None:
        """Refuse an answer that no device would give to that question, whatever its set holds."""
        if not isinstance(report.payload, bytes):
            rule = "be a packed set, for its method is whisper"
            raise rejected(Rejection.MALFORMED, "a report's payload", rule, "something else")
        experiment = self.experiment(version)
        what, question = "a report's question", question_of(report.question, experiment)
        entry = questions_of(experiment)[question.kind]
        arms = range(len(experiment.arms) if entry.ranked else 0)
        if sorted(report.ranking) != list(arms):
            rule = "rank every arm once" if entry.ranked else "be left out for this question"
            raise rejected(Rejection.MALFORMED, "a report's ranking", rule, "something else")
        if report.population != 0 and (entry.audits or entry.group is not None):
            rule = "be another one: only the target's people are asked for their reward"
            raise rejected(Rejection.UNKNOWN_QUESTION, what, rule, report.question)
        if entry.cells == EVERYBODY:
            one_cell = one_cell_mechanism(experiment, report.population)
            return _of_length(one_cell, report.payload)
        layout = self.layout(
            version, population=report.population, by_arm=entry.by_arm, settled=entry.settled
        )
        if layout is None:
            if report.payload:
                rule = "be empty where everything is settled"
                raise rejected(Rejection.WRONG_LENGTH, "a report", rule, len(report.payload))
            return None
        cells = layout.mechanism(question.axis)
        if entry.settled and layout.whole == 1:
            rule = "be another one: its release has one bin"
            raise rejected(Rejection.UNKNOWN_QUESTION, what, rule, report.question)
        if question.axis is None and layout.halves.parts == 2:
            rule = "be about an axis, as all are in this release"
            raise rejected(Rejection.UNKNOWN_QUESTION, what, rule, report.question)
        if question.row and cells.parts > 1:
            rule = "have no pattern of signs where each level is a cell"
            raise rejected(Rejection.UNKNOWN_QUESTION, what, rule, report.question)
        return _of_length(cells.mechanism, report.payload)

    def unpack(self, form: Hashable, payloads: Bytes) -> tuple[Values, Flags]:
        """Read many packed sets of one mechanism."""
        return unpack_many(cast(SignedSubset, form), payloads)

    def to_table(self) -> list[Any]:
        """Write every change: path, version, arms on offer, arms that wait, and unequal chances."""
        return [
            [path, since, *(_written(policy) if policy else ((), ()))]
            for path, changes in sorted(self._changes.items())
            for since, policy in changes
        ]

    def amended(self) -> list[int]:
        """Return since which version each amendment has held."""
        return [since for since, _ in self._amended[1:]]

    @classmethod
    def from_table(cls, experiment: Experiment, table: Any, amended: Any) -> "WhisperReleases":
        """Read what ``to_table`` and ``amended`` wrote when the experiment was as it is now."""
        past = cls(experiment.first or experiment)
        for since, amendment in zip(amended, experiment.amendments, strict=True):
            version, before = past._amended[-1]
            if since <= max(version, 1):
                raise ValueError("its amendments are not in order")
            past._amended.append((int(since), amended_experiment(before, amendment)))
        for path, since, arms, waiting, *chances in table:
            changes = past._changes.setdefault(str(path), [])
            if changes and changes[-1][0] >= since:
                raise ValueError("its past releases are not in order")
            policy = None
            if arms:
                offered = uniform(path, [int(arm) for arm in arms])
                policy = replace(offered, waiting=tuple(int(arm) for arm in waiting))
            if policy and chances:
                (unequal,) = chances
                policy = replace(policy, propensities=tuple(map(float, unequal)))
                if len(policy.propensities) != 2 or min(policy.propensities) <= 0:
                    raise ValueError("its past releases have arms without a chance")
            changes.append((int(since), policy))
        return past


def _written(policy: BinPolicy) -> tuple[Any, ...]:
    """Return what is saved of a policy; chances are left out where they are equal."""
    equal = policy.propensities == uniform(policy.path, policy.arms).propensities
    return policy.arms, policy.waiting, *(() if equal else (policy.propensities,))


def _of_length(mechanism: SignedSubset, payload: bytes) -> SignedSubset:
    if len(payload) != mechanism.length:
        rule = f"take {mechanism.length} bytes"
        raise rejected(Rejection.WRONG_LENGTH, "a packed set", rule, len(payload))
    return mechanism


past_releases = WhisperReleases
"""The name by which a learner asks for it."""
