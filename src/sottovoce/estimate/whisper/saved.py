"""A board as JSON, and back to the same bits."""

from typing import Any

import numpy as np

from sottovoce.estimate.whisper.board import Board, begin, paths, roomy
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.places import CONTESTED, EVENTS, NODES, REPORTS, SMOOTHED
from sottovoce.shared.release import Release

_WHOLE = ("totals", "experience", "audit")


def board_to_table(board: Board) -> dict[str, Any]:
    """Write the rows in use. Where a node is cut follows from its box, and is left out."""
    table = {}
    for name, array in board._asdict().items():
        if name != "middle":
            table[name] = array[: _rows(board, name)].tolist()
    return table


def board_from_table(table: dict[str, Any], constants: Constants) -> Board:
    """Read a board; one that is incomplete or inconsistent raises ValueError or the like."""
    board = begin(constants)
    board.totals[:] = np.array(table["totals"], dtype=np.int64)
    if board.totals.min() < 0 or not board.totals[CONTESTED] <= board.totals[NODES] <= 2**24:
        raise ValueError("its totals are not counts")
    if board.totals[SMOOTHED] > board.totals[REPORTS]:
        raise ValueError("it has gone through its tree after its last report")
    board = roomy(board, constants)
    for name, array in board._asdict().items():
        if name == "middle":
            continue
        rows = _rows(board, name)
        came = np.array(table[name]).reshape((rows, *array.shape[1:]))
        entries = came.astype(array.dtype)
        if not np.isfinite(entries).all():
            raise ValueError(f"{name} must be finite")
        if rows and not (entries == came).all():
            raise ValueError(f"{name} must be of its kind")
        array[:rows] = entries
    nodes = int(board.totals[NODES])
    whole = board.child[:nodes]
    if (whole < 0).any() or (whole >= nodes).any() or (board.axis < 0).any():
        raise ValueError("its tree has branches that lead nowhere")
    for node in range(nodes):
        if board.child[node] != node:
            board.middle[node] = board.edges[node, board.axis[node]].mean()
    return board


def check_board(board: Board, release: Release) -> None:
    """Check that a board does not contradict itself or its release."""
    nodes, contested, events = (int(board.totals[each]) for each in (NODES, CONTESTED, EVENTS))
    names = paths(board)
    listed = board.contested[:contested]
    if (listed < 0).any() or (listed >= nodes).any():
        raise ValueError("its contested bins are not there")
    if sorted(names[node] for node in listed) != [policy.path for policy in release.contested]:
        raise ValueError("its contested bins are not those of its release")
    for node, path in enumerate(names):
        if board.depth[node] != len(path) or not board.live[node, board.pair[node]].all():
            raise ValueError("it has a bin that cannot be")
        if tuple(map(tuple, board.edges[node].tolist())) != release.partition.box(path):
            raise ValueError("its boxes are not those of its release")
        np.linalg.cholesky(board.prior_info[node])
    if (board.mass[:nodes] <= 0).any() or (board.mass[:nodes] > 1).any():
        raise ValueError("its shares of people must lie in (0, 1]")
    if (board.anew[1:nodes] <= 0).any() or (np.abs(board.away[:nodes]) > 2).any():
        raise ValueError("it has halves that cannot be those of their parents")
    if (board.outlook[:nodes, 0] <= 0).any() or board.audit[0] < 0:
        raise ValueError("its audit cannot be")
    if (board.ballots[:nodes] < 0).any() or (board.experience < 0).any():
        raise ValueError("its counts must not be negative")
    for _, _, node, axis, arm, winner, *_ in board.events[:events]:
        known = 0 <= node < nodes and -1 <= axis < board.edges.shape[1]
        arms = (arm, winner) if axis < 0 else ()
        if not known or not all(0 <= each < board.live.shape[1] for each in arms):
            raise ValueError("it has an event that cannot be")


def _rows(board: Board, name: str) -> int:
    if name in _WHOLE:
        return len(getattr(board, name))
    return int(board.totals[{"contested": CONTESTED, "events": EVENTS}.get(name, NODES)])
