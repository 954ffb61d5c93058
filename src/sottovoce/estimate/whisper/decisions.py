"""Decisions: which arms a bin drops, which two it compares next, and whether it is split.

docs/explanation/whisper.md derives the rules.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.estimate.tree import may_split
from sottovoce.estimate.whisper.measurement import BinEstimate, gap_variance, mixing
from sottovoce.estimate.whisper.state import Flags, Floats
from sottovoce.shared.whisper.tuning import (
    DEEPEST,
    PRIOR_SHARE,
    SLOPE_DEVIATION,
    SLOPE_DOUBT,
    SPLIT_BELOW,
    SPLIT_GAIN,
    TIE,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


class Decision(NamedTuple):
    """What is decided for one bin.

    live (K,)        the arms that stay
    champion         the best arm, on offer
    challenger       the arm to compare with it, on offer too; the champion itself if none is left
    statistic (K,), boundary (K,)   of each arm that goes: the first has reached the second
    axis             the feature along which the bin is split; -1 if it is not
    """

    live: Flags
    champion: int
    challenger: int
    statistic: Floats
    boundary: Floats
    axis: int


def decide(state: "State", constants: "Constants", node: int, estimate: BinEstimate) -> Decision:
    """Decide for one bin.

    An arm is dropped when the people to come would lose less by it than the people so far have
    paid for the comparison: E[loss]·(users to come) ≤ gap·paid, where paid is the users so far and
    what auxiliary reports are worth. Where the estimates say
    that the arm is best in a part of the bin, the bin is split instead. While nobody is served (a
    jump-start), waiting is free: no arm is dropped until the announced rows have come. A certified
    learner needs proof besides, and keeps comparing an arm until it has it.
    """
    live = state.live[node].copy()
    statistic, boundary = np.zeros(constants.arms), np.zeros(constants.arms)
    mean, covariance = estimate.mean, estimate.covariance
    best, _ = choose_pair(live, mean, covariance)
    to_come = max(constants.horizon - state.totals[0].target, 1.0)
    split = state.tree.depth[node] < DEEPEST and may_split(state, node)
    axis = -1  # a feature along which an arm that should go is best in a part of the bin
    unproven = -1  # an arm that should go, and lacks the proof
    for k in range(constants.arms):
        if not live[k] or k == best:
            continue
        gap, variance = mean[best] - mean[k], gap_variance(covariance, best, k)
        inside, seen = variation_inside(state, node, estimate, best, k)
        loss = to_come * expected_loss(gap, math.sqrt(variance + inside))
        paid = gap * state.totals[0].paid
        if people_come(state, constants) and loss <= paid:
            if constants.certified:
                won, lost = state.votes[node, best, k], state.votes[node, k, best]
                statistic[k], boundary[k] = (
                    evidence(won, lost),
                    -math.log(allowance(constants, node)),
                )
                live[k] = statistic[k] < boundary[k]
                if live[k]:
                    unproven = k
            else:
                statistic[k], boundary[k] = paid, loss
                feature = crossing(state, node, estimate, best, k, to_come)
                live[k] = feature >= 0
                axis = feature if feature >= 0 else axis
            if not (live[k] and constants.certified):
                continue
        split = split and variance < SPLIT_BELOW * (inside if state.totals[0].served > 0 else seen)
    best, challenger = choose_pair(live, mean, covariance)
    if unproven >= 0:  # no split, which would begin the proof anew
        challenger, axis = unproven, -1
    elif axis < 0 and split and best != challenger:
        axis = steepest(live, estimate, best)
    return Decision(live, best, challenger, statistic, boundary, axis)


def choose_pair(live: Flags, mean: Floats, covariance: Floats) -> tuple[int, int]:
    """Return the best live arm, and the one that is hardest to tell from it."""
    best = -1
    for k in range(len(live)):
        if live[k] and (best < 0 or mean[k] > mean[best] + TIE):
            best = k
    rival, closest = best, math.inf
    for k in range(len(live)):
        if live[k] and k != best:
            z = (mean[best] - mean[k]) / math.sqrt(gap_variance(covariance, best, k))
            if z < closest - TIE:
                rival, closest = k, z
    return best, rival


def people_come(state: "State", constants: "Constants") -> bool:
    """Say whether people are being served, or will be before the next step."""
    totals = state.totals[0]
    come: bool = totals.served > 0 or totals.reports - totals.target > constants.jump_start
    return come


def variation_inside(
    state: "State", node: int, estimate: BinEstimate, best: int, arm: int
) -> tuple[float, float]:
    """Return how much the gap of two arms varies inside a bin: in expectation, and as far as seen.

    Along a straight line it varies by (4/3)·4r_j(1 - r_j)·slope_j² for each feature, r_j of the
    people in the upper half. Slopes that nobody has been asked about keep a share of their prior
    variance. What is seen of a square is what the noise of its estimate would not show by itself.
    """
    inside = 0.0
    for j in range(len(estimate.slope)):
        edge = state.tree.edges[node, j, 1] - state.tree.edges[node, j, 0]
        inside += 2.0 * PRIOR_SHARE * (SLOPE_DEVIATION * edge) ** 2
    seen = inside
    for j in range(len(estimate.slope)):
        scale = 4.0 / 3.0 * mixing(estimate.people.upper[0, j])
        square = (estimate.slope[j, best] - estimate.slope[j, arm]) ** 2
        doubt = gap_variance(estimate.slope_covariance[j], best, arm)
        inside += scale * (square + doubt)
        seen += scale * max(square - doubt, 0.0)
    return inside, seen


def crossing(
    state: "State", node: int, estimate: BinEstimate, best: int, arm: int, to_come: float
) -> int:
    """Return the feature along which an arm that loses on average wins in a part of the bin, or -1.

    Along a straight line the gap runs from gap - 2·steep to gap + 2·steep, with steep the slope of
    the difference. Below 0 the arm wins: (2·steep - gap)²/(8·steep) for each person of the bin.
    """
    gap = estimate.mean[best] - estimate.mean[arm]
    people = estimate.people.share[0] * to_come
    feature, most = -1, SPLIT_GAIN
    if state.tree.depth[node] >= DEEPEST or not may_split(state, node):
        return feature
    for j in range(len(estimate.slope)):
        steep = abs(estimate.slope[j, best] - estimate.slope[j, arm])
        if 2.0 * steep > gap:
            gain = (2.0 * steep - gap) ** 2 / (8.0 * steep)
            gain *= mixing(estimate.people.upper[0, j]) * people
            if gain > most:
                feature, most = j, gain
    return feature


def steepest(live: Flags, estimate: BinEstimate, best: int) -> int:
    """Return the feature along which the gap to some live arm varies most."""
    axis, most = -1, -1.0
    for j in range(len(estimate.slope)):
        for k in range(len(live)):
            if live[k] and k != best:
                difference = estimate.slope[j, best] - estimate.slope[j, k]
                doubt = gap_variance(estimate.slope_covariance[j], best, k)
                varies = difference**2 + SLOPE_DOUBT * doubt
                varies *= mixing(estimate.people.upper[0, j])
                if varies > most * (1.0 + TIE):
                    axis, most = j, varies
    return axis


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
