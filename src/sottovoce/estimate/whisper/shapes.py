"""Shapes: how people may be spread along an axis of numbers, and which of them it is.

Shapes are distribution functions

    F(t) = logistic(steepness·(logit t - centre))

of which steepness 1 and centre 0 is the uniform one. A long tail has its centre far from 0. What
people say about public thresholds gives each shape its posterior probability.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.whisper.thresholds import THRESHOLDS
from sottovoce.shared.whisper.tuning import (
    SCALE_ERROR,
    SCALE_MOST,
    SCALE_PER_AXIS,
    SHARES,
    TIE,
    UNIFORM_LEAST,
    UNIFORM_SHARE,
)

Floats = NDArray[np.float64]

CENTRES, STEEPNESSES = 37, 7
"""How many shapes are compared: centres from -9 to 9, steepness from 1/3 to 3. Not tuned."""

TARGET, OTHERS = 0, 1
"""Whose shapes are told apart: those of the target's people, and of all auxiliary populations."""


def shape_at(i: int, j: int) -> tuple[float, float]:
    """Return the centre of a shape and the logarithm of its steepness."""
    return 0.5 * (i - CENTRES // 2), 0.5 * math.log(2.0) * (j - STEEPNESSES // 2)


def share_below(i: int, j: int, logit: float) -> float:
    """Return F of a shape at a position, given by its logit."""
    centre, steepness = shape_at(i, j)
    return 1.0 / (1.0 + math.exp(-math.exp(steepness) * (logit - centre)))


_BELOW = np.array(
    [
        [
            [share_below(i, j, math.log(each / (1.0 - each))) for j in range(STEEPNESSES)]
            for i in range(CENTRES)
        ]
        for each in THRESHOLDS
    ]
)


def weigh_shapes(precision: Floats, vector: Floats, weights: Floats) -> None:
    """Fill in the posterior of the shapes, (CENTRES, STEEPNESSES).

    precision, vector (THRESHOLDS,): what answers say of 1 - 2F at each threshold.
    """
    total = 0.0
    for i in range(CENTRES):
        for j in range(STEEPNESSES):
            centre, steepness = shape_at(i, j)
            log = -0.5 * (centre / 4.0) ** 2 - 0.5 * (steepness / 0.7) ** 2
            weights[i, j] = log
            total += math.exp(log)
    odds = UNIFORM_SHARE / (1.0 - UNIFORM_SHARE)
    weights[CENTRES // 2, STEEPNESSES // 2] = math.log(total * odds)
    for threshold in range(len(precision)):
        if precision[threshold] > 0.0:
            told = vector[threshold] / precision[threshold]
            for i in range(CENTRES):
                for j in range(STEEPNESSES):
                    off = told - (1.0 - 2.0 * _BELOW[threshold, i, j])
                    weights[i, j] -= 0.5 * precision[threshold] * off**2
    most, total = -math.inf, 0.0
    for i in range(CENTRES):
        for j in range(STEEPNESSES):
            most = max(most, weights[i, j])
    for i in range(CENTRES):
        for j in range(STEEPNESSES):
            weights[i, j] = math.exp(weights[i, j] - most)
            total += weights[i, j]
    for i in range(CENTRES):
        for j in range(STEEPNESSES):
            weights[i, j] /= total


def may_be_uniform(weights: Floats) -> bool:
    """Say whether the uniform shape is not ruled out yet, for TARGET and OTHERS."""
    may: bool = weights[:, CENTRES // 2, STEEPNESSES // 2].min() >= UNIFORM_LEAST
    return may


def mean_shape(weights: Floats) -> tuple[float, float]:
    """Return the mean of the centre, and the steepness by the mean of its logarithm."""
    mean, log = 0.0, 0.0
    for i in range(CENTRES):
        for j in range(STEEPNESSES):
            centre, steepness = shape_at(i, j)
            mean += weights[i, j] * centre
            log += weights[i, j] * steepness
    return mean, math.exp(log)


def quantile(ours: tuple[float, float], theirs: tuple[float, float], share: float) -> float:
    """Return the position below which a share of people are, half of whom have either shape."""
    odds = math.log(share / (1.0 - share))
    low = min(ours[0] + odds / ours[1], theirs[0] + odds / theirs[1])
    high = max(ours[0] + odds / ours[1], theirs[0] + odds / theirs[1])
    while high - low > TIE:  # the quantile of both lies between their own
        middle = (low + high) / 2.0
        below = 0.5 / (1.0 + math.exp(-ours[1] * (middle - ours[0])))
        below += 0.5 / (1.0 + math.exp(-theirs[1] * (middle - theirs[0])))
        if below < share:
            low = middle
        else:
            high = middle
    return 1.0 / (1.0 + math.exp(-(low + high) / 2.0))


def expected_share(weights: Floats, position: float) -> float:
    """Return the expected share of people below a position, half of whom are TARGET or OTHERS."""
    logit, below = math.log(position / (1.0 - position)), 0.0
    for i in range(CENTRES):
        for j in range(STEEPNESSES):
            weight = (weights[TARGET, i, j] + weights[OTHERS, i, j]) / 2.0
            below += weight * share_below(i, j, logit)
    return below


def is_known(weights: Floats) -> bool:
    """Say whether the quarters of people are known, to SCALE_ERROR of all people."""
    centre, steepness = mean_shape(weights)
    square = 0.0
    for quarter in range(1, 4):
        logit = centre + math.log(quarter / (4.0 - quarter)) / steepness
        for i in range(CENTRES):
            for j in range(STEEPNESSES):
                off = share_below(i, j, logit) - quarter / 4.0
                square += weights[i, j] * off**2 / 3.0
    return math.sqrt(square) < SCALE_ERROR


def most_telling(weights: Floats) -> int:
    """Return the threshold about which the shapes disagree most."""
    best, most = 0, -1.0
    for threshold in range(len(_BELOW)):
        mean, square = 0.0, 0.0
        for i in range(CENTRES):
            for j in range(STEEPNESSES):
                below = _BELOW[threshold, i, j]
                mean += weights[i, j] * below
                square += weights[i, j] * below**2
        if square - mean**2 > most + TIE:
            best, most = threshold, square - mean**2
    return best


def scale_share(waiting: int) -> int:
    """Return how many people of SHARES are asked where they are, while so many axes wait."""
    if waiting == 0:
        return 0
    return int(SHARES * min(SCALE_PER_AXIS * (1.0 + waiting), SCALE_MOST))
