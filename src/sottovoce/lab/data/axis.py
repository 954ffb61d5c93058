"""One axis: numbers to [0, 1] by the empirical distribution function of the fitting rows."""

from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Floats

MOST_KNOTS = 1024
"""About how many points of a distribution function are kept, and published."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A distribution function: equal lengths of the axis hold similar numbers of people.

    u(x) = (#{values < x} + #{values <= x}) / 2n at the fitting values, so that those who share a
    value lie in the middle of their share; straight lines in between, and the ends beyond. What is
    missing lies in the middle of the axis.
    """

    knots: Floats
    shares: Floats

    @classmethod
    def fit(cls, values: Floats) -> "Axis":
        """Learn the distribution of some values (n,)."""
        knots, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        if len(knots) == 0:
            return cls(np.zeros(1), np.full(1, 0.5))
        shares = (np.cumsum(counts) - counts / 2) / counts.sum()
        if len(knots) > MOST_KNOTS:
            # Values that many people share are kept: each is the first past some mark.
            first = np.searchsorted(shares, np.linspace(0, shares[-1], MOST_KNOTS // 2))
            kept = np.unique(np.concatenate([first, np.maximum(first - 1, 0)]))
            knots, shares = knots[kept], shares[kept]
        return cls(knots, shares)

    def apply(self, values: Floats) -> Floats:
        """Return the positions of some values (n,)."""
        return np.where(np.isnan(values), 0.5, np.interp(values, self.knots, self.shares))
