"""Relevance: which axes matter, learned from all bins together, and which are asked about.

Of many features few matter. For each axis the learner weighs two hypotheses against each other: all
its effects are 0; or they are N(0, square), as the prior has it. What answers say of an effect is
normal, so that the logarithm of the likelihood ratio is

    -1/2·log det(I + square·J) + 1/2·hᵀ(J + I/square)⁻¹h

for the precision J and the information vector h of each slot in each bin; they add up. FEW_MATTER
of all axes are expected to matter, and so this gives the probability that an axis does. Its prior
variance is multiplied by it; a little stays, since an axis may matter in a part of the space that
nobody has looked at (PRIOR_SHARE).
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.shared.whisper.tuning import (
    ASK,
    ASK_MOST,
    ASK_PER_EFFECT,
    ASK_SHARPNESS,
    FEW_MATTER,
    PRIOR_SHARE,
    SLOPE_DEVIATION,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


def weigh_axes(state: "State", constants: "Constants", effects: Information) -> None:
    """Work out the relevance of each axis, and the prior of the root that follows.

    effects (nodes, Z, K, K) and (nodes, Z, K): what the answers about each bin say of its effects.
    """
    nodes, arms = effects.precision.shape[0], constants.arms
    few = min(FEW_MATTER / constants.dimension, 1.0)
    for axis in range(constants.dimension):
        first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
        odds = math.log(few / (1.0 - few)) if few < 1.0 else math.inf
        for node in range(nodes):
            edge = state.tree.edges[node, axis, 1] - state.tree.edges[node, axis, 0]
            for slot in range(first, first + max(levels, 1)):
                if state.holds[node, slot]:
                    odds += log_evidence(
                        effects.precision[node, slot],
                        effects.vector[node, slot],
                        (SLOPE_DEVIATION * edge) ** 2,
                    )
        matters = 1.0 / (1.0 + math.exp(-min(max(odds, -30.0), 30.0)))
        state.relevance[axis] = matters + (1.0 - matters) * PRIOR_SHARE * few
        for slot in range(first, first + max(levels, 1)):
            for a in range(arms):
                square = SLOPE_DEVIATION**2 * state.relevance[axis]
                state.prior.precision[0, 1 + slot, a, a] = 1.0 / square


def log_evidence(precision: Floats, vector: Floats, square: float) -> float:
    """Return the log of the likelihood ratio of effects N(0, square) to none at all."""
    size = len(vector)
    matrix, right = np.empty((size, size)), vector.copy()
    for a in range(size):
        for b in range(size):
            matrix[a, b] = square * precision[a, b] + (a == b)
    # Elimination: the product of the pivots is det(I + square·J), and right becomes what solves it.
    log_determinant = 0.0
    for pivot in range(size):
        log_determinant += math.log(matrix[pivot, pivot])
        for a in range(pivot + 1, size):
            factor = matrix[a, pivot] / matrix[pivot, pivot]
            for b in range(pivot, size):
                matrix[a, b] -= factor * matrix[pivot, b]
            right[a] -= factor * right[pivot]
    explained = 0.0
    for a in range(size - 1, -1, -1):
        for b in range(a + 1, size):
            right[a] -= matrix[a, b] * right[b]
        right[a] /= matrix[a, a]
        explained += square * right[a] * vector[a]
    return 0.5 * explained - 0.5 * log_determinant


def ask_about(state: "State", constants: "Constants", varies: Floats) -> None:
    """Say how many people are asked about each axis, and about none.

    varies (d,): the expected variation of what is compared along each axis, over all bins. People
    are asked in proportion to a power of it, so that most are asked where most may be gained. The
    more effects are in question, the more people are asked: one along a number, and L - 1 of L
    levels without order, since they are differences from their mean.
    """
    weights = (varies + 1e-9) ** ASK_SHARPNESS
    weights /= weights.sum()
    unequal = 0.0
    for axis in range(len(varies)):
        unequal += weights[axis] ** 2 / max(constants.axes.levels[axis] - 1, 1)
    effective = 1.0 / unequal  # as many effects as if all had the same weight
    share = min(ASK_PER_EFFECT * effective, ASK_MOST)
    asked = 0
    for axis in range(len(varies)):
        state.ask[1 + axis] = int(share * weights[axis] * ASK)
        asked += state.ask[1 + axis]
    state.ask[0] = ASK - asked
