"""Smoothing: one Gaussian model over the whole tree, solved exactly by belief propagation.

What is unknown of a bin is x = (g, slope_1 … slope_d), K numbers each. A half begins as its parent
says,

    g_half       = g + shift·slope_axis              shift = ±1 for halves with equally many people
    slope_j,half = SLOPE_KEPT·slope_j (half of it along the axis of the split) + N(0, variance_j)

and every answer measures a linear function of the x of the bin it is about. Given all answers, the
unknowns are jointly normal. Two passes over the tree give each bin what all *others* say of it: its
prior. Upwards each half tells its parent. Downwards each parent tells a half what it knows but for
what that half has told. So bins learn from each other, the more the nearer they are, and a feature
that matters nowhere is seen to matter nowhere.

variance_j follows from what is known of the parent's slope (``expected_square``): where slopes turn
out small, those of halves are expected to be small, too.
"""

from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.measurement import bin_shares, measured, mixing, tilt
from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.shared.whisper.tuning import (
    PRIOR_SHARE,
    SLOPE_DEVIATION,
    SLOPE_KEPT,
    SLOPE_RENEWED,
    SMOOTH_AFTER_GROWTH,
    SMOOTH_AFTER_PER_NODE,
    SQUARE_ALONG_SPLIT,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


def smoothing_is_due(state: "State") -> bool:
    """Say whether enough reports have come to go through the tree again."""
    totals = state.totals[0]
    since = totals.reports - totals.smoothed
    least = max(SMOOTH_AFTER_GROWTH * totals.reports, SMOOTH_AFTER_PER_NODE * totals.nodes)
    due: bool = totals.nodes > 1 and since >= least
    return due


def transition(state: "State", half: int, axis: int) -> tuple[Floats, Floats]:
    """Return how a half's unknowns follow from its parent's: x_half = matrix·x + N(0, variance).

    axis: the feature along which the parent was split. matrix (W, W), variance (W,), W = (1+d)K.
    """
    d, arms = state.slope_variance.shape[1], state.live.shape[1]
    matrix, variance = np.zeros(((1 + d) * arms, (1 + d) * arms)), np.zeros((1 + d) * arms)
    for k in range(arms):
        matrix[k, k] = 1.0
        matrix[k, (1 + axis) * arms + k] = state.shift[half]
        for j in range(d):
            at = (1 + j) * arms + k
            matrix[at, at] = SLOPE_KEPT * (0.5 if j == axis else 1.0)
            variance[at] = state.slope_variance[half, j]
    return matrix, variance


def inherit(state: "State", half: int, axis: int, mean: Floats, covariance: Floats) -> Information:
    """Give a half the prior that follows from its parent; return it for all unknowns together.

    mean (W,), covariance (W, W): what is known of the parent.
    """
    arms = state.live.shape[1]
    matrix, variance = transition(state, half, axis)
    mean = matrix @ mean
    covariance = matrix @ covariance @ matrix.T.copy()
    for at in range(len(variance)):
        covariance[at, at] += variance[at]
    for index in range(len(variance) // arms):
        block = slice(index * arms, (index + 1) * arms)
        precision = np.linalg.inv(covariance[block, block].copy())
        state.prior.precision[half, index] = precision
        state.prior.vector[half, index] = precision @ mean[block]
    together = np.linalg.inv(covariance)
    # NumPy's types forget that the inverse is of doubles.
    return Information(together, together @ mean)  # type: ignore[arg-type]


def renew_slope_variance(
    state: "State", half: int, axis: int, feature: int, slope: Floats, covariance: Floats
) -> None:
    """Expect of a half's slope along a feature what is known of its parent's."""
    square = expected_square(state, half, slope, covariance)
    if feature == axis:
        square *= SQUARE_ALONG_SPLIT
    edge = state.tree.edges[half, feature, 1] - state.tree.edges[half, feature, 0]
    expected = (1.0 - PRIOR_SHARE) * square + PRIOR_SHARE * (SLOPE_DEVIATION * edge) ** 2
    state.slope_variance[half, feature] = SLOPE_RENEWED * expected


def expected_square(state: "State", half: int, slope: Floats, covariance: Floats) -> float:
    """Return the expected square of a slope (K,), (K, K), around the mean of the half's live arms.

    By how much all arms rise together makes no difference to anyone. People are hardly asked for
    it, and what is not known of it must not count.
    """
    square, common, live = 0.0, 0.0, 0
    for a in range(len(slope)):
        if state.live[half, a]:
            live += 1
            square += slope[a] ** 2 + covariance[a, a]
            for b in range(len(slope)):
                if state.live[half, b]:
                    common += slope[a] * slope[b] + covariance[a, b]
    if live > 1:  # Σ(x - mean)² = Σx² - (Σx)²/n, which n - 1 of n independent slopes make up
        square = (square - common / live) * live / (live - 1.0)
    return square / live


def told_of_bin(
    state: "State", constants: "Constants", node: int, precision: Floats, vector: Floats
) -> None:
    """Add up what all answers about a bin say of its unknowns, (W, W) and (W,)."""
    arms = constants.arms
    people = bin_shares(state, constants, node)
    told = Information(np.empty((arms, arms)), np.empty(arms))
    for m in range(len(people.share)):
        for index in range(1 + constants.dimension):
            measured(state, node, m, index, people, told)
            of_mean, of_slope, at = 1.0, 0.0, index * arms
            if index > 0:
                upper = people.upper[m, index - 1]
                of_mean, of_slope = tilt(upper), mixing(upper)
            for a in range(arms):
                vector[a] += of_mean * told.vector[a]
                vector[at + a] += of_slope * told.vector[a]
                for b in range(arms):
                    weight = told.precision[a, b]
                    precision[a, b] += of_mean**2 * weight
                    precision[at + a, at + b] += of_slope**2 * weight
                    precision[a, at + b] += of_mean * of_slope * weight
                    precision[at + a, b] += of_mean * of_slope * weight


def smooth(state: "State", constants: "Constants") -> None:
    """Go through the tree, up and down; every bin then begins with what all others say of it."""
    nodes, child, axis = state.totals[0].nodes, state.tree.child, state.tree.axis
    width = constants.arms * (1 + constants.dimension)
    told = Information(np.zeros((nodes, width, width)), np.zeros((nodes, width)))
    parent = np.zeros(nodes, dtype=np.int64)
    for node in range(nodes):
        told_of_bin(state, constants, node, told.precision[node], told.vector[node])
        if child[node] != node:
            parent[child[node]] = parent[child[node] + 1] = node
    # Upwards: what a bin and all below it were told, and what each half tells its parent of it.
    below = Information(told.precision.copy(), told.vector.copy())
    up = Information(np.zeros_like(told.precision), np.zeros_like(told.vector))
    identity = np.eye(width)
    for half in range(nodes - 1, 0, -1):
        node = parent[half]
        matrix, variance = transition(state, half, axis[node])
        # (J⁻¹ + Q)⁻¹ = (I + JQ)⁻¹J, also where J has no inverse because nobody has told anything.
        blur = np.linalg.inv(identity + below.precision[half] * variance)
        back = matrix.T.copy()
        up.precision[half] = back @ (blur @ below.precision[half]) @ matrix
        up.vector[half] = back @ (blur @ below.vector[half])
        below.precision[node] += up.precision[half]
        below.vector[node] += up.vector[half]
    # Downwards: what all others say of each bin.
    down = Information(np.zeros_like(told.precision), np.zeros_like(told.vector))
    for index in range(1 + constants.dimension):
        block = slice(index * constants.arms, (index + 1) * constants.arms)
        down.precision[0, block, block] = state.prior.precision[0, index]
    for half in range(1, nodes):
        node = parent[half]
        sibling = 2 * child[node] + 1 - half
        if half < sibling:
            covariance = np.linalg.inv(down.precision[node] + below.precision[node])
            mean = covariance @ (down.vector[node] + below.vector[node])
            for j in range(constants.dimension):
                block = slice((1 + j) * constants.arms, (2 + j) * constants.arms)
                for each in (half, sibling):
                    known = covariance[block, block]
                    renew_slope_variance(state, each, axis[node], j, mean[block], known)
        others = down.precision[node] + told.precision[node] + up.precision[sibling]
        covariance = np.linalg.inv(others)
        mean = covariance @ (down.vector[node] + told.vector[node] + up.vector[sibling])
        prior = inherit(state, half, axis[node], mean, covariance)
        down.precision[half], down.vector[half] = prior.precision, prior.vector
    state.totals[0].smoothed = state.totals[0].reports
