"""The learner: reports in, next release out. Deterministic given the reports."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.figures import ArmEstimate, BinPeople, Value, value_of
from sottovoce.estimate.gain_interval import GainEstimate
from sottovoce.estimate.gate import AT_ONCE, Batch
from sottovoce.estimate.history import (
    Amended,
    BeganAnew,
    Certificate,
    DatedEvent,
    Elimination,
    Event,
    Retirement,
    Split,
)
from sottovoce.estimate.method import CellEstimate, Estimator, MeasuresGain, learner_method
from sottovoce.shared.allocation import allocation_of
from sottovoce.shared.amending import amended
from sottovoce.shared.amendment import RESTORE, RETIRE_ARM, RUNNING, Amendment
from sottovoce.shared.errors import ExperimentError, Rejection, StateError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report

STATE_VERSION = 10


@dataclass(frozen=True, slots=True)
class Status:
    """How far a learner has come.

    reports: how many of each population were counted.
    late_reports: how many of them were made for an older release.
    dropped_cells: how many of their cells no longer stood and were left out.
    """

    release: int
    reports: dict[str, int]
    late_reports: int
    dropped_cells: int
    bins: int
    settled_bins: int
    contested_cells: int


class Learner:
    """The server's side: it sees reports only.

    Reports of any population come in any order. After every ``release_every`` of them the
    learner looks at its sums, drops the arms that lose, splits the bins that are known well
    enough, and publishes the next release if anything changed. While the experiment is paused, and
    after it was stopped, reports are counted and no step is taken.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._estimator: Estimator = learner_method(experiment).begin(experiment)
        # As in ``Status``; the reports by population.
        self._reports = [0] * len(experiment.populations)
        self._late_reports = self._dropped_cells = 0
        self._history: list[DatedEvent] = []

    def release(self) -> Release:
        """Return the current release."""
        return self._estimator.release

    def receive(self, report: Report) -> None:
        """Count one report, or raise ReportRejected and change nothing."""
        self._count([self._estimator.gate.read(report)])

    def receive_many(self, reports: Sequence[bytes]) -> list[Rejection | None]:
        """Count compact reports in order; return why each was refused, or None.

        The same as ``receive`` one by one, and bit for bit, but many times as fast.
        """
        verdicts: list[Rejection | None] = []
        every = self.experiment.release_every
        while len(verdicts) < len(reports):
            # Never more than to the next step: what comes after it meets another release.
            until_step = every - sum(self._reports) % every
            end = len(verdicts) + min(until_step, AT_ONCE)
            piece, batches = self._estimator.gate.read_many(reports[len(verdicts) : end])
            self._count(batches)
            verdicts += piece
        return verdicts

    def amend(self, amendment: Amendment) -> None:
        """Amend the experiment and publish the next release, or raise ExperimentError.

        The learner goes on with all that it knows. An amendment that is refused changes nothing.
        """
        version = self.release().version
        if amendment.kind == RESTORE and amendment.release != version:
            rule = f"name the newest release, {version}"
            raise ExperimentError(must("a restore", rule, amendment.release))
        experiment = amended(self.experiment, amendment)
        self._estimator.amend(experiment)
        self.experiment = experiment
        event = Amended(self.release().version, amendment)
        self._history.append(DatedEvent(sum(self._reports), event))

    def status(self) -> Status:
        """Return how far the learner has come."""
        release = self.release()
        names = [population.name for population in self.experiment.populations]
        return Status(
            release=release.version,
            reports=dict(zip(names, self._reports, strict=True)),
            late_reports=self._late_reports,
            dropped_cells=self._dropped_cells,
            bins=len(release.bins),
            settled_bins=sum(policy.settled for policy in release.bins),
            contested_cells=sum(len(policy.live) for policy in release.contested),
        )

    def estimates(self) -> list[CellEstimate]:
        """Return what is known of each arm in each bin, in the unit of the experiment's rewards.

        Settled bins and dropped arms are there, too, as they were when last measured.
        """
        rewards = self.experiment.rewards
        return [each.counted_as(rewards) for each in self._estimator.estimates()]

    def gain(self, *, level: float = 0.95) -> GainEstimate | None:
        """Return what the policy brings over the baseline, in the unit of the rewards.

        None without a baseline. The intervals hold at all times at once, with the probability
        ``level``: whoever looks at them as often as they like, and stops when they like, is not
        misled. They are as of the last step.
        """
        if self.experiment.compared_with is None:
            return None
        measured = cast(MeasuresGain, self._estimator)
        return measured.gain(level=level).counted_as(self.experiment.rewards)

    def people(self) -> list[BinPeople]:
        """Return how many people are in each bin; nothing if the method cannot tell."""
        reports = self._reports[0]
        return [
            BinPeople(path, known.mean, known.radius, reports * known.mean, reports * known.radius)
            for path, known in self._estimator.shares().items()
        ]

    def arms(self) -> list[ArmEstimate]:
        """Return what each arm would bring if everybody had it, and how many people get it.

        Nothing if the method cannot tell. Arms that were retired are left out.
        """
        now = self._estimator.worth(allocation_of(self.release(), self.experiment))
        if now is None or not any(self._reports):
            return []
        found = []
        for arm, name in enumerate(self.experiment.arms):
            if arm in self.experiment.retired:
                continue
            share, value = now.shares[arm], self.value(f"always:{name}")
            counts = value.reports * share.mean, value.reports * share.radius
            known = value.estimate, value.radius, share.mean, share.radius, *counts
            found.append(ArmEstimate(name, *known))
        return found

    def value(self, policy: Any) -> Value:
        """Return what people would get on average by a policy, from the reports alone.

        policy: "always:ARM", a release, or a policy such as ``sv.Policy``; over the same features,
            and of arms of this experiment.
        """
        allocation, reports = allocation_of(policy, self.experiment), self._reports[0]
        worth = self._estimator.worth(allocation)
        if worth is None:
            rule = "be of method whisper, which measures all arms together"
            hint = "what ldpmab knows is in estimates()"
            what = "an experiment whose policies are valued"
            raise ExperimentError(must(what, rule, self.experiment.settings.name, hint=hint))
        if not any(self._reports):
            what, rule = "an experiment whose policies are valued", "have reports"
            raise ExperimentError(must(what, rule, "none: nothing is known yet"))
        return value_of(allocation.name, worth.mean, self.experiment.rewards, reports=reports)

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped, where the method can tell."""
        return self._estimator.certificates()

    def retirements(self) -> tuple[Retirement, ...]:
        """Return who retired which arm, and when."""
        made = [dated.event for dated in self._history if isinstance(dated.event, Amended)]
        return tuple(
            Retirement(each.release, arm, each.amendment.by, each.amendment.made)
            for each in made
            if each.amendment.kind == RETIRE_ARM and (arm := each.amendment.arm)
        )

    def diagnosis(self) -> Diagnosis:
        """Say what each auxiliary population brings, and whether it seems to mislead."""
        diagnosis = self._estimator.diagnose(self._reports)
        return diagnosis.counted_as(self.experiment.rewards)

    def history(self) -> tuple[DatedEvent, ...]:
        """Every elimination, cut and amendment so far, with the number of reports by then."""
        return tuple(self._history)

    def to_json(self) -> str:
        """Save the learner; it holds sums of reports and nothing about any person."""
        history = [
            {"reports": dated.reports, "kind": type(dated.event).__name__, **asdict(dated.event)}
            for dated in self._history
        ]
        table = {
            "sottovoce": STATE_VERSION,
            "kind": "learner",
            "release": self.release().to_table(),
            "ids": [each.hex() for each in self._estimator.gate.ids],
            "reports": self._reports,
            "late_reports": self._late_reports,
            "dropped_cells": self._dropped_cells,
            "history": history,
            **self._estimator.to_table(),
        }
        return json.dumps(table, allow_nan=False)  # floats read back as the same bits

    @classmethod
    def from_json(cls, text: str | bytes) -> "Learner":
        """Resume a saved learner; it goes on bit for bit as one that never stopped.

        What is truncated, of another version or inconsistent is refused.
        """
        try:
            table = json.loads(text)
        except (ValueError, RecursionError) as error:
            rule = "a saved learner must be whole JSON"
            raise StateError(f"{rule}; it is cut off or damaged") from error
        if not isinstance(table, dict) or table.get("kind") != "learner":
            raise StateError("a saved learner must say so in 'kind'")
        if table.get("sottovoce") != STATE_VERSION:
            came, rule = repr(table.get("sottovoce")), f"be {STATE_VERSION}"
            hint = "resume it with the sottovoce that saved it"
            raise StateError(must("the version of a saved learner", rule, came, hint=hint))
        learner = cls.__new__(cls)
        try:
            learner._read(table)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            rule = "a saved learner must be complete and consistent"
            raise StateError(f"{rule}; {error}") from error
        return learner

    def _read(self, table: dict[str, Any]) -> None:
        release = Release.from_table(table["release"])
        self.experiment = release.experiment
        self._reports = list(map(int, table["reports"]))
        self._late_reports = int(table["late_reports"])
        self._dropped_cells = int(table["dropped_cells"])
        self._history = [_dated(entry) for entry in table["history"]]
        made = [each.event for each in self._history if isinstance(each.event, Amended)]
        if tuple(each.amendment for each in made) != self.experiment.amendments:
            raise ValueError("its amendments are not those of its release")
        if len(self._reports) != len(self.experiment.populations):
            raise ValueError("its counts do not fit its populations")
        if min(*self._reports, self._late_reports, self._dropped_cells) < 0:
            raise ValueError("its counts must not be negative")
        self._estimator = learner_method(self.experiment).resume(release, table)

    def _count(self, batches: Sequence[Batch]) -> None:
        """Add reports to the sums, and look at them when it is time."""
        for batch in batches:
            if batch.version != self.release().version:
                self._late_reports += batch.count
            self._dropped_cells += self._estimator.absorb(batch)
            self._reports[batch.report.population] += batch.count
        total = sum(self._reports)
        due = total % self.experiment.release_every == 0 and self.experiment.state == RUNNING
        if batches and due:
            events = self._estimator.step()
            self._history += [DatedEvent(total, event) for event in events]


def _dated(entry: dict[str, Any]) -> DatedEvent:
    event: Event
    reports = int(entry["reports"])
    if entry["kind"] == "Elimination":
        event = Elimination(str(entry["path"]), tuple(map(int, entry["arms"])))
    elif entry["kind"] == "Split":
        event = Split(str(entry["path"]), int(entry["axis"]))
    elif entry["kind"] == "BeganAnew":
        event = BeganAnew()
    elif entry["kind"] == "Amended":
        event = Amended(int(entry["release"]), Amendment.from_table(entry["amendment"]))
    else:
        raise ValueError("its history has an event of an unknown kind")
    return DatedEvent(reports, event)
