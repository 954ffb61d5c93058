"""The measurement model: what answers say of a bin, and what is known of it from them.

docs/explanation/whisper.md derives it.

In one bin, for the vector g = f - 1/2 of the K arms:

    g          mean over the bin
    effect_z   of a slot. Along a number: half the difference between the upper and the lower half,
               so that the halves have g ± effect, if they hold equally many people. Of a level: its
               people have g + effect.

Every answer measures a linear function of g, or of g and an effect, with a known variance, scaled
by the share of its population's people who are in the bin. The table of questions has that
function.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.shared.whisper.axes import pattern_sign
from sottovoce.shared.whisper.questions import PEOPLE, ROWS
from sottovoce.shared.whisper.tuning import (
    HALF_DEVIATION,
    LEVEL_MASS_DEVIATION,
    MASS_DEVIATION,
    MASS_LIMIT,
)

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


class Answers(NamedTuple):
    """All answers of one population to one question about one cell, added up.

    axis: what they are about; -1 for the whole bin. row: of the Hadamard matrix, for levels.
    first, second: the arms that were compared; the first alone where a cell has an arm of its own.
    sums (parts,): of the values in each part of the cell.
    told: how many of those in the cell tell of their outcome; all, but where an arm is capped.
    chance: how many of those who tell have the first arm. It is not a half where an arm is capped,
        and the question is about all bins.
    """

    node: int
    population: int
    axis: int
    row: int
    first: int
    second: int
    reports: float
    sums: Any
    told: float = 1.0
    chance: float = 0.5


class BinShares(NamedTuple):
    """Who is in a bin, by population."""

    share: Floats  # (M+1,) of all people
    part: Floats  # (M+1, Z) of those, in the upper half along a number, or with a level
    rows: Floats  # (M+1, K) of all logged rows, with each arm in the bin


class BinEstimate(NamedTuple):
    """What is known of a bin: the posterior of g and of each effect, and who is there."""

    mean: Floats  # (K,) of g
    covariance: Floats  # (K, K)
    effect: Floats  # (Z, K)
    effect_covariance: Floats  # (Z, K, K)
    people: BinShares


def add_answers(
    state: "State", constants: "Constants", mechanism: Any, question: Any, answers: Answers
) -> None:
    """Add answers to what is known of their bin, in information form.

    mechanism: a record of ``tally.MECHANISM``: β, and the mean of (value/β)² of people outside and
        inside of a cell.
    question: its entry of the table.
    """
    node, m, axis = answers.node, answers.population, answers.axis
    share = state.mass[node, m] * answers.told
    if question.by_arm:
        share *= (
            constants.behaviour[m, answers.first] if constants.known[m] else 1.0 / constants.arms
        )
    inside, parts = mechanism.inside - mechanism.noise, mechanism.parts
    whole = parts * mechanism.noise + share * inside  # variance of the sum over all parts
    if axis < 0 or parts > 1:
        total = 0.0
        for part in range(parts):
            total += answers.sums[part]
        add_to_slot(state, mechanism, question, answers, 0, total, whole)
    if axis < 0:
        return
    first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
    if levels == 0:
        difference = answers.sums[1] - answers.sums[0] if parts == 2 else answers.sums[0]
        add_to_slot(state, mechanism, question, answers, 1 + first, difference, whole)
        return
    for level in range(levels):
        if not state.holds[node, first + level]:
            continue
        if parts > 1:
            expected = share * state.level_mass[node, m, first + level]
            total, variance = answers.sums[level], mechanism.noise + expected * inside
        else:
            total, variance = pattern_sign(answers.row, level) * answers.sums[0], whole
        add_to_slot(state, mechanism, question, answers, 1 + first + level, total, variance)


def add_to_slot(
    state: "State",
    mechanism: Any,
    question: Any,
    answers: Answers,
    at: int,
    total: float,
    variance: float,
) -> None:
    """Add a sum of answers, each with a variance, to what is known of one slot (0: the whole)."""
    node, m, first, second = answers.node, answers.population, answers.first, answers.second
    precision = answers.reports / variance
    vector = total / (mechanism.signal * variance)
    if question.measures == PEOPLE:
        state.mass_told.precision[node, m, at] += precision
        state.mass_told.vector[node, m, at] += vector
    elif question.measures == ROWS:
        state.rows_told.precision[node, m, at, first] += precision
        state.rows_told.vector[node, m, at, first] += vector
    else:
        told = state.logged if question.logged else state.served
        a = 2.0 * answers.chance * answers.told * question.first
        b = 2.0 * (1.0 - answers.chance) * answers.told * question.second
        told.precision[node, m, at, first, first] += a * a * precision
        told.vector[node, m, at, first] += a * vector
        if b != 0.0:  # in a settled bin both arms are the same one
            told.precision[node, m, at, second, second] += b * b * precision
            told.precision[node, m, at, first, second] += a * b * precision
            told.precision[node, m, at, second, first] += a * b * precision
            told.vector[node, m, at, second] += b * vector


def bin_shares(state: "State", constants: "Constants", node: int) -> BinShares:
    """Estimate who is in a bin, for each population."""
    groups, arms, slots = state.mass.shape[1], constants.arms, state.holds.shape[1]
    people = BinShares(np.empty(groups), np.full((groups, slots), 0.5), np.empty((groups, arms)))
    mass, told = state.mass_told, state.rows_told
    for m in range(groups):
        expected = state.mass[node, m]
        precision = 1.0 / (MASS_DEVIATION * expected) ** 2
        vector = expected * precision + mass.vector[node, m, 0]
        precision += mass.precision[node, m, 0]
        if constants.known[m]:
            for k in range(arms):
                chance = constants.behaviour[m, k]
                precision += chance**2 * told.precision[node, m, 0, k]
                vector += chance * told.vector[node, m, 0, k]
        least, most = expected / MASS_LIMIT, MASS_LIMIT * expected
        share = min(max(vector / precision, least), most, 1.0)
        if expected == 1.0:
            share = 1.0  # everybody is in the root, whatever the noise says
        people.share[m] = share
        for k in range(arms):
            if constants.known[m]:
                people.rows[m, k] = share * constants.behaviour[m, k]
            else:
                usual = share / arms
                precision = 1.0 / usual**2 + told.precision[node, m, 0, k]
                vector = 1.0 / usual + told.vector[node, m, 0, k]
                people.rows[m, k] = min(max(vector / precision, 0.0), MASS_LIMIT * share, 1.0)
        for axis in range(constants.dimension):
            levels, first = constants.axes.levels[axis], constants.axes.slots[axis]
            for slot in range(first, first + max(levels, 1)):
                if state.holds[node, slot]:
                    part = part_of_bin(state, constants, node, m, slot, levels > 0, people)
                    people.part[m, slot] = part
                elif levels > 0:
                    people.part[m, slot] = 0.0
    return people


def part_of_bin(
    state: "State",
    constants: "Constants",
    node: int,
    m: int,
    slot: int,
    is_level: bool,
    people: BinShares,
) -> float:
    """Estimate the share of a bin's people in its upper half, or with a level.

    Halves: answers have the mean share·(2r - 1). A level: share·q.
    """
    share, mass, told = people.share[m], state.mass_told, state.rows_told
    expected, unit, deviation = 0.5, 2.0, HALF_DEVIATION
    if is_level:
        expected, unit = state.level_mass[node, m, slot], 1.0
        deviation = LEVEL_MASS_DEVIATION * expected
    offset = expected if is_level else 0.0  # what an answer has in the mean if it is as expected
    precision = 1.0 / deviation**2
    weight = mass.precision[node, m, 1 + slot]
    precision += (unit * share) ** 2 * weight
    vector = unit * share * (mass.vector[node, m, 1 + slot] - offset * share * weight)
    for k in range(constants.arms):
        rows, weight = people.rows[m, k], told.precision[node, m, 1 + slot, k]
        precision += (unit * rows) ** 2 * weight
        vector += unit * rows * (told.vector[node, m, 1 + slot, k] - offset * rows * weight)
    part = expected + vector / precision
    least = expected / MASS_LIMIT if is_level else 0.0
    within: float = min(max(part, least), 1.0)
    return within


def measured(
    state: "State", node: int, m: int, index: int, people: BinShares, into: Information
) -> None:
    """Fill in what a population's answers say of what they measured, (K, K) and (K,).

    index 0: of g. Index 1 + z: of of_mean·g + of_effect·effect_z (``coefficients``).
    """
    share, rows = people.share[m], people.rows[m]
    served, logged = state.served, state.logged
    for a in range(len(rows)):
        scale = 2.0 * rows[a]
        into.vector[a] = scale * logged.vector[node, m, index, a]
        into.vector[a] += share * served.vector[node, m, index, a]
        for b in range(len(rows)):
            into.precision[a, b] = share**2 * served.precision[node, m, index, a, b]
            into.precision[a, b] += scale * 2.0 * rows[b] * logged.precision[node, m, index, a, b]
    if m > 0:
        blur(into, state.bias[node])


def blur(told: Information, bias: float) -> None:
    """Let what others tell be known no better than their bias: J becomes (J⁻¹ + bias²)⁻¹.

    (J⁻¹ + Q)⁻¹ = (I + JQ)⁻¹J, also where J has no inverse because nobody has told anything.
    """
    arms = len(told.vector)
    mixed, inverse = np.empty((arms, arms)), np.empty((arms, arms))
    for a in range(arms):
        for b in range(arms):
            mixed[a, b] = bias**2 * told.precision[a, b] + (a == b)
    invert(mixed, inverse)
    mixed[:] = told.precision
    vector = told.vector.copy()
    for a in range(arms):
        told.vector[a] = 0.0
        for b in range(arms):
            told.vector[a] += inverse[a, b] * vector[b]
            told.precision[a, b] = 0.0
            for c in range(arms):
                told.precision[a, b] += inverse[a, c] * mixed[c, b]


def coefficients(part: float, is_level: bool) -> tuple[float, float]:
    """Return how much of g and of its effect a slot measures.

    With r the share of the bin's people in its upper half, upper minus lower half is
    (2r - 1)·g + 4r(1 - r)·effect. A level with the share q of the people has q·(g + effect).
    """
    if is_level:
        return part, part
    return 2.0 * part - 1.0, mixing(part)


def mixing(upper: float) -> float:
    """Return 4r(1 - r): 1 for equal halves, 0 where everybody is in one of them."""
    return 4.0 * upper * (1.0 - upper)


def told_of_slot(
    state: "State",
    node: int,
    slot: int,
    is_level: bool,
    people: BinShares,
    mean: Floats,
    into: Information,
) -> None:
    """Add what all answers about a slot say of its effect, given the mean of g, (K, K) and (K,)."""
    arms = len(mean)
    told = Information(np.empty((arms, arms)), np.empty(arms))
    for m in range(len(people.share)):
        measured(state, node, m, 1 + slot, people, told)
        of_mean, of_effect = coefficients(people.part[m, slot], is_level)
        for a in range(arms):
            unexplained = told.vector[a]
            for b in range(arms):
                into.precision[a, b] += of_effect**2 * told.precision[a, b]
                unexplained -= of_mean * told.precision[a, b] * mean[b]
            into.vector[a] += of_effect * unexplained


def estimate(state: "State", constants: "Constants", node: int) -> BinEstimate:
    """Estimate g and its effects in a bin, from all populations at once."""
    arms, slots, groups = constants.arms, state.holds.shape[1], state.mass.shape[1]
    people = bin_shares(state, constants, node)
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    effect, effect_covariance = np.zeros((slots, arms)), np.zeros((slots, arms, arms))
    told = Information(np.empty((arms, arms)), np.empty(arms))
    precision, vector = state.prior.precision[node, 0].copy(), state.prior.vector[node, 0].copy()
    for m in range(groups):
        measured(state, node, m, 0, people, told)
        precision += told.precision
        vector += told.vector
    solve(precision, vector, mean, covariance)
    known = Information(precision, vector)
    for axis in range(constants.dimension):
        levels, first = constants.axes.levels[axis], constants.axes.slots[axis]
        for slot in range(first, first + max(levels, 1)):
            if state.holds[node, slot]:
                known.precision[:] = state.prior.precision[node, 1 + slot]
                known.vector[:] = state.prior.vector[node, 1 + slot]
                told_of_slot(state, node, slot, levels > 0, people, mean, known)
                solve(known.precision, known.vector, effect[slot], effect_covariance[slot])
    return BinEstimate(mean, covariance, effect, effect_covariance, people)


def solve(precision: Floats, vector: Floats, mean: Floats, covariance: Floats) -> None:
    """Turn information form into mean and covariance."""
    invert(precision, covariance)
    for a in range(len(vector)):
        mean[a] = 0.0
        for b in range(len(vector)):
            mean[a] += covariance[a, b] * vector[b]


def invert(matrix: Floats, inverse: Floats) -> None:
    """Invert a positive definite matrix by Gauss and Jordan's method.

    LAPACK has a cost of its own for each call, which small matrices do not pay back.
    """
    size = len(matrix)
    for a in range(size):
        for b in range(size):
            inverse[a, b] = matrix[a, b]
    for pivot in range(size):
        scale = 1.0 / inverse[pivot, pivot]
        inverse[pivot, pivot] = 1.0
        for b in range(size):
            inverse[pivot, b] *= scale
        for a in range(size):
            if a != pivot:
                factor = inverse[a, pivot]
                inverse[a, pivot] = 0.0
                for b in range(size):
                    inverse[a, b] -= factor * inverse[pivot, b]


def gap_variance(covariance: Floats, a: int, b: int) -> float:
    """Return the variance of x_a - x_b."""
    variance: float = covariance[a, a] + covariance[b, b] - 2.0 * covariance[a, b]
    return variance
