"""Where people are: the shares of all bins at once, and how well each is known.

The share of a bin and of its upper part, r, are estimated together for the whole tree, so that the
shares of all bins add up to 1:

    share of the upper part = r·share + d,    share of the lower part = (1 - r)·share - d,

with r as it was expected at the split, and d ~ N(0, share²·var(r)).
"""

from typing import Any, NamedTuple

import numpy as np

from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.joint import Branches, Evidence, solve
from sottovoce.estimate.whisper.state import Counts, Floats, State
from sottovoce.shared.whisper.tuning import HALF_DEVIATION, LEVEL_MASS_DEVIATION, MASS_LIMIT

_CERTAIN = 1e12
"""The precision of what is known for certain: everybody is in the root."""


class Whereabouts(NamedTuple):
    """Who is in each of N nodes, of one population.

    share: of all people. error: its standard error, as a share of it.
    upper: of the people of a node that is split, those in its upper part; 0 for a leaf.
    upper_error: its standard error.
    branches, evidence: what it was estimated from.
    """

    share: Floats
    error: Floats
    upper: Floats
    upper_error: Floats
    branches: Branches
    evidence: Evidence

    @property
    def spread(self) -> Floats:
        """The standard error of each share."""
        return self.share * self.error


def whereabouts(state: State, constants: Constants, m: int) -> Whereabouts:
    """Estimate the share of each node, for population m."""
    nodes = int(state.totals[0].nodes)
    child, depth = state.tree.child[:nodes], state.tree.depth[:nodes]
    upper, upper_error = _upper_parts(state, constants, m)
    kept, shift = np.ones(nodes), np.ones(nodes)
    for node in np.flatnonzero(child != np.arange(nodes)):
        part = child[node]
        kept[part], kept[part + 1] = 1.0 - upper[node], upper[node]
        shift[part] = -1.0
    expected = _expected(child, kept)
    precision, vector = _told(state, constants, m)
    split = 1.0 / np.maximum(expected * upper_error, 1e-9) ** 2
    evidence = Evidence(
        precision[:, None, None],
        vector[:, None, None],
        split[:, None, None],
        np.zeros((nodes, 1, 1)),
        np.zeros((nodes, 1, 1)),
    )
    branches = Branches(child, depth, kept, shift)
    everybody = np.full((1, 1), _CERTAIN)
    found = solve(branches, evidence, everybody, everybody)
    # A share is no less than a quarter of what was expected, whatever the noise says.
    share = np.maximum(found.sides[:, 0, 0], expected / MASS_LIMIT)
    share = _adding_up(child, share)
    error = np.sqrt(np.maximum(found.covariance[:, 0, 0], 0.0)) / share
    return Whereabouts(share, error, upper, upper_error, branches, evidence)


def covariance_with(people: Whereabouts, weights: Floats) -> Floats:
    """Return the covariance of each share with Σ weights·share over leaves, (N,)."""
    evidence = people.evidence._replace(sides=weights[:, None, None])
    certain, nothing = np.full((1, 1), _CERTAIN), np.zeros((1, 1))
    return solve(people.branches, evidence, certain, nothing).sides[:, 0, 0]


def _told(state: State, constants: Constants, m: int) -> tuple[Floats, Floats]:
    """Return what answers say of each share, in information form."""
    nodes = slice(int(state.totals[0].nodes))
    precision = state.mass_told.precision[nodes, m, 0].copy()
    vector = state.mass_told.vector[nodes, m, 0].copy()
    if constants.known[m]:
        chance = constants.behaviour[m]
        precision += state.rows_told.precision[nodes, m, 0] @ chance**2
        vector += state.rows_told.vector[nodes, m, 0] @ chance
    return precision, vector


def _upper_parts(state: State, constants: Constants, m: int) -> tuple[Floats, Floats]:
    """Return the share of the upper part of each node's people, and its standard error."""
    nodes = int(state.totals[0].nodes)
    child, mass = state.tree.child[:nodes], state.mass[:nodes, m]
    upper, error = np.zeros(nodes), np.ones(nodes)
    for node in np.flatnonzero(child != np.arange(nodes)):
        part, axis = child[node], state.tree.axis[node]
        upper[node] = mass[part + 1] / (mass[part] + mass[part + 1])
        first, levels = constants.axes.slots[axis], constants.axes.levels[axis]
        if levels == 0:
            told = 4.0 * _weight(state, constants, node, m, first, mass[node])
            error[node] = (1.0 / HALF_DEVIATION**2 + told) ** -0.5
            continue
        variance = [0.0, 0.0]
        for slot in range(first, first + levels):
            if state.holds[node, slot]:
                deviation = LEVEL_MASS_DEVIATION * state.level_mass[node, m, slot]
                told = _weight(state, constants, node, m, slot, mass[node])
                side = int(state.upper[node, slot])
                variance[side] += 1.0 / (1.0 / max(deviation, 1e-6) ** 2 + told)
        error[node] = min(variance) ** 0.5
    return upper, error


def _weight(
    state: State, constants: Constants, node: Any, m: int, slot: int, share: float
) -> float:
    """Return the precision with which answers tell of a bin's part."""
    chances = constants.behaviour[m] if constants.known[m] else np.full(constants.arms, 1.0)
    if not constants.known[m]:
        chances = chances / constants.arms
    rows = state.rows_told.precision[node, m, 1 + slot]
    told = state.mass_told.precision[node, m, 1 + slot] + rows @ chances**2
    return float(share**2 * told)


def _expected(child: Counts, kept: Floats) -> Floats:
    """Return the shares that follow from the parts alone."""
    expected = np.ones(len(child))
    for node in np.flatnonzero(child != np.arange(len(child))):
        for part in (child[node], child[node] + 1):
            expected[part] = expected[node] * kept[part]
    return expected


def _adding_up(child: Counts, share: Floats) -> Floats:
    """Return shares of which those of two parts add up to that of their node, and 1 in all."""
    share = share.copy()
    share[0] = 1.0
    for node in np.flatnonzero(child != np.arange(len(child))):
        parts = slice(child[node], child[node] + 2)
        share[parts] *= share[node] / share[parts].sum()
    return share
