"""A board as JSON, and back to the same bits."""

from typing import Any

import numpy as np

from sottovoce.estimate.whisper.board import Board, begin, roomy
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.rules import CONTESTED, EVENTS, NODES

_WHOLE = ("totals", "experience")


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
    board = roomy(board, constants)
    for name, array in board._asdict().items():
        if name == "middle":
            continue
        rows = _rows(board, name)
        entries = np.array(table[name], dtype=array.dtype).reshape((rows, *array.shape[1:]))
        if not np.isfinite(entries).all():
            raise ValueError(f"{name} must be finite")
        array[:rows] = entries
    nodes = int(board.totals[NODES])
    whole = board.child[:nodes]
    if (whole < 0).any() or (whole >= nodes).any() or (board.axis < 0).any():
        raise ValueError("its tree has branches that lead nowhere")
    for node in range(nodes):
        if board.child[node] != node:
            board.middle[node] = board.edges[node, board.axis[node]].mean()
    return board


def _rows(board: Board, name: str) -> int:
    if name in _WHOLE:
        return len(getattr(board, name))
    return int(board.totals[{"contested": CONTESTED, "events": EVENTS}.get(name, NODES)])
