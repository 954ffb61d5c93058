"""Splitting: a bin becomes two halves, which begin with what is known of them already."""

from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.tree import split_node
from sottovoce.estimate.whisper.measurement import BinEstimate
from sottovoce.estimate.whisper.smoothing import inherit, renew_slope_variance
from sottovoce.shared.whisper.tuning import LEAST_HALF

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.state import State


def split(state: "State", node: int, axis: int, estimate: BinEstimate) -> None:
    """Split a bin in two along a feature."""
    lower, arms = state.totals[0].nodes, state.live.shape[1]
    split_node(state.tree, node, axis, lower)
    # A split takes g and slopes for independent; smoothing then learns how they are not.
    width = (1 + len(estimate.slope)) * arms
    mean, covariance = np.empty(width), np.zeros((width, width))
    for a in range(arms):
        mean[a] = estimate.mean[a]
        for b in range(arms):
            covariance[a, b] = estimate.covariance[a, b]
        for j in range(len(estimate.slope)):
            at = (1 + j) * arms
            mean[at + a] = estimate.slope[j, a]
            for b in range(arms):
                covariance[at + a, at + b] = estimate.slope_covariance[j, a, b]
    balance = upper_share_of_answers(state, node, axis, estimate)
    for side in range(2):
        half = lower + side
        state.live[half] = state.live[node]
        for m in range(len(estimate.people.share)):
            upper = estimate.people.upper[m, axis]
            part = upper if side == 1 else 1.0 - upper
            part = min(max(part, LEAST_HALF), 1.0 - LEAST_HALF)
            state.mass[half, m] = estimate.people.share[m] * part
        # Of halves with unequally many people, the heavier one is nearer to the mean.
        state.shift[half] = 2.0 * (1.0 - balance) if side == 1 else -2.0 * balance
        for j in range(len(estimate.slope)):
            known = estimate.slope_covariance[j]
            renew_slope_variance(state, half, axis, j, estimate.slope[j], known)
        inherit(state, half, axis, mean, covariance)
    state.totals[0].nodes += 2


def upper_share_of_answers(state: "State", node: int, axis: int, estimate: BinEstimate) -> float:
    """Return the share of the upper half among those whose answers made the estimate of g.

    g is a mean over the people who told of it, and populations differ in where theirs are.
    """
    people = estimate.people
    # Where nobody has told anything, it is that of the target's people.
    total, told = 1e-9 * people.upper[0, axis], 1e-9
    for m in range(len(people.share)):
        weight = 0.0
        for a in range(state.live.shape[1]):
            weight += (2.0 * people.rows[m, a]) ** 2 * state.logged.precision[node, m, 0, a, a]
            weight += people.share[m] ** 2 * state.served.precision[node, m, 0, a, a]
        total += weight * people.upper[m, axis]
        told += weight
    centre: float = total / told
    return centre
