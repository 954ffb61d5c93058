"""What is known of every bin and every arm, settled ones too, as they were when last measured.

The learner decides by what it believes of contested bins, and takes shares of people as it has
estimated them. Here all bins are looked at together, once more, to say what is known and how well.
An interval has more in it than the learner's decisions need:

- what is not known of who is where. Answers measure share·g, so that an error of a share is one of
  g, by as many per cent; and an error of r, the share of a bin's upper part, moves the means of its
  parts against its own by 2·(r's error)·split;
- that effects need not be as small as others were. The learner expects of a split what its
  relatives have shown. Here each split begins with the prior that the first one had;
- that all arms may be better or worse than 1/2 together (``LEVEL_DEVIATION``), and in a mean over
  bins rise together along a split (``COMMON_DEVIATION``): people are asked where the best arms are
  close, which is where both tend to be good;
- how what is known of different bins goes together, for means over many of them.

docs/explanation/intervals.md derives it.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.estimate.figures import DEVIATIONS, LEVEL
from sottovoce.estimate.figures import Known as Figure
from sottovoce.estimate.method import CellEstimate
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.joint import Branches, Evidence, Solution, inverse_of, solve
from sottovoce.estimate.whisper.state import Counts, Floats, State
from sottovoce.estimate.whisper.whereabouts import Whereabouts, whereabouts
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.tuning import (
    COMMON_DEVIATION,
    LEVEL_DEVIATION,
    REWARD_DEVIATION,
    SLOPE_DEVIATION,
)


class Known(NamedTuple):
    """What a learner's state says of each of N nodes.

    mean (N, K), covariance (N, K, K): of g = f - 1/2.
    people: of each population.
    branches, evidence: of the g's, given the shares: for means over many bins. There an error of a
        share does not count, since answers measure share·g.
    """

    mean: Floats
    covariance: Floats
    people: tuple[Whereabouts, ...]
    branches: Branches
    evidence: Evidence


class _Picture(NamedTuple):
    """What all steps read: the state, who is where, and g and half of each split as found so far.

    blurred: whether errors of the shares count.
    """

    state: State
    constants: Constants
    people: tuple[Whereabouts, ...]
    mean: Floats  # (N, K)
    split: Floats  # (N, K)
    blurred: bool


def known_of(state: State, constants: Constants) -> Known:
    """Work out what is known of all nodes."""
    nodes, arms = int(state.totals[0].nodes), constants.arms
    people = tuple(whereabouts(state, constants, m) for m in range(state.mass.shape[1]))
    # Others may be elsewhere, and the mean of a bin is that of the people who told of it.
    shift = state.shift[:nodes] if len(people) > 1 else _shift_of(people[0])
    depth = state.tree.depth[:nodes]
    branches = Branches(state.tree.child[:nodes], depth, np.ones(nodes), shift)
    nothing = np.zeros((nodes, arms))
    seen = _Picture(state, constants, people, nothing, nothing, blurred=False)
    for _ in range(2):
        # An error of a share is one of g by as many per cent: of the g that one has found.
        exact = _evidence(seen)
        mean = solve_rewards(branches, exact).sides[:, :, 0]
        seen = seen._replace(mean=mean, split=_splits(branches.child, mean))
    found = solve_rewards(branches, _evidence(seen._replace(blurred=True)))
    return Known(found.sides[:, :, 0], found.covariance, people, branches, exact)


def solve_rewards(branches: Branches, evidence: Evidence) -> Solution:
    """Solve for the g of all nodes, with the prior that every arm has."""
    arms, columns = evidence.sides.shape[1:]
    covariance = REWARD_DEVIATION**2 * np.eye(arms) + LEVEL_DEVIATION**2
    prior: Floats = inverse_of(covariance)
    return solve(branches, evidence, prior, np.zeros((arms, columns)))


def cell_estimates(known: Known, release: Release, paths: list[str]) -> list[CellEstimate]:
    """Return what is known of each arm of each bin, but for arms that were retired."""
    experiment, found = release.experiment, []
    nodes = {path: node for node, path in enumerate(paths)}
    for policy in release.bins:
        node = nodes[policy.path]
        for arm, name in enumerate(experiment.arms):
            if arm in experiment.retired:
                continue
            mean, variance = float(known.mean[node, arm]), float(known.covariance[node, arm, arm])
            radius, live = DEVIATIONS * variance**0.5, arm in policy.live
            found.append(CellEstimate(policy.path, name, 0.5 + mean, radius, LEVEL, live))
    return found


def shares_of(known: Known, release: Release, paths: list[str]) -> dict[str, Figure]:
    """Return the share of the target's people in each bin."""
    people, nodes = known.people[0], {path: node for node, path in enumerate(paths)}
    return {
        policy.path: Figure(float(people.share[node]), float(people.spread[node]))
        for policy in release.bins
        for node in [nodes[policy.path]]
    }


def _shift_of(people: Whereabouts) -> Floats:
    """Return how many effects of the split each part is away from its parent's mean."""
    child = people.branches.child
    shift = np.zeros(len(child))
    for node in _inner(child):
        part = child[node]
        upper = people.share[part + 1] / people.share[node]
        shift[part], shift[part + 1] = -2.0 * upper, 2.0 * (1.0 - upper)
    return shift


def _splits(child: Counts, mean: Floats) -> Floats:
    """Return the effect of each split: half the difference of the means of its parts."""
    inner = _inner(child)
    split = np.zeros_like(mean)
    split[inner] = (mean[child[inner] + 1] - mean[child[inner]]) / 2.0
    return split


def _inner(child: Counts) -> Counts:
    return np.flatnonzero(child != np.arange(len(child)))


def _evidence(seen: _Picture) -> Evidence:
    """Return what is known of each node's g, and of the effect of each split."""
    nodes, arms = seen.mean.shape
    own, sides = np.zeros((nodes, arms, arms)), np.zeros((nodes, arms))
    for m, group in enumerate(seen.people):
        precision, vector = measured_everywhere(seen.state, seen.constants, group, m, 0)
        spread = np.zeros((nodes, arms, arms))
        if m > 0:
            spread += seen.state.bias[:nodes, None, None] ** 2 * np.eye(arms)
        if seen.blurred:
            spread += _spread(seen, m)
        precision, vector = _blur(precision, vector, spread)
        own += precision
        sides += vector
    effect, effect_sides = _effects(seen)
    loose = np.zeros((nodes, arms, arms))
    if seen.blurred:
        wrong = 2.0 * seen.people[0].upper_error[:, None] * seen.split
        loose = wrong[:, :, None] * wrong[:, None, :]
    return Evidence(own, sides[:, :, None], effect, effect_sides[:, :, None], loose)


def measured_everywhere(
    state: State, constants: Constants, people: Whereabouts, m: int, index: int
) -> tuple[Floats, Floats]:
    """Return what a population's answers say of what they measured, for all nodes at once.

    The same as ``measurement.measured``, but for who is where, and without the bias.
    """
    nodes = slice(int(state.totals[0].nodes))
    share = people.share
    rows = 2.0 * _rows(state, constants, people, m)[0]
    served, logged = state.served, state.logged
    precision = share[:, None, None] ** 2 * served.precision[nodes, m, index]
    precision = precision + rows[:, :, None] * rows[:, None, :] * logged.precision[nodes, m, index]
    vector = share[:, None] * served.vector[nodes, m, index]
    return precision, vector + rows * logged.vector[nodes, m, index]


def _rows(state: State, constants: Constants, people: Whereabouts, m: int) -> tuple[Floats, Floats]:
    """Return the share of all logged rows with each arm in each node, (N, K), and its variance.

    The variance is what is not known of the behaviour; what is not known of the bin is elsewhere.
    """
    if constants.known[m]:
        rows = people.share[:, None] * constants.behaviour[m]
        return rows, np.zeros_like(rows)
    nodes = slice(int(state.totals[0].nodes))
    usual = people.share[:, None] / constants.arms
    precision = 1.0 / usual**2 + state.rows_told.precision[nodes, m, 0]
    vector = 1.0 / usual + state.rows_told.vector[nodes, m, 0]
    return np.clip(vector / precision, 0.0, 1.0), 1.0 / precision


def _spread(seen: _Picture, m: int) -> Floats:
    """Return the covariance of what errors of the shares make of g."""
    state, people, mean = seen.state, seen.people[m], seen.mean
    wrong = people.error[:, None] * mean
    spread = wrong[:, :, None] * wrong[:, None, :]
    if not seen.constants.known[m]:
        rows, variance = _rows(state, seen.constants, people, m)
        asked = np.abs(state.logged.precision[: len(mean), m, 0]).sum(axis=2) > 0.0
        square = asked * mean**2 * variance / np.maximum(rows, 1e-9) ** 2
        spread += square[:, :, None] * np.eye(mean.shape[1])
    return spread


def _blur(precision: Floats, vector: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """J becomes (J⁻¹ + spread)⁻¹ = (I + J·spread)⁻¹·J, also where J has no inverse."""
    mixed = np.eye(spread.shape[-1]) + precision @ spread
    both = np.concatenate([precision, vector[..., None]], axis=-1)
    blurred = np.linalg.solve(mixed, both)
    return blurred[..., :-1], blurred[..., -1]


def _effects(seen: _Picture) -> tuple[Floats, Floats]:
    """Return what is known of the effect of each split but for what its parts have told since."""
    (nodes, arms), tree = seen.mean.shape, seen.state.tree
    precision, vector = np.tile(np.eye(arms), (nodes, 1, 1)), np.zeros((nodes, arms))
    slots = seen.constants.axes.slots
    told: dict[int, list[tuple[Floats, Floats]]] = {}
    for node in _inner(tree.child[:nodes]).tolist():
        first = int(slots[tree.axis[node]])
        levels = int(seen.constants.axes.levels[tree.axis[node]])
        held = [
            each for each in range(first, first + max(levels, 1)) if seen.state.holds[node, each]
        ]
        for slot in held:
            if slot not in told:
                told[slot] = [
                    measured_everywhere(seen.state, seen.constants, group, m, 1 + slot)
                    for m, group in enumerate(seen.people)
                ]
        known = {slot: _slot(seen, told[slot], int(node), slot, levels) for slot in held}
        effect = _difference(seen.state, int(node), known) if levels else known[first]
        precision[node], vector[node] = effect if seen.blurred else _with_common(*effect)
    return precision, vector


def _slot(
    seen: _Picture, told: list[tuple[Floats, Floats]], node: int, slot: int, levels: int
) -> tuple[Floats, Floats]:
    """Return what is known of one slot's effect in a bin, in information form."""
    state, mean, effect = seen.state, seen.mean[node], seen.split[node]
    precision = np.eye(len(mean)) / SLOPE_DEVIATION**2
    vector = np.zeros(len(mean))
    for m, group in enumerate(seen.people):
        its, said, wrong = told[m][0][node], told[m][1][node], 0.0
        if levels:
            of_mean = of_effect = level_share(state, node, slot, m)
        else:
            part, wrong = group.upper[node], 2.0 * group.upper_error[node]
            of_mean, of_effect = 2.0 * part - 1.0, 4.0 * part * (1.0 - part)
        if seen.blurred:
            expected = of_mean * mean + of_effect * effect
            spread = group.error[node] ** 2 * np.outer(expected, expected)
            its, said = _blur(its, said, spread + wrong**2 * np.outer(mean, mean))
        precision += of_effect**2 * its
        vector += of_effect * (said - of_mean * its @ mean)
    return precision, vector


def level_share(state: State, node: int, slot: int, m: int) -> float:
    """Return the share of the people of a bin that was split by levels who have one of them."""
    part = state.tree.child[node] + int(state.upper[node, slot])
    return float(state.level_mass[part, m, slot] * state.mass[part, m] / state.mass[node, m])


def _difference(
    state: State, node: int, known: dict[int, tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Return half the difference between the means of two sets of levels, in information form."""
    shares = {slot: level_share(state, node, slot, 0) for slot in known}
    totals = [1e-12, 1e-12]
    for slot, share in shares.items():
        totals[int(state.upper[node, slot])] += share
    mean: Floats = np.zeros(state.live.shape[1])
    covariance = np.zeros((len(mean), len(mean)))
    for slot, (precision, vector) in known.items():
        side = int(state.upper[node, slot])
        weight = 0.5 * shares[slot] / totals[side]
        its: Floats = inverse_of(precision)
        mean += (2.0 * side - 1.0) * weight * (its @ vector)
        covariance += weight**2 * its
    both: Floats = inverse_of(covariance)
    return both, both @ mean


def _with_common(precision: Floats, vector: Floats) -> tuple[Floats, Floats]:
    """Let all arms rise together along a split, on top of what is expected of each."""
    covariance = inverse_of(precision)
    mean = covariance @ vector
    precision = inverse_of(covariance + COMMON_DEVIATION**2)
    return precision, precision @ mean
