"""``whisper`` as the learner uses it: answers that wait, the board, the cells of past releases.

Reports are only added up as they come, in whole numbers; the board gets the sums at each step. So
a learner's state does not depend on the order of the reports between two steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sottovoce.estimate.book import CellEstimate
from sottovoce.estimate.history import Certificate, Event
from sottovoce.estimate.whisper import answers, rules
from sottovoce.estimate.whisper.board import Board, Counts, begin, paths, roomy
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.layouts import Layouts
from sottovoce.estimate.whisper.policy import (
    certificates_of,
    history_of,
    partition_of,
    policies_of,
)
from sottovoce.estimate.whisper.saved import board_from_table, board_to_table, check_board
from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.questions import BY_ARM, Kind, Question, Sheet, question_of
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.subset import unpack

_Key = tuple[int, int, int]  # release, population, question


@dataclass(slots=True)
class Tally:
    """The answers to one question about one release, added up.

    A places: 1, or K where arms are public and each answer is about the arm its ranking gives.

    asked (bins or (bin, arm) pairs, A), sums (cells, A), named (cells, A): how often a cell was in
    the set, whatever its sign
    """

    asked: Counts
    sums: Counts
    named: Counts


class WhisperBook:
    """Implements ``Book``."""

    def __init__(
        self,
        release: Release,
        board: Board,
        layouts: Layouts,
        tallies: dict[_Key, Tally],
    ) -> None:
        self.release = release
        self.board = board
        self._constants = constants(release.experiment)
        self._layouts = layouts
        self._tallies = tallies

    @classmethod
    def begin(cls, experiment: Experiment) -> "WhisperBook":
        """Open a book: one bin, all arms, two of them on offer."""
        board = begin(constants(experiment))
        release = _publish(experiment, board)
        layouts = Layouts(experiment)
        layouts.record(release)
        return cls(release, board, layouts, {})

    def check(self, report: Report) -> None:
        """Refuse an answer that no device would give to that question."""
        if not isinstance(report.payload, bytes):
            rule = "be a packed set, for its method is whisper"
            raise ReportRejected(
                Rejection.MALFORMED, must("a report's payload", rule, "something else")
            )
        question = question_of(report.question, self.release.experiment)
        ranked = question.kind == Kind.RANKED
        if sorted(report.ranking) != (list(range(self._constants.arms)) if ranked else []):
            rule = "rank every arm once" if ranked else "be left out for this question"
            raise ReportRejected(
                Rejection.MALFORMED, must("a report's ranking", rule, "something else")
            )
        sheet = self._sheet(report, question)
        if sheet is None:
            if report.payload:
                rule = "be empty where everything is settled"
                raise ReportRejected(
                    Rejection.WRONG_LENGTH, must("a report", rule, len(report.payload))
                )
            return
        if sheet.law.halves and question.feature is None:
            rule = "be about a feature, as all are in this release"
            raise ReportRejected(
                Rejection.UNKNOWN_QUESTION,
                must("a report's question", rule, report.question),
            )
        unpack(sheet.law.mechanism, report.payload)

    def absorb(self, report: Report) -> int:
        """Add a checked report to the tallies."""
        question = question_of(report.question, self.release.experiment)
        sheet = self._sheet(report, question)
        self._count(report, question)
        if sheet is None:
            return 0
        values = np.array(unpack(sheet.law.mechanism, cast(bytes, report.payload)), dtype=np.int64)
        key = (report.release, report.population, report.question)
        if key not in self._tallies:
            self._tallies[key] = _empty(sheet, self._constants.arms if report.ranking else 1)
        tally = self._tallies[key]
        if not report.ranking:
            tally.asked += 1
            tally.sums[:, 0] += values
            tally.named[:, 0] += np.abs(values)
        else:
            first = [min(policy.live, key=report.ranking.index) for policy in sheet.bins]
            tally.asked[np.arange(len(first)), first] += 1
            repeated = np.repeat(first, 2 if sheet.law.halves else 1)
            cells = np.arange(len(repeated))
            tally.sums[cells, repeated] += values[cells]
            tally.named[cells, repeated] += np.abs(values[cells])
        if report.release == self.release.version:
            return 0
        now = self.release.policies
        gone = [
            policy for policy in sheet.bins if policy.path not in now or now[policy.path].settled
        ]
        return sum(len(policy.live) if sheet.by_arm else 1 for policy in gone)

    def step(self) -> list[Event]:
        """Hand the tallies over; drop arms and cut bins by the rules."""
        nodes = {path: node for node, path in enumerate(paths(self.board))}
        contested = {path: nodes[path] for path in (each.path for each in self.release.contested)}
        for key in sorted(self._tallies):
            self._credit(key, self._tallies[key])
            self._hand_over(key, self._tallies[key], contested)
        self._tallies.clear()
        self.board = roomy(self.board, self._constants)
        events = int(self.board.totals[rules.EVENTS])
        rules.step(self.board, self._constants)
        if self.board.totals[rules.RELEASE] != self.release.version:
            self.release = _publish(self.release.experiment, self.board)
            self._layouts.record(self.release)
        return [dated.event for dated in history_of(self.board, start=events)]

    def estimates(self) -> list[CellEstimate]:
        """Return f̂ of each live arm in each contested bin, with a 95 % interval."""
        arms, d = self._constants.arms, self._constants.dimension
        groups = self.board.mass.shape[1]
        mean, covariance = np.empty(arms), np.empty((arms, arms))
        slope, slope_covariance = np.empty((d, arms)), np.empty((d, arms, arms))
        nodes = {path: node for node, path in enumerate(paths(self.board))}
        estimates = []
        for policy in self.release.contested:
            answers.estimate(
                self.board,
                self._constants,
                nodes[policy.path],
                mean,
                covariance,
                slope,
                slope_covariance,
                np.empty(groups),
                np.empty((groups, d)),
            )
            for arm in policy.live:
                name = self.release.experiment.arms[arm]
                radius = 1.96 * float(covariance[arm, arm]) ** 0.5
                estimates.append(CellEstimate(policy.path, name, 0.5 + float(mean[arm]), radius))
        return estimates

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped."""
        return certificates_of(self.board, self._constants, self.release.experiment.arms)

    def to_table(self) -> dict[str, Any]:
        """Write the board, the layouts and the answers that wait."""
        return {
            "board": board_to_table(self.board),
            "layouts": self._layouts.to_table(),
            "tallies": [
                [*key, tally.asked.tolist(), tally.sums.tolist(), tally.named.tolist()]
                for key, tally in sorted(self._tallies.items())
            ],
        }

    @classmethod
    def from_table(cls, release: Release, table: dict[str, Any]) -> "WhisperBook":
        """Read what ``to_table`` wrote; what is inconsistent raises ValueError or the like."""
        experiment = release.experiment
        board = board_from_table(table["board"], constants(experiment))
        if _publish(experiment, board) != release:
            raise ValueError("its board is not that of its release")
        check_board(board, release)
        layouts = Layouts.from_table(experiment, table["layouts"])
        if layouts.bins(release.version) != release.contested:
            raise ValueError("its last layout is not that of its release")
        book = cls(release, board, layouts, {})
        for version, population, question, asked, sums, named in table["tallies"]:
            arrays = [np.array(each, dtype=np.int64) for each in (asked, sums, named)]
            probe = Report(experiment.fingerprint, version, population, b"", b"", question)
            if not 0 <= population < len(experiment.populations):
                raise ValueError("it has answers of a population that is not there")
            asked_for = question_of(question, experiment)
            sheet = book._sheet(probe, asked_for)
            if (
                sheet is None
                or not 1 <= version <= release.version
                or (sheet.law.halves and asked_for.feature is None)
            ):
                raise ValueError("it has answers to a question that nobody was asked")
            fresh = _empty(sheet, len(experiment.arms) if asked_for.kind == Kind.RANKED else 1)
            if [each.shape for each in arrays] != [
                each.shape for each in (fresh.asked, fresh.sums, fresh.named)
            ]:
                raise ValueError("its answers do not fit their release")
            tally = Tally(*arrays)
            if (
                (tally.asked < 0).any()
                or (tally.named < 0).any()
                or (tally.named > tally.asked.max(axis=0)).any()
                or (np.abs(tally.sums) > tally.named).any()
            ):
                raise ValueError("its answers are not counts")
            book._tallies[version, population, question] = tally
        return book

    def _sheet(self, report: Report, question: Question) -> Sheet | None:
        by_arm = question.kind in BY_ARM
        return self._layouts.sheet(report.release, population=report.population, by_arm=by_arm)

    def _count(self, report: Report, question: Question) -> None:
        """Count a report; what others than served target users are worth is added at the step."""
        logged = question.kind in BY_ARM
        self.board.totals[rules.REPORTS] += 1
        self.board.totals[rules.SERVED] += not logged
        if report.population == 0 and not logged:
            self.board.experience[:] += 1.0

    def _credit(self, key: _Key, tally: Tally) -> None:
        """Add what the answers to one question are worth beside a served target user's.

        Not as they come: fractions are rounded, and sums of them depend on the order.
        """
        version, population, number = key
        logged = question_of(number, self.release.experiment).kind in BY_ARM
        if population == 0 and not logged:
            return
        # What is contested for one population is contested for all.
        usual = cast(Sheet, self._layouts.sheet(version, population=0, by_arm=False))
        own = cast(Sheet, self._layouts.sheet(version, population=population, by_arm=logged))
        worth = answers.worth(
            self._constants, usual.law.mechanism.variance, own.law.mechanism.variance, logged
        )
        self.board.experience[rules.WORTH] += worth * int(tally.asked[0].sum())

    def _hand_over(self, key: _Key, tally: Tally, contested: Mapping[str, int]) -> None:
        """Fold the answers to one question into the bins that still stand."""
        version, population, number = key
        question = question_of(number, self.release.experiment)
        by_arm = question.kind in BY_ARM
        # Nothing is tallied where nothing is contested.
        sheet = cast(Sheet, self._layouts.sheet(version, population=population, by_arm=by_arm))
        law = sheet.law
        mechanism = law.mechanism
        place = 0 if question.feature is None else 1 + question.feature
        cell = -1
        for policy in sheet.bins:
            for arm in policy.live if by_arm else (policy.arms[0],):
                cell += 1
                node = contested.get(policy.path)
                if node is None:
                    continue
                for column in range(tally.sums.shape[1]):
                    asked = int(tally.asked[cell, column])
                    if asked == 0:
                        continue
                    if law.halves:
                        lower, upper = tally.sums[2 * cell : 2 * cell + 2, column].tolist()
                        whole, difference = upper + lower, upper - lower
                    else:
                        whole = difference = int(tally.sums[cell, column])
                    if number == 0 and population == 0 and self._constants.certified:
                        named = int(tally.named[cell, 0])
                        first, second = policy.arms
                        rules.vote(self.board, node, first, second, named, whole)
                    answers.fold(
                        self.board,
                        self._constants,
                        node,
                        population,
                        int(question.kind),
                        place,
                        column if question.kind == Kind.RANKED else arm,
                        policy.arms[-1],
                        float(asked),
                        float(whole),
                        float(difference),
                        mechanism.signal,
                        mechanism.noise,
                        mechanism.inside,
                        law.halves,
                    )


def _publish(experiment: Experiment, board: Board) -> Release:
    version = int(board.totals[rules.RELEASE])
    bins = policies_of(board, constants(experiment))
    return Release(experiment, version, partition_of(board), bins)


def _empty(sheet: Sheet, places: int) -> Tally:
    cells = sheet.law.mechanism.cells

    def zeros(rows: int) -> Counts:
        return np.zeros((rows, places), dtype=np.int64)

    return Tally(zeros(len(sheet.places)), zeros(cells), zeros(cells))
