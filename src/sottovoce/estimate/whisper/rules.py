"""The rules of ``whisper``: answers → estimates → which arms to drop, which bins to cut.

Plain functions over the arrays of a ``Board``. The learner calls them as they are, and the lab
compiles them as they stand. docs/explanation/whisper.md derives them and has the figures by which
the constants were chosen.

The picture behind the estimates, in one bin, for the vector g = f - 1/2 of the K arms:

    g         mean over the bin; at first N(0, SPREAD²) for each arm
    slope_j   half the difference between the upper and the lower half along feature j;
              at first N(0, (ROUGHNESS·edge)²)
    children  g ± slope_j, exactly, if the halves hold equally many people

so that a child begins with all that its parent knew, and the slopes say how much the best arm may
change inside a bin.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.board import Board
    from sottovoce.estimate.whisper.constants import Constants

Floats = NDArray[np.float64]

SPREAD = 0.25  # of mean rewards around 1/2, before anything is known
ROUGHNESS = 0.25  # of the slopes over an edge of length 1, before anything is known
ALONG = 0.5  # how much of a slope's square a child expects along the feature that was cut
FRESH = 0.05  # how much of a child's expectation is that of a bin nobody knows anything of
CUT_WHEN = 0.3  # a bin is cut when its variance is below this share of what varies inside it
MASS_SPREAD = 0.3  # relative, of a bin's share of people around what was expected
HALF_SPREAD = 0.2  # of the share of people in the upper half around 1/2
DEEPEST = 40  # no bin is cut more often: edges of 2^-40 hold nobody

# The kinds of questions, and the places of ``board.totals``; plain numbers, so that they compile.
CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED = range(6)
NODES, CONTESTED, EVENTS, RELEASE, REPORTS, SERVED = range(6)


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

    first, second: the arms compared then (CONTRAST, LEVEL); the arm of the cell otherwise.
    place: 0, or 1 + the feature that was asked about.
    whole, difference: the sums of the values over the bin, and of upper minus lower half.
    signal, noise, inside: β, and (value/β)² of people outside and inside of a cell.
    """
    share = board.mass[node, population]
    if kind in (OUTCOME, COUNT):
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
        elif kind == OUTCOME:
            board.logged_info[node, population, at, first] += info
            board.logged_lean[node, population, at, first] += lean
        elif kind == RANKED:  # p·(2f - 1) = p·2g
            board.info[node, population, at, first, first] += 4.0 * info
            board.lean[node, population, at, first] += 2.0 * lean
        else:
            sign = -1.0 if kind == CONTRAST else 1.0
            board.info[node, population, at, first, first] += info
            board.info[node, population, at, second, second] += info
            board.info[node, population, at, first, second] += sign * info
            board.info[node, population, at, second, first] += sign * info
            board.lean[node, population, at, first] += lean
            board.lean[node, population, at, second] += sign * lean


def worth(constants: "Constants", target: float, variance: float, logged: bool) -> float:
    """Return how many served target users one report is worth when two arms are compared.

    target, variance: of the mechanism of the target's people, and of the report's. A logged row
    has each arm with chance 1/K or so, and tells an arm's own outcome rather than a contrast.
    """
    return target / variance * (2.0 / constants.arms**2 if logged else 1.0)


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
        for k in range(constants.arms):
            if constants.known[m]:
                rows[m, k] = share[m] * constants.behaviour[m, k]
            else:
                expected_rows = share[m] / constants.arms
                info = 1.0 / expected_rows**2 + board.count_info[node, m, 0, k]
                lean = 1.0 / expected_rows + board.count_lean[node, m, 0, k]
                rows[m, k] = min(max(lean / info, 0.0), share[m])
        for j in range(constants.dimension):
            info = 1.0 / HALF_SPREAD**2 + (2.0 * share[m]) ** 2 * board.mass_info[node, m, 1 + j]
            lean = 2.0 * share[m] * board.mass_lean[node, m, 1 + j]
            for k in range(constants.arms):
                info += (2.0 * rows[m, k]) ** 2 * board.count_info[node, m, 1 + j, k]
                lean += 2.0 * rows[m, k] * board.count_lean[node, m, 1 + j, k]
            upper[m, j] = min(max(0.5 + lean / info, 0.1), 0.9)


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
            precision[a, a] += scale**2 * board.logged_info[node, m, 0, a]
            lean[a] += scale * board.logged_lean[node, m, 0, a]
            lean[a] += share[m] * board.lean[node, m, 0, a]
            for b in range(arms):
                precision[a, b] += share[m] ** 2 * board.info[node, m, 0, a, b]
    solve(precision, lean, mean, covariance)
    for j in range(constants.dimension):
        precision[:] = board.prior_info[node, 1 + j]
        lean[:] = board.prior_lean[node, 1 + j]
        for m in range(len(share)):
            tilt = 2.0 * upper[m, j] - 1.0
            reach = 4.0 * upper[m, j] * (1.0 - upper[m, j])
            for a in range(arms):
                scale = 2.0 * rows[m, a]
                info = scale**2 * board.logged_info[node, m, 1 + j, a]
                precision[a, a] += reach**2 * info
                surprise = scale * board.logged_lean[node, m, 1 + j, a] - tilt * info * mean[a]
                surprise += share[m] * board.lean[node, m, 1 + j, a]
                for b in range(arms):
                    info = share[m] ** 2 * board.info[node, m, 1 + j, a, b]
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


def normal_tail(z: float) -> float:
    """Return P(Z > z) of a standard normal Z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def expected_loss(gap: float, deviation: float) -> float:
    """Return E max(-X, 0) of X ~ N(gap, deviation²): what one loses by always taking the first."""
    z = gap / deviation
    return deviation * (math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * normal_tail(z))


def evidence(wins: int, losses: int) -> float:
    """Return the log of an e-value against "the first arm is no better than the second".

    Each answer that names the bin favours one of the two, and under that hypothesis the first
    with probability at most 1/2, whatever came before. So exp(λ(wins - losses)) / cosh(λ)^(wins +
    losses) is a supermartingale for each λ > 0, and so is the mean over any λ. By Ville's
    inequality it ever reaches 1/δ with probability at most δ.
    """
    steps = 12
    largest = -math.inf
    for step in range(steps):
        rate = 0.5**step
        exponent = rate * (wins - losses) - (wins + losses) * math.log(math.cosh(rate))
        largest = max(largest, exponent)
    total = 0.0
    for step in range(steps):
        rate = 0.5**step
        exponent = rate * (wins - losses) - (wins + losses) * math.log(math.cosh(rate))
        total += math.exp(exponent - largest)
    return largest + math.log(total / steps)


def allowance(constants: "Constants", node: int) -> float:
    """Return the share of δ of one comparison: Σ over nodes and rivals is at most δ."""
    return constants.delta * 6.0 / (math.pi * (node + 1.0)) ** 2 / (constants.arms - 1.0)


def choose_pair(
    board: "Board", constants: "Constants", node: int, mean: Floats, covariance: Floats
) -> int:
    """Put the best arm on offer, and the one that is hardest to tell from it; return the best."""
    best = -1
    for k in range(constants.arms):
        if board.live[node, k] and (best < 0 or mean[k] > mean[best]):
            best = k
    rival, closest = best, math.inf
    for k in range(constants.arms):
        if board.live[node, k] and k != best:
            z = (mean[best] - mean[k]) / math.sqrt(gap_variance(covariance, best, k))
            if z < closest:
                rival, closest = k, z
    board.pair[node, 0] = best
    board.pair[node, 1] = rival
    return best


def step(board: "Board", constants: "Constants") -> None:
    """Look at every contested bin: estimate, drop arms, cut. A new release if anything changed."""
    arms, d, groups = constants.arms, constants.dimension, board.mass.shape[1]
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    slope, slope_covariance = np.empty((d, arms)), np.empty((d, arms, arms))
    share, upper = np.empty(groups), np.empty((groups, d))
    nodes, contested, events = board.totals[NODES], board.totals[CONTESTED], board.totals[EVENTS]
    board.totals[RELEASE] += 1  # so that what is decided now bears the number of the next release
    changed = False
    standing = 0
    for position in range(contested):
        node = board.contested[position]
        champion, challenger = board.pair[node, 0], board.pair[node, 1]
        estimate(board, constants, node, mean, covariance, slope, slope_covariance, share, upper)
        axis = judge(board, constants, node, mean, covariance, slope, slope_covariance)
        if axis >= 0:
            cut(
                board,
                constants,
                node,
                axis,
                mean,
                covariance,
                slope,
                slope_covariance,
                share,
                upper,
            )
        elif board.pair[node, 0] != board.pair[node, 1]:
            board.contested[standing] = node
            standing += 1
            lower, higher = min(champion, challenger), max(champion, challenger)
            changed |= lower != min(board.pair[node, 0], board.pair[node, 1])
            changed |= higher != max(board.pair[node, 0], board.pair[node, 1])
    for node in range(nodes, board.totals[NODES]):
        board.contested[standing] = node
        standing += 1
        solve(board.prior_info[node, 0], board.prior_lean[node, 0], mean, covariance)
        choose_pair(board, constants, node, mean, covariance)
    board.totals[CONTESTED] = standing
    board.totals[SERVED] = 0
    if not changed and board.totals[EVENTS] == events:
        board.totals[RELEASE] -= 1


def judge(
    board: "Board",
    constants: "Constants",
    node: int,
    mean: Floats,
    covariance: Floats,
    slope: Floats,
    slope_covariance: Floats,
) -> int:
    """Drop arms and choose the next pair; return the feature to cut along, or -1.

    An arm is dropped when the people to come would lose less by it than the people so far have
    paid for the comparison: E[loss]·(users to come) ≤ gap·(users so far). For the loss, the gap at
    a place in the bin is normal around the estimate, with the variance of the estimate plus that
    inside of the bin: (4/3)·Σ_j slope_j² (a straight line), and what nobody knows of yet.
    While nobody is served (a jump-start), waiting is free, and no arm is dropped.
    """
    best = choose_pair(board, constants, node, mean, covariance)
    to_come = max(constants.horizon - board.experience[1], 1.0)
    unknown = 0.0
    for j in range(constants.dimension):
        edge = board.edges[node, j, 1] - board.edges[node, j, 0]
        unknown += 2.0 * FRESH * (ROUGHNESS * edge) ** 2
    fine = board.depth[node] < DEEPEST
    for k in range(constants.arms):
        if not board.live[node, k] or k == best:
            continue
        gap = mean[best] - mean[k]
        variance = gap_variance(covariance, best, k)
        inside = unknown
        for j in range(constants.dimension):
            difference = slope[j, best] - slope[j, k]
            inside += 4.0 / 3.0 * (difference**2 + gap_variance(slope_covariance[j], best, k))
        loss = to_come * expected_loss(gap, math.sqrt(variance + inside))
        paid = gap * board.experience[0]
        if board.totals[SERVED] > 0 and loss <= paid:
            if not constants.certified:
                drop(board, node, k, best, paid, loss)
                continue
            wins, losses = board.ballots[node, best, k], board.ballots[node, k, best]
            proof, needed = evidence(wins, losses), -math.log(allowance(constants, node))
            if proof >= needed:
                drop(board, node, k, best, proof, needed)
                continue
        fine = fine and variance < CUT_WHEN * inside
    choose_pair(board, constants, node, mean, covariance)
    if not fine or board.pair[node, 0] == board.pair[node, 1]:
        return -1
    axis, most = -1, -1.0
    for j in range(constants.dimension):
        for k in range(constants.arms):
            if board.live[node, k] and k != best:
                difference = slope[j, best] - slope[j, k]
                varies = difference**2 + gap_variance(slope_covariance[j], best, k)
                if varies > most * (1.0 + 1e-9):  # the first of equals, whatever the rounding
                    axis, most = j, varies
    return axis


def drop(
    board: "Board", node: int, arm: int, winner: int, statistic: float, boundary: float
) -> None:
    """Drop an arm, and write down why."""
    board.live[node, arm] = False
    note(board, node, -1, arm, winner, statistic, boundary)


def note(
    board: "Board",
    node: int,
    axis: int,
    arm: int,
    winner: int,
    statistic: float,
    boundary: float,
) -> None:
    """Write an event down."""
    row = board.events[board.totals[EVENTS]]
    row[0], row[1], row[2], row[3] = board.totals[REPORTS], board.totals[RELEASE], node, axis
    row[4], row[5], row[6], row[7] = arm, winner, statistic, boundary
    board.totals[EVENTS] += 1


def cut(
    board: "Board",
    constants: "Constants",
    node: int,
    axis: int,
    mean: Floats,
    covariance: Floats,
    slope: Floats,
    slope_covariance: Floats,
    share: Floats,
    upper: Floats,
) -> None:
    """Cut a bin in two; each half begins with what is known of it already."""
    lower = board.totals[NODES]
    middle = (board.edges[node, axis, 0] + board.edges[node, axis, 1]) / 2.0
    board.axis[node] = axis
    board.middle[node] = middle
    board.child[node] = lower
    live = 0
    for k in range(constants.arms):
        live += board.live[node, k]
    for side in range(2):
        half = lower + side
        board.depth[half] = board.depth[node] + 1
        board.edges[half] = board.edges[node]
        board.edges[half, axis, 1 - side] = middle
        board.live[half] = board.live[node]
        for m in range(len(share)):
            part = upper[m, axis] if side == 1 else 1.0 - upper[m, axis]
            board.mass[half, m] = share[m] * part
        # Halves of unequal weight: the heavier one is nearer to the mean.
        away = 2.0 * (1.0 - upper[0, axis]) if side == 1 else -2.0 * upper[0, axis]
        precision = np.linalg.inv(covariance + away**2 * slope_covariance[axis])
        board.prior_info[half, 0] = precision
        for a in range(constants.arms):
            for b in range(constants.arms):
                board.prior_lean[half, 0, a] += precision[a, b] * (mean[b] + away * slope[axis, b])
        for j in range(constants.dimension):
            square = 0.0
            for k in range(constants.arms):
                if board.live[node, k]:
                    square += slope[j, k] ** 2 + slope_covariance[j, k, k]
            inherited = (ALONG if j == axis else 1.0) * square / live
            edge = board.edges[half, j, 1] - board.edges[half, j, 0]
            expected = (1.0 - FRESH) * inherited + FRESH * (ROUGHNESS * edge) ** 2
            for k in range(constants.arms):
                board.prior_info[half, 1 + j, k, k] = 1.0 / expected
    board.totals[NODES] += 2
    note(board, node, axis, -1, -1, 0.0, 0.0)
