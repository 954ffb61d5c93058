"""``whisper`` on the device: draw a question, answer it, and send a random set of cells.

The device draws the question without looking at the person. The true answer goes only into
``subset.whisper``.
"""

from typing import cast

from sottovoce.device.coins import Coins
from sottovoce.device.method import Prepared, RandomisedAnswer, Secret, Spend, draw_arm
from sottovoce.device.whisper import subset
from sottovoce.device.whisper.answer import answer_of_everybody, true_answer
from sottovoce.device.whisper.draw import (
    asked_of_group,
    draw_question,
    draw_ranking,
    draw_telling,
)
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.whisper.cells import CellLayout, cell_layout, one_cell_mechanism
from sottovoce.shared.whisper.questions import (
    EVERYBODY,
    OUTCOME,
    SIGNED_OUTCOME,
    Entry,
    Question,
    questions_of,
)
from sottovoce.shared.whisper.subset import SignedSubset


def choose(release: Release, policy: BinPolicy, coins: Coins) -> tuple[int, tuple[int, ...]]:
    """Draw an arm on offer; where arms are public, take the first live one of a public ranking."""
    if not release.experiment.settings.arms_are_public:
        return draw_arm(release, policy, coins), ()
    ranking = coins.ranking(lambda: draw_ranking(release))
    return first_on_offer(policy, ranking), ranking


def first_on_offer(policy: BinPolicy, ranking: tuple[int, ...]) -> int:
    """Return the first arm of a ranking that a bin offers; it looks at all of them."""
    offered = frozenset(policy.arms)
    return ranking[[arm in offered for arm in ranking].index(True)]


def privatise(
    release: Release, secret: Secret, *, population: int, outcome: float | None, spend: Spend
) -> RandomisedAnswer:
    """Return the packed set for one question (``shared/whisper/questions.py`` lists them)."""
    question = draw_question(release, population=population, logged=secret.logged)
    return _told(release, question, secret, population=population, outcome=outcome, spend=spend)


def prepare(release: Release, secret: Secret, *, population: int, spend: Spend) -> Prepared:
    """Return the packed sets for the outcomes 1 and 0, and for none at all.

    The question and the sets are drawn now, so that nothing is kept that is not private already.
    Where the question is about the outcome, the set for 0 is that for 1 with all signs turned: both
    together tell no more of the person than the one. The third set does not depend on the person.
    """
    asked = draw_question(release, population=population, logged=secret.logged)
    asked = asked_of_group(secret.group, asked)
    told, empty = (
        _told(release, asked, secret, population=population, outcome=outcome, spend=pay)
        for outcome, pay in ((1.0, spend), (None, lambda: None))
    )
    good, none = cast(bytes, told.payload), cast(bytes, empty.payload)
    bad = good
    if good and questions_of(release.experiment)[asked.kind].value in (OUTCOME, SIGNED_OUTCOME):
        bad = subset.turned(_mechanism(release, asked, population), good)
    return Prepared(good + bad + none, told.question, told.ranking)


def finish(kept: bytes, *, outcome: float | None) -> bytes:
    """Return one of the three packed sets.

    An outcome y counts as 1 with probability y, as in ``subset.whisper``. Everybody draws.
    """
    length = len(kept) // 3
    good, bad, none = kept[:length], kept[length : 2 * length], kept[2 * length :]
    known = 0.5 if outcome is None else outcome
    return ((bad, good)[subset.rounded_up(2 * known - 1)], none)[outcome is None]


def _told(
    release: Release,
    question: Question,
    secret: Secret,
    *,
    population: int,
    outcome: float | None,
    spend: Spend,
) -> RandomisedAnswer:
    """Answer a question."""
    experiment = release.experiment
    question = asked_of_group(secret.group, question)
    entry = questions_of(experiment)[question.kind]
    number, tells = question.number(experiment), draw_telling(release, secret)
    ranking = secret.ranking if entry.ranked else ()
    cell: int | None
    if entry.cells == EVERYBODY:
        mechanism = one_cell_mechanism(experiment, population)
        cell, value = answer_of_everybody(experiment, question, secret=secret, outcome=outcome)
    else:
        layout = _layout(release, entry, population)
        if layout is None:  # no cell is contested
            return RandomisedAnswer(b"", number, ranking)
        mechanism = layout.mechanism(question.axis).mechanism
        cell, value = true_answer(
            release, layout, question, secret=secret, outcome=outcome, tells=tells
        )
    spend()
    return RandomisedAnswer(subset.whisper(mechanism, cell=cell, value=value), number, ranking)


def _layout(release: Release, entry: Entry, population: int) -> CellLayout | None:
    """Return the cells that a question is about."""
    return cell_layout(release, population=population, by_arm=entry.by_arm, settled=entry.settled)


def _mechanism(release: Release, question: Question, population: int) -> SignedSubset:
    """Return the mechanism of the answers to a question that has cells."""
    entry = questions_of(release.experiment)[question.kind]
    if entry.cells != EVERYBODY:
        layout = _layout(release, entry, population)
        return cast(CellLayout, layout).mechanism(question.axis).mechanism
    return one_cell_mechanism(release.experiment, population)
