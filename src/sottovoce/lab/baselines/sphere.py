"""An ε-LDP report of a vector of bounded length: a point on a sphere.

J. Duchi, M. Jordan and M. Wainwright, "Minimax optimal procedures for locally private estimation",
JASA 113, 2018 (their sampling for the ℓ2 ball), which Han et al. (2021) use for gradients. For v in
R^D with ‖v‖ <= r:

1. u = v/‖v‖ with probability 1/2 + ‖v‖/(2r), and -v/‖v‖ otherwise;
2. Z uniform on {‖z‖ = B, z·u > 0} with probability p = e^ε/(1 + e^ε), and on the other half of
   the sphere otherwise.

*Private.* Whatever v is, the density of Z with respect to the uniform law on the sphere is 2p on
one half and 2(1 - p) on the other, or a mixture of two such laws: it lies between 2(1 - p) and 2p
everywhere. For two persons the ratio is at most p/(1 - p) = e^ε, at every z.

*Unbiased.* E[Z] = v with B = r·coth(ε/2)·(√π/2)·D·Γ((D+1)/2)/Γ(D/2 + 1).

A zero vector has no direction; any fixed one does, and then Z is uniform, with mean 0.
"""

import math

import numpy as np

from sottovoce.lab.compiled import inlined
from sottovoce.lab.environments import Floats


def keep_chance(epsilon: float) -> float:
    """Return p = e^ε/(1 + e^ε)."""
    return 1 / (1 + math.exp(-epsilon))


def length(dimension: int, *, epsilon: float, bound: float) -> float:
    """Return B, the length of every report of a D-dimensional vector with ‖v‖ <= bound."""
    gammas = math.exp(math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2 + 1))
    return bound / math.tanh(epsilon / 2) * math.sqrt(math.pi) / 2 * dimension * gammas


@inlined
def draw_report(
    rng: np.random.Generator,
    block: Floats,
    first: int,
    bound: float,
    keep: float,
    reach: float,
    report: Floats,
) -> None:
    """Fill in Z (D,) for the vector v (D,) that is zero but for ``block``, from ``first`` on.

    bound: r; the block is no longer than that, or it is shortened to it.
    keep, reach: p and B.
    """
    squares = 0.0
    for value in block:
        squares += value * value
    norm = min(np.sqrt(squares), bound)
    towards = rng.random() < 0.5 + norm / (2.0 * bound)
    squares = 0.0
    for j in range(len(report)):
        report[j] = rng.standard_normal()
        squares += report[j] * report[j]
    inner = 0.0
    if norm > 0.0:
        for j in range(len(block)):
            inner += block[j] * report[first + j]
    else:
        inner = report[first]
    # A uniform point, turned round if it is not in the half that was drawn.
    same_half = (inner > 0.0) == towards
    scale = reach / np.sqrt(squares)
    if same_half != (rng.random() < keep):
        scale = -scale
    for j in range(len(report)):
        report[j] *= scale
