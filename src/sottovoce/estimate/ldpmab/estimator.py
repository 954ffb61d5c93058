"""``ldpmab`` as the learner uses it: the state, and the cells of past releases."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis, Source
from sottovoce.estimate.figures import Known
from sottovoce.estimate.gate import Batch, Gate, saved_ids
from sottovoce.estimate.history import Certificate, Event, history_of
from sottovoce.estimate.ldpmab.amend import amend
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.ldpmab.past_releases import LdpmabReleases
from sottovoce.estimate.ldpmab.publish import release_of, state_of
from sottovoce.estimate.ldpmab.rules import estimate_bin
from sottovoce.estimate.ldpmab.state import Counts, Floats, State, initial_state, with_room
from sottovoce.estimate.ldpmab.step import (
    Coins,
    first_columns,
    mark_counted,
    new_scratch,
    step,
    sums_of,
)
from sottovoce.estimate.method import CellEstimate
from sottovoce.estimate.tree import node_paths
from sottovoce.shared.allocation import Allocation
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Cell, Release
from sottovoce.shared.wire import release_id


@dataclass(frozen=True, slots=True)
class CellMatch:
    """Which cells of a report's release still stand, and where in the state they are.

    A cell that stands today stood in every earlier release that had its bin, since the bin last
    began its sums: in between arms are only ever dropped. A bin counts a user for all of its cells
    or for none.

    reported: the position of each such cell among those of the report.
    nodes, columns: where its sums are.
    bins: the nodes of these cells, each once.
    """

    reported: Counts
    nodes: Counts
    columns: Counts
    bins: Counts

    @classmethod
    def of(cls, cells: Sequence[Cell], state: State, *, anew: Container[str] = ()) -> "CellMatch":
        """Match the cells of a report's release with those of today.

        anew: the bins that have begun their sums since that release.
        """
        position = {cell: index for index, cell in enumerate(cells)}
        paths = node_paths(state)
        matches = [
            (position[paths[node], arm], node, column)
            for node in state.contested[: state.totals[0].contested].tolist()
            for column, arm in enumerate(state.arms[node, : state.live[node]].tolist())
            if (paths[node], arm) in position and paths[node] not in anew
        ]
        reported, nodes, columns = np.array(matches, dtype=np.int64).reshape(-1, 3).T
        bins = np.array(list(dict.fromkeys(nodes.tolist())), dtype=np.int64)
        return cls(reported, nodes, columns, bins)


class LdpmabEstimator:
    """Implements ``Estimator``."""

    def __init__(
        self, release: Release, state: State, past: LdpmabReleases, ids: Sequence[bytes]
    ) -> None:
        self.release = release
        self.gate = Gate(release.experiment, past, ids=ids)
        self.state = state
        self._constants = constants(release.experiment)
        self._scratch = new_scratch(self._constants)
        self._past = past
        self._matches: dict[int, CellMatch] = {}
        self._measured: dict[Cell, tuple[float, float]] = {}  # where nobody measures any more
        self._since: dict[str, int] = {}  # the first release for whose reports a bin has sums

    def absorb(self, batch: Batch) -> int:
        """Add a report to the sums: Ṽ and Ũ of each cell that still stands, one user in its bin."""
        report, state = batch.report, self.state
        since, cells = self._past.of(batch.version)
        if since not in self._matches:
            anew = {path for path, first in self._since.items() if since < first}
            self._matches[since] = CellMatch.of(cells, state, anew=anew)
        match = self._matches[since]
        population = report.population
        values = np.asarray(cast(tuple[float, ...], report.payload)).reshape(2, -1)
        state.rewards[match.nodes, population, match.columns] += values[0, match.reported]
        state.pulls[match.nodes, population, match.columns] += values[1, match.reported]
        state.users[match.bins, population] += 1
        state.fresh[population] += 1
        return len(cells) - len(match.nodes)

    def step(self) -> list[Event]:
        """Bounds → eliminate → refine."""
        experiment = self.release.experiment
        self.state = state = with_room(self.state, self._constants)
        coins = Coins(experiment.seed, node_paths(state))
        before = self._contested()
        step(state, self._constants, self._scratch, coins)
        events = [dated.event for dated in history_of(state)]
        totals = state.totals[0]
        totals.events = 0
        if totals.release != self.release.version:
            # From low to high, so that the next step's events are in that order, too.
            paths, contested = node_paths(state), state.contested[: totals.contested]
            contested[:] = sorted(contested.tolist(), key=paths.__getitem__)
            self.release = release_of(experiment, state)
            self.gate.publish(self.release)
            self._matches.clear()
            self._keep(before)
        return events

    def amend(self, experiment: Experiment) -> None:
        """Go on with an amended experiment."""
        before, self._constants = self._constants, constants(experiment)
        self.state, anew = amend(self.state, before, self._constants)
        self._scratch = new_scratch(self._constants)
        self.release = release_of(experiment, self.state)
        self._since |= dict.fromkeys(anew, self.release.version)
        self.gate.publish(self.release)
        self._matches.clear()

    def estimates(self) -> list[CellEstimate]:
        """Return f̃ and r of each arm in each bin.

        Those of contested cells as the next step would see them. The others as they were when the
        last step saw them, in the bin or in one that it was a part of.
        """
        experiment, contested, found = self.release.experiment, self._contested(), []
        for policy in self.release.bins:
            for arm, name in enumerate(experiment.arms):
                if arm in experiment.retired:
                    continue
                cell = policy.path, arm
                known = contested[cell] if cell in contested else self._last_measured(*cell)
                live = arm in policy.live
                estimate, radius = known or (None, None)
                found.append(CellEstimate(policy.path, name, estimate, radius, live=live))
        return found

    def _last_measured(self, path: str, arm: int) -> tuple[float, float] | None:
        within = (path[:depth] for depth in range(len(path), -1, -1))
        return next(
            (self._measured[each, arm] for each in within if (each, arm) in self._measured), None
        )

    def _keep(self, before: Mapping[Cell, tuple[float, float] | None]) -> None:
        """Keep what was known of cells that nobody measures any more."""
        cells = set(self.release.cells)
        self._measured |= {
            cell: known for cell, known in before.items() if known and cell not in cells
        }

    def shares(self) -> dict[str, Known]:
        """Return nothing: the paper's method does not ask who is where."""
        return {}

    def worth(self, allocation: Allocation) -> None:
        """Return nothing: the sums of an arm end when it is dropped, and at every split."""

    def _contested(self) -> dict[Cell, tuple[float, float] | None]:
        """Return f̃ and r of each contested cell; None where it is too early."""
        counted = self._scratch.counted
        mark_counted(self.state, self._constants, counted)
        paths = node_paths(self.state)
        estimates: dict[Cell, tuple[float, float] | None] = {}
        for node in self.state.contested[: self.state.totals[0].contested].tolist():
            arms = self.state.arms[node, : self.state.live[node]].tolist()
            sums = sums_of(self.state, node)
            sums = sums._replace(running=sums.running.copy())
            found = first_columns(self._scratch.verdict, len(arms))
            estimate_bin(sums, counted, self._constants, found)
            numbers = zip(arms, found.estimates.tolist(), found.radii.tolist(), strict=True)
            for arm, estimate, radius in numbers:
                estimates[paths[node], arm] = (estimate, radius) if radius else None
        return estimates

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

    def read_since(self, table: dict[str, Any]) -> None:
        """Read since when bins have had their sums."""
        self._since = {str(path): int(first) for path, first in table.items()}
        if not all(1 < first <= self.release.version for first in self._since.values()):
            raise ValueError("its bins cannot have begun anew when it says")

    def read_measured(self, table: list[list[Any]]) -> None:
        """Read what was known of cells that nobody measures any more."""
        arms = len(self.release.experiment.arms)
        for path, arm, *known in table:
            estimate, radius = map(float, known)
            if not 0 <= arm < arms or not np.isfinite(estimate) or not radius > 0:
                raise ValueError("its estimates of arms that were dropped cannot be")
            self._measured[str(path), int(arm)] = (estimate, radius)

    def to_table(self) -> dict[str, Any]:
        """Write the past releases, and the sums of the contested cells in their order."""
        state, cells = self.state, CellMatch.of(self.release.cells, self.state)
        return {
            "past": self._past.to_table(),
            "reported": (state.fresh > 0).tolist(),
            "rewards": state.rewards[cells.nodes, :, cells.columns].T.tolist(),
            "pulls": state.pulls[cells.nodes, :, cells.columns].T.tolist(),
            "users": state.users[cells.bins].T.tolist(),
            "running": state.running[cells.nodes, :, cells.columns].T.tolist(),
            "since": self._since,
            "measured": [[*cell, *known] for cell, known in sorted(self._measured.items())],
        }


def begin(experiment: Experiment) -> LdpmabEstimator:
    """Begin with one bin and all arms."""
    state = initial_state(constants(experiment))
    release = release_of(experiment, state)
    past = LdpmabReleases(experiment)
    past.record(release)
    return LdpmabEstimator(release, state, past, [release_id(release)])


def resume(release: Release, table: dict[str, Any]) -> LdpmabEstimator:
    """Read what ``to_table`` wrote; what is inconsistent raises ValueError or the like."""
    populations, count = len(release.experiment.populations), len(release.cells)
    past = LdpmabReleases.from_table(release, table["past"])
    reported = list(map(bool, table["reported"]))
    if len(reported) != populations:
        raise ValueError("its counts do not fit its populations")
    state = state_of(release)
    cells = CellMatch.of(release.cells, state)
    state.fresh[:] = reported
    for name, sums in (("rewards", state.rewards), ("pulls", state.pulls)):
        sums[cells.nodes, :, cells.columns] = _array(table, name, (populations, count)).T
    state.running[cells.nodes, :, cells.columns] = _array(table, "running", (3, count)).T
    users = _array(table, "users", (populations, len(release.contested)))
    if (users < 0).any() or (users != users.round()).any():
        raise ValueError("users must be whole numbers >= 0")
    state.users[cells.bins] = users.T
    estimator = LdpmabEstimator(release, state, past, saved_ids(release, table))
    estimator.read_since(table["since"])
    estimator.read_measured(table["measured"])
    return estimator


def _array(table: dict[str, Any], name: str, shape: tuple[int, int]) -> Floats:
    array = np.array(table[name], dtype=np.float64)
    if array.size == 0:  # everything is settled, and JSON does not keep the shape of nothing
        array = array.reshape(shape)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {shape} finite numbers")
    return array
