"""Bins learn from their kin: one Gaussian model over the whole tree, solved exactly.

Plain functions over the arrays of a ``Board``; the learner calls them as they are, and the lab
compiles them as they stand.

The state of a bin is x = (g, slope_1 … slope_d), K numbers each. A half begins as its parent says,

    g_half       = g + away·slope_axis              away = ±1 for halves with equally many people
    slope_j,half = KEPT·slope_j (half of it along the axis of the cut) + N(0, anew_j)

and every answer measures a linear function of the state of the bin it is about. Given all answers,
the states are jointly normal, and two passes over the tree give each bin what all *others* say of
it: its prior. Upwards each half tells its parent; downwards each parent tells a half what it knows
but for what that half has told. So what is learned in a bin is known to its kin the sooner the
nearer they are, and a feature that matters nowhere is seen to matter nowhere.

anew_j is what was expected of the slope when the parent was last looked at (``expected_square``):
where slopes turn out small, those of halves are expected to be small, too.
"""

from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.answers import Floats, shares
from sottovoce.estimate.whisper.places import NODES, REPORTS, SMOOTHED

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.board import Board
    from sottovoce.estimate.whisper.constants import Constants

SPREAD = 0.25  # of mean rewards around 1/2, before anything is known
ROUGHNESS = 0.2  # of the slopes over an edge of length 1, before anything is known
ALONG = 0.5  # how much of a slope's square a half expects along the feature that was cut
FRESH = 0.05  # how much of a half's expectation is that of a bin nobody knows anything of
KEPT = 0.75  # how much of a parent's slope its halves have
ANEW = 0.5  # how much of a slope's expected square is a half's own

GROWTH = 0.05  # the tree is gone through again when there are so many more reports …
PER_NODE = 20  # … and so many for each bin, so that the work for a report stays the same


def is_due(board: "Board") -> bool:
    """Say whether enough reports have come to go through the tree again."""
    reports, nodes = board.totals[REPORTS], board.totals[NODES]
    since = reports - board.totals[SMOOTHED]
    due: bool = nodes > 1 and since >= max(GROWTH * reports, PER_NODE * nodes)
    return due


def kept(axis: int, feature: int) -> float:
    """Return how much of its parent's slope along a feature a half has: its edge may be shorter."""
    return KEPT * (0.5 if feature == axis else 1.0)


def expected_square(
    board: "Board", half: int, feature: int, axis: int, slope: Floats, covariance: Floats
) -> float:
    """Return what a half's slope along a feature is expected to be, squared.

    Around the mean of the live arms: by how much all of them rise together makes no difference to
    anyone, people are hardly asked for it, and what is not known of it must not count.

    slope (K,), covariance (K, K): of its parent, which was cut along ``axis``.
    """
    square, common, live = 0.0, 0.0, 0
    for a in range(len(slope)):
        if board.live[half, a]:
            live += 1
            square += slope[a] ** 2 + covariance[a, a]
            for b in range(len(slope)):
                if board.live[half, b]:
                    common += slope[a] * slope[b] + covariance[a, b]
    if live > 1:  # Σ(x - mean)² = Σx² - (Σx)²/n, which n - 1 of n independent slopes make up
        square = (square - common / live) * live / (live - 1.0)
    inherited = (ALONG if feature == axis else 1.0) * square / live
    edge = board.edges[half, feature, 1] - board.edges[half, feature, 0]
    expected: float = (1.0 - FRESH) * inherited + FRESH * (ROUGHNESS * edge) ** 2
    return expected


def measured(board: "Board", constants: "Constants", node: int, info: Floats, lean: Floats) -> None:
    """Add up what the answers about one bin say of its state: precision, and precision × mean.

    info ((1+d)K, (1+d)K), lean ((1+d)K,). With r the share of the upper half, answers about
    feature j measure (2r - 1)·g + 4r(1 - r)·slope_j.
    """
    arms, d, groups = constants.arms, constants.dimension, board.mass.shape[1]
    share, upper = np.empty(groups), np.empty((groups, d))
    rows = np.empty((groups, arms))
    shares(board, constants, node, share, upper, rows)
    for m in range(groups):
        for place in range(1 + d):
            tilt, reach = 1.0, 0.0
            if place > 0:
                part = upper[m, place - 1]
                tilt, reach = 2.0 * part - 1.0, 4.0 * part * (1.0 - part)
            at = place * arms
            for a in range(arms):
                scale = 2.0 * rows[m, a]
                told = scale * board.logged_lean[node, m, place, a]
                told += share[m] * board.lean[node, m, place, a]
                lean[a] += tilt * told
                if place > 0:
                    lean[at + a] += reach * told
                for b in range(arms):
                    weight = share[m] ** 2 * board.info[node, m, place, a, b]
                    weight += scale * 2.0 * rows[m, b] * board.logged_info[node, m, place, a, b]
                    info[a, b] += tilt**2 * weight
                    if place > 0:
                        info[at + a, at + b] += reach**2 * weight
                        info[a, at + b] += tilt * reach * weight
                        info[at + a, b] += tilt * reach * weight


def smooth(board: "Board", constants: "Constants") -> None:
    """Go through the tree, up and down; every bin then begins with what its kin know."""
    arms, places, nodes = constants.arms, 1 + constants.dimension, board.totals[NODES]
    width = arms * places
    info, lean = np.zeros((nodes, width, width)), np.zeros((nodes, width))
    passage = np.zeros((nodes, width, width))  # x_half = passage·x_parent + N(0, own)
    own = np.zeros((nodes, width))
    parent = np.zeros(nodes, dtype=np.int64)
    for node in range(nodes):
        measured(board, constants, node, info[node], lean[node])
        if board.child[node] != node:
            for half in range(board.child[node], board.child[node] + 2):
                parent[half] = node
                for at in range(width):
                    place, arm = at // arms, at % arms
                    if place == 0:
                        passage[half, at, at] = 1.0
                        passage[half, at, (1 + board.axis[node]) * arms + arm] = board.away[half]
                    else:
                        passage[half, at, at] = kept(board.axis[node], place - 1)
                        own[half, at] = board.anew[half, place - 1]
    # Upwards: what each bin and all below it have been told, and what a half tells its parent.
    all_info, all_lean = info.copy(), lean.copy()
    up_info, up_lean = np.zeros_like(info), np.zeros_like(lean)
    identity = np.eye(width)
    for half in range(nodes - 1, 0, -1):
        # (J⁻¹ + Q)⁻¹ = (I + JQ)⁻¹J, also where J has no inverse because nobody has told anything.
        blur = np.linalg.inv(identity + all_info[half] * own[half])
        back = passage[half].T.copy()
        up_info[half] = back @ (blur @ all_info[half]) @ passage[half]
        up_lean[half] = back @ (blur @ all_lean[half])
        all_info[parent[half]] += up_info[half]
        all_lean[parent[half]] += up_lean[half]
    # Downwards: what each bin is told by everyone else.
    down_info, down_lean = np.zeros_like(info), np.zeros_like(lean)
    for place in range(places):
        block = slice(place * arms, (place + 1) * arms)
        down_info[0, block, block] = board.prior_info[0, place]
    for half in range(1, nodes):
        node = parent[half]
        sibling = 2 * board.child[node] + 1 - half
        if half < sibling:
            covariance = np.linalg.inv(down_info[node] + all_info[node])
            mean = covariance @ (down_lean[node] + all_lean[node])
            expect(board, node, mean, covariance, own)
        covariance = np.linalg.inv(down_info[node] + info[node] + up_info[sibling])
        mean = passage[half] @ (covariance @ (down_lean[node] + lean[node] + up_lean[sibling]))
        covariance = passage[half] @ covariance @ passage[half].T.copy()
        for at in range(width):
            covariance[at, at] += own[half, at]
        down_info[half] = np.linalg.inv(covariance)
        down_lean[half] = down_info[half] @ mean
        for place in range(places):
            block = slice(place * arms, (place + 1) * arms)
            precision = np.linalg.inv(covariance[block, block].copy())
            board.prior_info[half, place] = precision
            board.prior_lean[half, place] = precision @ mean[block]
    board.totals[SMOOTHED] = board.totals[REPORTS]


def expect(board: "Board", node: int, mean: Floats, covariance: Floats, own: Floats) -> None:
    """Expect of the slopes of both halves what is now known of those of their parent.

    mean, covariance: of the parent's state, given all answers. own (nodes, (1+d)K): goes along.
    """
    arms = board.live.shape[1]
    for j in range(board.anew.shape[1]):
        block = slice((1 + j) * arms, (2 + j) * arms)
        for half in range(board.child[node], board.child[node] + 2):
            board.anew[half, j] = ANEW * expected_square(
                board, half, j, board.axis[node], mean[block], covariance[block, block]
            )
            own[half, block] = board.anew[half, j]
