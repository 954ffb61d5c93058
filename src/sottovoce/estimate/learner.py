"""The learner: reports in, next release out. Deterministic given the reports."""

import math
from dataclasses import dataclass, replace
from typing import TypeVar

from sottovoce.estimate.history import Dated
from sottovoce.estimate.ldpmab import method
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.progress import Layout, Progress, progress_from_json, progress_to_json
from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.laplace import largest_plausible
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """What is known of one contested cell: f̃ and r, or None while there are too few users."""

    path: str
    arm: str
    estimate: float | None
    radius: float | None


class Learner:
    """The server's side: it sees reports only.

    Reports of any population come in any order. After every ``release_every`` of them the
    learner looks at its sums, drops the arms that lose, cuts the bins that are known well
    enough, and publishes the next release if anything changed.
    """

    def __init__(self, experiment: Experiment) -> None:
        state = method.initial(constants(experiment))
        populations = len(experiment.populations)
        progress = Progress(
            version=1,
            state=state,
            layouts=(Layout(1, state.cells),),
            reports=(0,) * populations,
            reported=(False,) * populations,
        )
        self._resume(experiment, progress)

    def _resume(self, experiment: Experiment, progress: Progress) -> None:
        self.experiment = experiment
        self._constants = constants(experiment)
        self._progress = progress
        self._release = self._publish()
        self._standing: dict[int, method.Standing] = {}

    def release(self) -> Release:
        """Return the current release."""
        return self._release

    def receive(self, report: Report) -> None:
        """Count one report, or raise ReportRejected and change nothing."""
        progress = self._progress
        self._check(report)
        layout = progress.layout_of(report.release)
        standing = self._standing_of(layout)
        population = report.population
        dropped = len(progress.layouts[layout].cells) - len(standing.cells_now)
        self._progress = replace(
            progress,
            state=method.absorb(
                progress.state, report.payload, population=population, standing=standing
            ),
            reports=_with(progress.reports, population, progress.reports[population] + 1),
            reported=_with(progress.reported, population, True),
            late_reports=progress.late_reports + (report.release != progress.version),
            dropped_cells=progress.dropped_cells + dropped,
        )
        if sum(self._progress.reports) % self.experiment.release_every == 0:
            self._step()

    def status(self) -> Status:
        """Return how far the learner has come."""
        progress, bins = self._progress, self._release.bins
        names = [population.name for population in self.experiment.populations]
        return Status(
            release=progress.version,
            reports=dict(zip(names, progress.reports, strict=True)),
            late_reports=progress.late_reports,
            dropped_cells=progress.dropped_cells,
            bins=len(bins),
            settled_bins=sum(policy.settled for policy in bins),
            contested_cells=len(self._release.cells),
        )

    def estimates(self) -> list[CellEstimate]:
        """Return f̃ and r of each contested cell, as the next step would see them."""
        f, r, _ = method.estimate(
            self._progress.state, self._constants, reported=self._progress.reported
        )
        arms = self.experiment.arms
        numbers = zip(self._release.cells, f.tolist(), r.tolist(), strict=True)
        return [
            CellEstimate(path, arms[arm], estimate if radius else None, radius or None)
            for (path, arm), estimate, radius in numbers
        ]

    def history(self) -> tuple[Dated, ...]:
        """Every elimination and cut so far, with the number of reports by then."""
        return self._progress.history

    def to_json(self) -> str:
        """Save the learner; it holds sums of reports and nothing about any person."""
        return progress_to_json(self.experiment, self._progress)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Learner":
        """Resume a saved learner; it goes on bit for bit as one that never stopped."""
        experiment, progress = progress_from_json(text)
        learner = cls.__new__(cls)
        learner._resume(experiment, progress)
        return learner

    def _step(self) -> None:
        progress = self._progress
        state, events = method.step(
            progress.state,
            self._constants,
            seed=self.experiment.seed,
            reported=progress.reported,
        )
        total = sum(progress.reports)
        version = progress.version + (state.bins != progress.state.bins)
        layouts = progress.layouts
        cells = state.cells
        if cells != layouts[-1].cells:
            layouts += (Layout(version, cells),)
            self._standing.clear()
        self._progress = replace(
            progress,
            version=version,
            state=state,
            layouts=layouts,
            reported=(False,) * len(progress.reported),
            history=progress.history + tuple(Dated(total, event) for event in events),
        )
        if version != progress.version:
            self._release = self._publish()

    def _publish(self) -> Release:
        state = self._progress.state
        return Release(self.experiment, self._progress.version, state.partition, state.bins)

    def _standing_of(self, layout: int) -> method.Standing:
        if layout not in self._standing:
            layouts = self._progress.layouts
            standing = method.Standing.of(layouts[layout].cells, layouts[-1].cells)
            self._standing[layout] = standing
        return self._standing[layout]

    def _check(self, report: Report) -> None:
        if not isinstance(report, Report):
            came = f"a {type(report).__name__}: decode it with sottovoce.wire"
            raise ReportRejected(
                Rejection.MALFORMED, must("what a learner gets", "be a Report", came)
            )
        fingerprint, version = self.experiment.fingerprint, self._progress.version
        if report.experiment != fingerprint:
            raise ReportRejected(
                Rejection.UNKNOWN_EXPERIMENT,
                must("a report's experiment", f"be {fingerprint}", report.experiment),
            )
        if not 1 <= report.release <= version:
            raise ReportRejected(
                Rejection.UNKNOWN_RELEASE,
                must("a report's release", f"lie between 1 and {version}", report.release),
            )
        populations = self.experiment.populations
        if not 0 <= report.population < len(populations):
            raise ReportRejected(
                Rejection.UNKNOWN_POPULATION,
                must("a report's population", f"be below {len(populations)}", report.population),
            )
        layout = self._progress.layouts[self._progress.layout_of(report.release)]
        expected = 2 * len(layout.cells)
        if len(report.payload) != expected:
            raise ReportRejected(
                Rejection.WRONG_LENGTH,
                must(
                    f"a report for release {report.release}",
                    f"have {expected} numbers",
                    len(report.payload),
                ),
            )
        if not all(map(math.isfinite, report.payload)):
            raise ReportRejected(
                Rejection.NOT_FINITE, "a report's numbers must be finite; got NaN or infinity"
            )
        most = largest_plausible(populations[report.population].epsilon)
        if report.payload and max(map(abs, report.payload)) > most:
            raise ReportRejected(
                Rejection.IMPLAUSIBLE,
                f"a report's numbers must lie within ±{most:g}; got a larger one",
            )


def _with(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
