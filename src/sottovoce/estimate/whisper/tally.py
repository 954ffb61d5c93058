"""Tallies: answers added up as they come, and handed over to the state at each step."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.whisper.measurement import Answers, add_answers
from sottovoce.estimate.whisper.state import Counts, Floats
from sottovoce.shared.whisper.cells import CellMechanism
from sottovoce.shared.whisper.questions import ALL_BINS

if TYPE_CHECKING:
    from sottovoce.estimate.whisper.constants import Constants
    from sottovoce.estimate.whisper.state import State

MECHANISM = np.dtype(
    [
        ("cells", "i8"),
        ("set_size", "i8"),
        ("signal", "f8"),
        ("contains", "f8"),
        ("noise", "f8"),
        ("inside", "f8"),
        ("variance", "f8"),
        ("parts", "i8"),
        ("elsewhere", "?"),
    ],
    align=True,
)
"""What the rules need of a ``CellMechanism``, so that it compiles."""


def mechanism_record(cells: CellMechanism) -> Any:
    """Return a mechanism as a record of MECHANISM."""
    of = cells.mechanism
    numbers = (of.cells, of.size, of.signal, of.contains, of.noise, of.inside, of.variance)
    return np.array((*numbers, cells.parts, cells.elsewhere), MECHANISM).view(np.recarray)[()]


class Tally(NamedTuple):
    """All answers of one population to one question, added up.

    C whole cells, N cells of the mechanism. A columns: one, or K where arms are public and each
    answer is about the arm that its ranking gives.

    axis: what the question is about; -1 for whole bins.
    row: of the Hadamard matrix, if the axis has levels without order.
    asked (C, A): how many were asked. sums (N, A): the sums of their values.
    named (N, A): how often a cell was in the set, whatever its sign.
    """

    population: int
    axis: int
    row: int
    asked: NDArray[Any]
    sums: NDArray[Any]
    named: NDArray[Any]


def hand_over(
    state: "State",
    constants: "Constants",
    mechanism: Any,
    question: Any,
    tally: Tally,
    cells: Counts,
    told: Floats,
) -> None:
    """Add a tally to what is known of the bins.

    cells (C, 3): the node of each whole cell, or -1 if its bin is no longer there, or no longer
        contested and the question is about arms; and the two arms that were on offer there, of a
        settled bin the same twice; of a cell with an arm of its own, that arm first.
    told (C, 2): how many of its people tell of their outcome, by the caps of these arms, if they
        are thinned; and how many get the first arm.
    """
    votes = constants.certified and question.kind == 0
    votes = votes and tally.axis < 0 and tally.population == 0
    parts = mechanism.parts
    if tally.population > 0 and state.totals[0].misled:
        return
    for cell in range(len(cells)):
        node, first, second = cells[cell]
        if node < 0:
            continue
        for column in range(tally.asked.shape[1]):
            asked = float(tally.asked[cell, column])
            if asked == 0.0:
                continue
            sums = tally.sums[parts * cell : parts * (cell + 1), column]
            if votes:
                named, balance = int(tally.named[cell, column]), int(sums[0])
                state.votes[node, first, second] += (named + balance) // 2
                state.votes[node, second, first] += (named - balance) // 2
            arm = column if question.ranked else first
            share = told[cell, 0] if question.thinned else 1.0
            chance = told[cell, 1] if question.cells == ALL_BINS else 0.5
            where = node, tally.population, tally.axis, tally.row, arm, second
            answers = Answers(*where, asked, sums, share, chance)
            add_answers(state, constants, mechanism, question, answers)


def worth(constants: "Constants", target: float, variance: float, logged: bool) -> float:
    """Return how many served target users one report is worth when two arms are compared.

    target, variance: of the mechanism of the target's people, and of the report's. A logged row
    has each arm with chance 1/K or so, a person 1/2 (or 1/K, where arms are public); and arms that
    have a cell each are compared with the noise of both.
    """
    if not logged or constants.arms == 2:
        return target / variance
    compared = constants.arms if constants.public_arms else 2  # arms on offer to people
    return target / variance * compared / constants.arms**2


def credit(
    state: "State",
    constants: "Constants",
    target: float,
    variance: float,
    logged: bool,
    reports: int,
) -> None:
    """Count what reports of others are worth, in target users, for how long arms are compared."""
    unit = worth(constants, target, variance, logged)
    if logged:
        state.totals[0].rows_paid += unit * reports
    else:
        state.totals[0].paid += unit * reports
