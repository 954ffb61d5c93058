"""Lower bounds on ε from counts, by Clopper and Pearson, with a stated error rate.

If a mechanism is ε-LDP, then P(S | one) ≤ e^ε·P(S | other) for every event S. So

    ε ≥ ln(least plausible P(S | one) / greatest plausible P(S | other)),

where each of the two is a one-sided Clopper–Pearson limit, which fails with probability at most
half the error rate. S must not depend on the reports that are counted.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

Floats = NDArray[np.float64]


def least_probability(hits: ArrayLike, runs: int, *, error_rate: float) -> Floats:
    """Return the lower Clopper–Pearson limit: too large with at most this probability."""
    found = np.asarray(hits, dtype=np.float64)
    limit = beta.ppf(error_rate, found, runs - found + 1)
    return np.where(found > 0, limit, 0.0)


def greatest_probability(hits: ArrayLike, runs: int, *, error_rate: float) -> Floats:
    """Return the upper Clopper–Pearson limit: too small with at most this probability."""
    found = np.asarray(hits, dtype=np.float64)
    limit = beta.ppf(1 - error_rate, found + 1, runs - found)
    return np.where(found < runs, limit, 1.0)


def epsilon_bounds(
    hits: ArrayLike, other_hits: ArrayLike, *, runs: tuple[int, int], error_rate: float
) -> Floats:
    """Return a lower bound on ε for each pair of counts: how often S came, from one and the other.

    Each exceeds the true ε with a probability of at most ``error_rate``. One below 0 says nothing.
    """
    least = least_probability(hits, runs[0], error_rate=error_rate / 2)
    greatest = greatest_probability(other_hits, runs[1], error_rate=error_rate / 2)
    with np.errstate(divide="ignore"):
        bounds: Floats = np.log(least) - np.log(greatest)
    return bounds
