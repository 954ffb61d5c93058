"""A board → what people see of it: the partition, the policy, the history and the certificates."""

from collections.abc import Sequence
from itertools import groupby

from sottovoce.estimate.history import Certificate, Cut, Dated, Elimination
from sottovoce.estimate.whisper.board import Board, paths
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.places import EVENTS
from sottovoce.estimate.whisper.rules import allowance
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, uniform


def partition_of(board: Board) -> Partition:
    """Return the tree."""
    names = paths(board)
    cuts = {
        path: int(board.axis[node]) for node, path in enumerate(names) if board.child[node] != node
    }
    return Partition(board.edges.shape[1], cuts)


def policies_of(board: Board, constants: Constants) -> tuple[BinPolicy, ...]:
    """Return the policy of each leaf, from low to high."""
    leaves = {path: node for node, path in enumerate(paths(board)) if board.child[node] == node}
    return tuple(policy_of(board, constants, node, path) for path, node in sorted(leaves.items()))


def policy_of(board: Board, constants: Constants, node: int, path: str) -> BinPolicy:
    """Return the policy of one leaf: champion and challenger, or every live arm if public."""
    offered = sorted({int(arm) for arm in board.pair[node]})
    live = [arm for arm in range(constants.arms) if board.live[node, arm]]
    if constants.public_arms:
        offered = live
    waiting = tuple(arm for arm in live if arm not in offered)
    return BinPolicy(path, tuple(offered), uniform(path, offered).propensities, waiting)


def history_of(board: Board, *, start: int = 0) -> tuple[Dated, ...]:
    """Return eliminations and cuts; arms that went from a bin at once are one event."""
    names = paths(board)
    rows = [[int(entry) for entry in row[:5]] for row in board.events[start : board.totals[EVENTS]]]
    dated = []
    for (reports, _, node, axis), group in groupby(rows, key=lambda row: tuple(row[:4])):
        arms = tuple(sorted(row[4] for row in group))
        event = Cut(names[node], axis) if axis >= 0 else Elimination(names[node], arms)
        dated.append(Dated(reports, event))
    return tuple(dated)


def certificates_of(
    board: Board, constants: Constants, arms: Sequence[str]
) -> tuple[Certificate, ...]:
    """Return the certificate of each dropped arm."""
    names = paths(board)
    return tuple(
        Certificate(
            release=int(row[1]),
            path=names[int(row[2])],
            dropped=arms[int(row[4])],
            winner=arms[int(row[5])],
            statistic=float(row[6]),
            boundary=float(row[7]),
            delta=allowance(constants, int(row[2])) if constants.certified else None,
        )
        for row in board.events[: board.totals[EVENTS]]
        if row[3] < 0
    )
