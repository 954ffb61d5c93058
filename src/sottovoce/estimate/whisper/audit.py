"""Does the policy do what the learner expects of it? The target's own people say so.

Bins that auxiliary data has settled are never compared again: nobody there gets another arm. But
some of the people who are served, in any bin, are asked nothing but how it went (``REWARD``). One
cell for everybody makes that a precise question even at a small ε, and it needs no experiment on
anyone. Where auxiliary data is about other people than it seems, they get less than was promised.

How many are asked is up to the learner. Somebody in a settled bin has nothing to tell of arms:
where nearly all bins are settled before it is clear whether rightly so, nearly all are asked.

Plain functions over the arrays of a ``Board``; the lab compiles them as they stand.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from sottovoce.estimate.diagnosis import LEAST, SURE
from sottovoce.estimate.whisper.answers import Floats
from sottovoce.estimate.whisper.places import ANSWERS, CHANCE, DELIVERED, NODES, PROMISED
from sottovoce.shared.shares import REWARD_SHARE, SHARES

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.board import Board
    from sottovoce.estimate.whisper.constants import Constants


def look_out(board: "Board", constants: "Constants", node: int, share: float, mean: Floats) -> None:
    """Write down what is expected in a bin: of its policy, and of an arm at random.

    share: of the target's people. mean (K,): g of each arm.
    """
    board.outlook[node, 0] = share
    board.outlook[node, 1] = of_policy(board, constants, node, mean)
    board.outlook[node, 2] = mean.mean()


def of_policy(board: "Board", constants: "Constants", node: int, mean: Floats) -> float:
    """Return the mean over the arms that people get: the pair, or all live ones if public."""
    if constants.public_arms:
        return float(np.sum(mean * board.live[node]) / np.sum(board.live[node]))
    return float(mean[board.pair[node, 0]] + mean[board.pair[node, 1]]) / 2.0


def audit(board: "Board", answers: float, total: float) -> None:
    """Set what people tell of their outcomes beside what was expected of the policy they had.

    total: the sum of their answers, each with mean 2r - 1 for a mean reward r.
    """
    people, policy, chance = 0.0, 0.0, 0.0
    for node in range(board.totals[NODES]):
        if board.child[node] == node:
            share = board.outlook[node, 0]
            people += share
            policy += share * board.outlook[node, 1]
            chance += share * board.outlook[node, 2]
    board.audit[ANSWERS] += answers
    board.audit[DELIVERED] += total / 2.0
    board.audit[PROMISED] += answers * policy / people
    board.audit[CHANCE] += answers * chance / people


def is_clear(board: "Board", constants: "Constants") -> bool:
    """Say whether the audit has come out, well or badly, as ``Audit`` of the diagnosis has it."""
    told = board.audit[ANSWERS]
    half = (board.audit[PROMISED] + board.audit[CHANCE]) / 2.0
    deviation = math.sqrt(told * constants.told_square) / 2.0
    clear: bool = told >= LEAST and abs(board.audit[DELIVERED] - half) >= SURE * deviation
    return clear


def to_ask(board: "Board", constants: "Constants") -> int:
    """Return how many people of SHARES are asked how it went.

    Until that is clear, as many more as people with nothing else to tell outnumber the others; in
    steps, for each change makes a new release.
    """
    if not constants.audited:
        return 0
    if is_clear(board, constants):
        return REWARD_SHARE
    nodes = board.totals[NODES]
    people = board.outlook[:nodes, 0] * (board.child[:nodes] == np.arange(nodes))
    settled = people * (board.pair[:nodes, 0] == board.pair[:nodes, 1])
    more = 2.0 * settled.sum() / people.sum() - 1.0
    return max(REWARD_SHARE, int(more * SHARES / REWARD_SHARE) * REWARD_SHARE)
