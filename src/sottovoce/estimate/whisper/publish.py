"""The state → what people see of it: the release and the certificates."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sottovoce.estimate.history import Certificate
from sottovoce.estimate.tree import leaves_of, node_paths, partition_of
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.decisions import allowance
from sottovoce.estimate.whisper.state import State
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release, uniform
from sottovoce.shared.whisper.caps import share_of


def release_of(experiment: Experiment, state: State) -> Release:
    """Return the release of now: the tree, and the policy of each leaf from low to high."""
    fixed, paths = constants(experiment), node_paths(state)
    leaves = leaves_of(state.tree, paths)
    bins = tuple(_policy(state, fixed, node, paths[node]) for node in leaves)
    totals, partition = state.totals[0], _partition(state, fixed, paths)
    ask = tuple(int(each) for each in state.ask)
    thresholds = tuple(int(each) for each in state.thresholds) if totals.scale_share else ()
    return Release(
        experiment,
        int(totals.release),
        partition,
        bins,
        int(totals.reward_share),
        ask,
        int(totals.scale_share),
        thresholds,
        int(state.gain.share[0]),
    )


def _partition(state: State, fixed: Constants, paths: Sequence[str]) -> Partition:
    """Return the tree, with the levels of the upper part where a bin was split by levels."""
    scaled = np.flatnonzero(state.scaled_since)
    scales = {int(axis): tuple(map(float, state.scale[axis])) for axis in scaled}
    halves = replace(partition_of(state.tree, paths), scales=scales)
    if not fixed.axes.levels.any():
        return halves
    nodes = {path: node for node, path in enumerate(paths)}
    sets = {
        path: frozenset(_levels_up(state, fixed, nodes[path], axis))
        for path, axis in halves.cuts.items()
        if fixed.axes.levels[axis]
    }
    return replace(halves, levels=tuple(map(int, fixed.axes.levels)), sets=sets)


def _levels_up(state: State, fixed: Constants, node: int, axis: int) -> list[int]:
    first, levels = int(fixed.axes.slots[axis]), int(fixed.axes.levels[axis])
    return [level for level in range(levels) if state.upper[node, first + level]]


def _policy(state: State, fixed: Constants, node: int, path: str) -> BinPolicy:
    """Return the policy of one leaf: champion and challenger, or every live arm if public."""
    offered = sorted({int(arm) for arm in state.pair[node]})
    live = [arm for arm in range(fixed.arms) if state.live[node, arm]]
    if fixed.public_arms:
        offered = live
    waiting = tuple(arm for arm in live if arm not in offered)
    chances = uniform(path, offered).propensities
    if fixed.capped and len(offered) == 2:  # arms are private: caps are refused where they are not
        first, second = offered
        chances = tuple(
            float(share_of(fixed.caps, *each)) for each in ((first, second), (second, first))
        )
    return BinPolicy(path, tuple(offered), chances, waiting)


def certificates_of(state: State, fixed: Constants, arms: Sequence[str]) -> tuple[Certificate, ...]:
    """Return the certificate of each dropped arm."""
    paths = node_paths(state)
    return tuple(
        Certificate(
            release=int(event.release),
            path=paths[event.node],
            dropped=arms[event.arm],
            winner=arms[event.winner],
            statistic=float(event.statistic),
            boundary=float(event.boundary),
            delta=_delta(state, fixed, event) if fixed.certified else None,
        )
        for event in state.events[: state.totals[0].events]
        if event.axis < 0
    )


def _delta(state: State, fixed: Constants, event: Any) -> float:
    return allowance(state, fixed, int(event.node), int(event.arm), int(event.winner))
