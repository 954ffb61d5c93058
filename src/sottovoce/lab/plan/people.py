"""Plausible people for the features of an experiment: who comes, and where each stands.

For each feature there is a law. It turns ranks, uniform on [0, 1], into the axes of the feature,
and turns these back into a **standing**: a number in [0, 1] by which rewards may depend on the
feature. For a number the standing is its rank among all people. Levels stand at the middle of their
share of the people, in their order; without one, in an order drawn at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.environments import Floats
from sottovoce.shared.schema import Feature, Numeric, Ordinal

POWERS = (1.0, 1.0, 2.0, 4.0)
"""Numbers are uniform, or crowded at one end: a rank to one of these powers, each as likely."""

MISSING_SHARES = (0.05, 0.3)
"""Where a value may be missing, it is for a share of the people between these, any as likely."""

MOST_SKEW = 2.0
"""Shares of levels are uniform numbers to a power between 0 and this, over their sum …"""

LEAST_LEVEL = 0.5
"""… and at least about this over the number of levels."""


@dataclass(frozen=True, slots=True)
class Law:
    """How the people are spread over one feature.

    power: of a number's rank; negative: crowded at the upper end. 0 for levels.
    shares: of the levels, in the order of their places.
    standing: of each place.
    missing: the share of those without a value, where that has an axis of its own.
    missing_standing: where these stand.
    """

    power: float
    shares: tuple[float, ...]
    standing: tuple[float, ...]
    missing: float | None = None
    missing_standing: float = 0.5

    @property
    def axes(self) -> int:
        """How many axes the feature has."""
        return 1 if self.missing is None else 2

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the axes of n people, (n, 1) or (n, 2)."""
        places = len(self.shares)
        if places:
            ends = np.cumsum(self.shares)[:-1]
            at = (np.searchsorted(ends, rng.random(n), side="right") + 0.5) / places
        else:
            rank = rng.random(n)
            at = rank**self.power if self.power > 0 else 1 - rank**-self.power
        if self.missing is None:
            return np.asarray(at[:, np.newaxis])
        gone = rng.random(n) < self.missing
        nowhere = 0.5 / places if places else 0.0
        return np.stack([np.where(gone, nowhere, at), np.where(gone, 0.75, 0.25)], axis=1)

    def stand(self, axes: Floats) -> Floats:
        """Return where people stand, (n,), given their axes."""
        at = axes[:, 0]
        if places := len(self.shares):
            found = np.array(self.standing)[np.minimum((at * places).astype(int), places - 1)]
        elif self.power > 0:
            found = at ** (1 / self.power)
        else:
            found = 1 - (1 - at) ** (-1 / self.power)
        if self.missing is None:
            return np.asarray(found)
        return np.where(axes[:, 1] > 0.5, self.missing_standing, found)


def draw_law(feature: Feature, rng: np.random.Generator) -> Law:
    """Draw a plausible law for a feature."""
    axis = feature.axes[0]
    missing, standing = None, 0.5
    if len(feature.axes) == 2:
        missing, standing = float(rng.uniform(*MISSING_SHARES)), float(rng.random())
    if isinstance(feature, Numeric):
        power = float(rng.choice(POWERS) * rng.choice([1, -1]))
        return Law(power, (), (), missing, standing)
    shares = rng.random(axis.levels) ** rng.uniform(0, MOST_SKEW)
    shares = np.maximum(shares / shares.sum(), LEAST_LEVEL / axis.levels)
    shares /= shares.sum()
    ordered = axis.ordered or isinstance(feature, Ordinal)
    order = np.arange(axis.levels) if ordered else rng.permutation(axis.levels)
    middles = np.empty(axis.levels)
    middles[order] = np.cumsum(shares[order]) - shares[order] / 2
    return Law(0.0, tuple(shares.tolist()), tuple(middles.tolist()), missing, standing)


def draw_crowd(laws: Sequence[Law], rng: np.random.Generator, n: int) -> Floats:
    """Draw the contexts of n people, (n, d)."""
    return np.ascontiguousarray(np.hstack([law.draw(rng, n) for law in laws]))
