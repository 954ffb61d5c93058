"""The learner's state as arrays over the nodes of a tree. The lab's crowd has the very same state.

S nodes at most, K arms, M + 1 populations. The live arms of a node, and their sums, are in its
first columns.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.tree import Tree, copy_into, has_room, new_tree

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Records = Any
"""An array of records. Their fields are attributes, whose names NumPy's types do not know."""

TOTALS = np.dtype(
    [
        ("nodes", "i8"),
        ("contested", "i8"),  # nodes where more than one arm is live
        ("events", "i8"),
        ("release", "i8"),  # version of the newest one
        ("reports", "i8"),
        ("depth", "i8"),  # of the tree
    ],
    align=True,
)

EVENT = np.dtype(
    [
        ("reports", "i8"),  # how many there were by then
        ("node", "i8"),
        ("axis", "i8"),  # the feature of a split; -1 if an arm was dropped
        ("arm", "i8"),  # the arm that was dropped
    ],
    align=True,
)


class State(NamedTuple):
    """All that the rules read and write."""

    tree: Tree
    arms: Counts  # (S, K) the live arms, in order, in the first ``live`` columns
    live: Counts  # (S,) how many there are
    propensities: Floats  # (S, K) the chance of each
    users: Counts  # (S, M+1) t_s^{m,j}
    pulls: Floats  # (S, M+1, K) ΣŨ
    rewards: Floats  # (S, M+1, K) ΣṼ
    running: Floats  # (S, 3, K) the authors' sums of running sums; 0 with the paper's preset
    contested: Counts  # (S,) the nodes where more than one arm is live
    fresh: Counts  # (M+1,) reports since the last step
    events: Records  # (2·S·K,) of EVENT
    totals: Records  # (1,) of TOTALS


def initial_state(constants: Constants, *, nodes: int = 64) -> State:
    """B_1 = {[0,1]^d}, A = [K]   (Algorithms 2 and 3, initialization)."""
    state = _allocate(nodes, constants)
    state.arms[0] = np.arange(constants.arms)
    state.live[0] = constants.arms
    state.propensities[0] = 1 / constants.arms
    totals = state.totals[0]
    totals.nodes, totals.contested, totals.release = 1, 1, 1
    return state


def with_room(state: State, constants: Constants) -> State:
    """Return a state with room for every contested bin to be split."""
    if has_room(state):
        return state
    larger = _allocate(2 * len(state.live), constants)
    copy_into(larger, state)
    return with_room(larger, constants)


def with_arms(state: State, constants: Constants) -> State:
    """Return a state with room for the arms that an experiment has by now."""
    larger = _allocate(len(state.live), constants)
    copy_into(larger, state)
    return larger


def _allocate(nodes: int, constants: Constants) -> State:
    arms, populations = constants.arms, len(constants.epsilons)

    def counts(*shape: int) -> Counts:
        return np.zeros(shape, dtype=np.int64)

    return State(
        tree=new_tree(nodes, constants.dimension),
        arms=counts(nodes, arms),
        live=counts(nodes),
        propensities=np.zeros((nodes, arms)),
        users=counts(nodes, populations),
        pulls=np.zeros((nodes, populations, arms)),
        rewards=np.zeros((nodes, populations, arms)),
        running=np.zeros((nodes, 3, arms)),
        contested=counts(nodes),
        fresh=counts(populations),
        events=np.zeros(2 * nodes * arms, dtype=EVENT).view(np.recarray),
        totals=np.zeros(1, dtype=TOTALS).view(np.recarray),
    )
