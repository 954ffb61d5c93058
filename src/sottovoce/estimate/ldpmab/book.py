"""``ldpmab`` as the learner uses it: the state of ``method``, and the cells of past releases."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.diagnosis import Diagnosis, Source
from sottovoce.estimate.gate import Batch, Gate
from sottovoce.estimate.history import Certificate, Event
from sottovoce.estimate.ldpmab import method
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.ldpmab.layouts import LdpmabLayouts
from sottovoce.estimate.method import CellEstimate
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


class LdpmabBook:
    """Implements ``Book``.

    reported: which populations reported since the last step.
    """

    def __init__(
        self,
        release: Release,
        state: method.State,
        layouts: LdpmabLayouts,
        reported: list[bool],
    ) -> None:
        self.release = release
        self.gate = Gate(release.experiment, layouts, newest=release.version)
        self.state = state
        self._constants = constants(release.experiment)
        self._layouts = layouts
        self._reported = reported
        self._standing: dict[int, method.Standing] = {}

    @classmethod
    def begin(cls, experiment: Experiment) -> "LdpmabBook":
        """Open a book: one bin, all arms."""
        state = method.initial(constants(experiment))
        release = Release(experiment, 1, state.partition, state.bins)
        layouts = LdpmabLayouts(experiment)
        layouts.record(release)
        return cls(release, state, layouts, [False] * len(experiment.populations))

    def absorb(self, batch: Batch) -> int:
        """Add a report to the sums."""
        report = batch.report
        standing = self._standing_of(report.release)
        self.state = method.absorb(
            self.state,
            cast(tuple[float, ...], report.payload),
            population=report.population,
            standing=standing,
        )
        self._reported[report.population] = True
        return len(self._layouts.of(report.release).cells) - len(standing.cells_now)

    def step(self) -> list[Event]:
        """Bounds → eliminate → refine."""
        experiment = self.release.experiment
        state, events = method.step(
            self.state, self._constants, seed=experiment.seed, reported=self._reported
        )
        if state.bins != self.state.bins:
            version = self.release.version + 1
            self.release = Release(experiment, version, state.partition, state.bins)
            self.gate.publish(self.release)
            self._standing.clear()
        self.state = state
        self._reported = [False] * len(self._reported)
        return events

    def estimates(self) -> list[CellEstimate]:
        """Return f̃ and r of each contested cell, as the next step would see them."""
        f, r, _ = method.estimate(self.state, self._constants, reported=self._reported)
        arms = self.release.experiment.arms
        numbers = zip(self.release.cells, f.tolist(), r.tolist(), strict=True)
        return [
            CellEstimate(path, arms[arm], estimate if radius else None, radius or None)
            for (path, arm), estimate, radius in numbers
        ]

    def certificates(self) -> tuple[Certificate, ...]:
        """Return none: the paper's method has no certificates."""
        return ()

    def diagnose(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the privacy budgets tell; the paper's method asks nobody how it went."""
        target, *others = self.release.experiment.populations
        return Diagnosis(
            tuple(
                Source(
                    population=each.name,
                    epsilon=each.epsilon,
                    reports=reports[m],
                    expected=each.users,
                    # The noise of V and U has a standard deviation that goes with 1/ε.
                    worth=(each.epsilon / target.epsilon) ** 2,
                    exploration=None,
                    overlap=None,
                    promises=None,
                    harmful=False,
                )
                for m, each in enumerate(others, start=1)
            ),
            audit=None,
        )

    def to_table(self) -> dict[str, Any]:
        """Write the sums and the layouts."""
        state = self.state
        return {
            "layouts": self._layouts.to_table(),
            "reported": self._reported,
            "rewards": state.rewards.tolist(),
            "pulls": state.pulls.tolist(),
            "users": state.users.tolist(),
            "running": state.running.tolist(),
        }

    @classmethod
    def from_table(cls, release: Release, table: dict[str, Any]) -> "LdpmabBook":
        """Read what ``to_table`` wrote; what is inconsistent raises ValueError or the like."""
        populations, cells = len(release.experiment.populations), len(release.cells)
        contested = len(release.contested)
        layouts = LdpmabLayouts.from_table(release, table["layouts"])
        reported = list(map(bool, table["reported"]))
        if len(reported) != populations:
            raise ValueError("its counts do not fit its populations")
        state = method.State(
            release.partition,
            release.bins,
            rewards=_array(table, "rewards", (populations, cells)),
            pulls=_array(table, "pulls", (populations, cells)),
            users=_counts(table, "users", (populations, contested)),
            running=_array(table, "running", (3, cells)),
        )
        return cls(release, state, layouts, reported)

    def _standing_of(self, version: int) -> method.Standing:
        layout = self._layouts.of(version)
        if layout.since not in self._standing:
            standing = method.Standing.of(layout.cells, self.release.cells)
            self._standing[layout.since] = standing
        return self._standing[layout.since]


def _array(table: dict[str, Any], name: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    array = np.array(table[name], dtype=np.float64)
    if array.size == 0:  # everything is settled, and JSON does not keep the shape of nothing
        array = array.reshape(shape)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {shape} finite numbers")
    return array


def _counts(table: dict[str, Any], name: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    array = _array(table, name, shape)
    if (array < 0).any() or (array != array.round()).any():
        raise ValueError(f"{name} must be whole numbers >= 0")
    return array.astype(np.int64)
