"""All bins at once: one Gaussian model over the tree, solved exactly for means and functionals.

The unknowns are a vector x for each node, K numbers, and a vector s for each split:

    x of a part = kept·c + shift·s,   c = x of its parent + N(0, loose)

Answers measure the x of the node that was a bin when they came. What is known of each s is given.
``solve`` eliminates from the leaves upwards and substitutes back (a block Cholesky factorisation),
so that its work grows with the number of nodes. It does so for all nodes of one depth at a time.

Besides the information vector, further columns may stand on the right-hand side. With w a linear
functional Σ w·x over leaves, the column of w comes back as the covariance of each x with it; its
variance is Σ w·(that).
"""

from typing import NamedTuple

import numpy as np

from sottovoce.estimate.whisper.state import Counts, Floats


class Branches(NamedTuple):
    """How the nodes hang together, N of them; parts come after their parents."""

    child: Counts  # (N,) the lower part, and the upper is the next node; a leaf is its own child
    depth: Counts  # (N,)
    kept: Floats  # (N,) of what a part has of its parent's x
    shift: Floats  # (N,) how many s of the split it is away from it


class Evidence(NamedTuple):
    """What is known of each node by itself, in information form, with R right-hand sides.

    own, sides: of x, (N, K, K) and (N, K, R).
    split, split_sides: of s, for nodes that are split.
    loose: (N, K, K) the covariance of what parts do not take over from their parent.
    """

    own: Floats
    sides: Floats
    split: Floats
    split_sides: Floats
    loose: Floats


def with_functional(evidence: Evidence, weights: Floats) -> Evidence:
    """Return evidence with one more right-hand side: a linear functional Σ w·x, weights (N, K)."""
    sides = np.concatenate([evidence.sides, weights[:, :, None]], axis=2)
    none = np.zeros_like(weights)[:, :, None]
    split_sides = np.concatenate([evidence.split_sides, none], axis=2)
    return evidence._replace(sides=sides, split_sides=split_sides)


def inverse_of(matrix: Floats) -> Floats:
    """Return the inverse of a matrix, or of each of some."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


class Solution(NamedTuple):
    """For each node: the solutions of all right-hand sides (N, K, R), and the covariance of x."""

    sides: Floats
    covariance: Floats


class _Upwards(NamedTuple):
    """What is kept of the way up, to substitute back: see ``_gather``."""

    across: Floats
    inverse: Floats
    split_sides: Floats
    centre: Floats
    centre_sides: Floats
    error: Floats


def solve(branches: Branches, evidence: Evidence, prior: Floats, prior_sides: Floats) -> Solution:
    """Solve for all nodes; prior (K, K) and prior_sides (K, R): of the root's x."""
    child, nodes = branches.child, len(branches.child)
    _, size, columns = evidence.sides.shape
    own, sides = evidence.own.copy(), evidence.sides.copy()
    inner = child != np.arange(nodes)
    layers = [
        np.flatnonzero(inner & (branches.depth == depth))
        for depth in range(int(branches.depth.max()) + 1)
    ]
    zeros, flat = np.zeros((nodes, size, size)), np.zeros((nodes, size, columns))
    up = _Upwards(zeros, zeros.copy(), flat, zeros.copy(), flat.copy(), zeros.copy())
    for at in reversed(layers):
        if len(at):
            _gather(branches, evidence, own, sides, up, at)
    covariance, found = np.zeros_like(zeros), np.zeros_like(flat)
    covariance[0] = np.linalg.inv(own[0] + prior)
    found[0] = covariance[0] @ (sides[0] + prior_sides)
    for at in layers:
        if len(at):
            _hand_down(branches, found, covariance, up, at)
    return Solution(found, covariance)


def _gather(
    branches: Branches, evidence: Evidence, own: Floats, sides: Floats, up: _Upwards, at: Counts
) -> None:
    """Eliminate s and c of some nodes: what their parts know becomes knowledge of their x."""
    split, split_sides = evidence.split[at], evidence.split_sides[at]
    across, centre_sides = np.zeros_like(split), np.zeros_like(split_sides)
    centre = np.zeros_like(split)
    for side in range(2):
        part = branches.child[at] + side
        kept, shift = (each[part, None, None] for each in (branches.kept, branches.shift))
        centre = centre + kept**2 * own[part]
        across = across + kept * shift * own[part]
        split = split + shift**2 * own[part]
        centre_sides = centre_sides + kept * sides[part]
        split_sides = split_sides + shift * sides[part]
    inverse = np.linalg.inv(split)
    centre = centre - across @ inverse @ across
    centre_sides = centre_sides - across @ inverse @ split_sides
    # Of the error e of c, given x: (C + loose⁻¹)⁻¹ = (I + loose·C)⁻¹·loose, which may be 0.
    loose = evidence.loose[at]
    error = np.linalg.solve(np.eye(loose.shape[1]) + loose @ centre, loose)
    up.across[at], up.inverse[at], up.split_sides[at] = across, inverse, split_sides
    up.centre[at], up.centre_sides[at], up.error[at] = centre, centre_sides, error
    own[at] += centre - centre @ error @ centre
    sides[at] += centre_sides - centre @ error @ centre_sides


def _hand_down(
    branches: Branches, found: Floats, covariance: Floats, up: _Upwards, at: Counts
) -> None:
    """Substitute back: from the x of some nodes to c, s, and the x of their parts."""
    error, across, inverse, known = up.error[at], up.across[at], up.inverse[at], up.centre[at]
    centre = found[at] + error @ (up.centre_sides[at] - known @ found[at])
    keeps = np.eye(known.shape[1]) - error @ known
    of_centre = keeps @ covariance[at] @ keeps.transpose(0, 2, 1) + error
    split = inverse @ (up.split_sides[at] - across @ centre)
    of_both = -of_centre @ across @ inverse
    of_split = inverse - inverse @ across @ of_both
    for side in range(2):
        part = branches.child[at] + side
        kept, shift = (each[part, None, None] for each in (branches.kept, branches.shift))
        found[part] = kept * centre + shift * split
        both = kept * shift * (of_both + of_both.transpose(0, 2, 1))
        covariance[part] = kept**2 * of_centre + shift**2 * of_split + both
