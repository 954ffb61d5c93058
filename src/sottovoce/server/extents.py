"""Who is in a bin along each axis: a stretch of numbers, or some of the places.

Along an axis in order, places are points, and splits fall anywhere between them. Along one without
order, a bin holds any set of them. Either way it holds some places, each with an equal share of
[0, 1]: a bin covers as much as it has places, and one without a place is empty.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from sottovoce.shared.release import Release
from sottovoce.shared.scale import STRETCHES, Knots

Edge = tuple[float, float]
"""Where something begins and ends on [0, 1]."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Who is in a bin along one axis.

    pieces: what it covers of [0, 1], from low to high: one stretch of numbers, or one for each run
        of neighbouring places.
    places: the places that it holds, in order; none along a number.
    """

    pieces: tuple[Edge, ...]
    places: tuple[int, ...] = ()

    @classmethod
    def between(cls, low: float, high: float, *, count: int) -> "Extent":
        """Return what is in [low, high) of an axis with so many places, or of a number with 0."""
        if not count:
            return cls(((low, high),))
        return cls.of(range(_below(low, count), _below(high, count)), count=count)

    @classmethod
    def of(cls, places: Iterable[int], *, count: int) -> "Extent":
        """Return that of some places, of so many that the axis has."""
        held = tuple(sorted(places))
        known = set(held)
        firsts = [place for place in held if place - 1 not in known]
        lasts = [place for place in held if place + 1 not in known]
        runs = zip(firsts, lasts, strict=True)
        return cls(tuple((first / count, (last + 1) / count) for first, last in runs), held)

    @property
    def share(self) -> float:
        """How much of [0, 1] it covers."""
        return math.fsum(high - low for low, high in self.pieces)

    @property
    def is_everything(self) -> bool:
        """Whether it leaves nobody out."""
        return self.pieces == ((0.0, 1.0),)

    @property
    def begins_at_zero(self) -> bool:
        """Whether it holds the lowest number, or the first place."""
        return self.pieces[:1] != () and self.pieces[0][0] == 0

    @property
    def example(self) -> float | None:
        """A position in it: the middle of a stretch of numbers, or of the first place."""
        if not self.pieces:
            return None
        return self.pieces[0][0] + self.share / max(len(self.places), 1) / 2


def extents_of(release: Release, path: str) -> tuple[Extent, ...]:
    """Return who is in a bin of a release, or was before it was split, along each axis."""
    partition = release.partition
    in_sets = partition.levels or (0,) * partition.dimension
    edges = zip(release.experiment.axes, partition.box(path), strict=True)
    return tuple(
        Extent.of(partition.places(path, number), count=axis.levels)
        if in_sets[number]
        else Extent.between(low, high, count=axis.levels)
        for number, (axis, (low, high)) in enumerate(edges)
    )


def place_at(knots: Knots, position: float) -> float:
    """Return the place on a scale of a position on its axis."""
    piece = min(bisect_right(knots, position) - 1, STRETCHES - 1)
    start, end = knots[piece : piece + 2]
    return (piece + (position - start) / (end - start)) / STRETCHES


def _below(position: float, count: int) -> int:
    """Return how many of the places, at (i + 1/2)/count, lie below a position."""
    return max(math.ceil(position * count - 0.5), 0)
