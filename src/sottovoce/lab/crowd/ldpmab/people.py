"""The people who come: which bin they are in, which arm they get, what they add to the sums.

Small functions are inlined and get arrays rather than the whole crowd: to hand over a tuple of
twenty arrays costs more than the work they do.
"""

import numpy as np

from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.lab.compiled import compiled, inlined
from sottovoce.lab.crowd.ldpmab.state import CONTESTED, DEPTH, NODES, REPORTS, Counts, Crowd, Floats
from sottovoce.lab.crowd.ldpmab.steps import step


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


@inlined
def outcome(outcomes: Floats, means: Floats, i: int, arm: int, rng: np.random.Generator) -> float:
    """Draw the reward of a person's arm."""
    reward: float = 1.0 * (rng.random() < means[i, arm]) if len(outcomes) == 0 else outcomes[i, arm]
    return reward


@compiled
def look(crowd: Crowd, points: Floats, policies: Floats) -> None:
    """Fill in the chance of each arm at each point, (P, K)."""
    policies[:] = 0.0
    homes = np.empty(len(points), dtype=np.int64)
    find(crowd.axis, crowd.middle, crowd.child, crowd.totals[DEPTH], points, homes)
    for p in range(len(points)):
        node = homes[p]
        for k in range(crowd.live[node]):
            policies[p, crowd.arms[node, k]] = crowd.propensities[node, k]


@compiled
def serve(
    crowd: Crowd,
    constants: Constants,
    rng: np.random.Generator,
    start: int,
    contexts: Floats,
    means: Floats,
    outcomes: Floats,
    points: Floats,
    lost: Floats,
    regret: Floats,
    policies: Floats,
) -> tuple[int, int]:
    """Let target users come from ``start`` on.

    Return where it stopped, at the end of the block or for more room, and the number of releases
    passed on the way.

    contexts (n, d), means (n, K)
    outcomes (n, K)    what each arm would bring; with 0 rows, 1 with probability ``means``
    lost (1,)          what all target users have lost so far; goes up
    regret (R,)        filled in: ``lost`` at each release
    points (P, d), policies (R, P, K)   filled in: the policy at the points until each release
    """
    axis, middle, child = crowd.axis, crowd.middle, crowd.child
    arms, live, propensities = crowd.arms, crowd.live, crowd.propensities
    hits, pulls, rewards, totals = crowd.hits, crowd.pulls, crowd.rewards, crowd.totals
    homes = np.empty(min(len(contexts), crowd.release_every), dtype=np.int64)
    releases = 0
    i = start
    while i < len(contexts) and totals[NODES] + 2 * totals[CONTESTED] <= len(axis):
        # Until the next step the tree and the policy stand still.
        stop = min(len(contexts), i + crowd.release_every - totals[REPORTS] % crowd.release_every)
        begun = i
        find(axis, middle, child, totals[DEPTH], contexts[begun:stop], homes[: stop - begun])
        for i in range(begun, stop):
            node = homes[i - begun]
            place = draw(propensities, node, live[node], rng)
            arm = arms[node, place]
            best = means[i, 0]
            for k in range(1, means.shape[1]):
                best = max(best, means[i, k])
            lost[0] += best - means[i, arm]
            if live[node] > 1:
                hits[node, 0] += 1
                pulls[node, 0, place] += 1.0
                rewards[node, 0, place] += outcome(outcomes, means, i, arm, rng)
        i = stop
        crowd.fresh[0] += stop - begun
        totals[REPORTS] += stop - begun
        if totals[REPORTS] % crowd.release_every == 0:
            regret[releases] = lost[0]
            if len(points) > 0:
                look(crowd, points, policies[releases])
            releases += 1
            step(crowd, constants, rng)
    return i, releases


@compiled
def contribute(
    crowd: Crowd,
    constants: Constants,
    rng: np.random.Generator,
    population: int,
    start: int,
    contexts: Floats,
    means: Floats,
    outcomes: Floats,
    logged: Counts,
) -> int:
    """Let the rows of a log come from ``start`` on, with the arms in ``logged`` (n,)."""
    axis, middle, child, totals = crowd.axis, crowd.middle, crowd.child, crowd.totals
    homes = np.empty(min(len(contexts), crowd.release_every), dtype=np.int64)
    i = start
    while i < len(contexts) and totals[NODES] + 2 * totals[CONTESTED] <= len(axis):
        stop = min(len(contexts), i + crowd.release_every - totals[REPORTS] % crowd.release_every)
        begun = i
        find(axis, middle, child, totals[DEPTH], contexts[begun:stop], homes[: stop - begun])
        for i in range(begun, stop):
            node = homes[i - begun]
            if crowd.live[node] > 1:
                crowd.hits[node, population] += 1
                for place in range(crowd.live[node]):
                    if crowd.arms[node, place] == logged[i]:
                        reward = outcome(outcomes, means, i, logged[i], rng)
                        crowd.pulls[node, population, place] += 1.0
                        crowd.rewards[node, population, place] += reward
        i = stop
        crowd.fresh[population] += stop - begun
        totals[REPORTS] += stop - begun
        if totals[REPORTS] % crowd.release_every == 0:
            step(crowd, constants, rng)
    return i
