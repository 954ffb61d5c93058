"""Scales: an axis of numbers is stretched to where people are, before bins are split along it.

Some people are asked whether they are at or above a public threshold. As soon as a quarter of the
people seems to lie far from where the scale has it, the axis gets a new one: the quantiles of the
expected shape (``shapes.py``). No bin is split along an axis until its shape is known, and no arm
is dropped before all are.
"""

from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.measurement import coefficients, estimate
from sottovoce.estimate.whisper.shapes import (
    CENTRES,
    STEEPNESSES,
    expected_share,
    is_known,
    may_be_uniform,
    mean_shape,
    most_telling,
    quantile,
    scale_share,
    weigh_shapes,
)
from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.shared.scale import STRETCHES
from sottovoce.shared.whisper.tuning import SCALE_OFF, SCALE_OFF_AGAIN

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


def add_places(
    state: "State", axis: int, threshold: int, answers: float, total: float, variance: float
) -> None:
    """Add what people told of one threshold. total: of answers with the mean 1 - 2F."""
    state.scale_told.precision[axis, threshold] += answers / variance
    state.scale_told.vector[axis, threshold] += total / variance


def scale_axes(state: "State", constants: "Constants") -> bool:
    """Give a scale to each axis that needs one by now; return whether anything changed."""
    changed, waiting = False, 0
    weights = np.empty((CENTRES, STEEPNESSES))
    told = state.scale_told
    for axis in range(constants.dimension):
        if state.scaled[axis]:
            continue
        weigh_shapes(told.precision[axis], told.vector[axis], weights)
        centre, steepness = mean_shape(weights)
        if not may_be_uniform(weights) and is_off(state, axis, weights):
            upper = 1.0 - expected_share(weights, state.scale[axis, STRETCHES // 2])
            set_scale(state, constants, axis, centre, steepness, upper)
            changed = True
        before = state.thresholds[axis]
        if is_known(weights, centre, steepness):
            state.scaled[axis] = True
            state.thresholds[axis] = 0
        else:
            waiting += 1
            state.thresholds[axis] = 1 + most_telling(weights)
        changed |= state.thresholds[axis] != before
    share = scale_share(waiting) if state.totals[0].contested > 0 else 0
    changed |= state.totals[0].scale_share != share
    state.totals[0].scale_share = share
    return bool(changed)


def is_off(state: "State", axis: int, weights: Floats) -> bool:
    """Say whether some quarter of the people seems to lie far from where the scale has it."""
    most = 0.0
    for quarter in range(1, 4):
        below = expected_share(weights, state.scale[axis, quarter * STRETCHES // 4])
        most = max(most, abs(below - quarter / 4.0))
    least = SCALE_OFF if state.scaled_since[axis] == 0 else SCALE_OFF_AGAIN
    off: bool = most > least
    return off


def set_scale(
    state: "State",
    constants: "Constants",
    axis: int,
    centre: float,
    steepness: float,
    upper: float,
) -> None:
    """Give an axis the quantiles of a shape as its scale.

    upper: the share of people above what was the middle until now. What was told of these halves
    says something of the new ones: along a straight line, (2r - 1)·g + 4r(1 - r)·effect as always.
    """
    for piece in range(1, STRETCHES):
        state.scale[axis, piece] = quantile(centre, steepness, piece / STRETCHES)
    slot = constants.axes.slots[axis]
    for node in range(state.totals[0].nodes):
        known = estimate(state, constants, node)
        for m in range(state.mass.shape[1]):
            carry_over(state.served, node, m, slot, upper, known.people.share[m] * known.mean)
            carry_over(state.logged, node, m, slot, upper, 2.0 * known.people.rows[m] * known.mean)
            state.mass_told.precision[node, m, 1 + slot] = 0.0
            state.mass_told.vector[node, m, 1 + slot] = 0.0
            for k in range(constants.arms):
                state.rows_told.precision[node, m, 1 + slot, k] = 0.0
                state.rows_told.vector[node, m, 1 + slot, k] = 0.0
    state.scaled_since[axis] = state.totals[0].release


def carry_over(
    told: Information, node: int, m: int, slot: int, upper: float, expected: Floats
) -> None:
    """Turn what was told of unequal halves into what it says of equal ones.

    upper: the share of the upper half. expected (K,): the mean of a population's answers, by arm.
    """
    of_mean, of_effect = coefficients(upper, False)
    arms, at = len(expected), 1 + slot
    for a in range(arms):
        unexplained = told.vector[node, m, at, a]
        for b in range(arms):
            unexplained -= of_mean * told.precision[node, m, at, a, b] * expected[b]
        told.vector[node, m, at, a] = of_effect * unexplained
    for a in range(arms):
        for b in range(arms):
            told.precision[node, m, at, a, b] *= of_effect**2
