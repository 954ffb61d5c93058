"""The paper's equations, one function each, on plain numbers and arrays.

This module is the only place where the rules are written. The learner calls them as Python; they
use nothing but arithmetic, ``math`` and indexing, so that a compiler can take them as they stand.

Shapes: M + 1 populations, A live arms of one bin.
users[m]      t_s^{m,j}, the users of population m who reported on the bin
pulls[m]      ΣŨ of one arm over those users
rewards[m]    ΣṼ of the same arm
epsilons[m]   ε_m
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


def weight(users: int, pulls: float, epsilon: float, warm_up: float) -> float:
    """λ = |ε²/t · ΣŨ| ∧ 1{t ≥ log² n}   (eq. lamdaratios)."""
    if users == 0 or users < warm_up:
        return 0.0
    return min(abs(epsilon * epsilon / users * pulls), 1.0)


def weigh(
    users: Counts,
    pulls: Floats,
    rewards: Floats,
    epsilons: Floats,
    counted: Flags,
    warm_up: float,
) -> tuple[float, float, float]:
    """Return ΣλΣṼ, ΣλΣŨ and Σλ²{(t/ε²) ∨ ΣŨ} over the counted populations of one arm.

    These are the sums of eqs. privateestimatormulti and rkj.
    """
    weighted_rewards = 0.0
    weighted_pulls = 0.0
    spread = 0.0
    for m in range(len(users)):
        if counted[m]:
            share = weight(users[m], pulls[m], epsilons[m], warm_up)
            weighted_rewards += share * rewards[m]
            weighted_pulls += share * pulls[m]
            noise = users[m] / (epsilons[m] * epsilons[m])
            spread += share * share * max(noise, pulls[m])
    return weighted_rewards, weighted_pulls, spread


def estimate(weighted_rewards: float, weighted_pulls: float) -> float:
    """f̃ = ΣλΣṼ / ΣλΣŨ, with 0/0 = 0   (eqs. privateestimatorP and privateestimatormulti)."""
    if weighted_pulls == 0.0:
        return 0.0
    return weighted_rewards / weighted_pulls


def radius(confidence: float, spread: float, weighted_pulls: float) -> float:
    """R = √(C_n·Σλ²{…} / (ΣλΣŨ)²), with 0/0 = 0   (eqs. rkjofP and rkj).

    0 stands for "too few users to say", never for certainty.
    """
    if weighted_pulls == 0.0:
        return 0.0
    return math.sqrt(confidence * spread) / abs(weighted_pulls)


def half_width(radius_: float, tau: float, band_radius: float, band_tau: float) -> float:
    """Half of an arm's confidence band: 2r in the paper, max(r, τ) in the authors' code."""
    return max(band_radius * radius_, band_tau * tau)


def eliminate(
    estimates: Sequence[float],
    radii: Sequence[float],
    tau: float,
    band_radius: float,
    band_tau: float,
    keep: Flags,
) -> None:
    """Mark in ``keep`` the arms that no other arm beats   (eqs. updateruleP and updaterule).

    Arm k* goes if some k has r_k, r_k* > 0 and f̃_k - band_k > f̃_k* + band_k*. The arm with the
    highest lower bound always stays.
    """
    for loser in range(len(estimates)):
        keep[loser] = True
        if radii[loser] <= 0.0:
            continue
        band = half_width(radii[loser], tau, band_radius, band_tau)
        for winner in range(len(estimates)):
            if winner == loser or radii[winner] <= 0.0:
                continue
            lower = estimates[winner] - half_width(radii[winner], tau, band_radius, band_tau)
            if lower > estimates[loser] + band:
                keep[loser] = False


def is_fine_enough(radii: Sequence[float], tau: float, every: bool) -> bool:
    """Whether 0 < r < τ for some arm (the paper) or for every arm (the authors).

    Departs from the paper: read to the letter, a bin with too few users has r = 0/0 = 0 < τ and
    would be cut at once. Only r > 0 counts.
    """
    for radius_ in radii:
        fine = 0.0 < radius_ < tau
        if fine and not every:
            return True
        if every and not fine:
            return False
    return every


def tilt(estimates: Sequence[float], arms: int, strength: float, chances: Floats) -> None:
    """Fill in the chance of each live arm.

    strength = 0: all the same, the paper's π = Unif(A) (eq. partitionbasedpolicy). Otherwise the
    authors' code: weights exp(f̃·ln(strength·K/|A|) / (max f̃ - min f̃)), once the estimates
    differ by 0.01.
    """
    live = len(estimates)
    spread = max(estimates) - min(estimates)
    slope = 0.0
    if strength > 0.0 and spread >= 0.01:
        slope = math.log(strength * arms / live) / spread
    total = 0.0
    for k in range(live):
        chances[k] = math.exp((estimates[k] - max(estimates)) * slope)
        total += chances[k]
    for k in range(live):
        chances[k] /= total
