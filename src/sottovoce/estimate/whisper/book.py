"""``whisper`` as the learner uses it: answers that wait, the board, the cells of past releases.

Reports are only added up as they come, in whole numbers; the board gets the sums at each step. So
a learner's state does not depend on the order of the reports between two steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sottovoce.estimate.book import CellEstimate
from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.gate import Gate, Pile
from sottovoce.estimate.history import Certificate, Event
from sottovoce.estimate.whisper import answers, places, rules
from sottovoce.estimate.whisper.audit import audit
from sottovoce.estimate.whisper.board import Board, Counts, begin, paths, roomy
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.diagnosis import diagnose
from sottovoce.estimate.whisper.layouts import WhisperLayouts
from sottovoce.estimate.whisper.policy import (
    certificates_of,
    history_of,
    partition_of,
    policies_of,
)
from sottovoce.estimate.whisper.saved import board_from_table, board_to_table, check_board
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.questions import (
    LOGGED,
    Kind,
    Question,
    Sheet,
    is_by_arm,
    question_of,
    reward_mechanism,
)
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report

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
    """Implements ``Book``.

    served: how many target users were served since the last step.
    told: how many of them said how it went, and the sum of what they said.
    """

    def __init__(
        self,
        release: Release,
        board: Board,
        layouts: WhisperLayouts,
        tallies: dict[_Key, Tally],
        *,
        served: int = 0,
        told: tuple[int, int] = (0, 0),
    ) -> None:
        self.release = release
        self.gate = Gate(release.experiment, layouts, newest=release.version)
        self.board = board
        self._constants = constants(release.experiment)
        self._layouts = layouts
        self._tallies = tallies
        self._served = served
        self._told = told

    @classmethod
    def begin(cls, experiment: Experiment) -> "WhisperBook":
        """Open a book: one bin, all arms, two of them on offer."""
        board = begin(constants(experiment))
        release = _publish(experiment, board)
        layouts = WhisperLayouts(experiment)
        layouts.record(release)
        return cls(release, board, layouts, {})

    def absorb(self, pile: Pile) -> int:
        """Add reports to the tallies."""
        report = pile.report
        question = question_of(report.question, self.release.experiment)
        self._count(pile, logged=question.kind in LOGGED)
        if pile.values is None:
            return 0
        if question.kind == Kind.REWARD:
            answers_so_far, total = self._told
            self._told = (answers_so_far + pile.count, total + int(pile.values.sum()))
            return 0
        sheet = cast(Sheet, self._sheet(report, question))
        key = (report.release, report.population, report.question)
        if key not in self._tallies:
            self._tallies[key] = _empty(sheet, self._constants.arms if report.ranking else 1)
        tally = self._tallies[key]
        sums = pile.values.sum(axis=0, dtype=np.int64)
        named = np.abs(pile.values).sum(axis=0, dtype=np.int64)
        if not report.ranking:
            tally.asked += pile.count
            tally.sums[:, 0] += sums
            tally.named[:, 0] += named
        else:
            first = [min(policy.live, key=report.ranking.index) for policy in sheet.bins]
            tally.asked[np.arange(len(first)), first] += pile.count
            repeated = np.repeat(first, 2 if sheet.law.halves else 1)
            cells = np.arange(len(repeated))
            tally.sums[cells, repeated] += sums[cells]
            tally.named[cells, repeated] += named[cells]
        if report.release == self.release.version:
            return 0
        now = self.release.policies
        gone = [
            policy for policy in sheet.bins if policy.path not in now or now[policy.path].settled
        ]
        return pile.count * sum(len(policy.live) if sheet.by_arm else 1 for policy in gone)

    def step(self) -> list[Event]:
        """Hand the tallies over; drop arms and cut bins by the rules."""
        nodes = {path: node for node, path in enumerate(paths(self.board))}
        contested = {path: nodes[path] for path in (each.path for each in self.release.contested)}
        # Once, and not as they come: sums with fractions depend on the order they are added in.
        self.board.experience[:] += self._served
        self._served = 0
        if self._told[0]:
            signal = reward_mechanism(self.release.experiment).signal
            audit(self.board, float(self._told[0]), self._told[1] / signal)
            self._told = (0, 0)
        for key in sorted(self._tallies):
            self._credit(key, self._tallies[key])
            self._hand_over(key, self._tallies[key], contested)
        self._tallies.clear()
        self.board = roomy(self.board, self._constants)
        events = int(self.board.totals[places.EVENTS])
        rules.step(self.board, self._constants)
        if self.board.totals[places.RELEASE] != self.release.version:
            self.release = _publish(self.release.experiment, self.board)
            self.gate.publish(self.release)
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

    def diagnose(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring, as of the last step."""
        return diagnose(self.board, self.release.experiment, reports)

    def to_table(self) -> dict[str, Any]:
        """Write the board, the layouts and the answers that wait."""
        return {
            "served": self._served,
            "told": list(self._told),
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
        layouts = WhisperLayouts.from_table(experiment, table["layouts"])
        if layouts.bins(release.version) != release.contested:
            raise ValueError("its last layout is not that of its release")
        served = int(table["served"])
        if not 0 <= served <= board.totals[places.SERVED]:
            raise ValueError("its counts of people who were served do not fit")
        told, total = map(int, table["told"])
        if not abs(total) <= told <= served:
            raise ValueError("its counts of people who said how it went do not fit")
        book = cls(release, board, layouts, {}, served=served, told=(told, total))
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
        by_arm = is_by_arm(question.kind, arms=self._constants.arms)
        return self._layouts.sheet(report.release, population=report.population, by_arm=by_arm)

    def _count(self, pile: Pile, *, logged: bool) -> None:
        """Count reports, in whole numbers only."""
        self.board.totals[places.REPORTS] += pile.count
        if not logged:
            self.board.totals[places.SERVED] += pile.count
        if pile.report.population == 0 and not logged:
            self._served += pile.count

    def _credit(self, key: _Key, tally: Tally) -> None:
        """Add what the answers to one question are worth, beside those of served target users."""
        version, population, number = key
        logged = question_of(number, self.release.experiment).kind in LOGGED
        if population == 0 and not logged:
            return
        # What is contested for one population is contested for all.
        usual = cast(Sheet, self._layouts.sheet(version, population=0, by_arm=False))
        by_arm = logged and is_by_arm(Kind.OUTCOME, arms=self._constants.arms)
        own = cast(Sheet, self._layouts.sheet(version, population=population, by_arm=by_arm))
        credit = answers.credit(
            self._constants, usual.law.mechanism.variance, own.law.mechanism.variance, logged
        )
        self.board.experience[places.WORTH] += credit * int(tally.asked[0].sum())

    def _hand_over(self, key: _Key, tally: Tally, contested: Mapping[str, int]) -> None:
        """Fold the answers to one question into the bins that still stand."""
        version, population, number = key
        question = question_of(number, self.release.experiment)
        by_arm = is_by_arm(question.kind, arms=self._constants.arms)
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
    version = int(board.totals[places.RELEASE])
    bins, asked = policies_of(board, constants(experiment)), int(board.totals[places.ASKED])
    return Release(experiment, version, partition_of(board), bins, asked)


def _empty(sheet: Sheet, places: int) -> Tally:
    cells = sheet.law.mechanism.cells

    def zeros(rows: int) -> Counts:
        return np.zeros((rows, places), dtype=np.int64)

    return Tally(zeros(len(sheet.places)), zeros(cells), zeros(cells))
