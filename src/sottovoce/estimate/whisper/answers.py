"""Answers → estimates: what ``whisper`` knows of a bin, by weighted least squares.

Plain functions over the arrays of a ``Board``. The learner calls them as they are, and the lab
compiles them as they stand; docs/explanation/whisper.md derives them.

The picture behind the estimates, in one bin, for the vector g = f - 1/2 of the K arms:

    g         mean over the bin
    slope_j   half the difference between the upper and the lower half along feature j
    halves    g ± slope_j, exactly, if they hold equally many people

Every answer measures a linear function of g, or of a slope, with a known variance, scaled by the
share of its population's people who are in the bin.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.board import Board
    from sottovoce.estimate.whisper.constants import Constants

Floats = NDArray[np.float64]

MASS_SPREAD = 0.3  # relative, of a bin's share of people around what was expected
HALF_SPREAD = 0.2  # of the share of people in the upper half around 1/2

TRUST = 0.5  # how much a logged row counts of what it is worth: it is of other people

# The kinds of questions; plain numbers, so that they compile.
CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED, REWARD, TONE = range(8)


def fold(
    board: "Board",
    constants: "Constants",
    node: int,
    population: int,
    kind: int,
    place: int,
    first: int,
    second: int,
    reports: float,
    whole: float,
    difference: float,
    signal: float,
    noise: float,
    inside: float,
    halves: bool,
) -> None:
    """Add the answers to one question about one bin.

    first, second: the arms that were on offer then, if the cell is that of a whole bin; otherwise
        the first is the arm of the cell.
    place: 0, or 1 + the feature that was asked about.
    whole, difference: the sums of the values over the bin, and of upper minus lower half.
    signal, noise, inside: β, and (value/β)² of people outside and inside of a cell.
    """
    share = board.mass[node, population]
    of_two = constants.arms == 2 and kind in (OUTCOME, TONE)  # so that everybody has one of the two
    if kind in (OUTCOME, COUNT) and not of_two:
        known = constants.known[population]
        share *= constants.behaviour[population, first] if known else 1.0 / constants.arms
    variance = (2.0 * noise if halves else noise) + share * (inside - noise)
    info = reports / variance
    for part in range(2):
        if part == 0 and not (halves or place == 0):
            continue
        if part == 1 and place == 0:
            continue
        at = place * part
        lean = (whole if part == 0 else difference) / (signal * variance)
        if kind == MASS:
            board.mass_info[node, population, at] += info
            board.mass_lean[node, population, at] += lean
        elif kind == COUNT:
            board.count_info[node, population, at, first] += info
            board.count_lean[node, population, at, first] += lean
        elif of_two:
            sign = -1.0 if kind == OUTCOME else 1.0
            logged_info = board.logged_info[node, population, at]
            add_both(logged_info, board.logged_lean[node, population, at], 0, 1, sign, info, lean)
        elif kind == OUTCOME:
            board.logged_info[node, population, at, first, first] += info
            board.logged_lean[node, population, at, first] += lean
        elif kind == RANKED:  # p·(2f - 1) = p·2g
            board.info[node, population, at, first, first] += 4.0 * info
            board.lean[node, population, at, first] += 2.0 * lean
        else:
            sign = -1.0 if kind == CONTRAST else 1.0
            told, toward = board.info[node, population, at], board.lean[node, population, at]
            add_both(told, toward, first, second, sign, info, lean)


def add_both(
    into_info: Floats,
    into_lean: Floats,
    first: int,
    second: int,
    sign: float,
    info: float,
    lean: float,
) -> None:
    """Add what measures x_first + sign·x_second. into_info (K, K), into_lean (K,)."""
    into_info[first, first] += info
    into_info[second, second] += info
    into_info[first, second] += sign * info
    into_info[second, first] += sign * info
    into_lean[first] += lean
    into_lean[second] += sign * lean


def worth(constants: "Constants", target: float, variance: float, logged: bool) -> float:
    """Return how many served target users one report is worth when two arms are compared.

    target, variance: of the mechanism of the target's people, and of the report's. A logged row
    has each arm with chance 1/K or so, a person 1/2 (or 1/K, where arms are public); and arms that
    have a cell each are compared with the noise of both.
    """
    if not logged or constants.arms == 2:
        return target / variance
    compared = constants.arms if constants.public_arms else 2  # arms on offer to people
    return target / variance * compared / constants.arms**2


def credit(constants: "Constants", target: float, variance: float, logged: bool) -> float:
    """Return what one report counts, in target users, for how long arms are compared."""
    return (TRUST if logged else 1.0) * worth(constants, target, variance, logged)


def shares(
    board: "Board", constants: "Constants", node: int, share: Floats, upper: Floats, rows: Floats
) -> None:
    """Estimate who is in a bin, for each population.

    share (M+1,): of all people. upper (M+1, d): of those, in the upper half along each feature.
    rows (M+1, K): of all logged rows, with each arm in the bin.
    """
    for m in range(len(share)):
        expected = board.mass[node, m]
        info = 1.0 / (MASS_SPREAD * expected) ** 2
        lean = expected * info + board.mass_lean[node, m, 0]
        info += board.mass_info[node, m, 0]
        if constants.known[m]:
            for k in range(constants.arms):
                chance = constants.behaviour[m, k]
                info += chance**2 * board.count_info[node, m, 0, k]
                lean += chance * board.count_lean[node, m, 0, k]
        share[m] = min(max(lean / info, expected / 4.0), 4.0 * expected, 1.0)
        if expected == 1.0:
            share[m] = 1.0  # everybody is in the root, whatever the noise says
        for k in range(constants.arms):
            if constants.known[m]:
                rows[m, k] = share[m] * constants.behaviour[m, k]
            else:
                expected_rows = share[m] / constants.arms
                info = 1.0 / expected_rows**2 + board.count_info[node, m, 0, k]
                lean = 1.0 / expected_rows + board.count_lean[node, m, 0, k]
                rows[m, k] = min(max(lean / info, 0.0), 4.0 * share[m], 1.0)
        for j in range(constants.dimension):
            info = 1.0 / HALF_SPREAD**2 + (2.0 * share[m]) ** 2 * board.mass_info[node, m, 1 + j]
            lean = 2.0 * share[m] * board.mass_lean[node, m, 1 + j]
            for k in range(constants.arms):
                info += (2.0 * rows[m, k]) ** 2 * board.count_info[node, m, 1 + j, k]
                lean += 2.0 * rows[m, k] * board.count_lean[node, m, 1 + j, k]
            upper[m, j] = min(max(0.5 + lean / info, 0.0), 1.0)


def balance(board: "Board", constants: "Constants", node: int, axis: int) -> float:
    """Return the share of the upper half among those whose answers made the estimate of g.

    g is a mean over the people who told of it, and populations differ in where theirs are.
    """
    groups = board.mass.shape[1]
    share, rows = np.empty(groups), np.empty((groups, constants.arms))
    upper = np.empty((groups, constants.dimension))
    shares(board, constants, node, share, upper, rows)
    total, told = 1e-9 * upper[0, axis], 1e-9  # the target's, where nobody has told anything
    for m in range(groups):
        weight = 0.0
        for a in range(constants.arms):
            weight += (2.0 * rows[m, a]) ** 2 * board.logged_info[node, m, 0, a, a]
            weight += share[m] ** 2 * board.info[node, m, 0, a, a]
        total += weight * upper[m, axis]
        told += weight
    centre: float = total / told
    return centre


def estimate(
    board: "Board",
    constants: "Constants",
    node: int,
    mean: Floats,
    covariance: Floats,
    slope: Floats,
    slope_covariance: Floats,
    share: Floats,
    upper: Floats,
) -> None:
    """Estimate g (K,) and its slopes (d, K), with covariances, from all populations at once.

    With r the share of a bin's people who are in its upper half, the answers about feature j have
    mean p·((2r - 1)·g + 4r(1 - r)·slope_j): upper minus lower half.
    """
    arms = constants.arms
    rows = np.empty((len(share), arms))
    shares(board, constants, node, share, upper, rows)
    precision = board.prior_info[node, 0].copy()
    lean = board.prior_lean[node, 0].copy()
    for m in range(len(share)):
        for a in range(arms):
            scale = 2.0 * rows[m, a]
            lean[a] += scale * board.logged_lean[node, m, 0, a]
            lean[a] += share[m] * board.lean[node, m, 0, a]
            for b in range(arms):
                precision[a, b] += share[m] ** 2 * board.info[node, m, 0, a, b]
                precision[a, b] += scale * 2.0 * rows[m, b] * board.logged_info[node, m, 0, a, b]
    solve(precision, lean, mean, covariance)
    for j in range(constants.dimension):
        precision[:] = board.prior_info[node, 1 + j]
        lean[:] = board.prior_lean[node, 1 + j]
        for m in range(len(share)):
            tilt = 2.0 * upper[m, j] - 1.0
            reach = 4.0 * upper[m, j] * (1.0 - upper[m, j])
            for a in range(arms):
                scale = 2.0 * rows[m, a]
                surprise = scale * board.logged_lean[node, m, 1 + j, a]
                surprise += share[m] * board.lean[node, m, 1 + j, a]
                for b in range(arms):
                    info = share[m] ** 2 * board.info[node, m, 1 + j, a, b]
                    info += scale * 2.0 * rows[m, b] * board.logged_info[node, m, 1 + j, a, b]
                    precision[a, b] += reach**2 * info
                    surprise -= tilt * info * mean[b]
                lean[a] += reach * surprise
        solve(precision, lean, slope[j], slope_covariance[j])


def solve(precision: Floats, lean: Floats, mean: Floats, covariance: Floats) -> None:
    """Turn precision and precision × mean into mean and covariance."""
    covariance[:] = np.linalg.inv(precision)
    for a in range(len(lean)):
        mean[a] = 0.0
        for b in range(len(lean)):
            mean[a] += covariance[a, b] * lean[b]


def gap_variance(covariance: Floats, a: int, b: int) -> float:
    """Return the variance of x_a - x_b."""
    variance: float = covariance[a, a] + covariance[b, b] - 2.0 * covariance[a, b]
    return variance
