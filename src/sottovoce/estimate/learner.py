"""The learner: reports in, next release out. Deterministic given the reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.gate import AT_ONCE, Batch
from sottovoce.estimate.history import Certificate, DatedEvent
from sottovoce.estimate.method import CellEstimate, Estimator, learner_method
from sottovoce.estimate.progress import Progress, progress_from_json, progress_to_json
from sottovoce.shared.errors import Rejection
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report


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
    enough, and publishes the next release if anything changed.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._estimator: Estimator = learner_method(experiment).begin(experiment)
        self._progress = Progress(reports=[0] * len(experiment.populations))

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
            until_step = every - sum(self._progress.reports) % every
            end = len(verdicts) + min(until_step, AT_ONCE)
            piece, batches = self._estimator.gate.read_many(reports[len(verdicts) : end])
            self._count(batches)
            verdicts += piece
        return verdicts

    def status(self) -> Status:
        """Return how far the learner has come."""
        progress, release = self._progress, self.release()
        names = [population.name for population in self.experiment.populations]
        return Status(
            release=release.version,
            reports=dict(zip(names, progress.reports, strict=True)),
            late_reports=progress.late_reports,
            dropped_cells=progress.dropped_cells,
            bins=len(release.bins),
            settled_bins=sum(policy.settled for policy in release.bins),
            contested_cells=sum(len(policy.live) for policy in release.contested),
        )

    def estimates(self) -> list[CellEstimate]:
        """Return what is known of each contested cell."""
        return self._estimator.estimates()

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped, where the method can tell."""
        return self._estimator.certificates()

    def diagnosis(self) -> Diagnosis:
        """Say what each auxiliary population brings, and whether it seems to mislead."""
        return self._estimator.diagnose(self._progress.reports)

    def history(self) -> tuple[DatedEvent, ...]:
        """Every elimination and cut so far, with the number of reports by then."""
        return tuple(self._progress.history)

    def to_json(self) -> str:
        """Save the learner; it holds sums of reports and nothing about any person."""
        return progress_to_json(self._estimator, self._progress)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Learner":
        """Resume a saved learner; it goes on bit for bit as one that never stopped."""
        estimator, progress = progress_from_json(text)
        learner = cls.__new__(cls)
        learner.experiment = estimator.release.experiment
        learner._estimator = estimator
        learner._progress = progress
        return learner

    def _count(self, batches: Sequence[Batch]) -> None:
        """Add reports to the sums, and look at them when it is time."""
        progress = self._progress
        for batch in batches:
            if batch.report.release != self.release().version:
                progress.late_reports += batch.count
            progress.dropped_cells += self._estimator.absorb(batch)
            progress.reports[batch.report.population] += batch.count
        total = sum(progress.reports)
        if batches and total % self.experiment.release_every == 0:
            events = self._estimator.step()
            progress.history += [DatedEvent(total, event) for event in events]
