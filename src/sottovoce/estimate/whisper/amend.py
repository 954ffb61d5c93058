"""Amendments: an arm comes, or goes, and the learner goes on with all that it knows.

A new arm enters every bin, settled ones too, with the prior that every arm had at the beginning.
A retired arm leaves every bin. Arms that were dropped in its favour come back, with what is known
of them: what proved that they lose proves nothing about those that are left.

docs/explanation/whisper.md derives the rules.
"""

import numpy as np

from sottovoce.estimate.whisper.audit import forecast, reward_share
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.decisions import axis_variation, choose_pair
from sottovoce.estimate.whisper.measurement import estimate
from sottovoce.estimate.whisper.relevance import ask_about
from sottovoce.estimate.whisper.smoothing import smooth
from sottovoce.estimate.whisper.state import State, with_arms, with_room
from sottovoce.estimate.whisper.step import contest
from sottovoce.shared.whisper.tuning import REWARD_DEVIATION, SLOPE_DEVIATION


def amend(state: State, before: Constants, now: Constants) -> State:
    """Return the state after one amendment: with another arm, without one, or as it is.

    Its release has the next version. Where there is room, the state is updated in place.
    """
    retires = np.flatnonzero(now.retired[: before.arms] & ~before.retired).tolist()
    if now.arms > before.arms:
        state = with_arms(state, now)
        for arm in range(before.arms, now.arms):
            add(state, now, arm)
    for arm in retires:
        retire(state, now, arm)
    if now.arms > before.arms or retires:
        state.totals[0].amended = state.totals[0].reports
        smooth(state, now)
        compare_again(state, now)
    state.totals[0].release += 1
    return with_room(state, now)


def add(state: State, constants: Constants, arm: int) -> None:
    """Let an arm enter every bin, as it would have at the beginning: with nothing known of it."""
    totals = state.totals[0]
    nodes = slice(int(totals.nodes))
    state.live[nodes, arm] = True
    enter(state, nodes, arm)
    state.prior.precision[nodes, 0, arm, arm] = 1.0 / REWARD_DEVIATION**2
    for axis in range(constants.dimension):
        for slot in range(*constants.axes.slots[axis : axis + 2]):
            square = SLOPE_DEVIATION**2 * state.relevance[axis]
            state.prior.precision[nodes, 1 + slot, arm, arm] = 1.0 / square
    for node in leaves(state):
        totals.places += 1
        state.place[node, arm] = totals.places


def retire(state: State, constants: Constants, arm: int) -> None:
    """Let an arm leave every bin; those that were dropped in its favour there come back."""
    nodes, parents = int(state.totals[0].nodes), parents_of(state)
    for node in range(nodes):
        if not state.live[node, arm]:
            continue
        dropped = np.flatnonzero(~state.live[node] & ~constants.retired).tolist()
        winners = winners_in(state, parents, node)
        for other in [each for each in dropped if stands_for(state, winners, node, each) == arm]:
            state.live[node, other] = True
            enter(state, slice(node, node + 1), other)
    state.live[:nodes, arm] = False
    for node in range(nodes):  # an inner node may have lost all that it had when it was split
        if not state.live[node].any():
            state.live[node] = ~constants.retired


def winners_in(state: State, parents: list[int], node: int) -> dict[int, int]:
    """Return in whose favour each arm was dropped last, in a bin or in one that it is a part of."""
    within = {node, 0}
    while node > 0:
        node = parents[node]
        within.add(node)
    return {
        int(event.arm): int(event.winner)
        for event in state.events[: state.totals[0].events]
        if event.axis < 0 and int(event.node) in within
    }


def stands_for(state: State, winners: dict[int, int], node: int, arm: int) -> int:
    """Return the live arm that a dropped one lost to, or that the one it lost to did, and so on."""
    while not state.live[node, arm]:
        arm = winners[arm]
    return arm


def enter(state: State, nodes: slice, arm: int) -> None:
    """Write down who had paid for comparisons before an arm came into some bins."""
    state.entered[nodes, arm, 0] = state.totals[0].paid
    state.entered[nodes, arm, 1] = state.totals[0].rows_paid


def compare_again(state: State, constants: Constants) -> None:
    """Look at every bin: choose the two arms that are compared there now."""
    totals = state.totals[0]
    varies = np.zeros(constants.dimension)
    totals.contested = 0
    for node in range(totals.nodes):
        known = estimate(state, constants, node)
        pair = choose_pair(state.live[node], known.mean, known.covariance, constants.caps)
        state.pair[node] = pair
        if state.tree.child[node] != node:
            continue
        forecast(state, constants, node, known.people.share[0], known.mean)
        if pair[0] != pair[1]:
            contest(state, node)
            for axis in range(constants.dimension):
                seen, doubt = axis_variation(state, constants, node, known, *pair, axis)
                varies[axis] += known.people.share[0] * (seen + doubt)
    if totals.contested > 0:
        ask_about(state, constants, varies)
    totals.reward_share = reward_share(state, constants)


def leaves(state: State) -> list[int]:
    """Return the bins, in the order in which they were made."""
    nodes = np.arange(state.totals[0].nodes)
    return [int(node) for node in nodes[state.tree.child[: len(nodes)] == nodes]]


def parents_of(state: State) -> list[int]:
    """Return the parent of each node; of the root, the root."""
    parents = [0] * int(state.totals[0].nodes)
    for node, child in enumerate(state.tree.child[: len(parents)].tolist()):
        if child != node:
            parents[child] = parents[child + 1] = node
    return parents
