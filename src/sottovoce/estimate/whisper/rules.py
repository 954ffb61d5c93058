"""The rules of ``whisper``: estimates → which arms to drop, which bins to cut.

Plain functions over the arrays of a ``Board``. The learner calls them as they are, and the lab
compiles them as they stand. docs/explanation/whisper.md derives them and has the figures by which
the constants were chosen.

Before anything is known, g is N(0, SPREAD²) for each arm, and a slope N(0, (ROUGHNESS·edge)²). A
half begins with all that its parent knew (``answers.py``: it is g ± a slope), and learns from its
kin from then on (``kin.py``). The slopes say how much the best arm may change inside a bin.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.answers import Floats, balance, estimate, gap_variance, solve
from sottovoce.estimate.whisper.audit import look_out, to_ask
from sottovoce.estimate.whisper.kin import (
    ANEW,
    FRESH,
    ROUGHNESS,
    expected_square,
    is_due,
    kept,
    smooth,
)
from sottovoce.estimate.whisper.places import (
    ASKED,
    CONTESTED,
    EVENTS,
    NODES,
    RELEASE,
    REPORTS,
    SERVED,
    TARGET,
    WORTH,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.board import Board
    from sottovoce.estimate.whisper.constants import Constants

CUT_WHEN = 0.3  # a bin is cut when its variance is below this share of what varies inside it
UNSURE = 0.3  # how much of a slope's variance counts for where to cut
WON = 1.0  # rewards that a cut must win if it is made for an arm that should go
EQUAL = 1e-9  # of what differs by less, the first is taken, whatever the rounding
DEEPEST = 40  # no bin is cut more often: edges of 2^-40 hold nobody


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
    exponents = np.empty(12)
    for halvings in range(12):
        rate = 0.5**halvings
        exponents[halvings] = rate * (wins - losses) - (wins + losses) * math.log(math.cosh(rate))
    largest = exponents.max()
    return float(largest + math.log(np.exp(exponents - largest).mean()))


def allowance(constants: "Constants", node: int) -> float:
    """Return the share of δ of one comparison: Σ over nodes and ordered pairs is at most δ."""
    pairs = constants.arms * (constants.arms - 1.0)
    return constants.delta * 6.0 / (math.pi * (node + 1.0)) ** 2 / pairs


def vote(board: "Board", node: int, first: int, second: int, named: int, whole: int) -> None:
    """Count answers that name a bin, with their sum, for the one arm and for the other."""
    board.ballots[node, first, second] += (named + whole) // 2
    board.ballots[node, second, first] += (named - whole) // 2


def choose_pair(
    board: "Board", constants: "Constants", node: int, mean: Floats, covariance: Floats
) -> int:
    """Put the best arm on offer, and the one that is hardest to tell from it; return the best."""
    best = -1
    for k in range(constants.arms):
        if board.live[node, k] and (best < 0 or mean[k] > mean[best] + EQUAL):
            best = k
    rival, closest = best, math.inf
    for k in range(constants.arms):
        if board.live[node, k] and k != best:
            z = (mean[best] - mean[k]) / math.sqrt(gap_variance(covariance, best, k))
            if z < closest - EQUAL:
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
    if is_due(board):
        smooth(board, constants)
    changed = False
    standing = 0
    for position in range(contested):
        node = board.contested[position]
        champion, challenger = board.pair[node, 0], board.pair[node, 1]
        estimate(board, constants, node, mean, covariance, slope, slope_covariance, share, upper)
        axis = judge(
            board, constants, node, mean, covariance, slope, slope_covariance, share, upper
        )
        look_out(board, constants, node, share[0], mean)
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
            if not constants.public_arms:  # otherwise all live arms are on offer
                lower, higher = min(champion, challenger), max(champion, challenger)
                changed |= lower != min(board.pair[node, 0], board.pair[node, 1])
                changed |= higher != max(board.pair[node, 0], board.pair[node, 1])
    for node in range(nodes, board.totals[NODES]):
        board.contested[standing] = node
        standing += 1
        solve(board.prior_info[node, 0], board.prior_lean[node, 0], mean, covariance)
        choose_pair(board, constants, node, mean, covariance)
        look_out(board, constants, node, board.mass[node, 0], mean)
    board.totals[CONTESTED] = standing
    board.totals[SERVED] = 0
    asked = to_ask(board, constants)
    changed |= asked != board.totals[ASKED]
    board.totals[ASKED] = asked
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
    share: Floats,
    upper: Floats,
) -> int:
    """Drop arms and choose the next pair; return the feature to cut along, or -1.

    An arm is dropped when the people to come would lose less by it than the people so far have
    paid for the comparison: E[loss]·(users to come) ≤ gap·(users so far). For the loss, the gap at
    a place in the bin is normal around the estimate, with the variance of the estimate plus that
    inside of the bin: (4/3)·Σ_j 4r_j(1 - r_j)·slope_j² (a straight line, r_j of the people in the
    upper half), and what nobody knows of yet.
    Where the estimates say that it is best in a part of the bin, the bin is cut instead.
    While nobody is served (a jump-start), waiting is free: no arm is dropped until the announced
    rows have come, and a bin is cut only for slopes that were seen, beyond what the noise of their
    estimate would show by itself. A certified learner needs proof besides, and puts an arm that
    lacks it on offer until it has it.
    """
    best = choose_pair(board, constants, node, mean, covariance)
    to_come = max(constants.horizon - board.experience[TARGET], 1.0)
    unknown = 0.0
    for j in range(constants.dimension):
        edge = board.edges[node, j, 1] - board.edges[node, j, 0]
        unknown += 2.0 * FRESH * (ROUGHNESS * edge) ** 2
    fine = board.depth[node] < DEEPEST
    turns = -1  # a feature along which an arm that should go is best in a part of the bin
    accused = -1  # an arm that should go, and lacks the proof
    for k in range(constants.arms):
        if not board.live[node, k] or k == best:
            continue
        gap = mean[best] - mean[k]
        variance = gap_variance(covariance, best, k)
        inside = seen = unknown
        for j in range(constants.dimension):
            square = (slope[j, best] - slope[j, k]) ** 2
            doubt = gap_variance(slope_covariance[j], best, k)
            inside += 4.0 / 3.0 * mixing(upper[0, j]) * (square + doubt)
            seen += 4.0 / 3.0 * mixing(upper[0, j]) * max(square - doubt, 0.0)
        loss = to_come * expected_loss(gap, math.sqrt(variance + inside))
        paid = gap * board.experience[WORTH]
        if people_come(board, constants) and loss <= paid:
            if not constants.certified:
                part = turning(board, node, gap, slope, best, k, share[0] * to_come, upper)
                if part >= 0:
                    turns = part
                else:
                    drop(board, node, k, best, paid, loss)
                continue
            wins, losses = board.ballots[node, best, k], board.ballots[node, k, best]
            proof, needed = evidence(wins, losses), -math.log(allowance(constants, node))
            if proof >= needed:
                drop(board, node, k, best, proof, needed)
                continue
            accused = k
        fine = fine and variance < CUT_WHEN * (inside if board.totals[SERVED] > 0 else seen)
    choose_pair(board, constants, node, mean, covariance)
    if accused >= 0:  # no cut, which would begin the proof anew
        board.pair[node, 1] = accused
        return -1
    if turns >= 0:
        return turns
    if not fine or board.pair[node, 0] == board.pair[node, 1]:
        return -1
    axis, most = -1, -1.0
    for j in range(constants.dimension):
        for k in range(constants.arms):
            if board.live[node, k] and k != best:
                difference = slope[j, best] - slope[j, k]
                varies = difference**2 + UNSURE * gap_variance(slope_covariance[j], best, k)
                varies *= mixing(upper[0, j])
                if varies > most * (1.0 + EQUAL):
                    axis, most = j, varies
    return axis


def people_come(board: "Board", constants: "Constants") -> bool:
    """Say whether people are being served, or will be before the next step."""
    logged = board.totals[REPORTS] - board.experience[TARGET]
    come: bool = board.totals[SERVED] > 0 or logged > constants.jump_start
    return come


def turning(
    board: "Board",
    node: int,
    gap: float,
    slope: Floats,
    best: int,
    arm: int,
    people: float,
    upper: Floats,
) -> int:
    """Return the feature along which an arm that loses on average wins in a part of the bin, or -1.

    Along a straight line the gap runs from gap - 2·steep to gap + 2·steep, with steep the slope of
    the difference. Below 0 the arm wins: (2·steep - gap)²/(8·steep) for each person of the bin.

    people: how many are to come to the bin.
    """
    feature, most = -1, WON
    for j in range(len(slope)):
        steep = abs(slope[j, best] - slope[j, arm])
        if 2.0 * steep > gap and board.depth[node] < DEEPEST:
            won = (2.0 * steep - gap) ** 2 / (8.0 * steep) * mixing(upper[0, j]) * people
            if won > most:
                feature, most = j, won
    return feature


def mixing(upper: float) -> float:
    """Return 4r(1 - r): 1 for equal halves, 0 where everybody is in one of them."""
    return 4.0 * upper * (1.0 - upper)


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
    tilt = balance(board, constants, node, axis)
    for side in range(2):
        half = lower + side
        board.depth[half] = board.depth[node] + 1
        board.edges[half] = board.edges[node]
        board.edges[half, axis, 1 - side] = middle
        board.live[half] = board.live[node]
        for m in range(len(share)):
            part = upper[m, axis] if side == 1 else 1.0 - upper[m, axis]
            # Nobody was seen there, perhaps; that nobody ever comes is not known.
            board.mass[half, m] = share[m] * min(max(part, 0.01), 0.99)
        # Halves of unequal weight: the heavier one is nearer to the mean.
        away = 2.0 * (1.0 - tilt) if side == 1 else -2.0 * tilt
        board.away[half] = away
        precision = np.linalg.inv(covariance + away**2 * slope_covariance[axis])
        board.prior_info[half, 0] = precision
        for a in range(constants.arms):
            for b in range(constants.arms):
                board.prior_lean[half, 0, a] += precision[a, b] * (mean[b] + away * slope[axis, b])
        for j in range(constants.dimension):
            board.anew[half, j] = ANEW * expected_square(
                board, half, j, axis, slope[j], slope_covariance[j]
            )
            covariance_here = kept(axis, j) ** 2 * slope_covariance[j]
            for k in range(constants.arms):
                covariance_here[k, k] += board.anew[half, j]
            precision = np.linalg.inv(covariance_here)
            board.prior_info[half, 1 + j] = precision
            for a in range(constants.arms):
                for b in range(constants.arms):
                    lean = precision[a, b] * kept(axis, j) * slope[j, b]
                    board.prior_lean[half, 1 + j, a] += lean
    board.totals[NODES] += 2
    note(board, node, axis, -1, -1, 0.0, 0.0)
