"""The public coins of ``whisper``: the question, and the ranking where arms are public.

The device draws them from the operating system's randomness, without looking at the person.
"""

from sottovoce.device.whisper.answer import asked_axis, asked_kind, whole_share_of_rows
from sottovoce.device.whisper.subset import OPERATING_SYSTEM
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.cells import CellLayout, cell_layout
from sottovoce.shared.whisper.questions import Kind, Menu, Question, menu, questions_of
from sottovoce.shared.whisper.tuning import ASK, SHARES


def draw_question(release: Release, *, population: int, logged: bool) -> Question:
    """Draw one of the questions that a person may be asked, by their public shares."""
    draws, experiment = OPERATING_SYSTEM, release.experiment
    served = population == 0 and not logged
    if served and draws.chance(release.reward_share, SHARES):
        return Question(Kind.REWARD)
    if draws.chance(release.scale_share, SHARES):
        axes = [axis for axis, threshold in enumerate(release.thresholds) if threshold]
        axis = axes[draws.below(len(axes))]
        about = Kind.LOGGED_SCALE if logged else Kind.SCALE
        return Question(about, axis, release.thresholds[axis] - 1)
    key = ("menu", population, logged)
    if key not in release.derived:
        release.derived[key] = menu(experiment, population=population, logged=logged)
    asked: Menu = release.derived[key]
    kind = asked_kind(asked.kinds, asked.bounds, draws.below(SHARES))
    by_arm = questions_of(experiment)[kind].by_arm
    layout = cell_layout(release, population=population, by_arm=by_arm)
    if layout is None:
        return Question(kind)
    axis = asked_axis(release.ask, _axis_coin(release, layout, logged=logged))
    if axis < 0:
        return Question(kind)
    rows = slots_of(experiment)
    count = rows.patterns[axis + 1] - rows.patterns[axis]
    divided = layout.mechanism(axis).parts > 1
    return Question(kind, axis, draws.below(1 if divided else count))


def _axis_coin(release: Release, layout: CellLayout, *, logged: bool) -> int:
    """Draw the coin that decides which axis is asked about; the lowest ones ask about none."""
    halves = layout.halves
    whole = 0 if halves.parts == 2 else release.ask[0]
    if logged:
        whole = whole_share_of_rows(halves.parts, halves.elsewhere, release.ask[0])
    low = release.ask[0] - whole
    return low + OPERATING_SYSTEM.below(ASK - low)


def draw_ranking(release: Release) -> tuple[int, ...]:
    """Draw a public order of the arms, each order with the same probability.

    It is empty where arms are private.
    """
    if not release.experiment.settings.arms_are_public:
        return ()
    arms = list(range(len(release.experiment.arms)))
    return tuple(arms.pop(OPERATING_SYSTEM.below(len(arms))) for _ in range(len(arms)))
