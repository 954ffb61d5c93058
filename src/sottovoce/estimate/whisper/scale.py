"""Scales: an axis of numbers is stretched to where people are, before bins are split along it.

Some people are asked whether they are at or above a public threshold. As soon as a quarter of the
people seems to lie far from where the scale has it, the axis gets a new one: the quantiles of the
expected shape (``shapes.py``). No bin is split along an axis until its shape is known, and no arm
is dropped before all are.

Auxiliary data often comes first, and may be of people elsewhere. As long as the target's people are
not known by their own answers, an axis is stretched for both: for half of the people the target's
shape so far, which is uniform before anybody has told, and for half the shape of the others. If the
others are the same people, that costs about one split; if they are not, no more than that.
"""

from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.measurement import coefficients, estimate
from sottovoce.estimate.whisper.shapes import (
    CENTRES,
    OTHERS,
    STEEPNESSES,
    TARGET,
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
    state: "State", group: int, axis: int, row: int, answers: float, total: float, variance: float
) -> None:
    """Add what people told of one threshold. total: of answers with the mean 1 - 2F.

    group: TARGET, or OTHERS for any other population.
    """
    state.scale_told.precision[group, axis, row] += answers / variance
    state.scale_told.vector[group, axis, row] += total / variance


def scale_axes(state: "State", constants: "Constants") -> bool:
    """Give a scale to each axis that needs one by now; return whether anything changed."""
    changed, waiting = False, 0
    weights = np.empty((2, CENTRES, STEEPNESSES))
    for axis in range(constants.dimension):
        if state.scaled[axis]:
            continue
        telling, known = believe(state, axis, weights)
        if not may_be_uniform(weights) and is_off(state, axis, weights):
            upper = 1.0 - expected_share(weights, state.scale[axis, STRETCHES // 2])
            set_scale(state, constants, axis, weights, upper)
            changed = True
        before = state.thresholds[axis]
        if known:
            state.scaled[axis] = True
            state.thresholds[axis] = 0
        else:
            waiting += 1
            state.thresholds[axis] = 1 + most_telling(weights[telling])
        changed |= state.thresholds[axis] != before
    share = scale_share(waiting) if state.totals[0].contested > 0 else 0
    changed |= state.totals[0].scale_share != share
    state.totals[0].scale_share = share
    return bool(changed)


def believe(state: "State", axis: int, weights: Floats) -> tuple[int, bool]:
    """Fill in the posterior of the shapes of TARGET and OTHERS, each for half of the people.

    Where the target is known by itself, or nobody else has told, both are the target's. Return who
    told more, and whether that is enough.
    """
    told = state.scale_told
    for group in (TARGET, OTHERS):
        weigh_shapes(told.precision[group, axis], told.vector[group, axis], weights[group])
    much = told.precision[:, axis].sum(axis=1)
    if is_known(weights[TARGET]) or much[OTHERS] == 0.0:
        weights[OTHERS] = weights[TARGET]
    telling = OTHERS if much[OTHERS] > much[TARGET] else TARGET
    return telling, is_known(weights[TARGET]) or is_known(weights[OTHERS])


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
    weights: Floats,
    upper: float,
) -> None:
    """Give an axis the quantiles of two shapes, each for half of the people, as its scale.

    upper: the share of people above what was the middle until now. What was told of these halves
    says something of the new ones: along a straight line, (2r - 1)·g + 4r(1 - r)·effect as always.
    """
    ours, theirs = mean_shape(weights[TARGET]), mean_shape(weights[OTHERS])
    for piece in range(1, STRETCHES):
        state.scale[axis, piece] = quantile(ours, theirs, piece / STRETCHES)
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
