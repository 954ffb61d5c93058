"""Decisions: which arms a bin drops, which two it compares next, and whether it is split.

docs/explanation/whisper.md derives the rules.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.estimate.tree import may_split
from sottovoce.estimate.whisper.measurement import BinEstimate, gap_variance, mixing
from sottovoce.estimate.whisper.state import Flags, Floats
from sottovoce.shared.whisper.caps import needs_uncapped_rival, share_of
from sottovoce.shared.whisper.tuning import (
    DEEPEST,
    FEW_MATTER,
    LOGGED_TRUST,
    PRIOR_SHARE,
    SLOPE_DEVIATION,
    SLOPE_DOUBT,
    SPLIT_BELOW,
    SPLIT_GAIN,
    SPLIT_GUESS,
    SPLIT_KNOWN,
    SPLIT_RELEVANT,
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
    axis             the axis along which the bin is split; -1 if it is not
    upper (Z,)       of a split by levels, those of the upper part
    """

    live: Flags
    champion: int
    challenger: int
    statistic: Floats
    boundary: Floats
    axis: int
    upper: Flags


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
    best, _ = choose_pair(live, mean, covariance, constants.caps)
    to_come = max(constants.horizon - state.totals[0].target, 1.0)
    split = state.tree.depth[node] < DEEPEST and may_split(state, node)
    axis = -1  # an axis along which an arm that should go is best in a part of the bin
    against = -1  # the arm that is best there
    unproven = -1  # an arm that should go, and lacks the proof
    for k in range(constants.arms):
        if not live[k] or k == best:
            continue
        gap, variance = mean[best] - mean[k], gap_variance(covariance, best, k)
        inside, seen = variation_inside(state, constants, node, estimate, best, k)
        loss = to_come * expected_loss(gap, math.sqrt(variance + inside))
        paid = gap * paid_for(state, constants, node, best, k)
        if people_come(state, constants) and loss <= paid:
            if constants.certified:
                won, lost = state.votes[node, best, k], state.votes[node, k, best]
                statistic[k], boundary[k] = (
                    evidence(won, lost),
                    -math.log(allowance(state, constants, node, best, k)),
                )
                live[k] = statistic[k] < boundary[k]
                # Of two capped arms, one waits until all without a cap are gone.
                waits = needs_uncapped_rival(live, constants.caps, best) and constants.caps[k] < 0.5
                if live[k] and not waits:
                    unproven = k
            else:
                statistic[k], boundary[k] = paid, loss
                crosses = crossing(state, constants, node, estimate, best, k, to_come)
                live[k] = crosses >= 0
                if crosses >= 0:
                    axis, against = crosses, k
            if not (live[k] and constants.certified):
                continue
        inside = inside if state.totals[0].served > 0 else seen
        inside += SPLIT_GUESS * variation_unasked(state, constants, node)
        split = split and variance < SPLIT_BELOW * inside
    best, challenger = choose_pair(live, mean, covariance, constants.caps)
    if unproven >= 0:  # no split, which would begin the proof anew
        challenger, axis = unproven, -1
    elif axis < 0 and split and best != challenger:
        axis, against = axis_to_split(state, constants, node, live, estimate, best)
    upper = np.zeros(state.holds.shape[1], dtype=np.bool_)
    if axis >= 0 and constants.axes.levels[axis] > 0:
        upper = divide_levels(state, constants, node, estimate, axis, best, against)
    return Decision(live, best, challenger, statistic, boundary, axis, upper)


def people_paid(state: "State") -> float:
    """Return how many people have paid for comparisons so far, and what others are worth in them.

    Nobody has paid for logged rows, but what they say may save the first people much.
    """
    paid: float = state.totals[0].paid + LOGGED_TRUST * state.totals[0].rows_paid
    return paid


def paid_for(state: "State", constants: "Constants", node: int, best: int, arm: int) -> float:
    """Return how many people have paid for the comparison of an arm with the best, in one bin.

    Nobody paid for it before both arms were there. If an arm is capped, more or fewer people than
    half got the arm that loses.
    """
    late = best if state.entered[node, best, 0] > state.entered[node, arm, 0] else arm
    before = state.entered[node, late, 0] + LOGGED_TRUST * state.entered[node, late, 1]
    got = 2.0 * share_of(constants.caps, arm, best)
    paid: float = got * (people_paid(state) - before)
    return paid


def choose_pair(live: Flags, mean: Floats, covariance: Floats, caps: Floats) -> tuple[int, int]:
    """Return the best live arm, and the one that is hardest to tell from it.

    A capped arm is compared with one that has no cap, as long as there is one.
    """
    best = -1
    for k in range(len(live)):
        if live[k] and (best < 0 or mean[k] > mean[best] + TIE):
            best = k
    rival, closest = best, math.inf
    uncapped = best >= 0 and needs_uncapped_rival(live, caps, best)
    for k in range(len(live)):
        if live[k] and k != best and not (uncapped and caps[k] < 0.5):
            z = (mean[best] - mean[k]) / math.sqrt(gap_variance(covariance, best, k))
            if z < closest - TIE:
                rival, closest = k, z
    return best, rival


def people_come(state: "State", constants: "Constants") -> bool:
    """Say whether people are being served, or will be before the next step."""
    totals = state.totals[0]
    come: bool = totals.scale_share == 0 and (
        totals.served > 0 or totals.reports - totals.target > constants.jump_start
    )
    return come


def axis_variation(
    state: "State",
    constants: "Constants",
    node: int,
    estimate: BinEstimate,
    best: int,
    arm: int,
    axis: int,
) -> tuple[float, float]:
    """Return how much the gap of two arms varies along an axis: as estimated, and the doubt of it.

    Along a straight line it varies by (4/3)·4r(1 - r)·effect², r of the people in the upper half.
    Levels with the shares q vary by Σ q·effect².
    """
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    seen, doubt = 0.0, 0.0
    for slot in range(first, first + max(levels, 1)):
        if state.holds[node, slot]:
            part = estimate.people.part[0, slot]
            scale = part if levels > 0 else 4.0 / 3.0 * mixing(part)
            seen += scale * (estimate.effect[slot, best] - estimate.effect[slot, arm]) ** 2
            doubt += scale * gap_variance(estimate.effect_covariance[slot], best, arm)
    return seen, doubt


def variation_inside(
    state: "State", constants: "Constants", node: int, estimate: BinEstimate, best: int, arm: int
) -> tuple[float, float]:
    """Return how much the gap of two arms varies inside a bin: in expectation, and as far as seen.

    What is seen of a square is what the noise of its estimate would not show by itself.
    """
    inside = variation_unasked(state, constants, node)
    seen = inside
    for axis in range(constants.dimension):
        square, doubt = axis_variation(state, constants, node, estimate, best, arm, axis)
        inside += square + doubt
        seen += max(square - doubt, 0.0)
    return inside, seen


def variation_unasked(state: "State", constants: "Constants", node: int) -> float:
    """Return the variation inside a bin that no question shows, such as that of two axes at once.

    It is a share of the prior variance; of many axes, as much as FEW_MATTER of them have.
    """
    rest = 0.0
    for axis in range(constants.dimension):
        edge = state.tree.edges[node, axis, 1] - state.tree.edges[node, axis, 0]
        rest += 2.0 * PRIOR_SHARE * (SLOPE_DEVIATION * edge) ** 2
    return rest * min(1.0, FEW_MATTER / constants.dimension)


def crossing(
    state: "State",
    constants: "Constants",
    node: int,
    estimate: BinEstimate,
    best: int,
    arm: int,
    to_come: float,
) -> int:
    """Return the axis along which an arm that loses on average wins in a part of the bin, or -1.

    Along a straight line the gap runs from gap - 2·steep to gap + 2·steep, with steep the effect on
    the difference. Below 0 the arm wins: (2·steep - gap)²/(8·steep) for each person of the bin.
    """
    gap = estimate.mean[best] - estimate.mean[arm]
    people = estimate.people.share[0] * to_come
    found, most = -1, SPLIT_GAIN
    if state.tree.depth[node] >= DEEPEST or not may_split(state, node):
        return found
    for axis in range(constants.dimension):
        first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
        gain = 0.0
        for slot in range(first, first + max(levels, 1)):
            if not state.holds[node, slot]:
                continue
            part = estimate.people.part[0, slot]
            steep = estimate.effect[slot, best] - estimate.effect[slot, arm]
            if levels > 0:
                gain += part * max(-gap - steep, 0.0)
            elif 2.0 * abs(steep) > gap:
                gain += mixing(part) * (2.0 * abs(steep) - gap) ** 2 / (8.0 * abs(steep))
        gain *= people
        if gain > most and state.scaled[axis]:
            found, most = axis, gain
    return found


def axis_to_split(
    state: "State",
    constants: "Constants",
    node: int,
    live: Flags,
    estimate: BinEstimate,
    best: int,
) -> tuple[int, int]:
    """Return the axis along which a bin should be split, or -1, and the arm that differs there.

    It is the axis along which the gap to some live arm varies most. Where there are many axes or
    levels, a split waits until that axis is known from the others: until what is seen along it
    outweighs the doubt along all others, and it is likely to matter at all. Where nothing is left
    to be learned of any axis, a split is a guess: perhaps two axes matter together.
    """
    found, against, most = -1, -1, 0.0
    seen_most, own, doubts = 0.0, 0.0, 0.0
    for k in range(len(live)):
        if live[k] and k != best:
            total = 0.0
            for axis in range(constants.dimension):
                seen, doubt = axis_variation(state, constants, node, estimate, best, k, axis)
                total += doubt
                varies = seen + SLOPE_DOUBT * doubt
                if varies > most * (1.0 + TIE) and state.scaled[axis]:
                    found, against, most, seen_most, own = axis, k, varies, seen, doubt
            doubts = max(doubts, total)
    if found < 0:
        return found, against
    # The shares of slots, and of the levels of this axis, that are not expected to matter.
    many = max(0.0, 1.0 - FEW_MATTER / state.holds.shape[1])
    levels = max(0.0, 1.0 - FEW_MATTER / max(constants.axes.levels[found], 1))
    rest = variation_unasked(state, constants, node)
    if rest > many * doubts:
        return found, against
    doubt = many * SPLIT_KNOWN * (doubts - own) + 0.5 * levels * own
    if seen_most + rest > doubt and state.relevance[found] >= SPLIT_RELEVANT * many:
        return found, against
    return -1, -1


def divide_levels(
    state: "State",
    constants: "Constants",
    node: int,
    estimate: BinEstimate,
    axis: int,
    best: int,
    arm: int,
) -> Flags:
    """Return the levels of the upper part, (Z,): the two sets between which the gap differs most.

    Sorted by their gaps, the best two sets are a beginning and an end. Between sets with the shares
    a and b and the means x and y the variance is ab/(a + b)·(x - y)².
    """
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    gaps, total, weighted = np.full(levels, np.inf), 0.0, 0.0
    held = 0
    for level in range(levels):
        if state.holds[node, first + level]:
            slot = first + level
            gaps[level] = estimate.effect[slot, best] - estimate.effect[slot, arm]
            total += estimate.people.part[0, slot]
            weighted += estimate.people.part[0, slot] * gaps[level]
            held += 1
    order = np.argsort(gaps)  # levels that are elsewhere come last
    share, sum_below, most, cut = 0.0, 0.0, -1.0, 1
    for position in range(held - 1):
        slot = first + order[position]
        share += estimate.people.part[0, slot]
        sum_below += estimate.people.part[0, slot] * gaps[order[position]]
        apart = sum_below / share - (weighted - sum_below) / (total - share)
        between = share * (total - share) / total * apart**2
        if between > most * (1.0 + TIE):
            most, cut = between, position + 1
    upper = np.zeros(state.holds.shape[1], dtype=np.bool_)
    for position in range(cut, held):
        upper[first + order[position]] = True
    return upper


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


def allowance(state: "State", constants: "Constants", node: int, arm: int, other: int) -> float:
    """Return the share of δ of one comparison: Σ over nodes and ordered pairs is at most δ.

    The j-th place of a series has 6δ/(πj)². Each bin has a place for the arms that it began with,
    and one more for each arm that came later. A pair shares the place of the arm that came last
    with all ordered pairs of which that is so.
    """
    place = max(state.place[node, arm], state.place[node, other])
    earlier, same = 0, 0
    for k in range(constants.arms):
        earlier += 0 < state.place[node, k] < place
        same += state.place[node, k] == place
    pairs = same * (same - 1.0 + 2.0 * earlier)
    return constants.delta * 6.0 / (math.pi * float(place)) ** 2 / pairs
