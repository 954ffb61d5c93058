"""A partition as arrays over the nodes of a binary tree, in the state of a learner.

S nodes at most, d features. Node 0 is the root; children come after their parents. A state has its
tree as ``tree``, the number of live arms or the arms themselves as ``live``, and in ``totals`` how
many nodes there are and how many of them are contested.

Plain functions. Learners call them as they are, and the lab compiles some as they stand.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.partition import MOST_BINS, MOST_DEPTH, Partition

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Tree(NamedTuple):
    """The bins."""

    axis: Counts  # (S,) the feature along which a node is split
    middle: Floats  # (S,) where it is split; infinity for a leaf
    child: Counts  # (S,) its lower half; the upper half is the next node; a leaf is its own child
    depth: Counts  # (S,)
    edges: Floats  # (S, d, 2) its box


def new_tree(nodes: int, dimension: int) -> Tree:
    """Return a tree of one bin, the whole cube, with room for so many nodes."""
    edges = np.zeros((nodes, dimension, 2))
    edges[0] = [0.0, 1.0]
    return Tree(
        axis=np.zeros(nodes, dtype=np.int64),
        middle=np.full(nodes, np.inf),
        child=np.arange(nodes),
        depth=np.zeros(nodes, dtype=np.int64),
        edges=edges,
    )


def midpoint(tree: Tree, node: int, axis: int) -> float:
    """Return the middle of a bin along an axis."""
    middle: float = (tree.edges[node, axis, 0] + tree.edges[node, axis, 1]) / 2.0
    return middle


def split_node(tree: Tree, node: int, axis: int, lower: int) -> None:
    """Split a leaf at its midpoint; ``lower`` and the next node become its halves."""
    middle = midpoint(tree, node, axis)
    tree.axis[node], tree.middle[node], tree.child[node] = axis, middle, lower
    for side in range(2):
        tree.depth[lower + side] = tree.depth[node] + 1
        for j in range(tree.edges.shape[1]):
            for end in range(2):
                tree.edges[lower + side, j, end] = tree.edges[node, j, end]
        tree.edges[lower + side, axis, 1 - side] = middle


def may_split(state: Any, node: int) -> bool:
    """Say whether devices would follow a release with this bin split: deep trees slow them down.

    Each split makes two nodes more, and one bin more.
    """
    bins = (state.totals[0].nodes + 1) // 2
    may: bool = state.tree.depth[node] < MOST_DEPTH and bins < MOST_BINS
    return may


def leaf_of(tree: Tree, point: Floats) -> int:
    """Return the leaf that holds a point."""
    node = 0
    while tree.child[node] != node:
        node = tree.child[node] + (point[tree.axis[node]] >= tree.middle[node])
    return node


def has_room(state: Any) -> bool:
    """Say whether every contested bin can be split."""
    totals = state.totals[0]
    room: bool = totals.nodes + 2 * totals.contested <= len(state.live)
    return room


def node_paths(state: Any) -> list[str]:
    """Name each node by its path from the root."""
    paths = [""] * int(state.totals[0].nodes)
    for node, path in enumerate(paths):
        # Children come after their parents, so the parent's path is known by now.
        child = state.tree.child[node]
        if child != node:
            paths[child], paths[child + 1] = path + "0", path + "1"
    return paths


def partition_of(tree: Tree, paths: Sequence[str]) -> Partition:
    """Return the tree as a release has it."""
    inner = [node for node in range(len(paths)) if tree.child[node] != node]
    return Partition(tree.edges.shape[1], {paths[node]: int(tree.axis[node]) for node in inner})


def leaves_of(tree: Tree, paths: Sequence[str]) -> list[int]:
    """Return the leaves, from low to high along each split."""
    leaves = [node for node in range(len(paths)) if tree.child[node] == node]
    return sorted(leaves, key=paths.__getitem__)


def copy_into(larger: Any, state: Any) -> None:
    """Copy all arrays of a state into those of a larger one; tuples within tuples, too.

    They may be longer along any of their axes, and hold what they held at the same places.
    """
    for new, old in zip(larger, state, strict=True):
        if isinstance(old, tuple):
            copy_into(new, old)
        else:
            new[tuple(slice(size) for size in old.shape)] = old
