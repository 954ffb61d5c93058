"""Two partitions laid over each other: which pieces a policy cuts the learner's bins into.

The bins of a release of the same learner are unions of its bins today, so that each of these gets
one piece. A policy of another experiment may cut across.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sottovoce.shared.partition import Partition
from sottovoce.shared.scale import STRETCHES
from sottovoce.shared.schema import Axis


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bin that lies within one bin of another partition.

    edges: (low, high) along each axis of numbers or of ordered levels, as positions.
    levels: those it holds, along each other axis; empty for an axis with an order.
    theirs: the path of the other bin.
    """

    edges: tuple[tuple[float, float], ...]
    levels: tuple[frozenset[int], ...]
    theirs: str


def pieces_of(ours: Partition, path: str, theirs: Partition, axes: Sequence[Axis]) -> list[Piece]:
    """Return the pieces of one of our bins."""
    return list(_pieces(whole_bin(ours, path, axes), theirs, axes))


def whole_bin(ours: Partition, path: str, axes: Sequence[Axis]) -> Piece:
    """Return one of our bins as a piece."""
    levels = tuple(
        _levels_of(ours, path, axis, each.levels) if _is_set(each) else frozenset()
        for axis, each in enumerate(axes)
    )
    return Piece(ours.box(path), levels, "")


def _levels_of(ours: Partition, path: str, axis: int, count: int) -> frozenset[int]:
    return ours.places(path, axis) if ours.levels else frozenset(range(count))


def _is_set(axis: Axis) -> bool:
    """Say whether bins hold sets of levels along an axis."""
    return bool(axis.levels) and not axis.ordered


def _pieces(piece: Piece, theirs: Partition, axes: Sequence[Axis]) -> Iterator[Piece]:
    axis = theirs.cuts.get(piece.theirs)
    if axis is None:
        yield piece
        return
    cut = _cut_levels if _is_set(axes[axis]) else _cut_edge
    for side, part in enumerate(cut(piece, theirs, axis, axes[axis].levels)):
        if part is not None:
            yield from _pieces(replace(part, theirs=piece.theirs + "01"[side]), theirs, axes)


_Parts = tuple[Piece | None, Piece | None]
"""The lower and the upper part of a piece, if there are people."""


def _cut_levels(piece: Piece, theirs: Partition, axis: int, count: int) -> _Parts:
    """Cut a piece along an axis without an order as a bin of theirs is cut."""
    if piece.theirs in theirs.sets:
        above = theirs.sets[piece.theirs]
    else:  # by ldpmab, at a midpoint
        place = _middle(theirs, piece.theirs, axis)
        above = frozenset(k for k in range(count) if (k + 0.5) / count >= place)

    def part(levels: frozenset[int]) -> Piece | None:
        if not levels:
            return None
        return replace(piece, levels=(*piece.levels[:axis], levels, *piece.levels[axis + 1 :]))

    here = piece.levels[axis]
    return part(here - above), part(here & above)


def _cut_edge(piece: Piece, theirs: Partition, axis: int, count: int) -> _Parts:
    """Cut a piece along an axis with an order; count: of its levels, 0 for a number."""
    (low, high), place = piece.edges[axis], _middle(theirs, piece.theirs, axis)

    def part(start: float, end: float) -> Piece | None:
        if start >= end or (count and not _holds(start, end, count)):
            return None
        return replace(piece, edges=(*piece.edges[:axis], (start, end), *piece.edges[axis + 1 :]))

    return part(low, min(high, place)), part(max(low, place), high)


def _middle(partition: Partition, path: str, axis: int) -> float:
    low, high = partition.edges(path)[axis]
    return partition.position(axis, (low + high) / 2)


def _holds(start: float, end: float, levels: int) -> bool:
    """Say whether an edge holds the position of some level."""
    return any(start <= (k + 0.5) / levels < end for k in range(levels))


def place_of(partition: Partition, axis: int, position: float) -> float:
    """Return the place in [0, 1] on the scale of an axis of a position: ``position`` backwards."""
    if axis not in partition.scales:
        return position
    return float(np.interp(position, partition.scales[axis], np.arange(STRETCHES + 1) / STRETCHES))
