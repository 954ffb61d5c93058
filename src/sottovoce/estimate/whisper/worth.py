"""What a policy would bring, from what is known of all bins.

The mean reward is Σ share·Σ_k chance_k·f_k over bins, a linear functional of what is known. Answers
measure share·g, so that an error of a share is made good by the same error of g; where g is rather
expected than measured it is not, and counts.

Where a policy cuts across a bin, the parts differ by the effects along the axes; and by what no
question about one axis shows.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.estimate.figures import Known as Figure
from sottovoce.estimate.figures import Worth
from sottovoce.estimate.tree import node_paths
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.joint import with_functional
from sottovoce.estimate.whisper.known import Known, solve_rewards
from sottovoce.estimate.whisper.measurement import BinEstimate, estimate
from sottovoce.estimate.whisper.overlay import Piece, pieces_of, place_of, whole_bin
from sottovoce.estimate.whisper.smoothing import prior_square
from sottovoce.estimate.whisper.state import Flags, Floats, State
from sottovoce.estimate.whisper.whereabouts import covariance_with
from sottovoce.shared.allocation import Allocation
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.tuning import HALF_DEVIATION


class Choice(NamedTuple):
    """What a policy does in each of N nodes; zeros where a node is no leaf.

    chances (N, K): of each arm.
    more (N,): mean reward on top, since parts of the bin get other arms where these are better.
    doubt (N,): the variance of that.
    """

    chances: Floats
    more: Floats
    doubt: Floats


def worth_of(state: State, known: Known, choice: Choice) -> Worth:
    """Return the mean outcome by a policy, and who gets which arm."""
    shares = tuple(share_by(state, known, chances) for chances in choice.chances.T)
    return Worth(_mean(state, known, choice), shares)


def _mean(state: State, known: Known, choice: Choice) -> Figure:
    people = known.people[0]
    weights = people.share[:, None] * choice.chances
    found = solve_rewards(known.branches, with_functional(known.evidence, weights))
    mean = float((weights * found.sides[:, :, 0]).sum() + (people.share * choice.more).sum())
    variance = float((weights * found.sides[:, :, 1]).sum())
    each = (choice.chances * found.sides[:, :, 0]).sum(axis=1)
    variance += float((each * covariance_with(people, each))[_leaves(state)].sum())
    variance += float((people.share**2 * choice.doubt).sum())
    return Figure(0.5 + mean, variance**0.5)


def share_by(state: State, known: Known, chances: Floats) -> Figure:
    """Return the share of people who get an arm; chances (N,) of it in each leaf."""
    people, leaves = known.people[0], _leaves(state)
    if len(set(chances[leaves].tolist())) == 1:  # everybody has the same chance
        return Figure(float(chances[leaves][0]), 0.0)
    variance = float((chances * covariance_with(people, chances))[leaves].sum())
    return Figure(float((chances * people.share).sum()), max(variance, 0.0) ** 0.5)


def choice_of(
    state: State, constants: Constants, release: Release, allocation: Allocation
) -> Choice:
    """Lay a policy over the bins."""
    paths, ours, axes = node_paths(state), release.partition, release.experiment.axes
    nodes = len(paths)
    chances = np.zeros((nodes, constants.arms))
    more, doubt = np.zeros(nodes), np.zeros(nodes)
    for node in np.flatnonzero(_leaves(state)):
        pieces = pieces_of(ours, paths[node], allocation.partition, axes)
        if len(pieces) == 1:
            chances[node] = allocation.chances[pieces[0].theirs]
            continue
        its = np.array([allocation.chances[each.theirs] for each in pieces])
        cut = _CutBin(whole_bin(ours, paths[node], axes), pieces, its)
        found = _cut_across(state, constants, int(node), release, cut)
        chances[node], more[node], doubt[node] = found
    return Choice(chances, more, doubt)


def _cut_across(
    state: State, constants: Constants, node: int, release: Release, cut: "_CutBin"
) -> tuple[Floats, float, float]:
    """Return the chances, the reward on top and its doubt of a bin with several pieces."""
    known, axes = estimate(state, constants, node), range(constants.dimension)
    shares: Floats = np.ones(len(cut.pieces))
    slots: dict[int, Floats] = {}
    for position, piece in enumerate(cut.pieces):
        for axis in axes:
            fraction, effects = _along(constants, known, release.partition, cut.whole, piece, axis)
            shares[position] *= fraction
            for slot, weight in effects.items():
                slots.setdefault(slot, np.zeros(len(shares)))[position] += weight
    shares /= shares.sum()
    mean = shares @ cut.chances
    more, doubt = 0.0, 0.0
    for slot, weights in slots.items():
        along = (shares * weights) @ cut.chances
        more += float(along @ known.effect[slot])
        doubt += float(along @ known.effect_covariance[slot] @ along)
    # Parts may differ from a straight line, and hold more people or fewer than it seems.
    apart = cut.chances - mean
    rest = sum(prior_square(state, node, axis) for axis in axes) / 2.0
    doubt += rest * float(((shares[:, None] * apart) ** 2).sum())
    doubt += HALF_DEVIATION**2 * float(shares @ (apart @ known.mean) ** 2)
    return mean, more, doubt


class _CutBin(NamedTuple):
    """A bin of which P pieces get different arms: the bin, its pieces, their chances (P, K)."""

    whole: Piece
    pieces: list[Piece]
    chances: Floats


def _along(
    constants: Constants,
    known: BinEstimate,
    ours: Partition,
    whole: Piece,
    piece: Piece,
    axis: int,
) -> tuple[float, dict[int, float]]:
    """Return the share of a bin's people in a piece, along one axis, and what effects it has."""
    first, levels = int(constants.axes.slots[axis]), int(constants.axes.levels[axis])
    if levels:
        if piece.levels[axis] == whole.levels[axis]:
            return 1.0, {}
        shares = known.people.part[0, first : first + levels]
        total = sum(float(shares[k]) for k in whole.levels[axis]) + 1e-12
        own = sum(float(shares[k]) for k in piece.levels[axis]) + 1e-12
        return own / total, {first + k: float(shares[k]) / own for k in piece.levels[axis]}
    if piece.edges[axis] == whole.edges[axis]:
        return 1.0, {}
    low, high = (place_of(ours, axis, each) for each in whole.edges[axis])
    start, end = ((place_of(ours, axis, each) - low) / (high - low) for each in piece.edges[axis])
    # Along a straight line the upper half, from 1/2 to 1, has one effect more.
    return max(end - start, 1e-9), {first: 2.0 * (start + end - 1.0)}


def _leaves(state: State) -> Flags:
    nodes = int(state.totals[0].nodes)
    leaves: Flags = state.tree.child[:nodes] == np.arange(nodes)
    return leaves
