"""``whisper`` on the device: which question, and this person's true answer to it.

The question is drawn without a look at the person. The true answer goes nowhere but into
``subset.whisper``, through the one door in ``privatise.py``.
"""

from dataclasses import dataclass

from sottovoce.device.subset import OPERATING_SYSTEM
from sottovoce.shared.method import Whisper
from sottovoce.shared.questions import Kind, Question, Sheet, feature_share, is_by_arm, sheet
from sottovoce.shared.release import Release
from sottovoce.shared.shares import (
    COUNT_SHARE,
    COUNT_SHARE_UNKNOWN,
    LEVEL_SHARE,
    MASS_SHARE,
    SHARES,
    TONE_SHARE,
)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """All that is private about one person. It has no repr, so that no log can hold it.

    point: the context in [0, 1]^d. path: its bin. arm: what was given.
    logged: some other policy chose the arm (public: the population says so by its rows).
    ranking: the public ranking by which the arm was chosen, where arms are public.
    """

    point: tuple[float, ...]
    path: str
    arm: int
    logged: bool = False
    ranking: tuple[int, ...] = ()


def draw_question(release: Release, *, population: int, logged: bool) -> Question:
    """Draw one of the questions that are open to a person, in their public shares."""
    draws, experiment = OPERATING_SYSTEM, release.experiment
    served = population == 0 and not logged
    if served and draws.chance(release.reward_share, SHARES):
        return Question(Kind.REWARD)
    kind = _draw_kind(release, population=population, logged=logged)
    by_arm = is_by_arm(kind, arms=len(experiment.arms))
    cells = sheet(release, population=population, by_arm=by_arm)
    if cells is not None and draws.chance(feature_share(cells.law, logged=logged), SHARES):
        return Question(kind, draws.below(experiment.dimension))
    return Question(kind)


def _draw_kind(release: Release, *, population: int, logged: bool) -> Kind:
    """Draw what is asked of a bin."""
    experiment, coin = release.experiment, OPERATING_SYSTEM.below(SHARES)
    if logged:
        known = experiment.populations[population].behaviour is not None
        counts = COUNT_SHARE if known else COUNT_SHARE_UNKNOWN
        if coin < counts:
            return Kind.COUNT
        both = len(experiment.arms) == 2 and coin < counts + TONE_SHARE
        return Kind.TONE if both else Kind.OUTCOME
    if coin < MASS_SHARE:
        return Kind.MASS
    if _arms_are_public(release):
        return Kind.RANKED
    return Kind.LEVEL if coin < MASS_SHARE + LEVEL_SHARE else Kind.CONTRAST


def draw_ranking(release: Release) -> tuple[int, ...]:
    """Draw the public order in which a person prefers the arms, each order as likely as any."""
    arms = list(range(len(release.experiment.arms)))
    if not _arms_are_public(release):
        return ()
    return tuple(arms.pop(OPERATING_SYSTEM.below(len(arms))) for _ in range(len(arms)))


def _arms_are_public(release: Release) -> bool:
    settings = release.experiment.settings
    return isinstance(settings, Whisper) and settings.public_arms


def answer(
    release: Release, cells: Sheet, question: Question, *, secret: Secret, outcome: float
) -> tuple[int | None, float]:
    """Return the person's cell, if there is one, and value in [-1, 1]."""
    place = cells.places.get((secret.path, secret.arm if cells.by_arm else None))
    if place is None:
        # "Elsewhere" is the last cell; without it there is no cell, and the answer is noise.
        return (cells.law.mechanism.cells - 1 if cells.law.elsewhere else None), 0.0
    value = 1.0
    if question.kind not in (Kind.MASS, Kind.COUNT):
        value = 2 * outcome - 1
    compares = question.kind in (Kind.CONTRAST, Kind.OUTCOME) and not cells.by_arm
    if compares and secret.arm != release.policies[secret.path].arms[0]:
        value = -value
    if question.feature is None:
        return place, value
    low, high = release.partition.box(secret.path)[question.feature]
    upper = secret.point[question.feature] >= (low + high) / 2
    if cells.law.halves:
        return 2 * place + upper, value
    return place, value if upper else -value
