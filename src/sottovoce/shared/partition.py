"""A partition of [0, 1]^d: the paper's dyadic max-edge partition (Algorithm 1), and sets of levels.

A bin is named by its path from the root, one digit for each split: "" is [0, 1]^d, "0" is its lower
half, "01" the upper half of that. The paper's B_s^j is the path of length s that reads j - 1 in
binary, so that its children 2j - 1 and 2j are the paths with 0 and 1 added.

Boxes are half-open, [low, high), and closed where high = 1. Bins are split at midpoints, which are
dyadic numbers. ``HALVINGS`` limits the depth, so that floating-point numbers hold them exactly.

Along an axis that has a scale of its own (``scale.py``), midpoints are those on the scale.

Departs from the paper: along an axis whose levels have no order, ``whisper`` splits a bin into two
sets of levels. Its edge along that axis stays [0, 1].
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sottovoce.shared.errors import Rejection, WireError, malformed, must
from sottovoce.shared.scale import Knots, position_at

MOST_DEPTH = 96
"""No bin is the result of more splits: each is a step for every person (``walk.py``)."""

MOST_BINS = 4096
"""No partition has more bins: a bin that is far in memory takes longer to find than a near one.

Range tried, with the AUC of one ``choose`` in three runs of ``benchmarks/even_time.py``, where at
most 0.55 is allowed: 4,096 (0.53 to 0.55), 8,192 (0.54 to 0.56), 16,384 (0.53 to 0.57), 65,536
(0.59 to 0.60). Simulated learners with a million people made fewer than 100 bins.
"""

# No edge is halved more often. Doubles resolve 2^-53 next to 1, and nobody is in an edge of 2^-48.
HALVINGS = 48

Box = tuple[tuple[float, float], ...]


def level_at(position: float, levels: int) -> int:
    """Return which of so many levels is at a position of [0, 1]."""
    return min(int(position * levels), levels - 1)


@dataclass(frozen=True, slots=True)
class Partition:
    """A binary tree of splits; its leaves tile [0, 1]^d.

    cuts: for each bin that was split, the axis along which it was split.
    levels (d,): how many levels each axis has that is split into sets; 0 for an axis that is split
        at midpoints. Empty if all are.
    sets: for each bin that was split into sets, the levels of its upper part.
    scales: the knots of each axis that has a scale of its own.
    """

    dimension: int
    cuts: Mapping[str, int] = field(default_factory=dict)
    levels: tuple[int, ...] = ()
    sets: Mapping[str, frozenset[int]] = field(default_factory=dict)
    scales: Mapping[int, Knots] = field(default_factory=dict)

    def position(self, axis: int, place: float) -> float:
        """Return the position of a place in [0, 1] on the scale of an axis."""
        return position_at(self.scales[axis], place) if axis in self.scales else place

    def find(self, point: Sequence[float]) -> str:
        """Return the leaf that holds a point of [0, 1]^d."""
        edges = [(0.0, 1.0)] * self.dimension
        path = ""
        while (axis := self.cuts.get(path)) is not None:
            if path in self.sets:
                path += "01"[level_at(point[axis], self.levels[axis]) in self.sets[path]]
                continue
            low, high = edges[axis]
            middle = (low + high) / 2
            if point[axis] < self.position(axis, middle):
                edges[axis] = (low, middle)
                path += "0"
            else:
                edges[axis] = (middle, high)
                path += "1"
        return path

    def box(self, path: str) -> Box:
        """Return the (low, high) edge of a bin along each axis, as positions."""
        return tuple(
            (self.position(axis, low), self.position(axis, high))
            for axis, (low, high) in enumerate(self.edges(path))
        )

    def edges(self, path: str) -> Box:
        """Return the same as places on the scale of each axis."""
        edges = [(0.0, 1.0)] * self.dimension
        for depth, side in enumerate(path):
            if path[:depth] in self.sets:
                continue
            axis = self.cuts[path[:depth]]
            low, high = edges[axis]
            middle = (low + high) / 2
            edges[axis] = (low, middle) if side == "0" else (middle, high)
        return tuple(edges)

    def places(self, path: str, axis: int) -> frozenset[int]:
        """Return the levels that a bin holds, along an axis that is split into sets."""
        left = frozenset(range(self.levels[axis]))
        for depth, side in enumerate(path):
            if self.cuts[path[:depth]] == axis:
                upper = self.sets[path[:depth]]
                left = left & upper if side == "1" else left - upper
        return left

    def leaves(self) -> Iterator[str]:
        """Yield the bins of the partition, from low to high along each split."""
        pending = [""]
        while pending:
            path = pending.pop()
            if path in self.cuts:
                pending += [path + "1", path + "0"]
            else:
                yield path

    def cut(self, path: str, *, axis: int) -> "Partition":
        """Return the partition in which one leaf has become its two halves."""
        parents = all(path[:depth] in self.cuts for depth in range(len(path)))
        if path in self.cuts or not parents or not set(path) <= {"0", "1"}:
            raise ValueError(must("the bin to cut", "be a leaf", repr(path)))
        return replace(self, cuts={**self.cuts, path: axis})

    def to_table(self) -> dict[str, Any]:
        """Write the cuts and, if there are any, the sets, in a fixed order."""
        table: dict[str, Any] = {"cuts": dict(sorted(self.cuts.items()))}
        if self.sets:
            table["sets"] = {path: sorted(self.sets[path]) for path in sorted(self.sets)}
        if self.scales:
            table["scales"] = {
                str(axis): list(self.scales[axis][1:-1]) for axis in sorted(self.scales)
            }
        return table

    @classmethod
    def from_table(cls, levels: tuple[int, ...], cuts: Any, sets: Any) -> "Partition":
        """Read and check cuts and sets that came over the wire.

        levels (d,): of each axis that is split into sets, and 0 for the others.
        """
        known_levels = levels if any(levels) else ()
        partition = cls(len(levels), _checked_cuts(levels, cuts), known_levels)
        if not isinstance(sets, dict):
            raise malformed("sets", "map paths to lists of levels", type(sets).__name__)
        needed = {path for path, axis in partition.cuts.items() if levels[axis]}
        if needed != sets.keys():
            rule = "say for each bin that is split by levels, and no other, which go up"
            raise malformed("sets", rule, f"{len(sets)} for {len(needed)} such bins")
        known: dict[str, frozenset[int]] = {}
        for path in sorted(sets, key=len):
            listed, axis = sets[path], partition.cuts[path]
            left = replace(partition, sets=known).places(path, axis)
            if not isinstance(listed, list) or not all(type(each) is int for each in listed):
                raise malformed("sets", "map paths to lists of levels", "something else")
            upper = frozenset(listed)
            if listed != sorted(upper) or not upper < left or not upper:
                rule = "name, in order, some levels of a bin but not all of them"
                raise malformed(f"the set of bin {path!r}", rule, listed)
            known[path] = upper
        return replace(partition, sets=known)


def _checked_cuts(levels: tuple[int, ...], table: Any) -> dict[str, int]:
    """Check cuts: each parent before its children, no more bins and no finer ones than allowed."""
    dimension = len(levels)
    rule = f"map paths to axes below {dimension}, each parent before its children"
    too_fine = f"cuts must leave every edge at least 2^-{HALVINGS} long"
    if not isinstance(table, dict):
        raise malformed("cuts", rule, type(table).__name__)
    cuts: dict[str, int] = {}
    if len(table) >= MOST_BINS:
        raise malformed("cuts", f"make at most {MOST_BINS} bins", len(table) + 1)
    for path in sorted(table, key=len):
        axis = table[path]
        if len(path) >= MOST_DEPTH:
            raise malformed("cuts", f"make bins at most {MOST_DEPTH} splits deep", "more")
        known = path == "" or (path[:-1] in cuts and path[-1] in "01")
        if not known or type(axis) is not int or not 0 <= axis < dimension:
            raise malformed("cuts", rule, repr({path: axis}))
        cuts[path] = axis
        # A shorter path cannot have halved an edge so often.
        if len(path) >= HALVINGS and not levels[axis] and _halvings(cuts, path, axis) >= HALVINGS:
            raise WireError(Rejection.MALFORMED, too_fine)
    return cuts


def _halvings(cuts: Mapping[str, int], path: str, axis: int) -> int:
    """Return how often a bin's edge along an axis has been halved."""
    return sum(cuts[path[:depth]] == axis for depth in range(len(path)))


def longest_edges(box: Box) -> list[int]:
    """Return the axes of a box's longest edges (Algorithm 1, line 1: the set M_sj)."""
    lengths = [high - low for low, high in box]
    return [axis for axis, length in enumerate(lengths) if length == max(lengths)]


def max_edge_axis(box: Box, *, path: str, seed: int) -> int | None:
    """Draw one of the longest edges (Algorithm 1, line 1: k* = Unif(M_sj)).

    The draw depends only on the experiment's seed and on the bin. So a replay is identical, in
    whatever order bins are split. SHA-256 makes the draws of different bins independent for every
    practical purpose. It returns None for a bin that is too small to be split.
    """
    axes = longest_edges(box)
    low, high = box[axes[0]]
    if high - low <= 2.0**-HALVINGS:
        return None
    digest = hashlib.sha256(f"{seed}/{path}".encode()).digest()
    return axes[int.from_bytes(digest, "big") % len(axes)]
