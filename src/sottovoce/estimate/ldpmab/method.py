"""Algorithms 2 and 3 as two pure functions over an explicit state: ``absorb`` and ``step``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.estimate.history import Cut, Elimination, Event
from sottovoce.estimate.ldpmab import rules
from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.ldpmab.rules import Counts, Floats
from sottovoce.shared.partition import Partition, max_edge_axis
from sottovoce.shared.release import BinPolicy, Cell, uniform


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
    def cells(self) -> list[Cell]:
        """The contested cells."""
        return [(policy.path, arm) for policy in self.contested for arm in policy.arms]


def initial(constants: Constants) -> State:
    """B_1 = {[0,1]^d}, A = [K]   (Algorithms 2 and 3, initialization)."""
    bins = (uniform("", range(constants.arms)),)
    return _empty(Partition(constants.dimension), bins, populations=len(constants.epsilons))


def _empty(partition: Partition, bins: tuple[BinPolicy, ...], *, populations: int) -> State:
    contested = [policy for policy in bins if not policy.settled]
    cells = sum(len(policy.arms) for policy in contested)
    return State(
        partition,
        bins,
        rewards=np.zeros((populations, cells)),
        pulls=np.zeros((populations, cells)),
        users=np.zeros((populations, len(contested)), dtype=np.int64),
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
    bins_now: Counts

    @classmethod
    def of(cls, then: Sequence[Cell], now: Sequence[Cell]) -> "Standing":
        """Match the cells of a report's release with those of today."""
        position_then = {cell: position for position, cell in enumerate(then)}
        pairs = [
            (position_then[cell], position)
            for position, cell in enumerate(now)
            if cell in position_then
        ]
        paths_then = {path for path, _ in then}
        paths_now = dict.fromkeys(path for path, _ in now)
        bins_now = [position for position, path in enumerate(paths_now) if path in paths_then]
        return cls(
            np.array([each for each, _ in pairs], dtype=np.int64),
            np.array([each for _, each in pairs], dtype=np.int64),
            np.array(bins_now, dtype=np.int64),
        )


def absorb(state: State, payload: Sequence[float], *, population: int, standing: Standing) -> State:
    """Add one report to the sums: Ṽ and Ũ of each cell that still stands, one user in its bin."""
    rewards, pulls, users = state.rewards.copy(), state.pulls.copy(), state.users.copy()
    values = np.asarray(payload).reshape(2, -1)
    rewards[population, standing.cells_now] += values[0, standing.cells_then]
    pulls[population, standing.cells_now] += values[1, standing.cells_then]
    users[population, standing.bins_now] += 1
    return replace(state, rewards=rewards, pulls=pulls, users=users)


def judge(
    state: State, constants: Constants, *, reported: Sequence[bool]
) -> tuple[list[float], list[float], Floats]:
    """Estimate each contested cell: f̃, r and the new running sums.

    reported: which populations reported since the last step (for the authors' running sums).
    """
    counted = np.array(reported) if constants.running_sums else np.ones(len(reported), dtype=bool)
    running = np.zeros_like(state.running)
    estimates, radii = [], []
    cell = 0
    for position, policy in enumerate(state.contested):
        for _ in policy.arms:
            sums = rules.weigh(
                state.users[:, position],
                state.pulls[:, cell],
                state.rewards[:, cell],
                constants.epsilons,
                counted,
                constants.warm_up,
            )
            if constants.running_sums:
                running[:, cell] = state.running[:, cell] + sums
                sums = tuple(running[:, cell])
            weighted_rewards, weighted_pulls, spread = sums
            value = rules.estimate(weighted_rewards, weighted_pulls)
            estimates.append(min(max(value, 0.0), 1.0) if constants.clip else value)
            radii.append(rules.radius(constants.confidence, spread, weighted_pulls))
            cell += 1
    return estimates, radii, running


def step(
    state: State, constants: Constants, *, seed: int, reported: Sequence[bool]
) -> tuple[State, list[Event]]:
    """Bounds → eliminate → refine, for every contested bin (the loops of Algorithms 2 and 3)."""
    estimates, radii, running = judge(state, constants, reported=reported)
    partition = state.partition
    events: list[Event] = []
    next_bins: list[BinPolicy] = []
    kept: list[int] = []  # cells whose sums go on
    cell = 0
    for policy in state.bins:
        if policy.settled:
            # Departs from the paper: a bin with one arm left is neither asked about nor refined.
            # Nothing is left to decide there, and no other bin's sums depend on it.
            next_bins.append(policy)
            continue
        cells = range(cell, cell + len(policy.arms))
        cell = cells.stop
        tau = constants.tau(len(policy.path))
        keep = np.empty(len(policy.arms), dtype=np.bool_)
        f = estimates[cells.start : cells.stop]
        r = radii[cells.start : cells.stop]
        rules.eliminate(f, r, tau, constants.band_radius, constants.band_tau, keep)
        live = [position for position in range(len(keep)) if keep[position]]
        arms = tuple(policy.arms[position] for position in live)
        f, r = [f[position] for position in live], [r[position] for position in live]
        if dropped := tuple(arm for arm in policy.arms if arm not in arms):
            events.append(Elimination(policy.path, dropped))
        if len(arms) == 1:
            next_bins.append(uniform(policy.path, arms))
            continue
        axis = None
        if len(policy.path) < constants.deepest and rules.is_fine_enough(
            r, tau, constants.cut_when_all
        ):
            axis = max_edge_axis(partition.box(policy.path), path=policy.path, seed=seed)
        if axis is None:
            chances = np.empty(len(arms))
            rules.tilt(f, constants.arms, constants.tilt, chances)
            next_bins.append(BinPolicy(policy.path, arms, tuple(chances.tolist())))
            kept += [cells.start + position for position in live]
        else:
            partition = partition.cut(policy.path, axis=axis)
            next_bins += [uniform(policy.path + side, arms) for side in "01"]
            events.append(Cut(policy.path, axis))
    after = _carry(replace(state, running=running), partition, tuple(next_bins), kept)
    return after, events


def _carry(
    state: State, partition: Partition, bins: tuple[BinPolicy, ...], kept: list[int]
) -> State:
    """Move the sums of the kept cells to the next state; new bins begin with nothing."""
    if len(kept) == state.rewards.shape[1]:
        return replace(state, partition=partition, bins=bins)
    after = _empty(partition, bins, populations=len(state.users))
    before = state.cells
    place = {cell: position for position, cell in enumerate(after.cells)}
    bins_before = {policy.path: position for position, policy in enumerate(state.contested)}
    for position in kept:
        target = place[before[position]]
        after.rewards[:, target] = state.rewards[:, position]
        after.pulls[:, target] = state.pulls[:, position]
        after.running[:, target] = state.running[:, position]
    for position, policy in enumerate(after.contested):
        if policy.path in bins_before:
            after.users[:, position] = state.users[:, bins_before[policy.path]]
    return after
