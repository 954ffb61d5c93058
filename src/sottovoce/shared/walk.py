"""Which bin a point is in, found with the same work for every point.

``Partition.find`` walks down to a leaf, so that its time tells how deep the leaf lies. Here every
walk has as many steps as the deepest leaf is deep: a leaf leads to itself. All that a step needs is
worked out for the whole release at once, never for the bin of one person.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.shared.release import BinPolicy, Release


@dataclass(frozen=True, slots=True)
class Walk:
    """The walks from the root to every leaf, all of the same length.

    Node 0 is the root. Arrays of plain numbers lie close together in memory: a node that nobody has
    been to for a while takes hardly longer to read than one that everybody passes.

    axis: the axis along which each node is split; -1 for a leaf.
    look: the axis to look at; the first one in a leaf.
    middle: where it is split; infinity for a leaf, and for a node that is split by levels.
    levels: how many levels its axis has, if it is split by levels; otherwise 0.
    upper: the levels of its upper part, a bit for each, eight in a byte; one byte of 0 if it is not
        split by levels. Each byte is as quick to read as the first.
    child: its lower part, and the upper part is the next node; a leaf is its own child.
    lower, higher: the middles of its lower and of its upper half along the axis.
    root: the middle of the whole space along each axis.
    policies: the policy of each leaf; for other nodes, that of some leaf.
    """

    axis: Sequence[int]
    look: Sequence[int]
    middle: Sequence[float]
    levels: Sequence[int]
    upper: Sequence[bytes]
    child: Sequence[int]
    lower: Sequence[float]
    higher: Sequence[float]
    root: Sequence[float]
    policies: tuple[BinPolicy, ...]
    steps: int

    def find(self, point: Sequence[float]) -> BinPolicy:
        """Return the policy of the leaf that holds a point of [0, 1]^d."""
        look, middle, child, node = self.look, self.middle, self.child, 0
        levels, upper = self.levels, self.upper
        for _ in range(self.steps):
            # In a leaf every position is below infinity, and the next node is the same leaf.
            position = point[look[node]]
            level = int(position * levels[node])
            goes_up = upper[node][level >> 3] >> (level & 7) & 1
            node = child[node] + (goes_up | (position >= middle[node]))
        return self.policies[node]

    def middle_of_leaf(self, point: Sequence[float], *, axis: int) -> float:
        """Return the middle, along one axis, of the leaf that holds a point."""
        look, middle, child, node = self.look, self.middle, self.child, 0
        levels, upper = self.levels, self.upper
        found, lower, higher = self.root[axis], self.lower, self.higher
        for _ in range(self.steps):
            position, half = point[look[node]], middle[node]
            level = int(position * levels[node])
            goes_up = upper[node][level >> 3] >> (level & 7) & 1 | (position >= half)
            middles = (lower[node], higher[node])  # both are read, whoever walks
            found = (found, middles[goes_up])[self.axis[node] == axis]
            node = child[node] + goes_up
        return found


def walk_of(release: Release) -> Walk:
    """Return the walk of a release, worked out once."""
    if Walk not in release.derived:
        release.derived[Walk] = _compile(release)
    found: Walk = release.derived[Walk]
    return found


def _compile(release: Release) -> Walk:
    """Work out every step of every walk."""
    paths = [""]
    axis, look, child = array("h"), array("h"), array("l")
    middle, lower, higher, levels = array("d"), array("d"), array("d"), array("h")
    upper: list[bytes] = []
    partition = release.partition
    edges: list[dict[int, tuple[float, float]]] = [{}]  # of each node, where it was cut so far
    for node, path in enumerate(paths):  # which grows on the way
        cut, above = partition.cuts.get(path, -1), partition.sets.get(path)
        low, high = edges[node].get(cut, (0.0, 1.0))
        half = (low + high) / 2
        axis.append(cut)
        look.append(max(cut, 0))
        on_axis = partition.position(look[node], half)
        middle.append(math.inf if cut < 0 or above is not None else on_axis)
        levels.append(0 if above is None else partition.levels[cut])
        upper.append(_bits(above or frozenset(), levels[node]))
        child.append(node if cut < 0 else len(paths))
        lower.append(partition.position(look[node], (low + half) / 2))
        higher.append(partition.position(look[node], (half + high) / 2))
        if cut >= 0:
            paths += [path + "0", path + "1"]
            parts = [(low, half), (half, high)] if above is None else [(low, high)] * 2
            edges += [{**edges[node], cut: edge} for edge in parts]
        edges[node] = {}  # its halves have their own
    steps = max(map(len, paths))
    policies = tuple(release.policies.get(path, release.bins[0]) for path in paths)
    root = tuple(partition.position(each, 0.5) for each in range(partition.dimension))
    return Walk(axis, look, middle, levels, upper, child, lower, higher, root, policies, steps)


def _bits(levels: frozenset[int], count: int) -> bytes:
    """Write a set of levels as bits. The last level has one bit more, for the position 1."""
    bits = sum(1 << level for level in levels) | (count - 1 in levels) << count
    return bits.to_bytes(count // 8 + 1, "little")
