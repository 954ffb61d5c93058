"""Which kind of question a coin asks, and a person's own cell and value.

``asked_kind`` and ``own_cell`` are plain functions of plain numbers. The device calls them, and the
lab compiles them as they stand: a simulated person answers as a device would.
"""

from collections.abc import Sequence

from sottovoce.device.method import Secret
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import level_at
from sottovoce.shared.release import Release
from sottovoce.shared.walk import walk_of
from sottovoce.shared.whisper.axes import pattern_sign, slots_of
from sottovoce.shared.whisper.cells import CellLayout
from sottovoce.shared.whisper.questions import ONE, SIGNED_OUTCOME, Entry, Question, questions_of
from sottovoce.shared.whisper.thresholds import THRESHOLDS
from sottovoce.shared.whisper.tuning import (
    ASK,
    LOGGED_FEATURE_SHARE,
    LOGGED_FEATURE_SHARE_APART,
    SHARES,
)


def asked_kind(kinds: Sequence[int], bounds: Sequence[int], coin: int) -> int:
    """Return the kind that a coin asks: the first of the menu whose bound is above it."""
    index = 0
    while coin >= bounds[index]:
        index += 1
    return kinds[index]


def asked_axis(ask: Sequence[int], coin: int) -> int:
    """Return the axis that a coin of 0 … sum(ask) - 1 asks about; -1, the first, for none."""
    axis = -1
    while coin >= ask[1 + axis]:
        coin -= ask[1 + axis]
        axis += 1
    return axis


def whole_share_of_rows(parts: int, elsewhere: bool, whole: int) -> int:
    """Return how many logged rows are asked about no axis, beside ASK - whole about one.

    In a jump-start nobody waits for the arms to be compared, and bins are split by what axes show.
    So at a small ε, where one question takes the place of another, most are asked about an axis;
    at a larger one, a quarter at least.
    """
    if parts == 2:
        return 0
    least = LOGGED_FEATURE_SHARE_APART if elsewhere else LOGGED_FEATURE_SHARE
    return min(whole, (ASK - whole) * (SHARES - least) // least)


def part_and_sign(position: float, middle: float, levels: int, row: int) -> tuple[int, int]:
    """Return a person's part of the bin along an axis, and the sign of that part.

    middle: of the bin, along an axis with an order. levels: of one without order, otherwise 0.
    row: of the Hadamard matrix whose signs the levels have.
    """
    if levels > 0:
        level = level_at(position, levels)
        return level, pattern_sign(row, level)
    half = int(position >= middle)
    return half, 2 * half - 1


def told_of_place(position: float, threshold: float) -> float:
    """Return whether a position is at or above a threshold, as 1 or -1."""
    return 2.0 * (position >= threshold) - 1.0


def own_cell(
    entry: Entry, whole: int, reward: float, second: bool, part: int, sign: int, parts: int
) -> tuple[int, float]:
    """Return a person's own cell and value.

    whole: the index of the whole cell of their bin, or of their bin and arm.
    reward: 2y - 1 for the outcome y; it has no effect if the question is not about outcomes.
    second: whether their arm is the second of the two that are compared.
    part, sign: of the bin, along the axis of the question; a part of -1 if it is about none.
    parts: how many cells each whole one is divided into.
    """
    value = 1.0 if entry.value == ONE else reward
    if entry.value == SIGNED_OUTCOME and second:
        value = -value
    if part < 0:
        return whole, value
    if parts > 1:
        return parts * whole + part, value
    return whole, sign * value


def answer_of_everybody(
    experiment: Experiment, question: Question, *, secret: Secret, outcome: float | None
) -> tuple[int | None, float]:
    """Return the cell and the value of a question whose one cell holds everybody.

    Whoever has nothing to tell works out an answer, too.
    """
    known = 0.5 if outcome is None else outcome
    value = 2 * known - 1
    if question.axis is not None:
        value = told_of_place(secret.point[question.axis], THRESHOLDS[question.row])
    return ((0, value), (None, 0.0))[outcome is None]


def true_answer(
    release: Release,
    layout: CellLayout,
    question: Question,
    *,
    secret: Secret,
    outcome: float | None,
    tells: bool = True,
) -> tuple[int | None, float]:
    """Return the person's cell, if there is one, and value in [-1, 1].

    tells: whether the person is one of those who tell of an outcome, where an arm is capped. The
        others have nothing to tell, if that is what is asked.

    The work is the same for everybody: whoever has nothing to tell works out an answer, too.
    """
    cells = layout.mechanism(question.axis)
    whole = layout.indices.get((secret.path, secret.arm if layout.by_arm else None), -1)
    known = 0.5 if outcome is None else outcome
    part, sign = -1, 1
    if question.axis is not None:
        middle = walk_of(release).middle_of_leaf(secret.point, axis=question.axis)
        levels = slots_of(release.experiment).levels[question.axis]
        part, sign = part_and_sign(secret.point[question.axis], middle, levels, question.row)
    entry = questions_of(release.experiment)[question.kind]
    second = secret.arm != release.policies[secret.path].arms[0]
    own = own_cell(entry, whole, 2 * known - 1, second, part, sign, cells.parts)
    # Somebody without a cell, or with nothing to tell. "Elsewhere" is the last cell. If there is
    # none, the answer is pure noise.
    nobody = (cells.mechanism.cells - 1 if cells.elsewhere else None), 0.0
    silent = entry.thinned and not tells
    return (own, nobody)[whole < 0 or outcome is None or silent]
