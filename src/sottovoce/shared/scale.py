"""Scales: public maps that stretch an axis where people are, so that midpoints divide them.

A long-tailed feature, such as an income, has nearly everybody in a small part of [0, 1]. Its scale
divides the axis into STRETCHES pieces that hold about equally many people, and bins are split at
midpoints *on the scale*. The knots of a scale are positions on the axis: where the pieces begin and
end, from 0 to 1. Between two knots the map is a straight line. An axis without a scale of its own
is its own scale.

People's positions are never put on a scale. The device works out where each split lies on the axis,
which is public, and compares.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sottovoce.shared.errors import malformed

STRETCHES = 32
"""How many pieces a scale has. Not tuned: five splits later, midpoints halve a piece."""

Knots = tuple[float, ...]


def position_at(knots: Sequence[float], place: float) -> float:
    """Return the position on the axis of a place in [0, 1] on its scale."""
    piece = min(int(place * STRETCHES), STRETCHES - 1)
    start: float = knots[piece]
    return start + (place * STRETCHES - piece) * (knots[piece + 1] - start)


def checked_scales(dimension: int, numbers: Sequence[bool], table: Any) -> dict[int, Knots]:
    """Read and check the scales of a release that came over the wire, by axis.

    numbers (d,): which axes are those of numbers; no other has a scale.
    """
    if not isinstance(table, dict):
        raise malformed("scales", "map axes to knots", type(table).__name__)
    allowed = {str(axis): axis for axis in range(dimension) if numbers[axis]}
    found: dict[int, Knots] = {}
    for name, inner in table.items():
        if name not in allowed:
            raise malformed("scales", "be of axes of numbers", repr(name))
        axis = allowed[name]
        floats = isinstance(inner, list) and all(type(each) is float for each in inner)
        if not floats or len(inner) != STRETCHES - 1:
            raise malformed(f"the scale of axis {axis}", f"be {STRETCHES - 1} numbers", "others")
        knots = (0.0, *inner, 1.0)
        if not all(low < high for low, high in pairwise(knots)):
            raise malformed(f"the scale of axis {axis}", "rise from above 0 to below 1", "others")
        found[axis] = knots
    return found
