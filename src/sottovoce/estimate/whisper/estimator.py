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
from sottovoce.estimate.gain_interval import GainEstimate, gain_estimate
from sottovoce.estimate.gate import Batch, Gate, saved_ids
from sottovoce.estimate.history import BeganAnew, Certificate, Event, history_of
from sottovoce.estimate.method import CellEstimate
from sottovoce.estimate.tree import node_paths
from sottovoce.estimate.whisper.amend import amend
from sottovoce.estimate.whisper.anew import begin_anew
from sottovoce.estimate.whisper.asked import NOT_ASKED, Asked, Key
from sottovoce.estimate.whisper.audit import add_rewards
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.diagnosis import diagnose
from sottovoce.estimate.whisper.groups import Groups
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
from sottovoce.shared.baseline import POLICY
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.cells import one_cell_mechanism
from sottovoce.shared.whisper.questions import (
    EVERYBODY,
    PLACES,
    Kind,
    question_of,
    questions_of,
)
from sottovoce.shared.wire import release_id

_WORTHS = 32  # policies whose worth is kept until the next step


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
        self._asked = Asked(past)
        self._tallies: dict[Key, Tally] = {}
        self._counted = self._served = self._target = 0
        self._rewards = (0, 0)
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        self._groups = Groups()

    def absorb(self, batch: Batch) -> int:
        """Add reports to the tallies; return how many of their cells no longer stand."""
        report = batch.report
        entry = self._asked.entry(batch.version, report.question)
        self._counted += batch.count
        if not entry.logged:
            self._served += batch.count
            self._target += batch.count if report.population == 0 else 0
            if report.population == 0 and self._constants.gain.measured:
                self._groups.absorb(batch, entry.group, self._past)
        if batch.values is None:
            return 0
        if entry.group is not None:
            if entry.group == POLICY and self._constants.audited:
                # They are asked what those are asked whose rewards are audited.
                self._add_rewards(batch)
            return 0
        if entry.measures == PLACES:
            place = (report.population, report.question)
            answers, total = self._places.get(place, (0, 0))
            self._places[place] = (answers + batch.count, total + int(batch.values.sum()))
            return 0
        if entry.cells == EVERYBODY:
            self._add_rewards(batch)
            return 0
        layout = self._asked.layout(batch.version, report.population, entry)
        key = (batch.version, report.population, report.question)
        if key not in self._tallies:
            self._tallies[key] = self._asked.empty_tally(key)
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

    def _add_rewards(self, batch: Batch) -> None:
        """Count people who were asked for their reward, and nothing else."""
        answers, total = self._rewards
        came = 0 if batch.values is None else int(batch.values.sum())
        self._rewards = (answers + batch.count, total + came)

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
        # People of groups tell nothing of bins. But the fewer compare arms, the fewer are yet to
        # get what was found, and the rules weigh the two against each other: all are counted.
        totals.paid += self._target
        totals.target += self._target
        self._groups.hand_over(self.state.gain, self._constants.gain)
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
            raise ValueError(NOT_ASKED)
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

    def gain(self, *, level: float) -> GainEstimate:
        """Return what the policy brings over the baseline, as of the last step."""
        people = float(self.state.totals[0].target)
        return gain_estimate(self.state.gain, people=people, level=level)

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
            **self._groups_to_table(),
            "tallies": [
                [*key, tally.asked.tolist(), tally.sums.tolist(), tally.named.tolist()]
                for key, tally in sorted(self._tallies.items())
            ],
        }

    def _groups_to_table(self) -> dict[str, Any]:
        """Write what is there only where there is a baseline."""
        if not self._constants.gain.measured:
            return {}
        return {"groups": self._groups.to_table(), "shares": self._past.shares()}

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
        if self._constants.gain.measured:
            self._groups = Groups.from_table(table["groups"], self._constants.gain, self._target)
        for population, number, answers, total in table["places"]:
            self._read_places((population, number), answers, total)
        if sum(answers for answers, _ in self._places.values()) > self.state.totals[0].reports:
            raise ValueError("its counts of people who told where they are do not fit")
        for version, population, number, *numbers in table["tallies"]:
            if not 0 <= population < len(experiment.populations):
                raise ValueError("it has answers of a population that is not there")
            if not 1 <= version <= self.release.version:
                raise ValueError(NOT_ASKED)
            key = (version, population, number)
            self._tallies[key] = self._asked.read_tally(key, numbers)

    def _read_places(self, key: tuple[int, int], answers: int, total: int) -> None:
        population, number = key
        if not all(type(each) is int for each in (population, number, answers, total)):
            raise ValueError("its counts of people who told where they are do not fit")
        known = 0 <= population < len(self.release.experiment.populations)
        asked = known and self._asked.entry(self.release.version, number).measures == PLACES
        if not asked or key in self._places:
            raise ValueError(NOT_ASKED)
        if not abs(total) <= answers:
            raise ValueError("its counts of people who told where they are do not fit")
        self._places[key] = (answers, total)

    def _sync(self) -> None:
        """Count the reports of late, in whole numbers only."""
        totals = self.state.totals[0]
        totals.reports += self._counted
        totals.served += self._served
        self._counted = self._served = 0

    def _hand_over(self, key: Key, tally: Tally, nodes: Mapping[str, int]) -> None:
        """Hand one tally over to the bins that still stand, and count what it is worth."""
        version, population, number = key
        entry, experiment = self._asked.entry(version, number), self._past.experiment(version)
        layout = self._asked.layout(version, population, entry)
        if population > 0 or entry.logged:
            # What is contested for one population is contested for all.
            asked_of = questions_of(experiment)
            usual = self._asked.layout(version, 0, asked_of[Kind.MASS]).halves.mechanism
            compares = asked_of[Kind.OUTCOME if entry.logged else Kind.MASS]
            own = self._asked.layout(version, population, compares).halves.mechanism
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
    past.read_shares(table.get("shares", []), release)
    if past.bins(release.version) != release.bins:
        raise ValueError("its last release is not the one it has")
    estimator = WhisperEstimator(release, state, past, saved_ids(release, table))
    estimator.read_waiting(table)
    return estimator
