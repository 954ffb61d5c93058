"""Amendments: an arm comes, or goes.

A bin counts a user for all of its arms or for none. So a bin that gets another arm begins its sums
anew, for all of its arms: what earlier users said of some of them cannot be set beside it.
"""

import numpy as np

from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.ldpmab.state import State, with_arms, with_room
from sottovoce.estimate.ldpmab.step import contest
from sottovoce.estimate.tree import leaves_of, node_paths


def amend(state: State, before: Constants, now: Constants) -> tuple[State, list[str]]:
    """Return the state after one amendment, and the paths of the bins that begin their sums anew.

    Its release has the next version.
    """
    paths, anew = node_paths(state), []
    retired = np.flatnonzero(now.retired[: before.arms] & ~before.retired).tolist()
    added = list(range(before.arms, now.arms))
    if added:
        state = with_arms(state, now)
    state.totals[0].contested = 0
    for node in leaves_of(state.tree, paths):  # from low to high, as ``contested`` has them
        had = state.arms[node, : state.live[node]].tolist()
        arms = [arm for arm in [*had, *added] if arm not in retired]
        if not arms:  # whoever lost there lost to arms that are gone
            arms = np.flatnonzero(~now.retired).tolist()
        if added or not set(arms) <= set(had):
            begin_anew(state, node, arms)
            anew.append(paths[node])
        elif arms != had:
            keep(state, node, [had.index(arm) for arm in arms])
        if len(arms) > 1:
            contest(state, node)
    state.totals[0].release += 1
    return with_room(state, now), anew


def begin_anew(state: State, node: int, arms: list[int]) -> None:
    """Give a bin other arms, all with the same chance, and no sums."""
    state.arms[node, : len(arms)] = arms
    state.propensities[node, : len(arms)] = 1.0 / len(arms)
    state.live[node] = len(arms)
    state.users[node] = 0
    for sums in (state.pulls, state.rewards, state.running):
        sums[node] = 0.0


def keep(state: State, node: int, columns: list[int]) -> None:
    """Leave a bin some of its arms, with their sums, and all with the same chance."""
    stays = slice(len(columns))
    state.arms[node, stays] = state.arms[node, columns]
    state.propensities[node, stays] = 1.0 / len(columns)
    state.live[node] = len(columns)
    for sums in (state.pulls, state.rewards, state.running):
        sums[node, :, stays] = sums[node][:, columns]
