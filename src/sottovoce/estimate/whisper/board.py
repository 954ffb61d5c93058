"""The learner's state as arrays over the nodes of a tree; the lab plays on the very same arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.whisper.audit import to_ask
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.kin import ROUGHNESS, SPREAD
from sottovoce.estimate.whisper.places import ASKED, CONTESTED, NODES

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Board(NamedTuple):
    """All that the rules read and write.

    S nodes at most, K arms, d features, M + 1 populations. Place 0 of an axis of length 1 + d is
    for the whole bin, place 1 + j for the difference of its halves along feature j.

    Evidence is kept in information form. With x what is to be estimated, answers with mean s·x and
    variance v each add 1/v to ``info`` and answer/v to ``lean``; x then has precision s²·info and
    estimate lean/(s·info). The scale s (a bin's share of the people) is applied when one looks,
    for it becomes better known with time.
    """

    axis: Counts  # (S,) the feature a node is cut along
    middle: Floats  # (S,) where it is cut; infinity for a leaf
    child: Counts  # (S,) its lower half; the upper half is the next node; a leaf is its own child
    depth: Counts  # (S,)
    edges: Floats  # (S, d, 2) its box
    live: Flags  # (S, K) the arms that have not been dropped
    pair: Counts  # (S, 2) champion and challenger; twice the same arm where the bin is settled
    away: Floats  # (S,) how many slopes a half's g is away from its parent's
    anew: Floats  # (S, d) variance of its slopes around those of its parent
    prior_info: Floats  # (S, 1+d, K, K) what its kin know: precision of f - 1/2 …
    prior_lean: Floats  # (S, 1+d, K) … and precision × mean
    info: Floats  # (S, M+1, 1+d, K, K) from people who were served
    lean: Floats  # (S, M+1, 1+d, K)
    logged_info: Floats  # (S, M+1, 1+d, K, K) from logged rows
    logged_lean: Floats  # (S, M+1, 1+d, K)
    mass: Floats  # (S, M+1) the share of people in the bin, as expected when it was cut
    mass_info: Floats  # (S, M+1, 1+d)
    mass_lean: Floats  # (S, M+1, 1+d)
    count_info: Floats  # (S, M+1, 1+d, K) the share of logged rows in the bin with each arm
    count_lean: Floats  # (S, M+1, 1+d, K)
    outlook: Floats  # (S, 3) the target's people in the bin; g expected of its policy, of all arms
    ballots: Counts  # (S, K, K) if certified: answers of the target that favour the first arm
    contested: Counts  # (S,) the nodes where more than one arm is live
    events: Floats  # (S·(K+1), 8) reports by then, release, node, feature cut or -1, and of an arm
    #                 that was dropped: itself, its winner, statistic, boundary
    totals: Counts  # (8,) nodes, contested nodes, events; version of the release; reports in all,
    #                 those since the last step by people who were served, reports in all when
    #                 the tree was last gone through; how many of SHARES are asked how it went
    experience: Floats  # (2,) what all reports are worth in target users; target users served
    audit: Floats  # (4,) answers about rewards; sums of g = f - 1/2 told, promised, of all arms


def begin(constants: Constants) -> Board:
    """One bin, all arms, and what is thought before the first report."""
    board = _allocate(64, constants)
    board.edges[0] = [0.0, 1.0]
    board.live[0] = True
    board.pair[0] = [0, 1]
    board.mass[0] = 1.0
    board.outlook[0, 0] = 1.0
    identity = np.eye(constants.arms)
    board.prior_info[0, 0] = identity / SPREAD**2
    board.prior_info[0, 1:] = identity / ROUGHNESS**2
    board.totals[:4] = [1, 1, 0, 1]
    board.totals[ASKED] = to_ask(board, constants)
    return board


def roomy(board: Board, constants: Constants) -> Board:
    """Return a board with room for every contested bin to be cut."""
    needed, room = board.totals[NODES] + 2 * board.totals[CONTESTED], len(board.axis)
    if needed <= room:
        return board
    while room < needed:
        room *= 2
    larger = _allocate(room, constants)
    for old, new in zip(board, larger, strict=True):
        new[: len(old)] = old
    return larger


def paths(board: Board) -> list[str]:
    """Name each node by its path from the root."""
    names = [""] * int(board.totals[NODES])
    for node, path in enumerate(names):
        # Children come after their parents, so the parent's path is known by now.
        if board.child[node] != node:
            for side in range(2):
                names[board.child[node] + side] = path + str(side)
    return names


def _allocate(nodes: int, constants: Constants) -> Board:
    arms, places, groups = constants.arms, 1 + constants.dimension, len(constants.behaviour)

    def counts(*shape: int) -> Counts:
        return np.zeros(shape, dtype=np.int64)

    return Board(
        axis=counts(nodes),
        middle=np.full(nodes, np.inf),
        child=np.arange(nodes),
        depth=counts(nodes),
        edges=np.zeros((nodes, constants.dimension, 2)),
        live=np.zeros((nodes, arms), dtype=np.bool_),
        pair=counts(nodes, 2),
        away=np.zeros(nodes),
        anew=np.zeros((nodes, constants.dimension)),
        prior_info=np.zeros((nodes, places, arms, arms)),
        prior_lean=np.zeros((nodes, places, arms)),
        info=np.zeros((nodes, groups, places, arms, arms)),
        lean=np.zeros((nodes, groups, places, arms)),
        logged_info=np.zeros((nodes, groups, places, arms, arms)),
        logged_lean=np.zeros((nodes, groups, places, arms)),
        mass=np.zeros((nodes, groups)),
        mass_info=np.zeros((nodes, groups, places)),
        mass_lean=np.zeros((nodes, groups, places)),
        count_info=np.zeros((nodes, groups, places, arms)),
        count_lean=np.zeros((nodes, groups, places, arms)),
        outlook=np.zeros((nodes, 3)),
        ballots=counts(nodes, arms, arms),
        contested=counts(nodes),
        events=np.zeros((nodes * (arms + 1), 8)),
        totals=counts(8),
        experience=np.zeros(2),
        audit=np.zeros(4),
    )
