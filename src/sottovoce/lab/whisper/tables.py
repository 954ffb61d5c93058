"""What the kernel needs beside the board: mechanisms by number of cells, and waiting answers."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.whisper.board import Board
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.questions import Kind, law, reward_mechanism
from sottovoce.shared.subset import SignedSubset

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

CELLS, SIZE, SIGNAL, CONTAINS, NOISE, INSIDE, VARIANCE, HALVES, ELSEWHERE = range(9)


@lru_cache(maxsize=64)
def laws(epsilon: float, cells: int, *, may_halve: bool) -> Floats:
    """Return the devices' own mechanism for each number of whole cells up to ``cells``.

    (cells + 1, 9); row 0, nothing contested, stays empty.
    """
    table = np.zeros((cells + 1, 9))
    for whole in range(1, cells + 1):
        one = law(epsilon, whole, may_halve=may_halve)
        table[whole] = _row(one.mechanism, halves=one.halves, elsewhere=one.elsewhere)
    return table


def reward_law(experiment: Experiment) -> Floats:
    """Return the mechanism for people who are asked how it went, as a row of ``laws``."""
    return np.array(_row(reward_mechanism(experiment), halves=False, elsewhere=False))


def _row(mechanism: SignedSubset, *, halves: bool, elsewhere: bool) -> list[float]:
    return [
        *(mechanism.cells, mechanism.size, mechanism.signal, mechanism.contains),
        *(mechanism.noise, mechanism.inside, mechanism.variance, halves, elsewhere),
    ]


class Answers(NamedTuple):
    """Answers since the last step, added up.

    Q questions (kind, feature), C cells at most.
    """

    sums: Floats  # (Q, C)
    asked: Counts  # (Q,) how many answers to each
    named: Floats  # (C,) answers to the plain contrast that name the cell
    told: Floats  # (2,) answers of people who were asked how it went, and their sum
    first: Counts  # (S, 2) the first cell of each contested node: of whole bins, and by arm
    order: Counts  # (C,) scratch: the cells in order
    picks: Counts  # (C,) scratch
    single: Floats  # (C,) scratch: the answer of one person


class Crowd(NamedTuple):
    """The learner and the people of one run."""

    board: Board
    answers: Answers


class Fixed(NamedTuple):
    """What stands still while people of one population come."""

    constants: Constants
    laws: Floats  # (cells + 1, 9) the mechanisms of the population
    target_laws: Floats  # (cells + 1, 9) the mechanisms of the target
    reward_law: Floats  # (9,) the mechanism of people who are asked how it went
    ranking: Counts  # (K,) scratch: the arms, in order when a block begins


def answers(board: Board, constants: Constants) -> Answers:
    """Return room for the answers about every node of a board."""
    nodes, questions = len(board.axis), len(Kind) * (1 + constants.dimension)
    cells = 2 * nodes * constants.arms + 1
    return Answers(
        sums=np.zeros((questions, cells)),
        asked=np.zeros(questions, dtype=np.int64),
        named=np.zeros(cells),
        told=np.zeros(2),
        first=np.zeros((nodes, 2), dtype=np.int64),
        order=np.arange(cells),
        picks=np.zeros(cells, dtype=np.int64),
        single=np.zeros(cells),
    )
