"""Which kind of question a coin asks, and a person's own cell and value.

``asked_kind`` and ``own_cell`` are plain functions of plain numbers. The device calls them, and the
lab compiles them as they stand: a simulated person answers as a device would.
"""

from collections.abc import Sequence

from sottovoce.device.method import Secret
from sottovoce.shared.release import Release
from sottovoce.shared.walk import walk_of
from sottovoce.shared.whisper.cells import CellLayout
from sottovoce.shared.whisper.questions import ONE, SIGNED_OUTCOME, Entry, Question, questions_of


def asked_kind(kinds: Sequence[int], bounds: Sequence[int], coin: int) -> int:
    """Return the kind that a coin asks: the first of the menu whose bound is above it."""
    index = 0
    while coin >= bounds[index]:
        index += 1
    return kinds[index]


def own_cell(
    entry: Entry, whole: int, reward: float, second: bool, half: int, halves: bool
) -> tuple[int, float]:
    """Return a person's own cell and value.

    whole: the index of the whole cell of their bin, or of their bin and arm.
    reward: 2y - 1 for the outcome y; it has no effect if the question is not about outcomes.
    second: whether their arm is the second of the two that are compared.
    half: 1 in the upper half of the bin along the feature of the question, 0 in the lower half,
        -1 if the question is about no feature.
    halves: whether each half is a cell of its own.
    """
    value = 1.0 if entry.value == ONE else reward
    if entry.value == SIGNED_OUTCOME and second:
        value = -value
    if half < 0:
        return whole, value
    if halves:
        return 2 * whole + half, value
    return whole, value if half == 1 else -value


def true_answer(
    release: Release,
    layout: CellLayout,
    question: Question,
    *,
    secret: Secret,
    outcome: float | None,
) -> tuple[int | None, float]:
    """Return the person's cell, if there is one, and value in [-1, 1].

    The work is the same for everybody: whoever has nothing to tell works out an answer, too.
    """
    cells = layout.mechanism
    whole = layout.indices.get((secret.path, secret.arm if layout.by_arm else None), -1)
    known = 0.5 if outcome is None else outcome
    half = -1
    if question.feature is not None:
        middle = walk_of(release).middle_of_leaf(secret.point, feature=question.feature)
        half = int(secret.point[question.feature] >= middle)
    entry = questions_of(release.experiment)[question.kind]
    second = secret.arm != release.policies[secret.path].arms[0]
    own = own_cell(entry, whole, 2 * known - 1, second, half, cells.halves)
    # Somebody without a cell, or with nothing to tell. "Elsewhere" is the last cell. If there is
    # none, the answer is pure noise.
    nobody = (cells.mechanism.cells - 1 if cells.elsewhere else None), 0.0
    return (own, nobody)[whole < 0 or outcome is None]
