"""Splitting: a bin becomes two parts, which begin with what is known of them already."""

from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.tree import split_node
from sottovoce.estimate.whisper.measurement import BinEstimate, BinShares
from sottovoce.estimate.whisper.smoothing import (
    centre_levels,
    give_effect,
    give_mean,
    renew_variance,
)
from sottovoce.estimate.whisper.state import Floats
from sottovoce.shared.scale import position_at
from sottovoce.shared.whisper.tuning import LEAST_HALF

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


def split(state: "State", constants: "Constants", node: int, axis: int, known: BinEstimate) -> None:
    """Split a bin in two along an axis; by levels, as ``state.upper`` of the bin says."""
    lower, arms = state.totals[0].nodes, constants.arms
    split_node(state.tree, node, axis, lower)
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    if levels == 0:  # on its scale
        state.tree.middle[node] = position_at(state.scale[axis], state.tree.middle[node])
    if levels > 0:  # which are sets, and no part of an edge
        state.tree.middle[node] = np.inf
        for part in range(lower, lower + 2):
            state.tree.edges[part, axis, 0], state.tree.edges[part, axis, 1] = 0.0, 1.0
    # A split takes g and effects for independent; smoothing then learns how they are not.
    mean, covariance = np.zeros(2 * arms), np.zeros((2 * arms, 2 * arms))
    mean[:arms], covariance[:arms, :arms] = known.mean, known.covariance
    if levels == 0:
        mean[arms:], covariance[arms:, arms:] = known.effect[first], known.effect_covariance[first]
    else:
        split_by_levels(state, node, first, levels, known, mean, covariance)
    balance = upper_share_of_answers(state, constants, node, axis, known)
    for side in range(2):
        part = lower + side
        state.live[part] = state.live[node]
        state.bias[part] = state.bias[node]
        state.entered[part] = state.entered[node]
        state.totals[0].places += 1
        state.place[part] = state.totals[0].places
        for m in range(len(known.people.share)):
            upper = upper_share(state, constants, node, axis, known.people, m)
            share = upper if side == 1 else 1.0 - upper
            share = min(max(share, LEAST_HALF), 1.0 - LEAST_HALF)
            state.mass[part, m] = known.people.share[m] * share
            state.level_mass[part, m] = known.people.part[m]
            for slot in range(first, first + levels):
                state.level_mass[part, m, slot] = min(known.people.part[m, slot] / share, 1.0)
        inherit_slots(state, constants, node, part, axis, side)
        # Of parts with unequally many people, the heavier one is nearer to the mean.
        state.shift[part] = 2.0 * (1.0 - balance) if side == 1 else -2.0 * balance
        give_mean(state, part, mean, covariance)
        for slot in range(state.holds.shape[1]):
            if state.holds[part, slot]:
                effect, its = known.effect[slot], known.effect_covariance[slot]
                renew_variance(state, constants, part, axis, slot, effect, its)
                give_effect(state, constants, part, axis, slot, effect, its)
        if levels > 0:
            centre_levels(state, constants, part, axis, known.people.part[0])
    state.totals[0].nodes += 2


def split_by_levels(
    state: "State",
    node: int,
    first: int,
    levels: int,
    known: BinEstimate,
    mean: Floats,
    covariance: Floats,
) -> None:
    """Fill in half the difference between the means of two sets of levels, and its covariance."""
    arms, shares = state.live.shape[1], known.people.part[0]
    for side in range(2):
        total = 1e-12
        for slot in range(first, first + levels):
            if state.holds[node, slot] and state.upper[node, slot] == (side == 1):
                total += shares[slot]
        for slot in range(first, first + levels):
            if state.holds[node, slot] and state.upper[node, slot] == (side == 1):
                weight = 0.5 * shares[slot] / total
                mean[arms:] += (2.0 * side - 1.0) * weight * known.effect[slot]
                covariance[arms:, arms:] += weight**2 * known.effect_covariance[slot]


def inherit_slots(
    state: "State", constants: "Constants", node: int, part: int, axis: int, side: int
) -> None:
    """Say in which slots people of a part can differ.

    Levels that are in the other part are gone. Places in order are, when one is left.
    """
    state.holds[part] = state.holds[node]
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    left = 0
    for slot in range(first, first + levels):
        if state.upper[node, slot] != (side == 1):
            state.holds[part, slot] = False
        left += state.holds[part, slot]
    places = constants.axes.places[axis]
    if levels == 0 and places > 0:
        low, high = state.tree.edges[part, axis, 0], state.tree.edges[part, axis, 1]
        for place in range(places):
            left += low <= (place + 0.5) / places < high
    if (levels > 0 or places > 0) and left <= 1:
        for slot in range(first, first + max(levels, 1)):
            state.holds[part, slot] = False


def upper_share(
    state: "State",
    constants: "Constants",
    node: int,
    axis: int,
    people: BinShares,
    m: int,
) -> float:
    """Return the share of a population's people of a bin who are in its upper part."""
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    if levels == 0:
        upper: float = people.part[m, first]
        return upper
    total, above = 1e-12, 0.0
    for slot in range(first, first + levels):
        if state.holds[node, slot]:
            total += people.part[m, slot]
            if state.upper[node, slot]:
                above += people.part[m, slot]
    return above / total


def upper_share_of_answers(
    state: "State", constants: "Constants", node: int, axis: int, known: BinEstimate
) -> float:
    """Return the share of the upper part among those whose answers made the estimate of g.

    g is a mean over the people who told of it, and populations differ in where theirs are.
    """
    people = known.people
    # Where nobody has told anything, it is that of the target's people.
    total, told = 1e-9 * upper_share(state, constants, node, axis, people, 0), 1e-9
    for m in range(len(people.share)):
        weight = 0.0
        for a in range(state.live.shape[1]):
            weight += (2.0 * people.rows[m, a]) ** 2 * state.logged.precision[node, m, 0, a, a]
            weight += people.share[m] ** 2 * state.served.precision[node, m, 0, a, a]
        total += weight * upper_share(state, constants, node, axis, people, m)
        told += weight
    centre: float = total / told
    return centre
