"""The learner's state as arrays over the nodes of a tree, and room for more of them.

Bins are the nodes of a binary tree; a node keeps its sums for its live arms in the first places.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.ldpmab.constants import Constants

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
    totals: Counts  # (6,) nodes, contested nodes, events, reports, depth of the tree, release


NODES, CONTESTED, EVENTS, REPORTS, DEPTH, RELEASE = range(6)


class Fixed(NamedTuple):
    """What the crowd goes by; ``leaking`` is NOT PRIVATE, see ``simulate``."""

    constants: Constants
    leaking: bool
    homes: Counts  # (n,) scratch: the leaves of the people until the next step


def begin(constants: Constants) -> Crowd:
    """One bin, all arms: the initialization of Algorithms 2 and 3."""
    crowd = _allocate(
        64,
        dimension=constants.dimension,
        arms=constants.arms,
        populations=len(constants.epsilons),
    )
    crowd.edges[0] = [0.0, 1.0]
    crowd.arms[0] = np.arange(constants.arms)
    crowd.live[0] = constants.arms
    crowd.propensities[0] = 1 / constants.arms
    crowd.totals[:] = [1, 1, 0, 0, 0, 1]
    return crowd


def grow(crowd: Crowd) -> Crowd:
    """Return the same crowd with room for twice as many nodes."""
    nodes, dimension, _ = crowd.edges.shape
    larger = _allocate(
        2 * nodes,
        dimension=dimension,
        arms=crowd.arms.shape[1],
        populations=crowd.users.shape[1],
    )
    for old, new in zip(crowd, larger, strict=True):
        new[: len(old)] = old
    return larger


def _allocate(nodes: int, *, dimension: int, arms: int, populations: int) -> Crowd:
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
        totals=counts(6),
    )
