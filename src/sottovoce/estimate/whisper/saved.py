"""A state as JSON, and back to the same bits."""

from typing import Any

import numpy as np

from sottovoce.estimate.gain import check_gain
from sottovoce.estimate.tree import node_paths
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.split import inherit_slots
from sottovoce.estimate.whisper.state import TOTALS, State, arrays_of, initial_state, with_room
from sottovoce.shared.release import Release
from sottovoce.shared.scale import STRETCHES, position_at

_DERIVED = "tree.middle"
"""Where a node is split follows from its box, and is left out."""


_GAIN = "gain."


def state_to_table(state: State) -> dict[str, Any]:
    """Write the rows in use."""
    measured = state.gain.share[0] > 0  # without a baseline there is nothing to say of it
    return {
        name: array[: _rows(state, name)].tolist()
        for name, array in arrays_of(state)
        if name != _DERIVED and (measured or not name.startswith(_GAIN))
    }


def state_from_table(table: dict[str, Any], fixed: Constants) -> State:
    """Read a state; one that is incomplete or inconsistent raises ValueError or the like."""
    state = initial_state(fixed)
    (totals,) = table["totals"]
    state.totals[0] = tuple(totals)
    counts = state.totals[0]
    if min(counts[name] for name in TOTALS.names or () if TOTALS[name].kind == "i") < 0:
        raise ValueError("its totals are not counts")
    if not counts.contested <= counts.nodes <= 2**24:
        raise ValueError("its totals are not counts")
    if counts.smoothed > counts.reports:
        raise ValueError("its tree was smoothed after its last report")
    state = with_room(state, fixed)
    for name, array in arrays_of(state):
        if name != _DERIVED and (fixed.gain.measured or not name.startswith(_GAIN)):
            _fill(name, array[: _rows(state, name)], table[name])
    nodes, tree = int(state.totals[0].nodes), state.tree
    child = tree.child[:nodes]
    if (child < 0).any() or (child >= nodes).any() or (tree.axis < 0).any():
        raise ValueError("its tree has branches that lead nowhere")
    for node in range(nodes):
        if child[node] != node:
            # A bin that is split by levels has no middle.
            levels = fixed.axes.levels[tree.axis[node]]
            place = tree.edges[node, tree.axis[node]].mean()
            on_axis = position_at(state.scale[tree.axis[node]], place)
            tree.middle[node] = np.inf if levels else on_axis
    return state


def _fill(name: str, array: Any, came: Any) -> None:
    """Copy numbers that were read into an array, or into each field of an array of records."""
    if array.dtype.names:
        rows = [tuple(row) for row in came]
        if len(rows) != len(array):
            raise ValueError(f"{name} must have {len(array)} rows")
        for field, column in zip(array.dtype.names, zip(*rows, strict=True), strict=bool(rows)):
            _fill(f"{name}.{field}", array[field], column)
        return
    values = np.array(came).reshape(array.shape)
    with np.errstate(invalid="ignore"):  # an infinite count becomes some other, and is refused
        entries = values.astype(array.dtype)
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} must be finite")
    if len(array) and not (entries == values).all():
        raise ValueError(f"{name} must be of its kind")
    array[:] = entries


def check_state(state: State, release: Release) -> None:
    """Check that a state does not contradict itself or its release."""
    totals = state.totals[0]
    nodes, paths = int(totals.nodes), node_paths(state)
    listed = state.contested[: totals.contested]
    if (listed < 0).any() or (listed >= nodes).any():
        raise ValueError("its contested bins are not there")
    if sorted(paths[node] for node in listed) != [policy.path for policy in release.contested]:
        raise ValueError("its contested bins are not those of its release")
    _check_slots(state, constants(release.experiment))
    check_gain(state.gain, constants(release.experiment).gain, float(totals.target))
    for node, path in enumerate(paths):
        if state.tree.depth[node] != len(path) or not state.live[node, state.pair[node]].all():
            raise ValueError("it has a bin that cannot be")
        if tuple(map(tuple, state.tree.edges[node].tolist())) != release.partition.edges(path):
            raise ValueError("its boxes are not those of its release")
        slots = np.concatenate([[True], state.holds[node]])
        np.linalg.cholesky(state.prior.precision[node][slots])
    if (state.mass[:nodes] <= 0).any() or (state.mass[:nodes] > 1).any():
        raise ValueError("its shares of people must lie in (0, 1]")
    if (state.effect_variance[:nodes] < 0).any() or (np.abs(state.shift[:nodes]) > 2).any():
        raise ValueError("it has parts that cannot be those of their parents")
    if (state.level_mass[:nodes] < 0).any() or (state.level_mass[:nodes] > 1).any():
        raise ValueError("its shares of levels must lie in [0, 1]")
    if (np.diff(state.scale) <= 0).any() or (state.scale_told.precision < 0).any():
        raise ValueError("its scales must rise")
    even = np.arange(STRETCHES + 1) / STRETCHES
    if (state.scale[state.scaled_since == 0] != even).any():
        raise ValueError("its scales are not those of its release")
    if (state.relevance <= 0).any() or (state.relevance > 1).any():
        raise ValueError("its relevances must lie in (0, 1]")
    if (state.forecast.share[:nodes] <= 0).any() or totals.audit_answers < 0:
        raise ValueError("its audit cannot be")
    if (state.bias[:nodes] < 0).any() or totals.verdict != 0:
        raise ValueError("its belief in others cannot be")
    if not 1 <= totals.first_release <= totals.release or totals.rows_paid < 0:
        raise ValueError("its first release cannot be")
    if state.live[:nodes, constants(release.experiment).retired].any():
        raise ValueError("it has an arm that was retired")
    if (state.entered[:nodes] < 0).any() or (state.place[:nodes] < 0).any():
        raise ValueError("its arms cannot have come when it says")
    if (state.place[:nodes] > totals.places).any() or totals.amended > totals.reports:
        raise ValueError("its arms cannot have come when it says")
    if (state.votes[:nodes] < 0).any() or min(totals.paid, totals.target) < 0:
        raise ValueError("its counts must not be negative")
    for event in state.events[: totals.events]:
        known = 0 <= event.node < nodes and -1 <= event.axis < release.partition.dimension
        arms = (event.arm, event.winner) if event.axis < 0 else ()
        if not known or not all(0 <= each < state.live.shape[1] for each in arms):
            raise ValueError("it has an event that cannot be")


def _check_slots(state: State, fixed: Constants) -> None:
    """Check that people of each bin can differ in the slots that its splits have left."""
    given = state.holds.copy()
    state.holds[0] = True
    for node in range(state.totals[0].nodes):
        for side in range(2 if state.tree.child[node] != node else 0):
            part = state.tree.child[node] + side
            inherit_slots(state, fixed, node, part, state.tree.axis[node], side)
    if (state.holds != given).any():
        raise ValueError("it has a bin whose people cannot differ as it says")


def _rows(state: State, name: str) -> int:
    totals = state.totals[0]
    counts = {"totals": 1, "contested": totals.contested, "events": totals.events}
    if name in (
        "relevance",
        "ask",
        "promised",
        "scale",
        "scaled",
        "scaled_since",
        "thresholds",
        "scale_told.precision",
        "scale_told.vector",
    ) or name.startswith(_GAIN):  # of axes and populations, not of nodes
        return len(dict(arrays_of(state))[name])
    return int(counts.get(name, totals.nodes))
