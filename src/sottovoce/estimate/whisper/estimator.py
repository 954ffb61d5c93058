"""``whisper`` as the learner uses it: tallies that wait, the state, and all releases so far.

Reports are only added up as they come, in whole numbers; the state gets the sums at each step. So
what is learned does not depend on the order of the reports between two steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.figures import Known as Figure
from sottovoce.estimate.figures import Worth
from sottovoce.estimate.gate import Batch, Gate, saved_ids
from sottovoce.estimate.history import BeganAnew, Certificate, Event, history_of
from sottovoce.estimate.method import CellEstimate
from sottovoce.estimate.tree import node_paths
from sottovoce.estimate.whisper.amend import amend
from sottovoce.estimate.whisper.anew import begin_anew
from sottovoce.estimate.whisper.audit import add_rewards
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.diagnosis import diagnose
from sottovoce.estimate.whisper.known import Known, cell_estimates, known_of, shares_of
from sottovoce.estimate.whisper.past_releases import WhisperReleases
from sottovoce.estimate.whisper.publish import certificates_of, release_of
from sottovoce.estimate.whisper.saved import check_state, state_from_table, state_to_table
from sottovoce.estimate.whisper.scale import add_places
from sottovoce.estimate.whisper.shapes import OTHERS, TARGET
from sottovoce.estimate.whisper.state import State, initial_state, with_room
from sottovoce.estimate.whisper.step import step
from sottovoce.estimate.whisper.tally import Tally, credit, hand_over, mechanism_record
from sottovoce.estimate.whisper.trust import STAY
from sottovoce.estimate.whisper.worth import choice_of, worth_of
from sottovoce.shared.allocation import Allocation
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.cells import CellLayout, one_cell_mechanism
from sottovoce.shared.whisper.questions import (
    EVERYBODY,
    PLACES,
    Entry,
    Kind,
    question_of,
    questions_of,
)
from sottovoce.shared.wire import release_id

_Key = tuple[int, int, int]  # release, population, question
_WORTHS = 32  # policies whose worth is kept until the next step
_NOT_ASKED = "it has answers to a question that nobody was asked"


class WhisperEstimator:
    """Implements ``Estimator``.

    counted, served, target: reports since the last step: all, those of people who were served, and
        of those the target's.
    rewards: how many of the target's people told their reward, and the sum of what they told.
    places: the same of where people are, for each population and question.
    earlier: the certificates from before the learner last began anew.
    """

    def __init__(
        self, release: Release, state: State, past: WhisperReleases, ids: Sequence[bytes]
    ) -> None:
        self._earlier: tuple[Certificate, ...] = ()
        self._all_known: Known | None = None
        self._worths: list[tuple[Allocation, Worth]] = []
        self.release = release
        self.gate = Gate(release.experiment, past, ids=ids)
        self.state = state
        self._constants: Constants = constants(release.experiment)
        self._past = past
        self._tallies: dict[_Key, Tally] = {}
        self._counted = self._served = self._target = 0
        self._rewards = (0, 0)
        self._places: dict[tuple[int, int], tuple[int, int]] = {}

    def absorb(self, batch: Batch) -> int:
        """Add reports to the tallies; return how many of their cells no longer stand."""
        report = batch.report
        entry = self._entry(batch.version, report.question)
        self._counted += batch.count
        if not entry.logged:
            self._served += batch.count
            self._target += batch.count if report.population == 0 else 0
        if batch.values is None:
            return 0
        if entry.measures == PLACES:
            place = (report.population, report.question)
            answers, total = self._places.get(place, (0, 0))
            self._places[place] = (answers + batch.count, total + int(batch.values.sum()))
            return 0
        if entry.cells == EVERYBODY:
            answers, total = self._rewards
            self._rewards = (answers + batch.count, total + int(batch.values.sum()))
            return 0
        layout = self._layout(batch.version, report.population, entry)
        key = (batch.version, report.population, report.question)
        if key not in self._tallies:
            self._tallies[key] = self._empty_tally(key)
        tally = self._tallies[key]
        sums = batch.values.sum(axis=0, dtype=np.int64)
        named = np.abs(batch.values).sum(axis=0, dtype=np.int64)
        if entry.ranked:
            arms = [min(policy.live, key=report.ranking.index) for policy in layout.bins]
            tally.asked[np.arange(len(arms)), arms] += batch.count
            parts = layout.mechanism(
                question_of(report.question, self.release.experiment).axis
            ).parts
            columns = np.repeat(arms, parts)
            cells = np.arange(len(columns))
            tally.sums[cells, columns] += sums[cells]
            tally.named[cells, columns] += named[cells]
        else:
            tally.asked[:] += batch.count
            tally.sums[:, 0] += sums
            tally.named[:, 0] += named
        if batch.version == self.release.version:
            return 0
        now = self.release.policies
        gone = [
            each
            for each in layout.bins
            if each.path not in now or (now[each.path].settled and not entry.settled)
        ]
        return batch.count * sum(len(policy.live) if entry.by_arm else 1 for policy in gone)

    def step(self) -> list[Event]:
        """Hand the tallies over; drop arms and split bins by the rules."""
        self._hand_over_all()
        events = int(self.state.totals[0].events)
        step(self.state, self._constants)
        if self.state.totals[0].verdict != STAY:
            return self._begin_anew()
        if self.state.totals[0].release != self.release.version:
            self.release = release_of(self.release.experiment, self.state)
            self.gate.publish(self.release)
        return [dated.event for dated in history_of(self.state, start=events)]

    def amend(self, experiment: Experiment) -> None:
        """Go on with an amended experiment, and with all that has been told until now."""
        self._hand_over_all()
        before, self._constants = self._constants, constants(experiment)
        self.state = amend(self.state, before, self._constants)
        self.release = release_of(experiment, self.state)
        self.gate.publish(self.release)

    def _hand_over_all(self) -> None:
        """Hand over all that waits, and make room for what follows from it."""
        self._sync()
        self._all_known = None
        totals = self.state.totals[0]
        # Once, and not as they come: sums with fractions depend on the order they are added in.
        totals.paid += self._target
        totals.target += self._target
        self._target = 0
        if self._rewards[0]:
            signal = one_cell_mechanism(self.release.experiment, 0).signal
            add_rewards(self.state, float(self._rewards[0]), self._rewards[1] / signal)
            self._rewards = (0, 0)
        for (population, number), (answers, total) in sorted(self._places.items()):
            self._hand_over_places(population, number, answers, total)
        self._places.clear()
        paths = node_paths(self.state)
        nodes = {path: node for node, path in enumerate(paths)}
        for key in sorted(self._tallies):
            self._hand_over(key, self._tallies[key], nodes)
        self._tallies.clear()
        self.state = with_room(self.state, self._constants)

    def _hand_over_places(self, population: int, number: int, answers: int, total: int) -> None:
        """Hand over where people said they are."""
        question = question_of(number, self.release.experiment)
        if question.axis is None:
            raise ValueError(_NOT_ASKED)
        mechanism = one_cell_mechanism(self.release.experiment, population)
        told, variance = total / mechanism.signal, mechanism.inside
        group = TARGET if population == 0 else OTHERS
        add_places(self.state, group, question.axis, question.row, answers, told, variance)

    def _begin_anew(self) -> list[Event]:
        """Publish a release with one bin and all arms: what was learned misleads."""
        self._earlier = self.certificates()
        self.state = begin_anew(self.state, self._constants)
        self.release = release_of(self.release.experiment, self.state)
        self.gate.publish(self.release)
        return [BeganAnew()]

    def estimates(self) -> list[CellEstimate]:
        """Return f̂ of each arm in each bin, settled ones too."""
        known = self._known()
        return cell_estimates(known, self.release, node_paths(self.state))

    def shares(self) -> dict[str, Figure]:
        """Return the share of the target's people in each bin."""
        return shares_of(self._known(), self.release, node_paths(self.state))

    def worth(self, allocation: Allocation) -> Worth:
        """Return the mean outcome by a policy, and who gets which arm."""
        known = self._known()
        for (
            each,
            worth,
        ) in self._worths:  # a server asks again and again, and between two steps in vain
            if each == allocation:
                return worth
        choice = choice_of(self.state, self._constants, self.release, allocation)
        worth = worth_of(self.state, known, choice)
        if len(self._worths) < _WORTHS:
            self._worths.append((allocation, worth))
        return worth

    def _known(self) -> Known:
        """Return what is known of all bins; it changes at steps only."""
        if self._all_known is None:
            self._worths.clear()
            self._all_known = known_of(self.state, self._constants)
        return self._all_known

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped."""
        arms = self.release.experiment.arms
        return (*self._earlier, *certificates_of(self.state, self._constants, arms))

    def diagnose(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring, as of the last step."""
        return diagnose(self.state, self.release.experiment, reports)

    def to_table(self) -> dict[str, Any]:
        """Write the state, the past releases and the tallies that wait."""
        self._sync()
        return {
            "target": self._target,
            "rewards": list(self._rewards),
            "places": [[*key, *told] for key, told in sorted(self._places.items())],
            "state": state_to_table(self.state),
            "past": self._past.to_table(),
            "amended": self._past.amended(),
            "earlier": [list(astuple(each)) for each in self._earlier],
            "tallies": [
                [*key, tally.asked.tolist(), tally.sums.tolist(), tally.named.tolist()]
                for key, tally in sorted(self._tallies.items())
            ],
        }

    def read_waiting(self, table: dict[str, Any]) -> None:
        """Read what waits for the next step; what is inconsistent raises ValueError or the like."""
        experiment = self.release.experiment
        self._earlier = tuple(Certificate(*each) for each in table["earlier"])
        self._target = int(table["target"])
        if not 0 <= self._target <= self.state.totals[0].served:
            raise ValueError("its counts of people who were served do not fit")
        answers, total = map(int, table["rewards"])
        if not abs(total) <= answers <= self._target:
            raise ValueError("its counts of people who told their reward do not fit")
        self._rewards = (answers, total)
        for population, number, answers, total in table["places"]:
            self._read_places((population, number), answers, total)
        if sum(answers for answers, _ in self._places.values()) > self.state.totals[0].reports:
            raise ValueError("its counts of people who told where they are do not fit")
        for version, population, number, *numbers in table["tallies"]:
            if not 0 <= population < len(experiment.populations):
                raise ValueError("it has answers of a population that is not there")
            if not 1 <= version <= self.release.version:
                raise ValueError(_NOT_ASKED)
            key = (version, population, number)
            self._tallies[key] = self._read_tally(key, numbers)

    def _read_places(self, key: tuple[int, int], answers: int, total: int) -> None:
        population, number = key
        if not all(type(each) is int for each in (population, number, answers, total)):
            raise ValueError("its counts of people who told where they are do not fit")
        known = 0 <= population < len(self.release.experiment.populations)
        asked = known and self._entry(self.release.version, number).measures == PLACES
        if not asked or key in self._places:
            raise ValueError(_NOT_ASKED)
        if not abs(total) <= answers:
            raise ValueError("its counts of people who told where they are do not fit")
        self._places[key] = (answers, total)

    def _read_tally(self, key: _Key, numbers: Sequence[Any]) -> Tally:
        fresh = self._empty_tally(key)
        asked, sums, named = (np.array(each, dtype=np.int64) for each in numbers)
        shapes = [each.shape for each in (asked, sums, named)]
        if shapes != [each.shape for each in (fresh.asked, fresh.sums, fresh.named)]:
            raise ValueError("its answers do not fit their release")
        if (
            (asked < 0).any()
            or (named < 0).any()
            or (named > asked.max(axis=0)).any()
            or (np.abs(sums) > named).any()
        ):
            raise ValueError("its answers are not counts")
        return fresh._replace(asked=asked, sums=sums, named=named)

    def _entry(self, version: int, number: int) -> Entry:
        experiment = self._past.experiment(version)
        return questions_of(experiment)[question_of(number, experiment).kind]

    def _layout(self, version: int, population: int, entry: Entry) -> CellLayout:
        """Return the cells of a question in a release; a report with bytes is about some."""
        layout = self._past.layout(
            version, population=population, by_arm=entry.by_arm, settled=entry.settled
        )
        if layout is None:
            raise ValueError(_NOT_ASKED)
        return layout

    def _empty_tally(self, key: _Key) -> Tally:
        version, population, number = key
        entry, experiment = self._entry(version, number), self._past.experiment(version)
        question = question_of(number, experiment)
        layout = self._layout(version, population, entry)
        of_halves = layout.halves.parts == 2 and question.axis is None
        of_others = entry.settled and (population != 0 or layout.whole == 1)
        if entry.cells == EVERYBODY or of_halves or of_others:
            raise ValueError(_NOT_ASKED)
        columns = len(experiment.arms) if entry.ranked else 1
        cells = layout.mechanism(question.axis).mechanism.cells
        zeros = (np.zeros((n, columns), np.int64) for n in (len(layout.indices), cells, cells))
        return Tally(
            population, -1 if question.axis is None else question.axis, question.row, *zeros
        )

    def _sync(self) -> None:
        """Count the reports of late, in whole numbers only."""
        totals = self.state.totals[0]
        totals.reports += self._counted
        totals.served += self._served
        self._counted = self._served = 0

    def _hand_over(self, key: _Key, tally: Tally, nodes: Mapping[str, int]) -> None:
        """Hand one tally over to the bins that still stand, and count what it is worth."""
        version, population, number = key
        entry, experiment = self._entry(version, number), self._past.experiment(version)
        layout = self._layout(version, population, entry)
        if population > 0 or entry.logged:
            # What is contested for one population is contested for all.
            asked_of = questions_of(experiment)
            usual = self._layout(version, 0, asked_of[Kind.MASS]).halves.mechanism
            compares = asked_of[Kind.OUTCOME if entry.logged else Kind.MASS]
            own = self._layout(version, population, compares).halves.mechanism
            asked = int(tally.asked[0].sum())
            then = constants(experiment)
            credit(self.state, then, usual.variance, own.variance, entry.logged, asked)
        now = self.release.bins if entry.settled else self.release.contested
        stand = {policy.path: nodes[policy.path] for policy in now}
        if version < self.state.totals[0].first_release:
            stand = {}  # the same path was another bin
        cells = [
            (stand.get(policy.path, -1), arm, policy.arms[-1])
            for policy in layout.bins
            for arm in (policy.live if entry.by_arm else policy.arms[:1])
        ]
        told = [
            (2.0 * min(policy.propensities), policy.propensities[0])
            for policy in layout.bins
            for _ in (policy.live if entry.by_arm else policy.arms[:1])
        ]
        axis = question_of(number, experiment).axis
        if axis is not None and version < self.state.scaled_since[axis]:
            return  # it is about other halves
        mechanism = mechanism_record(layout.mechanism(axis))
        fixed, bins = self._constants, np.array(cells)
        hand_over(self.state, fixed, mechanism, entry, tally, bins, np.array(told))


def begin(experiment: Experiment) -> WhisperEstimator:
    """Begin with one bin and all arms, two of them on offer."""
    state = initial_state(constants(experiment))
    release = release_of(experiment, state)
    past = WhisperReleases(experiment)
    past.record(release)
    return WhisperEstimator(release, state, past, [release_id(release)])


def resume(release: Release, table: dict[str, Any]) -> WhisperEstimator:
    """Read what ``to_table`` wrote; what is inconsistent raises ValueError or the like."""
    experiment = release.experiment
    state = state_from_table(table["state"], constants(experiment))
    if release_of(experiment, state) != release:
        raise ValueError("its state is not that of its release")
    check_state(state, release)
    past = WhisperReleases.from_table(experiment, table["past"], table["amended"])
    if past.bins(release.version) != release.bins:
        raise ValueError("its last release is not the one it has")
    estimator = WhisperEstimator(release, state, past, saved_ids(release, table))
    estimator.read_waiting(table)
    return estimator
