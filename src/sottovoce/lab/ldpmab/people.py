"""The people who come: which bin they are in, which arm they get, what they add to the sums.

Small functions are inlined and get arrays rather than the whole crowd: to hand over a tuple of
twenty arrays costs more than the work they do.
"""

import numpy as np

from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.driver import compile_loop, outcome
from sottovoce.lab.environments import People, Rows
from sottovoce.lab.ldpmab.state import (
    CONTESTED,
    DEPTH,
    NODES,
    REPORTS,
    Counts,
    Crowd,
    Fixed,
    Floats,
)
from sottovoce.lab.ldpmab.steps import step


@inlined
def find(
    axis: Counts, middle: Floats, child: Counts, depth: int, points: Floats, homes: Counts
) -> None:
    """Fill in the leaf that holds each point.

    Level by level, all points at once and without a branch: a leaf leads to itself.
    """
    homes[:] = 0
    for _ in range(depth):
        for i in range(len(homes)):
            node = homes[i]
            homes[i] = child[node] + (points[i, axis[node]] >= middle[node])


@inlined
def draw(propensities: Floats, node: int, live: int, rng: np.random.Generator) -> int:
    """Draw an arm by the policy of a node; return its place among the live ones."""
    place = 0
    if live > 1:
        left = rng.random()
        for k in range(live - 1):
            left -= propensities[node, k]
            place += left >= 0.0
    return place


@compiled
def probabilities(crowd: Crowd, fixed: Fixed, points: Floats, out: Floats) -> None:
    """Fill in the chance of each arm at each point, (P, K)."""
    out[:] = 0.0
    homes = np.empty(len(points), dtype=np.int64)
    find(crowd.axis, crowd.middle, crowd.child, crowd.totals[DEPTH], points, homes)
    for p in range(len(points)):
        node = homes[p]
        for k in range(crowd.live[node]):
            out[p, crowd.arms[node, k]] = crowd.propensities[node, k]


@inlined
def serve(
    crowd: Crowd,
    fixed: Fixed,
    people: People,
    start: int,
    stop: int,
    arms: Counts,
    rng: np.random.Generator,
) -> None:
    """Let target users come; until the next step the tree and the policy stand still."""
    live, propensities = crowd.live, crowd.propensities
    hits, pulls, rewards = crowd.hits, crowd.pulls, crowd.rewards
    homes = fixed.homes[: stop - start]
    depth = crowd.totals[DEPTH]
    find(crowd.axis, crowd.middle, crowd.child, depth, people.contexts[start:stop], homes)
    for i in range(start, stop):
        node = homes[i - start]
        place = draw(propensities, node, live[node], rng)
        arms[i] = crowd.arms[node, place]
        if live[node] > 1:
            hits[node, 0] += 1
            pulls[node, 0, place] += 1.0
            rewards[node, 0, place] += outcome(people, i, arms[i], rng)
    crowd.fresh[0] += stop - start
    crowd.totals[REPORTS] += stop - start


@inlined
def contribute(
    crowd: Crowd,
    fixed: Fixed,
    rows: Rows,
    start: int,
    stop: int,
    population: int,
    rng: np.random.Generator,
) -> None:
    """Let the rows of a log come."""
    homes = fixed.homes[: stop - start]
    depth = crowd.totals[DEPTH]
    find(crowd.axis, crowd.middle, crowd.child, depth, rows.contexts[start:stop], homes)
    for i in range(start, stop):
        node = homes[i - start]
        if crowd.live[node] > 1:
            crowd.hits[node, population] += 1
            for place in range(crowd.live[node]):
                if crowd.arms[node, place] == rows.arms[i]:
                    reward = outcome(rows, i, rows.arms[i], rng)
                    crowd.pulls[node, population, place] += 1.0
                    crowd.rewards[node, population, place] += reward
    crowd.fresh[population] += stop - start
    crowd.totals[REPORTS] += stop - start


@inlined
def has_room(crowd: Crowd) -> bool:
    """Say whether every contested bin can be cut."""
    enough: bool = crowd.totals[NODES] + 2 * crowd.totals[CONTESTED] <= len(crowd.axis)
    return enough


LOOP = compile_loop(
    "ldpmab",
    serve=serve,
    probabilities=probabilities,
    contribute=contribute,
    step=step,
    has_room=has_room,
)
