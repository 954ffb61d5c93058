"""The people who come: which bin they are in, which arm they get, what they add to the sums.

Small functions are inlined and get arrays rather than the whole crowd: to hand over a tuple of
twenty arrays costs more than the work they do.
"""

import numpy as np

from sottovoce.estimate.ldpmab.state import Counts, Floats, State
from sottovoce.estimate.tree import Tree
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.environments import People, Rows
from sottovoce.lab.ldpmab.noise import Devices, has_room, leaf_of, make_step
from sottovoce.lab.loop import compile_loop, outcome


@inlined
def find_leaves(tree: Tree, depth: int, points: Floats, leaves: Counts) -> None:
    """Fill in the leaf that holds each point.

    Level by level, all points at once and without a branch: a leaf leads to itself.
    """
    axis, middle, child = tree.axis, tree.middle, tree.child
    leaves[:] = 0
    for _ in range(depth):
        for i in range(len(leaves)):
            node = leaves[i]
            leaves[i] = child[node] + (points[i, axis[node]] >= middle[node])


@inlined
def draw_arm(propensities: Floats, node: int, live: int, rng: np.random.Generator) -> int:
    """Draw an arm by the policy of a node; return its column."""
    column = 0
    if live > 1:
        left = rng.random()
        for k in range(live - 1):
            left -= propensities[node, k]
            column += left >= 0.0
    return column


@compiled
def probabilities(state: State, devices: Devices, points: Floats, out: Floats) -> None:
    """Fill in the chance of each arm at each point, (P, K)."""
    out[:] = 0.0
    for p in range(len(points)):
        node = leaf_of(state.tree, points[p])
        for k in range(state.live[node]):
            out[p, state.arms[node, k]] = state.propensities[node, k]


@inlined
def serve(
    state: State,
    devices: Devices,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: np.random.Generator,
) -> None:
    """Let target users come; until the next step the tree and the policy stand still."""
    hits, leaves = devices.hits, devices.leaves[: stop - start]
    live, propensities = state.live, state.propensities
    pulls, rewards, totals = state.pulls, state.rewards, state.totals[0]
    find_leaves(state.tree, totals.depth, people.contexts[start:stop], leaves)
    for i in range(start, stop):
        node = leaves[i - start]
        column = draw_arm(propensities, node, live[node], rng)
        arms[i] = state.arms[node, column]
        if live[node] > 1 and devices.constants.running:
            hits[node, 0] += 1
            pulls[node, 0, column] += 1.0
            rewards[node, 0, column] += outcome(people, i, arms[i], rng)
    if devices.constants.running:
        state.fresh[0] += stop - start
        totals.reports += stop - start


@inlined
def contribute(
    state: State,
    devices: Devices,
    rows: Rows,
    start: int,
    stop: int,
    population: int,
    rng: np.random.Generator,
) -> None:
    """Let the rows of a log come."""
    leaves = devices.leaves[: stop - start]
    totals = state.totals[0]
    find_leaves(state.tree, totals.depth, rows.contexts[start:stop], leaves)
    for i in range(start, stop):
        node = leaves[i - start]
        if state.live[node] > 1:
            devices.hits[node, population] += 1
            for column in range(state.live[node]):
                if state.arms[node, column] == rows.arms[i]:
                    reward = outcome(rows, i, rows.arms[i], rng)
                    state.pulls[node, population, column] += 1.0
                    state.rewards[node, population, column] += reward
    state.fresh[population] += stop - start
    totals.reports += stop - start


LOOP = compile_loop(
    "ldpmab",
    serve=serve,
    probabilities=probabilities,
    contribute=contribute,
    step=make_step,
    has_room=has_room,
)
