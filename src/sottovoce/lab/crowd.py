"""The crowd: many devices and one ``ldpmab`` learner at once, compiled.

Equal in law to real ``Device`` and ``Learner`` objects (tests/statistical/test_crowd.py), and the
decisions are the learner's own rules, compiled as they stand (lab/compiled.py). Two things are
done at once instead of one by one, both exact:

- A sum of n Laplace(b) noises. Laplace(b) is b·√(2E)·Z with E exponential and Z normal, so the sum
  is b·√(2G)·Z with G ~ Gamma(n). For n = 1 it is b·(E - E′).
- Noise of a bin in its warm-up. Nobody looks at it until the warm-up is over, so it is owed, and
  drawn in one go when the first look comes.

Bins are the nodes of a binary tree; a node keeps its sums for its live arms in the first places.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.ldpmab import rules as plain_rules
from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.lab.compiled import compile_rules, compiled, keep_kernels

keep_kernels()
_rules = compile_rules(plain_rules)
estimate_bin, judge_bin = _rules.estimate_bin, _rules.judge_bin

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

ELIMINATED, CUT = 0, 1


class Crowd(NamedTuple):
    """The learner's state as arrays over nodes, and what is written down on the way.

    S nodes at most, d axes, K arms, M + 1 populations.
    """

    axis: Counts  # (S,) the axis a node is cut along, -1 for a leaf
    middle: Floats  # (S,) where it is cut
    child: Counts  # (S,) its lower half; the upper half is the next node
    depth: Counts  # (S,)
    edges: Floats  # (S, d, 2) its box
    arms: Counts  # (S, K) the live arms, in the first ``live`` places
    live: Counts  # (S,)
    propensities: Floats  # (S, K) their propensities
    users: Counts  # (S, M+1)
    owed: Counts  # (S, M+1) users whose noise is not drawn yet
    pulls: Floats  # (S, M+1, K)
    rewards: Floats  # (S, M+1, K)
    running: Floats  # (S, 3, K)
    contested: Counts  # (S,) the nodes where more than one arm is live
    fresh: Counts  # (M+1,) reports since the last step
    hits: Counts  # (S, M+1) users in the node since the last step
    events: Counts  # (2·S·K, 4) reports, kind, node, arm or axis
    totals: Counts  # (4,) nodes, contested nodes, events, reports
    release_every: int
    leaking: bool


NODES, CONTESTED, EVENTS, REPORTS = range(4)


def begin(constants: Constants, *, release_every: int, leaking: bool) -> Crowd:
    """One bin, all arms: the initialization of Algorithms 2 and 3."""
    crowd = _allocate(
        64,
        dimension=constants.dimension,
        arms=constants.arms,
        populations=len(constants.epsilons),
        release_every=release_every,
        leaking=leaking,
    )
    crowd.edges[0] = [0.0, 1.0]
    crowd.arms[0] = np.arange(constants.arms)
    crowd.live[0] = constants.arms
    crowd.propensities[0] = 1 / constants.arms
    crowd.totals[:] = [1, 1, 0, 0]
    return crowd


def grow(crowd: Crowd) -> Crowd:
    """Return the same crowd with room for twice as many nodes."""
    nodes, dimension, _ = crowd.edges.shape
    larger = _allocate(
        2 * nodes,
        dimension=dimension,
        arms=crowd.arms.shape[1],
        populations=crowd.users.shape[1],
        release_every=crowd.release_every,
        leaking=crowd.leaking,
    )
    for old, new in zip(crowd, larger, strict=True):
        if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
            new[: len(old)] = old
    return larger


def _allocate(
    nodes: int, *, dimension: int, arms: int, populations: int, release_every: int, leaking: bool
) -> Crowd:
    def counts(*shape: int) -> Counts:
        return np.zeros(shape, dtype=np.int64)

    return Crowd(
        axis=counts(nodes) - 1,
        middle=np.zeros(nodes),
        child=counts(nodes),
        depth=counts(nodes),
        edges=np.zeros((nodes, dimension, 2)),
        arms=counts(nodes, arms),
        live=counts(nodes),
        propensities=np.zeros((nodes, arms)),
        users=counts(nodes, populations),
        owed=counts(nodes, populations),
        pulls=np.zeros((nodes, populations, arms)),
        rewards=np.zeros((nodes, populations, arms)),
        running=np.zeros((nodes, 3, arms)),
        contested=counts(nodes),
        fresh=counts(populations),
        hits=counts(nodes, populations),
        events=counts(2 * nodes * arms, 4),
        totals=counts(4),
        release_every=release_every,
        leaking=leaking,
    )


@compiled
def find(crowd: Crowd, point: Floats) -> int:
    """Return the leaf that holds a point."""
    node = 0
    while crowd.axis[node] >= 0:
        node = crowd.child[node] + (point[crowd.axis[node]] >= crowd.middle[node])
    return node


@compiled
def laplace_sum(rng: np.random.Generator, count: int, scale: float) -> float:
    """Draw the sum of ``count`` independent Laplace(scale) noises."""
    if count == 0:
        return 0.0
    if count == 1:
        return scale * (rng.standard_exponential() - rng.standard_exponential())
    return scale * math.sqrt(2.0 * rng.standard_gamma(count)) * rng.standard_normal()


@compiled
def play(
    crowd: Crowd,
    constants: Constants,
    rng: np.random.Generator,
    population: int,
    start: int,
    contexts: Floats,
    means: Floats,
    outcomes: Floats,
    logged: Counts,
    points: Floats,
    regret: Floats,
    policies: Floats,
) -> int:
    """Let people come from ``start`` on; return where it stopped: at the end, or for more room.

    contexts (n, d), means (n, K)
    outcomes (n, K)   what each arm would bring; with 0 rows, 1 with probability ``means``
    logged (n,)       the arms of a log; with 0 rows, arms are drawn by the policy
    regret (n,)       filled in: what each person lost
    points (P, d), policies (n, P, K)   filled in: the propensities at the points when a person came
    """
    for i in range(start, len(contexts)):
        if crowd.totals[NODES] + 2 * crowd.totals[CONTESTED] > len(crowd.axis):
            return i
        node = find(crowd, contexts[i])
        live = crowd.live[node]
        place = -1
        if len(logged) > 0:
            arm = logged[i]
            for k in range(live):
                if crowd.arms[node, k] == arm:
                    place = k
        else:
            place = 0
            if live > 1:
                left = rng.random() - crowd.propensities[node, 0]
                while left >= 0.0 and place < live - 1:
                    place += 1
                    left -= crowd.propensities[node, place]
            arm = crowd.arms[node, place]
        best = means[i, 0]
        for k in range(1, means.shape[1]):
            best = max(best, means[i, k])
        regret[i] = best - means[i, arm]
        for p in range(len(points)):
            home = find(crowd, points[p])
            for k in range(crowd.live[home]):
                policies[i, p, crowd.arms[home, k]] = crowd.propensities[home, k]
        if live > 1:
            crowd.hits[node, population] += 1
            if place >= 0:
                crowd.pulls[node, population, place] += 1.0
                if len(outcomes) > 0:
                    crowd.rewards[node, population, place] += outcomes[i, arm]
                elif rng.random() < means[i, arm]:
                    crowd.rewards[node, population, place] += 1.0
        crowd.fresh[population] += 1
        crowd.totals[REPORTS] += 1
        if crowd.totals[REPORTS] % crowd.release_every == 0:
            step(crowd, constants, rng)
    return len(contexts)


@compiled
def step(crowd: Crowd, constants: Constants, rng: np.random.Generator) -> None:
    """Bounds → eliminate → refine for every contested bin, by the learner's rules."""
    counted = np.ones(len(crowd.fresh), dtype=np.bool_)
    if constants.running_sums:
        counted[:] = crowd.fresh > 0
    estimates = np.empty(constants.arms)
    radii = np.empty(constants.arms)
    keep = np.empty(constants.arms, dtype=np.bool_)
    propensities = np.empty(constants.arms)
    standing = 0
    bins = crowd.totals[CONTESTED]
    born = crowd.totals[NODES]
    for position in range(bins):
        node = crowd.contested[position]
        live = crowd.live[node]
        if not settle_noise(crowd, constants, rng, node):
            crowd.contested[standing] = node
            standing += 1
            continue
        estimate_bin(
            crowd.users[node],
            crowd.pulls[node, :, :live],
            crowd.rewards[node, :, :live],
            crowd.running[node, :, :live],
            counted,
            constants,
            estimates[:live],
            radii[:live],
        )
        depth = crowd.depth[node]
        refine = judge_bin(
            depth, estimates[:live], radii[:live], constants, keep[:live], propensities[:live]
        )
        drop_arms(crowd, node, keep, propensities)
        if refine:
            cut(crowd, rng, node)
        elif crowd.live[node] > 1:
            crowd.contested[standing] = node
            standing += 1
    for node in range(born, crowd.totals[NODES]):
        crowd.contested[standing] = node
        standing += 1
    crowd.totals[CONTESTED] = standing
    crowd.fresh[:] = 0


@compiled
def settle_noise(crowd: Crowd, constants: Constants, rng: np.random.Generator, node: int) -> bool:
    """Count the last users of a node; draw the noise it owes once anyone may look at it.

    Returns False while every population is in its warm-up: nothing can be decided then.
    """
    ready = False
    for m in range(len(crowd.fresh)):
        crowd.users[node, m] += crowd.fresh[m]
        crowd.owed[node, m] += crowd.hits[node, m] if crowd.leaking else crowd.fresh[m]
        crowd.hits[node, m] = 0
        if crowd.users[node, m] > 0 and crowd.users[node, m] >= constants.warm_up:
            ready = True
            scale = 4.0 / constants.epsilons[m]
            if crowd.owed[node, m] > 0:
                for k in range(crowd.live[node]):
                    owed = crowd.owed[node, m]
                    crowd.pulls[node, m, k] += laplace_sum(rng, owed, scale)
                    crowd.rewards[node, m, k] += laplace_sum(rng, owed, scale)
                crowd.owed[node, m] = 0
    return ready


@compiled
def drop_arms(crowd: Crowd, node: int, keep: NDArray[np.bool_], propensities: Floats) -> None:
    """Keep the arms that stay, with their sums, in the first places."""
    place = 0
    for k in range(crowd.live[node]):
        if not keep[k]:
            note(crowd, ELIMINATED, node, crowd.arms[node, k])
            continue
        crowd.arms[node, place] = crowd.arms[node, k]
        crowd.propensities[node, place] = propensities[k]
        for m in range(len(crowd.fresh)):
            crowd.pulls[node, m, place] = crowd.pulls[node, m, k]
            crowd.rewards[node, m, place] = crowd.rewards[node, m, k]
        for row in range(3):
            crowd.running[node, row, place] = crowd.running[node, row, k]
        place += 1
    crowd.live[node] = place


@compiled
def cut(crowd: Crowd, rng: np.random.Generator, node: int) -> None:
    """Cut a node along a random one of its longest edges (Algorithm 1)."""
    dimension = crowd.edges.shape[1]
    longest = 0.0
    for axis in range(dimension):
        longest = max(longest, crowd.edges[node, axis, 1] - crowd.edges[node, axis, 0])
    ties = 0
    chosen = 0
    for axis in range(dimension):
        if crowd.edges[node, axis, 1] - crowd.edges[node, axis, 0] == longest:
            ties += 1
            if rng.random() * ties < 1.0:
                chosen = axis
    lower = crowd.totals[NODES]
    middle = (crowd.edges[node, chosen, 0] + crowd.edges[node, chosen, 1]) / 2
    for side in range(2):
        half = lower + side
        crowd.axis[half] = -1
        crowd.depth[half] = crowd.depth[node] + 1
        crowd.edges[half] = crowd.edges[node]
        crowd.edges[half, chosen, 1 - side] = middle
        crowd.live[half] = crowd.live[node]
        for k in range(crowd.live[node]):
            crowd.arms[half, k] = crowd.arms[node, k]
            crowd.propensities[half, k] = 1.0 / crowd.live[node]
    crowd.axis[node] = chosen
    crowd.middle[node] = middle
    crowd.child[node] = lower
    crowd.totals[NODES] += 2
    note(crowd, CUT, node, chosen)


@compiled
def note(crowd: Crowd, kind: int, node: int, what: int) -> None:
    """Write an event down."""
    row = crowd.totals[EVENTS]
    crowd.events[row, 0] = crowd.totals[REPORTS]
    crowd.events[row, 1] = kind
    crowd.events[row, 2] = node
    crowd.events[row, 3] = what
    crowd.totals[EVENTS] += 1
