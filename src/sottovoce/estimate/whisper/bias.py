"""Bias: how far the rewards of auxiliary populations lie from the target's, learned from all bins.

In each bin others say N(m, C) of g. The target's g is then N(m, C + bias²), and what its people
told (precision J, vector h) has the log likelihood

    -1/2·log det(I + (C + bias²)·J) + 1/2·eᵀ(I + (C + bias²)·J)⁻¹(C + bias²)·e,   e = h - J·m.

Three biases are weighed against each other: hardly any, some, and one by which rows say nothing.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.whisper.measurement import bin_shares, measured, solve
from sottovoce.estimate.whisper.relevance import log_evidence
from sottovoce.estimate.whisper.state import Floats, Information
from sottovoce.estimate.whisper.trust import is_trusted_on_approval
from sottovoce.shared.whisper.tuning import BIAS_BINS, BIAS_SHARES, BIASES

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State


def weigh_rows(state: "State", constants: "Constants") -> None:
    """Work out the expected bias of auxiliary populations."""
    totals = state.totals[0]
    if (
        state.mass.shape[1] == 1
        or totals.misled
        or totals.checked == 0
        or not is_trusted_on_approval(state, constants)
    ):
        return
    biases, expected = np.array(BIASES), np.array(BIAS_SHARES)
    evidence = np.zeros((totals.nodes, len(biases)))
    for node in range(totals.nodes):
        add_evidence(state, constants, node, biases, evidence[node])
        evidence[node] = np.exp(evidence[node] - evidence[node].max())
    # How many bins have which bias is learned from all of them, by a few rounds of EM.
    shares = expected.copy()
    for _ in range(4):
        counts = BIAS_BINS * expected
        for node in range(totals.nodes):
            chances = shares * evidence[node]
            counts += chances / chances.sum()
        shares = counts / counts.sum()
    for node in range(totals.nodes):
        chances = shares * evidence[node]
        state.bias[node] = math.exp(np.sum(chances * np.log(biases)) / chances.sum())


def add_evidence(
    state: "State", constants: "Constants", node: int, biases: Floats, odds: Floats
) -> None:
    """Add the log likelihood of what the target's people told of a bin, for each bias."""
    arms = constants.arms
    people = bin_shares(state, constants, node)
    told = Information(np.empty((arms, arms)), np.empty(arms))
    # What all other bins say of this one counts, too: of a small bin rows alone say little.
    precision, vector = state.prior.precision[node, 0].copy(), state.prior.vector[node, 0].copy()
    before, state.bias[node] = state.bias[node], 0.0  # what others say of their own people
    for m in range(1, len(people.share)):
        measured(state, node, m, 0, people, told)
        precision += told.precision
        vector += told.vector
    state.bias[node] = before
    mean, covariance = np.empty(arms), np.empty((arms, arms))
    solve(precision, vector, mean, covariance)
    measured(state, node, 0, 0, people, told)
    for a in range(arms):
        for b in range(arms):
            told.vector[a] -= told.precision[a, b] * mean[b]
    for h in range(len(biases)):
        for a in range(arms):
            covariance[a, a] += biases[h] ** 2
        odds[h] += log_likelihood(told, covariance)
        for a in range(arms):
            covariance[a, a] -= biases[h] ** 2


def log_likelihood(told: Information, covariance: Floats) -> float:
    """Return -1/2·log det(I + CJ) + 1/2·hᵀ(I + CJ)⁻¹Ch.

    With C = LLᵀ it is the evidence of LᵀJL and Lᵀh for effects N(0, 1), whose matrices are
    symmetric.
    """
    size = len(told.vector)
    root = np.zeros((size, size))
    for a in range(size):  # Cholesky's method
        for b in range(a + 1):
            rest = covariance[a, b]
            for c in range(b):
                rest -= root[a, c] * root[b, c]
            root[a, b] = math.sqrt(rest) if a == b else rest / root[b, b]
    precision, vector = np.zeros((size, size)), np.zeros(size)
    for a in range(size):
        for c in range(size):
            vector[a] += root[c, a] * told.vector[c]
            for b in range(size):
                for e in range(size):
                    precision[a, b] += root[c, a] * told.precision[c, e] * root[e, b]
    return log_evidence(precision, vector, 1.0)
