"""Bounds → eliminate → refine, by the learner's own rules, compiled as they stand.

Two things are done at once instead of one by one, both exact:

- A sum of n Laplace(b) noises. Laplace(b) is b·√(2E)·Z with E exponential and Z normal, so the sum
  is b·√(2G)·Z with G ~ Gamma(n). For n = 1 it is b·(E - E′).
- Noise of a bin in its warm-up. Nobody looks at it until the warm-up is over, so it is owed, and
  drawn in one go when the first look comes.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.ldpmab import rules as plain_rules
from sottovoce.lab.compiled import compile_rules, compiled, inlined
from sottovoce.lab.ldpmab.state import (
    CONTESTED,
    CUT,
    DEPTH,
    ELIMINATED,
    EVENTS,
    NODES,
    RELEASE,
    REPORTS,
    Counts,
    Crowd,
    Fixed,
    Floats,
)

_rules = compile_rules(plain_rules, inline=True)
estimate_bin, judge_bin = _rules[plain_rules.estimate_bin], _rules[plain_rules.judge_bin]


@inlined
def step(crowd: Crowd, fixed: Fixed, rng: np.random.Generator) -> None:
    """Bounds → eliminate → refine for every contested bin, by the learner's rules."""
    constants = fixed.constants
    counted = np.ones(len(crowd.fresh), dtype=np.bool_)
    if constants.running_sums:
        counted[:] = crowd.fresh > 0
    estimates = np.empty(constants.arms)
    radii = np.empty(constants.arms)
    keep = np.empty(constants.arms, dtype=np.bool_)
    propensities = np.empty(constants.arms)
    contested, born = crowd.totals[CONTESTED], crowd.totals[NODES]
    standing = 0
    changed = False
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
            fixed.leaking,
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
            for k in range(live):
                changed |= propensities[k] != crowd.propensities[node, k]
                crowd.propensities[node, k] = propensities[k]
            for k in range(live):
                if not keep[k]:
                    drop_arms(crowd, node, keep)
                    break
        if refine:
            changed = True
            cut(crowd, rng, node)
        elif crowd.live[node] > 1:
            crowd.contested[standing] = node
            standing += 1
    for node in range(born, crowd.totals[NODES]):
        crowd.contested[standing] = node
        standing += 1
    crowd.totals[CONTESTED] = standing
    crowd.totals[RELEASE] += changed
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
