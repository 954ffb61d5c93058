"""The measurement model: what answers say of a bin, and what is known of it from them.

docs/explanation/whisper.md derives it.

In one bin, for the vector g = f - 1/2 of the K arms:

    g         mean over the bin
    slope_j   half the difference between the upper and the lower half along feature j
    halves    g ± slope_j, exactly, if they hold equally many people

Every answer measures a linear function of g, or of a slope, with a known variance, scaled by the
share of its population's people who are in the bin. The table of questions has that function.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.shared.whisper.questions import PEOPLE, ROWS
from sottovoce.shared.whisper.tuning import HALF_DEVIATION, MASS_DEVIATION, MASS_LIMIT

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


class Answers(NamedTuple):
    """All answers of one population to one question about one cell, added up.

    slot: 0 where they are about the whole bin, or 1 + the feature that was asked about.
    first, second: the arms that were compared; the first alone where a cell has an arm of its own.
    whole, difference: the sums of the values over the bin, and of upper minus lower half.
    """

    node: int
    population: int
    slot: int
    first: int
    second: int
    reports: float
    whole: float
    difference: float


class BinShares(NamedTuple):
    """Who is in a bin, by population."""

    share: Floats  # (M+1,) of all people
    upper: Floats  # (M+1, d) of those, in the upper half along each feature
    rows: Floats  # (M+1, K) of all logged rows, with each arm in the bin


class BinEstimate(NamedTuple):
    """What is known of a bin: the posterior of g and of each slope, and who is there."""

    mean: Floats  # (K,) of g
    covariance: Floats  # (K, K)
    slope: Floats  # (d, K)
    slope_covariance: Floats  # (d, K, K)
    people: BinShares


def add_answers(
    state: "State", constants: "Constants", mechanism: Any, question: Any, answers: Answers
) -> None:
    """Add answers to what is known of their bin, in information form.

    mechanism: a record of ``tally.MECHANISM``: β, and the mean of (value/β)² of people outside and
        inside of a cell.
    question: its entry of the table.
    """
    node, m, first, second = answers.node, answers.population, answers.first, answers.second
    share = state.mass[node, m]
    if question.by_arm:
        share *= constants.behaviour[m, first] if constants.known[m] else 1.0 / constants.arms
    noise = 2.0 * mechanism.noise if mechanism.halves else mechanism.noise
    variance = noise + share * (mechanism.inside - mechanism.noise)
    precision = answers.reports / variance
    told = state.logged if question.logged else state.served
    for part in range(2):  # the whole bin, and the difference of its halves
        if part == 0 and answers.slot > 0 and not mechanism.halves:
            continue
        if part == 1 and answers.slot == 0:
            continue
        at = answers.slot * part
        total = answers.difference if part == 1 else answers.whole
        vector = total / (mechanism.signal * variance)
        if question.measures == PEOPLE:
            state.mass_told.precision[node, m, at] += precision
            state.mass_told.vector[node, m, at] += vector
        elif question.measures == ROWS:
            state.rows_told.precision[node, m, at, first] += precision
            state.rows_told.vector[node, m, at, first] += vector
        else:
            a, b = question.first, question.second
            told.precision[node, m, at, first, first] += a * a * precision
            told.vector[node, m, at, first] += a * vector
            if b != 0.0:
                told.precision[node, m, at, second, second] += b * b * precision
                told.precision[node, m, at, first, second] += a * b * precision
                told.precision[node, m, at, second, first] += a * b * precision
                told.vector[node, m, at, second] += b * vector


def bin_shares(state: "State", constants: "Constants", node: int) -> BinShares:
    """Estimate who is in a bin, for each population."""
    groups, arms, d = state.mass.shape[1], constants.arms, constants.dimension
    people = BinShares(np.empty(groups), np.empty((groups, d)), np.empty((groups, arms)))
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
        for j in range(d):
            precision = 1.0 / HALF_DEVIATION**2
            precision += (2.0 * share) ** 2 * mass.precision[node, m, 1 + j]
            vector = 2.0 * share * mass.vector[node, m, 1 + j]
            for k in range(arms):
                rows = people.rows[m, k]
                precision += (2.0 * rows) ** 2 * told.precision[node, m, 1 + j, k]
                vector += 2.0 * rows * told.vector[node, m, 1 + j, k]
            people.upper[m, j] = min(max(0.5 + vector / precision, 0.0), 1.0)
    return people


def measured(
    state: "State", node: int, m: int, index: int, people: BinShares, into: Information
) -> None:
    """Fill in what a population's answers say of what they measured, (K, K) and (K,).

    index 0: of g. Index 1 + j, with r the share of the bin's people in its upper half along j: of
    (2r - 1)·g + 4r(1 - r)·slope_j, the difference between the halves.
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


def tilt(upper: float) -> float:
    """Return 2r - 1: how much of g the difference of two halves shows, if they are unequal."""
    return 2.0 * upper - 1.0


def mixing(upper: float) -> float:
    """Return 4r(1 - r): 1 for equal halves, 0 where everybody is in one of them."""
    return 4.0 * upper * (1.0 - upper)


def estimate(state: "State", constants: "Constants", node: int) -> BinEstimate:
    """Estimate g and its slopes in a bin, from all populations at once."""
    arms, d, groups = constants.arms, constants.dimension, state.mass.shape[1]
    people = bin_shares(state, constants, node)
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    slope, slope_covariance = np.empty((d, arms)), np.empty((d, arms, arms))
    told = Information(np.empty((arms, arms)), np.empty(arms))
    precision, vector = state.prior.precision[node, 0].copy(), state.prior.vector[node, 0].copy()
    for m in range(groups):
        measured(state, node, m, 0, people, told)
        precision += told.precision
        vector += told.vector
    solve(precision, vector, mean, covariance)
    for j in range(d):
        precision[:] = state.prior.precision[node, 1 + j]
        vector[:] = state.prior.vector[node, 1 + j]
        for m in range(groups):
            measured(state, node, m, 1 + j, people, told)
            of_mean, of_slope = tilt(people.upper[m, j]), mixing(people.upper[m, j])
            for a in range(arms):
                unexplained = told.vector[a]
                for b in range(arms):
                    precision[a, b] += of_slope**2 * told.precision[a, b]
                    unexplained -= of_mean * told.precision[a, b] * mean[b]
                vector[a] += of_slope * unexplained
        solve(precision, vector, slope[j], slope_covariance[j])
    return BinEstimate(mean, covariance, slope, slope_covariance, people)


def solve(precision: Floats, vector: Floats, mean: Floats, covariance: Floats) -> None:
    """Turn information form into mean and covariance."""
    covariance[:] = np.linalg.inv(precision)
    for a in range(len(vector)):
        mean[a] = 0.0
        for b in range(len(vector)):
            mean[a] += covariance[a, b] * vector[b]


def gap_variance(covariance: Floats, a: int, b: int) -> float:
    """Return the variance of x_a - x_b."""
    variance: float = covariance[a, a] + covariance[b, b] - 2.0 * covariance[a, b]
    return variance
