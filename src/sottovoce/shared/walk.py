"""Which bin a point is in, found with the same work for every point.

``Partition.find`` walks down to a leaf, so that its time tells how deep the leaf lies. Here every
walk has as many steps as the deepest leaf is deep: a leaf leads to itself. All that a step needs is
worked out for the whole release at once, never for the bin of one person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sottovoce.shared.partition import Partition
from sottovoce.shared.release import Release


class _Node(NamedTuple):
    """One bin of the tree, split or not.

    axis: the feature along which it is split; -1 for a leaf.
    middle: where it is split.
    halves: the nodes that come next, the lower half first; a leaf comes next after itself.
    middles: the middle of each half along the axis.
    """

    axis: int
    middle: float
    halves: tuple[int, int]
    middles: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Walk:
    """The walks from the root to every leaf, all of the same length."""

    nodes: tuple[_Node, ...]
    paths: tuple[str, ...]
    steps: int

    def find(self, point: Sequence[float]) -> str:
        """Return the leaf that holds a point of [0, 1]^d."""
        nodes, node = self.nodes, 0
        for _ in range(self.steps):
            axis, middle, halves, _ = nodes[node]
            # A leaf has axis -1: it looks at the last feature, and stays whatever it sees.
            node = halves[point[axis] >= middle]
        return self.paths[node]

    def middle(self, point: Sequence[float], *, feature: int) -> float:
        """Return the middle, along one feature, of the leaf that holds a point."""
        nodes, node, found = self.nodes, 0, 0.5
        for _ in range(self.steps):
            axis, middle, halves, middles = nodes[node]
            upper = point[axis] >= middle
            node = halves[upper]
            found = (found, middles[upper])[axis == feature]
        return found


def walk_of(release: Release) -> Walk:
    """Return the walk of a release, worked out once."""
    if Walk not in release.derived:
        release.derived[Walk] = compile_walk(release.partition)
    found: Walk = release.derived[Walk]
    return found


def compile_walk(partition: Partition) -> Walk:
    """Work out every step of every walk."""
    paths, nodes = [""], list[_Node]()
    edges: list[dict[int, tuple[float, float]]] = [{}]  # of each node, where it was cut so far
    for node, path in enumerate(paths):  # which grows on the way
        axis = partition.cuts.get(path, -1)
        if axis < 0:
            nodes.append(_Node(-1, 0.5, (node, node), (0.5, 0.5)))
            continue
        low, high = edges[node].get(axis, (0.0, 1.0))
        middle, lower = (low + high) / 2, len(paths)
        middles = ((low + middle) / 2, (middle + high) / 2)
        nodes.append(_Node(axis, middle, (lower, lower + 1), middles))
        paths += [path + "0", path + "1"]
        edges += [{**edges[node], axis: (low, middle)}, {**edges[node], axis: (middle, high)}]
        edges[node] = {}  # its halves have their own
    return Walk(tuple(nodes), tuple(paths), steps=max(map(len, paths)))
