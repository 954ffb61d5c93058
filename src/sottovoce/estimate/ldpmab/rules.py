"""The paper's equations, one function each, on plain numbers and arrays.

This module is the only place where the rules are written, but for the warm-up (``step.py``). The
learner calls them as Python; the lab compiles them as they stand. So they use nothing but
arithmetic, ``math`` and indexing.

Shapes: M + 1 populations, A live arms of one bin.
users[m]      t_s^{m,j}, the users of population m who reported on the bin
pulls[m]      ΣŨ of one arm over those users
rewards[m]    ΣṼ of the same arm
counted[m]    whether the population takes part
"""

import math
from typing import NamedTuple

from sottovoce.estimate.ldpmab.constants import Constants
from sottovoce.estimate.tree import Counts, Flags, Floats


class BinSums(NamedTuple):
    """What was reported on one bin."""

    users: Counts  # (M+1,)
    pulls: Floats  # (M+1, A)
    rewards: Floats  # (M+1, A)
    running: Floats  # (3, A) with the authors' preset, running totals of the sums of ``weigh``


class Verdict(NamedTuple):
    """What is found of the live arms of one bin, and decided; filled in on the way."""

    estimates: Floats  # (A,) f̃
    radii: Floats  # (A,) r
    keep: Flags  # (A,) whether the arm stays
    propensities: Floats  # (A,) its chance from now on


def weight(users: int, pulls: float, epsilon: float, warm_up: float) -> float:
    """λ = |ε²/t · ΣŨ| ∧ 1{t ≥ log² n}   (eq. lamdaratios)."""
    if users == 0 or users < warm_up:
        return 0.0
    return min(abs(epsilon * epsilon / users * pulls), 1.0)


def weigh(
    users: Counts, pulls: Floats, rewards: Floats, counted: Flags, constants: Constants
) -> tuple[float, float, float]:
    """Return ΣλΣṼ, ΣλΣŨ and Σλ²{(t/ε²) ∨ ΣŨ} over the populations that count, for one arm.

    These are the sums of eqs. privateestimatormulti and rkj.
    """
    weighted_rewards = 0.0
    weighted_pulls = 0.0
    spread = 0.0
    for m in range(len(users)):
        if counted[m]:
            epsilon = constants.epsilons[m]
            share = weight(users[m], pulls[m], epsilon, constants.warm_up)
            weighted_rewards += share * rewards[m]
            weighted_pulls += share * pulls[m]
            spread += share * share * max(users[m] / (epsilon * epsilon), pulls[m])
    return weighted_rewards, weighted_pulls, spread


def estimate(weighted_rewards: float, weighted_pulls: float) -> float:
    """f̃ = ΣλΣṼ / ΣλΣŨ, with 0/0 = 0   (eqs. privateestimatorP and privateestimatormulti)."""
    if weighted_pulls == 0.0:
        return 0.0
    return weighted_rewards / weighted_pulls


def radius(spread: float, weighted_pulls: float, confidence: float) -> float:
    """R = √(C_n·Σλ²{…} / (ΣλΣŨ)²), with 0/0 = 0   (eqs. rkjofP and rkj).

    0 stands for "too few users to say", never for certainty.
    """
    if weighted_pulls == 0.0:
        return 0.0
    return math.sqrt(confidence * spread) / abs(weighted_pulls)


def half_width(arm_radius: float, bin_tau: float, constants: Constants) -> float:
    """Half of an arm's confidence band: 2r in the paper, max(r, τ) in the authors' code."""
    return max(constants.band_radius * arm_radius, constants.band_tau * bin_tau)


def eliminate(
    estimates: Floats, radii: Floats, bin_tau: float, constants: Constants, keep: Flags
) -> None:
    """Mark in ``keep`` the arms that no other arm beats   (eqs. updateruleP and updaterule).

    Arm k* goes if some k has r_k, r_k* > 0 and f̃_k - band_k > f̃_k* + band_k*. The arm with the
    highest lower bound always stays.
    """
    highest = -math.inf
    for k in range(len(estimates)):
        if radii[k] > 0.0:
            highest = max(highest, estimates[k] - half_width(radii[k], bin_tau, constants))
    for k in range(len(estimates)):
        upper = estimates[k] + half_width(radii[k], bin_tau, constants)
        keep[k] = radii[k] <= 0.0 or highest <= upper


def must_refine(radii: Floats, keep: Flags, bin_tau: float, every: bool) -> bool:
    """Say whether 0 < r < τ for some live arm (the paper) or for every one (the authors).

    The bin is then known better than it is fine, and its halves should be told apart.

    Departs from the paper: read to the letter, a bin with too few users has r = 0/0 = 0 < τ and
    would be split at once. Only r > 0 counts.
    """
    for k in range(len(radii)):
        if keep[k]:
            known = 0.0 < radii[k] < bin_tau
            if known and not every:
                return True
            if every and not known:
                return False
    return every


def tilt(estimates: Floats, keep: Flags, constants: Constants, propensities: Floats) -> None:
    """Fill in the chance of each live arm; the others get 0.

    tilt = 0: all the same, the paper's π = Unif(A) (eq. partitionbasedpolicy). Otherwise the
    authors' code: weights exp(f̃·ln(tilt·K/|A|) / (max f̃ - min f̃)), once the estimates differ
    by 0.01.
    """
    live = 0
    best = -math.inf
    worst = math.inf
    for k in range(len(estimates)):
        if keep[k]:
            live += 1
            best = max(best, estimates[k])
            worst = min(worst, estimates[k])
    slope = 0.0
    if constants.tilt > 0.0 and best - worst >= 0.01:
        slope = math.log(constants.tilt * constants.arms / live) / (best - worst)
    total = 0.0
    for k in range(len(estimates)):
        propensities[k] = 0.0
        if keep[k]:
            propensities[k] = math.exp((estimates[k] - best) * slope) if slope > 0.0 else 1.0
        total += propensities[k]
    for k in range(len(estimates)):
        propensities[k] /= total


def estimate_bin(sums: BinSums, counted: Flags, constants: Constants, found: Verdict) -> None:
    """Fill in f̃ and r of each live arm of a bin.

    With the authors' preset, the sums of ``weigh`` are added up again at every step, over the
    populations that reported since the last one, and the running totals are used.
    """
    running = sums.running
    for k in range(len(found.estimates)):
        weighted_rewards, weighted_pulls, spread = weigh(
            sums.users, sums.pulls[:, k], sums.rewards[:, k], counted, constants
        )
        if constants.running_sums:
            running[0, k] += weighted_rewards
            running[1, k] += weighted_pulls
            running[2, k] += spread
            weighted_rewards, weighted_pulls = running[0, k], running[1, k]
            spread = running[2, k]
        found.estimates[k] = estimate(weighted_rewards, weighted_pulls)
        if constants.clip:
            found.estimates[k] = min(max(found.estimates[k], 0.0), 1.0)
        found.radii[k] = radius(spread, weighted_pulls, constants.confidence)


def judge_bin(depth: int, found: Verdict, constants: Constants) -> bool:
    """Decide for one bin: which arms stay, the chance of each, and whether the bin is split.

    This is the body of the loop over bins of Algorithms 2 and 3.
    """
    bin_tau = constants.taus[depth]
    eliminate(found.estimates, found.radii, bin_tau, constants, found.keep)
    tilt(found.estimates, found.keep, constants, found.propensities)
    live = 0
    for k in range(len(found.keep)):
        live += found.keep[k]
    # Departs from the paper: a bin with one arm left is not refined. Nothing is left to decide.
    return (
        live > 1
        and depth < constants.deepest
        and must_refine(found.radii, found.keep, bin_tau, constants.split_when_all)
    )
