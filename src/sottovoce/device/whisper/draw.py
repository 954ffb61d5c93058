"""The public coins of ``whisper``: the question, and the ranking where arms are public.

The device draws them from the operating system's randomness, without looking at the person.
"""

from sottovoce.device.whisper.answer import asked_kind
from sottovoce.device.whisper.subset import OPERATING_SYSTEM
from sottovoce.shared.release import Release
from sottovoce.shared.whisper.cells import cell_layout, feature_share
from sottovoce.shared.whisper.questions import Kind, Menu, Question, menu, questions_of
from sottovoce.shared.whisper.tuning import SHARES


def draw_question(release: Release, *, population: int, logged: bool) -> Question:
    """Draw one of the questions that a person may be asked, by their public shares."""
    draws, experiment = OPERATING_SYSTEM, release.experiment
    served = population == 0 and not logged
    if served and draws.chance(release.reward_share, SHARES):
        return Question(Kind.REWARD)
    key = ("menu", population, logged)
    if key not in release.derived:
        release.derived[key] = menu(experiment, population=population, logged=logged)
    asked: Menu = release.derived[key]
    kind = asked_kind(asked.kinds, asked.bounds, draws.below(SHARES))
    by_arm = questions_of(experiment)[kind].by_arm
    layout = cell_layout(release, population=population, by_arm=by_arm)
    if layout is None:
        return Question(kind)
    cells = layout.mechanism
    if draws.chance(feature_share(cells.halves, cells.elsewhere, logged), SHARES):
        return Question(kind, draws.below(experiment.dimension))
    return Question(kind)


def draw_ranking(release: Release) -> tuple[int, ...]:
    """Draw a public order of the arms, each order with the same probability.

    It is empty where arms are private.
    """
    if not release.experiment.settings.arms_are_public:
        return ()
    arms = list(range(len(release.experiment.arms)))
    return tuple(arms.pop(OPERATING_SYSTEM.below(len(arms))) for _ in range(len(arms)))
