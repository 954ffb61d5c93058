"""Smoothing: one Gaussian model over the whole tree, solved by belief propagation.

What is unknown of a bin is g and the effect of each slot, K numbers each. A part begins as its
parent says,

    g_part       = g + shift·split             split: the effect along which the parent was split
    effect_part  = kept·effect + N(0, variance)

and every answer measures a linear function of the unknowns of the bin it is about. Two passes over
the tree give each bin what all *others* say of it: its prior. Upwards each part tells its parent.
Downwards each parent tells a part what it knows but for what that part has told. So bins learn from
each other, the more the nearer they are.

Of a bin, g is kept together with the one effect along which it is split; all other effects are
taken to be independent of each other and of g. So the work grows with the number of slots, and not
with its cube. By how much the g's of two parts differ tells how large the effect of the split is:
their own effects along that axis are expected to be as large.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sottovoce.estimate.whisper.measurement import (
    BinShares,
    bin_shares,
    invert,
    measured,
    solve,
    told_of_slot,
)
from sottovoce.estimate.whisper.relevance import weigh_axes
from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.shared.whisper.tuning import (
    PRIOR_SHARE,
    REWARD_DEVIATION,
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


class Messages(NamedTuple):
    """What is told in the two passes, for each node.

    parts (nodes, Z): the target's share in each slot.
    told (nodes, …): what its own answers say of g. effects (nodes, Z, …): what they, and on the way
        up all bins below it, say of its effects.
    up (nodes, …): what a part tells its parent of its g. up_effects (nodes, Z, …): of effects.
    of_parts (nodes, …): what the two parts say, by how their g's differ, of the effect along which
        a bin is split.
    """

    parts: Floats
    told: Information
    effects: Information
    up: Information
    up_effects: Information
    of_parts: Information


def smoothing_is_due(state: "State") -> bool:
    """Say whether enough reports have come to go through the tree again.

    They grow anew from when an arm came or went, and from when the target's people began to come.
    """
    totals = state.totals[0]
    since = totals.reports - totals.smoothed
    grown = totals.reports - totals.amended
    if totals.target > 0.0:
        grown = min(grown, totals.target)
    least = max(SMOOTH_AFTER_GROWTH * grown, SMOOTH_AFTER_PER_NODE * totals.nodes)
    due: bool = since >= least
    return due


def smooth(state: "State", constants: "Constants") -> None:
    """Go through the tree, up and down; every bin then begins with what all others say of it."""
    nodes, arms, slots = state.totals[0].nodes, constants.arms, state.holds.shape[1]
    told = Information(np.zeros((nodes, arms, arms)), np.zeros((nodes, arms)))
    effects = Information(np.zeros((nodes, slots, arms, arms)), np.zeros((nodes, slots, arms)))
    parts = np.zeros((nodes, slots))
    for node in range(nodes):
        people = bin_shares(state, constants, node)
        parts[node] = people.part[0]
        told_of_bin(state, constants, node, people, told, effects)
    weigh_axes(state, constants, effects)
    up = Information(told.precision.copy(), told.vector.copy())
    up_effects = Information(np.zeros_like(effects.precision), np.zeros_like(effects.vector))
    of_parts = Information(np.zeros_like(told.precision), np.zeros_like(told.vector))
    messages = Messages(parts, told, effects, up, up_effects, of_parts)
    # Parts come after their parents, so that going down the numbers goes up the tree.
    for node in range(nodes - 1, -1, -1):
        child = state.tree.child[node]
        if child != node:
            for part in range(child, child + 2):
                send_effects(state, constants, node, part, messages)
            gather(state, constants, node, messages)
    for node in range(nodes):
        child = state.tree.child[node]
        if child != node:
            for part in range(child, child + 2):
                hand_down(state, constants, node, part, messages)
    state.totals[0].smoothed = state.totals[0].reports


def told_of_bin(
    state: "State",
    constants: "Constants",
    node: int,
    people: BinShares,
    told: Information,
    effects: Information,
) -> None:
    """Add up what all answers about a bin say of g and, given the estimate of g, of each effect."""
    arms = constants.arms
    some = Information(np.empty((arms, arms)), np.empty(arms))
    for m in range(len(people.share)):
        measured(state, node, m, 0, people, some)
        told.precision[node] += some.precision
        told.vector[node] += some.vector
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    precision = state.prior.precision[node, 0] + told.precision[node]
    solve(precision, state.prior.vector[node, 0] + told.vector[node], mean, covariance)
    for axis in range(constants.dimension):
        levels, first = constants.axes.levels[axis], constants.axes.slots[axis]
        for slot in range(first, first + max(levels, 1)):
            if state.holds[node, slot]:
                into = Information(effects.precision[node, slot], effects.vector[node, slot])
                told_of_slot(state, node, slot, levels > 0, people, mean, into)


def effect_of_split(
    state: "State",
    constants: "Constants",
    node: int,
    shares: Floats,
    effects: Information,
) -> Information:
    """Return what is known of the effect along which a bin was split, in information form.

    Along a number it is that of its slot. By levels it is half the difference between the means of
    the two parts. shares (Z,): of the bin's people, with each level.
    """
    arms, axis = constants.arms, state.tree.axis[node]
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    known = Information(np.zeros((arms, arms)), np.zeros(arms))
    if levels == 0:
        known.precision[:] = state.prior.precision[node, 1 + first] + effects.precision[node, first]
        known.vector[:] = state.prior.vector[node, 1 + first] + effects.vector[node, first]
        return known
    mean, covariance = np.zeros(arms), np.zeros((arms, arms))
    one, its = np.empty(arms), np.empty((arms, arms))
    for side in range(2):
        total = 1e-12
        for slot in range(first, first + levels):
            if state.holds[node, slot] and state.upper[node, slot] == (side == 1):
                total += shares[slot]
        for slot in range(first, first + levels):
            if state.holds[node, slot] and state.upper[node, slot] == (side == 1):
                solve(
                    state.prior.precision[node, 1 + slot] + effects.precision[node, slot],
                    state.prior.vector[node, 1 + slot] + effects.vector[node, slot],
                    one,
                    its,
                )
                weight = 0.5 * shares[slot] / total
                mean += (2.0 * side - 1.0) * weight * one
                covariance += weight**2 * its
    invert(covariance, known.precision)
    known.vector[:] = known.precision @ mean
    return known


def gather(state: "State", constants: "Constants", node: int, messages: Messages) -> None:
    """Work out what a bin's own answers and its two parts say of its g: the message upwards."""
    arms, child, up = constants.arms, state.tree.child[node], messages.up
    split = effect_of_split(state, constants, node, messages.parts[node], messages.effects)
    cross, square = np.zeros((arms, arms)), np.zeros((arms, arms))
    vector = np.zeros(arms)
    for part in range(child, child + 2):
        shift = state.shift[part]
        up.precision[node] += up.precision[part]
        up.vector[node] += up.vector[part]
        cross += shift * up.precision[part]
        square += shift**2 * up.precision[part]
        vector += shift * up.vector[part]
    # Of the effect of the split, without g: the Schur complement.
    inverse, known = np.empty((arms, arms)), up.precision[node].copy()
    for a in range(arms):
        known[a, a] += 1.0 / REWARD_DEVIATION**2
    invert(known, inverse)
    blurred = cross @ inverse
    messages.of_parts.precision[node] = square - blurred @ cross
    messages.of_parts.vector[node] = vector - blurred @ up.vector[node]
    # Of g, without the effect of the split, which nobody above knows.
    square += split.precision
    vector += split.vector
    invert(square, inverse)
    blurred = cross @ inverse
    up.precision[node] -= blurred @ cross
    up.vector[node] -= blurred @ vector


def kept_of_parent(constants: "Constants", slot: int, split_axis: int) -> float:
    """Return how much of a parent's effect its parts have, along the axis of the split or not."""
    along = slot == constants.axes.slots[split_axis]
    return SLOPE_KEPT * (0.5 if along else 1.0)


def follows_parent(constants: "Constants", slot: int, split_axis: int) -> bool:
    """Say whether a part's effect follows from its parent's alone.

    Of a split by levels, their effects in a part are differences from the mean of that part.
    """
    first, levels = constants.axes.slots[split_axis], constants.axes.levels[split_axis]
    return levels == 0 or not first <= slot < first + levels


def send_effects(
    state: "State", constants: "Constants", parent: int, node: int, messages: Messages
) -> None:
    """Tell a parent what its part knows of each effect, from itself and from below."""
    effects, up = messages.effects, messages.up_effects
    arms, axis = constants.arms, state.tree.axis[parent]
    blur, inverse = np.empty((arms, arms)), np.empty((arms, arms))
    for slot in range(state.holds.shape[1]):
        if not state.holds[node, slot] or not follows_parent(constants, slot, axis):
            continue
        kept, variance = kept_of_parent(constants, slot, axis), state.effect_variance[node, slot]
        # (J⁻¹ + Q)⁻¹ = (I + JQ)⁻¹J, also where J has no inverse because nobody has told anything.
        for a in range(arms):
            for b in range(arms):
                blur[a, b] = variance * effects.precision[node, slot, a, b] + (a == b)
        invert(blur, inverse)
        for a in range(arms):
            for b in range(arms):
                for c in range(arms):
                    message = inverse[a, c] * effects.precision[node, slot, c, b]
                    up.precision[node, slot, a, b] += kept**2 * message
                up.vector[node, slot, a] += kept * inverse[a, b] * effects.vector[node, slot, b]
        effects.precision[parent, slot] += up.precision[node, slot]
        effects.vector[parent, slot] += up.vector[node, slot]


def hand_down(
    state: "State", constants: "Constants", node: int, part: int, messages: Messages
) -> None:
    """Give a part the prior that follows from its parent and its sibling."""
    parts, told, effects, up, up_effects, of_parts = messages
    arms, axis = constants.arms, state.tree.axis[node]
    sibling = 2 * state.tree.child[node] + 1 - part
    levels, first = constants.axes.levels[axis], constants.axes.slots[axis]
    split = effect_of_split(state, constants, node, parts[node], effects)
    if levels == 0:
        split.precision[:] -= up_effects.precision[part, first]
        split.vector[:] -= up_effects.vector[part, first]
    joint = np.zeros((2 * arms, 2 * arms))
    vector = np.empty(2 * arms)
    shift = state.shift[sibling]
    known = state.prior.precision[node, 0] + told.precision[node] + up.precision[sibling]
    joint[:arms, :arms] = known
    joint[:arms, arms:] = shift * up.precision[sibling]
    joint[arms:, :arms] = shift * up.precision[sibling]
    joint[arms:, arms:] = split.precision + shift**2 * up.precision[sibling]
    vector[:arms] = state.prior.vector[node, 0] + told.vector[node] + up.vector[sibling]
    vector[arms:] = split.vector + shift * up.vector[sibling]
    mean, covariance = np.empty(2 * arms), np.empty((2 * arms, 2 * arms))
    solve(joint, vector, mean, covariance)
    give_mean(state, part, mean, covariance)
    one, its = np.empty(arms), np.empty((arms, arms))
    all_mean, all_covariance = np.empty(arms), np.empty((arms, arms))
    for slot in range(state.holds.shape[1]):
        if not state.holds[part, slot]:
            continue
        precision = state.prior.precision[node, 1 + slot] + effects.precision[node, slot]
        information = state.prior.vector[node, 1 + slot] + effects.vector[node, slot]
        solve(
            precision - up_effects.precision[part, slot],
            information - up_effects.vector[part, slot],
            one,
            its,
        )
        if levels == 0 and slot == first:
            precision += of_parts.precision[node]
            information += of_parts.vector[node]
        solve(precision, information, all_mean, all_covariance)
        renew_variance(state, constants, part, axis, slot, all_mean, all_covariance)
        give_effect(state, constants, part, axis, slot, one, its)
    if levels > 0:
        centre_levels(state, constants, part, axis, parts[node])


def give_mean(state: "State", part: int, mean: Floats, covariance: Floats) -> None:
    """Give a part the prior of its g = g + shift·split; mean (2K,), covariance (2K, 2K) of both."""
    arms, shift = state.live.shape[1], state.shift[part]
    of_part = covariance[:arms, :arms] + shift**2 * covariance[arms:, arms:]
    of_part += shift * (covariance[:arms, arms:] + covariance[arms:, :arms])
    invert(of_part, state.prior.precision[part, 0])
    state.prior.vector[part, 0] = state.prior.precision[part, 0] @ (
        mean[:arms] + shift * mean[arms:]
    )


def give_effect(
    state: "State",
    constants: "Constants",
    part: int,
    axis: int,
    slot: int,
    mean: Floats,
    covariance: Floats,
) -> None:
    """Give a part the prior of an effect that follows from its parent's, (K,) and (K, K)."""
    arms = len(mean)
    kept, own = kept_of_parent(constants, slot, axis), state.effect_variance[part, slot]
    if not follows_parent(constants, slot, axis):
        kept, own = 1.0, 0.0
    its = kept**2 * covariance
    for a in range(arms):
        its[a, a] += own
    invert(its, state.prior.precision[part, 1 + slot])
    state.prior.vector[part, 1 + slot] = state.prior.precision[part, 1 + slot] @ (kept * mean)


def centre_levels(
    state: "State", constants: "Constants", part: int, axis: int, shares: Floats
) -> None:
    """Make the effects of a part's levels differences from the mean of that part."""
    arms, first = constants.arms, constants.axes.slots[axis]
    levels = constants.axes.levels[axis]
    centre, total = np.zeros(arms), 1e-12
    one, its = np.empty(arms), np.empty((arms, arms))
    for slot in range(first, first + levels):
        if state.holds[part, slot]:
            precision, vector = (
                state.prior.precision[part, 1 + slot],
                state.prior.vector[part, 1 + slot],
            )
            solve(precision, vector, one, its)
            centre += shares[slot] * one
            total += shares[slot]
    centre /= total
    for slot in range(first, first + levels):
        if state.holds[part, slot]:
            state.prior.vector[part, 1 + slot] -= state.prior.precision[part, 1 + slot] @ centre


def renew_variance(
    state: "State",
    constants: "Constants",
    part: int,
    split_axis: int,
    slot: int,
    effect: Floats,
    covariance: Floats,
) -> None:
    """Expect of a part's effect what is known of its parent's."""
    axis = 0
    while constants.axes.slots[axis + 1] <= slot:
        axis += 1
    square = expected_square(state, part, effect, covariance)
    if axis == split_axis:
        square *= SQUARE_ALONG_SPLIT
    expected = (1.0 - PRIOR_SHARE) * square
    expected += PRIOR_SHARE * prior_square(state, part, axis)
    state.effect_variance[part, slot] = SLOPE_RENEWED * expected


def prior_square(state: "State", node: int, axis: int) -> float:
    """Return the expected square of an effect along an axis before anything is known of the bin."""
    edge = state.tree.edges[node, axis, 1] - state.tree.edges[node, axis, 0]
    square: float = (SLOPE_DEVIATION * edge) ** 2 * state.relevance[axis]
    return square


def expected_square(state: "State", node: int, effect: Floats, covariance: Floats) -> float:
    """Return the expected square of an effect (K,), (K, K), around the mean of the live arms.

    By how much all arms rise together makes no difference to anyone. People are hardly asked for
    it, and what is not known of it must not count.
    """
    square, common, live = 0.0, 0.0, 0
    for a in range(len(effect)):
        if state.live[node, a]:
            live += 1
            square += effect[a] ** 2 + covariance[a, a]
            for b in range(len(effect)):
                if state.live[node, b]:
                    common += effect[a] * effect[b] + covariance[a, b]
    if live > 1:  # Σ(x - mean)² = Σx² - (Σx)²/n, which n - 1 of n independent effects make up
        square = (square - common / live) * live / (live - 1.0)
    return square / live
