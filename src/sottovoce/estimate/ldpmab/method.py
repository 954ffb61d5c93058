"""Algorithms 2 and 3 as two pure functions over an explicit state: ``absorb`` and ``step``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.estimate.history import Elimination, Event, Split
from sottovoce.estimate.ldpmab import rules
from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.ldpmab.rules import Counts, Floats
from sottovoce.shared.partition import Partition, max_edge_axis
from sottovoce.shared.release import BinPolicy, Cell, contested_cells, uniform


@dataclass(frozen=True, slots=True)
class State:
    """The partition, the policy of its bins, and the sums over its contested cells.

    M + 1 populations, B contested bins, N contested cells, both in the order of ``bins``.

    rewards (M+1, N)   ΣṼ
    pulls   (M+1, N)   ΣŨ
    users   (M+1, B)   t_s^{m,j}
    running (3, N)     the authors' sums of running sums; stays 0 with the paper's preset
    """

    partition: Partition
    bins: tuple[BinPolicy, ...]
    rewards: Floats
    pulls: Floats
    users: Counts
    running: Floats

    @property
    def contested(self) -> list[BinPolicy]:
        """The bins where more than one arm is left."""
        return [policy for policy in self.bins if not policy.settled]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The contested cells."""
        return contested_cells(self.bins)


def initial(constants: Constants) -> State:
    """B_1 = {[0,1]^d}, A = [K]   (Algorithms 2 and 3, initialization)."""
    bins = (uniform("", range(constants.arms)),)
    return _empty(Partition(constants.dimension), bins, populations=len(constants.epsilons))


def _empty(partition: Partition, bins: tuple[BinPolicy, ...], *, populations: int) -> State:
    contested = sum(not policy.settled for policy in bins)
    cells = len(contested_cells(bins))
    return State(
        partition,
        bins,
        rewards=np.zeros((populations, cells)),
        pulls=np.zeros((populations, cells)),
        users=np.zeros((populations, contested), dtype=np.int64),
        running=np.zeros((3, cells)),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """Which cells of a report's release still stand, and where they are today.

    A cell that stands today stood in every earlier release that had its bin, for arms are only
    ever dropped: a bin counts a user for all of its cells or for none.
    """

    cells_then: Counts
    cells_now: Counts
    bins_then: Counts
    bins_now: Counts

    @classmethod
    def of(cls, then: Sequence[Cell], now: Sequence[Cell]) -> "Standing":
        """Match the cells of a report's release with those of today."""
        return cls(*_matches(then, now), *_matches(_paths(then), _paths(now)))


def _paths(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(path for path, _ in cells))


def _matches(then: Sequence[object], now: Sequence[object]) -> Counts:
    """Return the places then and the places now of what is in both, (2, matches)."""
    place = {each: position for position, each in enumerate(then)}
    pairs = [(place[each], position) for position, each in enumerate(now) if each in place]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def absorb(state: State, payload: Sequence[float], *, population: int, standing: Standing) -> State:
    """Add one report to the sums: Ṽ and Ũ of each cell that still stands, one user in its bin."""
    rewards, pulls, users = state.rewards.copy(), state.pulls.copy(), state.users.copy()
    values = np.asarray(payload).reshape(2, -1)
    rewards[population, standing.cells_now] += values[0, standing.cells_then]
    pulls[population, standing.cells_now] += values[1, standing.cells_then]
    users[population, standing.bins_now] += 1
    return replace(state, rewards=rewards, pulls=pulls, users=users)


def estimate(
    state: State, constants: Constants, *, reported: Sequence[bool]
) -> tuple[Floats, Floats, Floats]:
    """Estimate each contested cell: f̃ (N), r (N) and the new running sums (3, N).

    reported: which populations reported since the last step; the authors' running sums grow by
    those, while the paper's estimator always takes all.
    """
    counted = np.array(reported, dtype=np.bool_) | (not constants.running_sums)
    estimates = np.empty(state.rewards.shape[1])
    radii = np.empty_like(estimates)
    running = state.running.copy()
    for position, cells in enumerate(_slices(state)):
        rules.estimate_bin(
            state.users[:, position],
            state.pulls[:, cells],
            state.rewards[:, cells],
            running[:, cells],
            counted,
            constants,
            estimates[cells],
            radii[cells],
        )
    return estimates, radii, running


def step(
    state: State, constants: Constants, *, seed: int, reported: Sequence[bool]
) -> tuple[State, list[Event]]:
    """Bounds → eliminate → refine, for every contested bin (the loops of Algorithms 2 and 3)."""
    estimates, radii, running = estimate(state, constants, reported=reported)
    keep = np.empty(len(estimates), dtype=np.bool_)
    propensities = np.empty(len(estimates))
    partition = state.partition
    bins: list[BinPolicy] = []
    events: list[Event] = []
    slices = iter(_slices(state))
    for policy in state.bins:
        if policy.settled:
            bins.append(policy)
            continue
        cells = next(slices)
        path = policy.path
        fine = rules.judge_bin(
            len(path), estimates[cells], radii[cells], constants, keep[cells], propensities[cells]
        )
        arms = tuple(arm for arm, stays in zip(policy.arms, keep[cells], strict=True) if stays)
        if len(arms) < len(policy.arms):
            events.append(Elimination(path, tuple(sorted({*policy.arms} - {*arms}))))
        axis = max_edge_axis(partition.box(path), path=path, seed=seed) if fine else None
        if axis is None:
            bins.append(BinPolicy(path, arms, tuple(propensities[cells][keep[cells]].tolist())))
        else:
            partition = partition.cut(path, axis=axis)
            events.append(Split(path, axis))
            bins += [uniform(path + side, arms) for side in "01"]
    return _carry(replace(state, running=running), partition, tuple(bins)), events


def _slices(state: State) -> list[slice]:
    """Where the cells of each contested bin are among all cells."""
    ends = np.cumsum([len(policy.arms) for policy in state.contested]).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def _carry(state: State, partition: Partition, bins: tuple[BinPolicy, ...]) -> State:
    """Move the sums of the cells that still stand; new bins begin with nothing."""
    after = _empty(partition, bins, populations=len(state.users))
    standing = Standing.of(state.cells, after.cells)
    then, now = standing.cells_then, standing.cells_now
    after.rewards[:, now] = state.rewards[:, then]
    after.pulls[:, now] = state.pulls[:, then]
    after.running[:, now] = state.running[:, then]
    after.users[:, standing.bins_now] = state.users[:, standing.bins_then]
    return after
