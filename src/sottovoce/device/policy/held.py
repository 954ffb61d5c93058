"""Which values of a feature a part of the people has, and how a split divides them.

A release splits positions in [0, 1]. Here the same split is one of raw values: numbers from a least
one on, or some of the places. Both follow from ``Feature.positions``, the code by which a device
finds positions, so that they agree at every last number.

Positions rise with numbers: a difference and a quotient of doubles never fall where their first
argument rises. So for each split there is a first number that goes up, and all above it go up, too.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from sottovoce.shared.schema import MISSING, OTHER, Boolean, Categorical, Feature, Numeric

GoesUp = Callable[[float], bool]
"""Whether a position on an axis lies in the upper part of a split."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Those with a number in [least, below), and, if ``missing``, those without one."""

    least: float = -math.inf
    below: float = math.inf
    missing: bool = False

    @property
    def there(self) -> bool:
        """Whether anybody with a number is among them."""
        return self.least < self.below

    @property
    def is_nobody(self) -> bool:
        """Whether nobody is left."""
        return not self.there and not self.missing


@dataclass(frozen=True, slots=True)
class Places:
    """Those with some of the values that ``values_of`` lists, by their numbers."""

    held: frozenset[int]

    @property
    def is_nobody(self) -> bool:
        """Whether nobody is left."""
        return not self.held


Held = Numbers | Places


@dataclass(frozen=True, slots=True)
class Halves:
    """How a split divides the people along one feature; ``cut`` is the least number that goes up.

    cut: None if no number is divided from another.
    """

    lower: Held
    upper: Held
    cut: float | None = None


@cache
def values_of(feature: Feature) -> tuple[object, ...]:
    """Return a raw value for each place of a feature with levels, in the order of its places."""
    missing = (None,) * feature.optional
    match feature:
        case Categorical():
            return (*feature.levels, *(_unknown(feature),) * feature.other, *missing)
        case Boolean():
            return (False, True, *missing)
        case Numeric():
            return ()
        case _:
            return (*feature.levels, *missing)


@cache
def names_of(feature: Feature) -> tuple[str, ...]:
    """Name the same places."""
    missing = (MISSING,) * feature.optional
    match feature:
        case Categorical():
            return (*feature.levels, *(OTHER,) * feature.other, *missing)
        case Boolean():
            return ("false", "true", *missing)
        case Numeric():
            return ()
        case _:
            return (*feature.levels, *missing)


def place_of(feature: Feature, kind: str) -> int | None:
    """Return the place for ``OTHER`` or ``MISSING`` values, if the feature has one."""
    count = len(values_of(feature))
    if kind == MISSING:
        return count - 1 if feature.optional else None
    has_other = isinstance(feature, Categorical) and feature.other
    return count - 1 - feature.optional if has_other else None


def everybody(feature: Feature) -> Held:
    """Return what all people together have."""
    if isinstance(feature, Numeric):
        return Numbers(missing=feature.optional)
    return Places(frozenset(range(len(values_of(feature)))))


def divide(feature: Feature, held: Held, axis: int, goes_up: GoesUp) -> Halves:
    """Divide people by a split along one of the axes of a feature."""
    if isinstance(feature, Numeric) and isinstance(held, Numbers):
        return _divide_numbers(feature, held, axis, goes_up)
    assert isinstance(held, Places)  # noqa: S101  a feature has one kind or the other
    values = values_of(feature)
    up = frozenset(each for each in held.held if goes_up(feature.positions(values[each])[axis]))
    return Halves(Places(held.held - up), Places(up))


def _divide_numbers(feature: Numeric, held: Numbers, axis: int, goes_up: GoesUp) -> Halves:
    missing_up = held.missing and goes_up(feature.positions(None)[axis])
    least = _first_up(feature, lambda number: goes_up(feature.positions(number)[axis]))
    lower = Numbers(held.least, min(held.below, least), held.missing and not missing_up)
    upper = Numbers(max(held.least, least), held.below, missing_up)
    return Halves(lower, upper, least if lower.there and upper.there else None)


def _first_up(feature: Numeric, goes_up: Callable[[float], bool]) -> float:
    """Return the first number that goes up: -infinity if all do, infinity if none does.

    All numbers from the upper bound on have the same position, and so do all up to the lower one.
    """
    if goes_up(feature.low):
        return -math.inf
    if not goes_up(feature.high):
        return math.inf
    down, up = _rank(feature.low), _rank(feature.high)
    while up - down > 1:
        middle = (down + up) // 2
        down, up = (down, middle) if goes_up(_number(middle)) else (middle, up)
    return _number(up)


def _rank(number: float) -> int:
    """Return the place of a number in the order of all doubles; 0.0 and -0.0 have the same."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) if bits >= 0 else -(int(bits) & (2**63 - 1))


def _number(rank: int) -> float:
    (number,) = struct.unpack("<d", struct.pack("<q", abs(rank)))
    return float(number) if rank >= 0 else -float(number)


def _unknown(feature: Categorical) -> str:
    """Return a level that the feature does not name: longer than all that it does."""
    return "x" * (1 + max(map(len, feature.levels)))
