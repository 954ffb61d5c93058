"""``whisper`` on the device: draw a question, answer it, and send a random set of cells.

The device draws the question without looking at the person. The true answer goes only into
``subset.whisper``.
"""

from sottovoce.device.coins import PublicCoins
from sottovoce.device.method import RandomisedAnswer, Secret, Spend, draw_arm
from sottovoce.device.whisper import subset
from sottovoce.device.whisper.answer import answer_of_everybody, true_answer
from sottovoce.device.whisper.draw import draw_question, draw_ranking
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.whisper.cells import cell_layout, one_cell_mechanism
from sottovoce.shared.whisper.questions import EVERYBODY, questions_of


def choose(release: Release, policy: BinPolicy, coins: PublicCoins) -> tuple[int, tuple[int, ...]]:
    """Draw an arm on offer; where arms are public, take the first live one of a public ranking."""
    if not release.experiment.settings.arms_are_public:
        return draw_arm(release, policy), ()
    ranking = coins.take(lambda: draw_ranking(release))
    return first_on_offer(policy, ranking), ranking


def first_on_offer(policy: BinPolicy, ranking: tuple[int, ...]) -> int:
    """Return the first arm of a ranking that a bin offers; it looks at all of them."""
    offered = frozenset(policy.arms)
    return ranking[[arm in offered for arm in ranking].index(True)]


def privatise(
    release: Release, secret: Secret, *, population: int, outcome: float | None, spend: Spend
) -> RandomisedAnswer:
    """Return the packed set for one question (``shared/whisper/questions.py`` lists them)."""
    experiment = release.experiment
    question = draw_question(release, population=population, logged=secret.logged)
    entry = questions_of(experiment)[question.kind]
    number = question.number(experiment)
    ranking = secret.ranking if entry.ranked else ()
    cell: int | None
    if entry.cells == EVERYBODY:
        mechanism = one_cell_mechanism(experiment, population)
        cell, value = answer_of_everybody(experiment, question, secret=secret, outcome=outcome)
    else:
        layout = cell_layout(release, population=population, by_arm=entry.by_arm)
        if layout is None:  # no cell is contested
            return RandomisedAnswer(b"", number, ranking)
        mechanism = layout.mechanism(question.axis).mechanism
        cell, value = true_answer(release, layout, question, secret=secret, outcome=outcome)
    spend()
    return RandomisedAnswer(subset.whisper(mechanism, cell=cell, value=value), number, ranking)
