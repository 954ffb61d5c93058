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
from sottovoce.lab.compiled import compile_rules, compiled, inlined, keep_kernels

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

    axis: Counts  # (S,) the axis a node is cut along
    middle: Floats  # (S,) where it is cut; infinity for a leaf
    child: Counts  # (S,) its lower half; the upper half is the next node; a leaf is its own child
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
    totals: Counts  # (5,) nodes, contested nodes, events, reports, the depth of the tree
    release_every: int
    leaking: bool


NODES, CONTESTED, EVENTS, REPORTS, DEPTH = range(5)


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
    crowd.totals[:] = [1, 1, 0, 0, 0]
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
        axis=counts(nodes),
        middle=np.full(nodes, np.inf),
        child=np.arange(nodes),
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
        totals=counts(5),
        release_every=release_every,
        leaking=leaking,
    )


# Small functions are inlined and get arrays rather than the whole crowd: to hand over a tuple of
# twenty arrays costs more than the work they do.


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
    if len(outcomes) > 0:
        return outcomes[i, arm]  # type: ignore[no-any-return]
    return 1.0 * (rng.random() < means[i, arm])  # type: ignore[no-any-return]


@inlined
def laplace_sum(rng: np.random.Generator, count: int, shift: float, slope: float) -> float:
    """Draw the sum of ``count`` > 0 independent standard Laplace noises.

    shift = count - 1/3 and slope = 1/√(9·shift) are those of Marsaglia and Tsang's exact way to
    draw Gamma(count) (ACM Transactions on Mathematical Software 26, 2000). Here they are worked
    out once for many draws, which halves the time.
    """
    if count == 1:
        return rng.standard_exponential() - rng.standard_exponential()
    while True:
        x = rng.standard_normal()
        v = 1.0 + slope * x
        if v > 0.0:
            v = v * v * v
            u = rng.random()
            if u < 1.0 - 0.0331 * x * x * x * x or (
                math.log(u) < 0.5 * x * x + shift * (1.0 - v + math.log(v))
            ):
                return math.sqrt(2.0 * shift * v) * rng.standard_normal()


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
    contested, born = crowd.totals[CONTESTED], crowd.totals[NODES]
    standing = 0
    for position in range(contested):
        node = crowd.contested[position]
        live = crowd.live[node]
        ready = settle_noise(
            crowd.users[node],
            crowd.owed[node],
            crowd.hits[node],
            crowd.fresh,
            crowd.pulls[node],
            crowd.rewards[node],
            live,
            crowd.leaking,
            constants.epsilons,
            constants.warm_up,
            rng,
        )
        refine = False
        if ready:
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
            refine = judge_bin(
                crowd.depth[node],
                estimates[:live],
                radii[:live],
                constants,
                keep[:live],
                propensities[:live],
            )
            crowd.propensities[node, :live] = propensities[:live]
            for k in range(live):
                if not keep[k]:
                    drop_arms(crowd, node, keep)
                    break
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


@inlined
def settle_noise(
    users: Counts,
    owed: Counts,
    hits: Counts,
    fresh: Counts,
    pulls: Floats,
    rewards: Floats,
    live: int,
    leaking: bool,
    epsilons: Floats,
    warm_up: float,
    rng: np.random.Generator,
) -> bool:
    """Count the last users of a bin; draw the noise it owes once anyone may look at it.

    Returns False while every population is in its warm-up: nothing can be decided then.
    """
    ready = False
    for m in range(len(fresh)):
        users[m] += fresh[m]
        owed[m] += hits[m] if leaking else fresh[m]
        hits[m] = 0
        if users[m] > 0 and users[m] >= warm_up:
            ready = True
            if owed[m] > 0:
                scale = 4.0 / epsilons[m]
                shift = owed[m] - 1.0 / 3.0
                slope = 1.0 / math.sqrt(9.0 * shift)
                for k in range(live):
                    pulls[m, k] += scale * laplace_sum(rng, owed[m], shift, slope)
                    rewards[m, k] += scale * laplace_sum(rng, owed[m], shift, slope)
                owed[m] = 0
    return ready


@compiled
def drop_arms(crowd: Crowd, node: int, keep: NDArray[np.bool_]) -> None:
    """Move the arms that stay, with their sums, to the first places."""
    place = 0
    for k in range(crowd.live[node]):
        if not keep[k]:
            note(crowd, ELIMINATED, node, crowd.arms[node, k])
            continue
        crowd.arms[node, place] = crowd.arms[node, k]
        crowd.propensities[node, place] = crowd.propensities[node, k]
        crowd.pulls[node, :, place] = crowd.pulls[node, :, k]
        crowd.rewards[node, :, place] = crowd.rewards[node, :, k]
        crowd.running[node, :, place] = crowd.running[node, :, k]
        place += 1
    crowd.live[node] = place


@compiled
def cut(crowd: Crowd, rng: np.random.Generator, node: int) -> None:
    """Cut a node along a random one of its longest edges (Algorithm 1)."""
    lengths = crowd.edges[node, :, 1] - crowd.edges[node, :, 0]
    ties = np.flatnonzero(lengths == lengths.max())
    axis = ties[int(rng.random() * len(ties))]
    middle = (crowd.edges[node, axis, 0] + crowd.edges[node, axis, 1]) / 2
    lower = crowd.totals[NODES]
    live = crowd.live[node]
    for side in range(2):
        half = lower + side
        crowd.depth[half] = crowd.depth[node] + 1
        crowd.edges[half] = crowd.edges[node]
        crowd.edges[half, axis, 1 - side] = middle
        crowd.live[half] = live
        crowd.arms[half, :live] = crowd.arms[node, :live]
        crowd.propensities[half, :live] = 1.0 / live
    crowd.axis[node] = axis
    crowd.middle[node] = middle
    crowd.child[node] = lower
    crowd.totals[NODES] += 2
    crowd.totals[DEPTH] = max(crowd.totals[DEPTH], crowd.depth[lower])
    note(crowd, CUT, node, axis)


@compiled
def note(crowd: Crowd, kind: int, node: int, what: int) -> None:
    """Write an event down."""
    row = crowd.totals[EVENTS]
    crowd.events[row, 0] = crowd.totals[REPORTS]
    crowd.events[row, 1] = kind
    crowd.events[row, 2] = node
    crowd.events[row, 3] = what
    crowd.totals[EVENTS] += 1
