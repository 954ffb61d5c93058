"""Which question a device draws, and its true answer."""

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pytest

import sottovoce as sv
from factories import (
    CONTRAST,
    COUNT,
    LEVEL,
    LOGGED_LEVEL,
    MASS,
    OUTCOME,
    RANKED,
    Purse,
    experiment,
    four_bins,
    unit_cube,
    walking,
)
from sottovoce.device import privatise
from sottovoce.device.method import Secret
from sottovoce.device.whisper import answer, draw, subset
from sottovoce.device.whisper.answer import true_answer
from sottovoce.device.whisper.draw import draw_question, draw_ranking
from sottovoce.shared.whisper.cells import CellLayout, cell_layout
from sottovoce.shared.whisper.questions import Kind, Question, question_of, questions_of
from support.subset import Following


def law_of(monkeypatch: pytest.MonkeyPatch, drawing: Callable[[], Any]) -> dict[Any, Fraction]:
    """What is drawn and how often, exactly: by following every way that the draws can go."""
    law: dict[Any, Fraction] = {}
    untried: list[tuple[tuple[int, ...], int, int]] = [((), 1, 1)]
    while untried:
        draws = Following(*untried.pop())
        monkeypatch.setattr(draw, "OPERATING_SYSTEM", draws)
        drawn = drawing()
        law[drawn] = law.get(drawn, Fraction(0)) + draws.probability
        untried += draws.untried
    return law


MASSES, LEVELS = Fraction(1, 20), Fraction(1, 32)
SERVED = {Kind.MASS: MASSES, Kind.LEVEL: LEVELS, Kind.CONTRAST: 1 - MASSES - LEVELS}
PUBLIC = {Kind.MASS: MASSES, Kind.RANKED: 1 - MASSES}
KNOWN = {Kind.COUNT: Fraction(1, 10), Kind.OUTCOME: Fraction(9, 10)}
UNKNOWN = {Kind.COUNT: Fraction(1, 2), Kind.OUTCOME: Fraction(1, 2)}
# Of two arms: a fifth of all rows tells how good both are.
KNOWN_TWO = {
    Kind.COUNT: Fraction(1, 10),
    Kind.LOGGED_LEVEL: Fraction(1, 5),
    Kind.OUTCOME: Fraction(7, 10),
}
UNKNOWN_TWO = {
    Kind.COUNT: Fraction(1, 2),
    Kind.LOGGED_LEVEL: Fraction(1, 5),
    Kind.OUTCOME: Fraction(3, 10),
}
# The release asks 5, 2 and 1 of 8. At a small ε, 88 of 160 rows of a log are asked about an axis:
# so 3 are, beside 3·72/88 about none, rounded down.
Axes = dict[int | None, Fraction]
SOMETIMES: Axes = {None: Fraction(5, 8), 0: Fraction(2, 8), 1: Fraction(1, 8)}
MOSTLY: Axes = {None: Fraction(2, 5), 0: Fraction(2, 5), 1: Fraction(1, 5)}
ALWAYS: Axes = {0: Fraction(2, 3), 1: Fraction(1, 3)}


ABOUT_REWARDS = (Kind.REWARD, Kind.BIN_REWARD, Kind.BIN_MASS)


@pytest.fixture
def uneven(monkeypatch: pytest.MonkeyPatch) -> tuple[int, ...]:
    """Shares of 8 instead of 1024, for fewer ways to follow."""
    for module in (draw, answer):
        assert vars(module)["ASK"] == 1024
        monkeypatch.setattr(module, "ASK", 8)
    return (5, 2, 1)


@pytest.mark.parametrize(
    ("settings", "population", "logged", "kinds", "axes"),
    [
        ({"epsilon": 1.0}, 0, False, SERVED, SOMETIMES),
        ({"epsilon": 2.0}, 0, False, SERVED, SOMETIMES),
        ({"epsilon": 8.0}, 0, False, SERVED, ALWAYS),
        ({"epsilon": 8.0, "guarantee": "certified"}, 0, False, SERVED, SOMETIMES),
        ({"epsilon": 1.0, "public_arms": True}, 0, False, PUBLIC, SOMETIMES),
        ({"epsilon": 8.0, "public_arms": True}, 0, False, PUBLIC, ALWAYS),
        ({}, 1, False, SERVED, ALWAYS),  # a streaming population, served
        ({}, 1, True, KNOWN, ALWAYS),
        ({}, 2, True, UNKNOWN, MOSTLY),  # at a small ε, most rows of a log
        ({"epsilon": 8.0}, 0, True, UNKNOWN, ALWAYS),  # logged rows of the target
        ({"public_arms": True}, 1, True, KNOWN, ALWAYS),
        ({"arms": 2}, 0, False, SERVED, SOMETIMES),
        ({"arms": 2, "public_arms": True}, 0, False, PUBLIC, SOMETIMES),
        ({"arms": 2}, 1, False, SERVED, ALWAYS),
        ({"arms": 2}, 1, True, KNOWN_TWO, ALWAYS),
        ({"arms": 2}, 2, True, UNKNOWN_TWO, MOSTLY),
        ({"arms": 2, "epsilon": 8.0}, 0, True, UNKNOWN_TWO, ALWAYS),
        ({"arms": 2, "guarantee": "certified"}, 1, True, KNOWN_TWO, SOMETIMES),
        ({"arms": 2, "public_arms": True}, 1, True, KNOWN_TWO, ALWAYS),
    ],
)
def test_questions_are_drawn_in_their_public_shares(
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    population: int,
    logged: bool,
    kinds: dict[Kind, Fraction],
    axes: Axes,
    uneven: tuple[int, ...],
) -> None:
    release = four_bins(ask=uneven, **settings)
    law = law_of(monkeypatch, lambda: draw_question(release, population=population, logged=logged))
    # Of 160 of the target's people who are served, 24 are asked how it went.
    # Where arms are private and nothing is proved, 77 of 160 of these tell it for their bin, and 19
    # their bin alone.
    of_bins = {Kind.REWARD: 64, Kind.BIN_REWARD: 77, Kind.BIN_MASS: 19}
    if settings.keys() & {"public_arms", "guarantee"}:
        of_bins = {Kind.REWARD: 160}
    rewards = {
        Question(kind): Fraction(24, 160) * Fraction(share, 160)
        for kind, share in of_bins.items()
        if not population and not logged
    }
    assert law == rewards | {
        Question(kind, axis): kinds[kind] * axes[axis] * (1 - sum(rewards.values()))
        for kind in kinds
        for axis in axes
    }
    assert sum(law.values()) == 1


@pytest.mark.parametrize("share", [0, 1, 24, 72, 144, 159, 160])
@pytest.mark.parametrize("arms", [2, 3])
def test_as_many_are_asked_how_it_went_as_the_release_says(
    monkeypatch: pytest.MonkeyPatch, uneven: tuple[int, ...], arms: int, share: int
) -> None:
    release, usual = (four_bins(arms=arms, reward_share=each, ask=uneven) for each in (share, 0))

    def law_with(release: sv.Release, population: int, logged: bool) -> dict[Any, Fraction]:
        return law_of(
            monkeypatch, lambda: draw_question(release, population=population, logged=logged)
        )

    law = law_with(release, 0, False)
    told = [law.pop(Question(kind), Fraction(0)) for kind in ABOUT_REWARDS]
    assert told == [Fraction(share, 160) * each / 160 for each in (64, 77, 19)]
    without = law_with(usual, 0, False)
    assert not {Question(kind) for kind in ABOUT_REWARDS} & without.keys()
    left = 1 - Fraction(share, 160)
    assert law == {question: left * chance for question, chance in without.items() if left}
    # Nobody else is asked so, and nothing changes for them.
    for population, logged in [(0, True), (1, False), (1, True), (2, True)]:
        law = law_with(release, population, logged)
        assert not {Question(kind) for kind in ABOUT_REWARDS} & law.keys()
        assert law == law_with(usual, population, logged)


def test_each_kind_of_question_has_its_own_mechanism(
    monkeypatch: pytest.MonkeyPatch, uneven: tuple[int, ...]
) -> None:
    """Of two arms counts have twice the cells, so that halves are cells for some kinds only."""
    release = four_bins(epsilon=4.0, arms=2, ask=uneven)
    whole, by_arm = (cell_layout(release, population=0, by_arm=each) for each in (False, True))
    assert whole is not None
    assert by_arm is not None
    assert (whole.mechanism(0).parts, by_arm.mechanism(0).parts) == (2, 1)
    axes = {Kind.OUTCOME: ALWAYS, Kind.LOGGED_LEVEL: ALWAYS, Kind.COUNT: SOMETIMES}
    law = law_of(monkeypatch, lambda: draw_question(release, population=0, logged=True))
    assert law == {
        Question(kind, axis): share * chance
        for kind, share in UNKNOWN_TWO.items()
        for axis, chance in axes[kind].items()
    }


def test_the_questions_are_numbered_as_the_wire_has_them() -> None:
    two, five = unit_cube(d=2), unit_cube(d=5)
    numbers = {
        Question(Kind(kind), axis).number(two)
        for kind, axis in itertools.product(range(6), (None, 0, 1))
    }
    assert numbers == set(range(18))
    assert Question(Kind.CONTRAST).number(five) == 0
    assert Question(Kind.RANKED, 4).number(five) == 35
    assert Question(Kind.REWARD).number(two) == 18
    assert Question(Kind.REWARD).number(five) == 36
    levels = [Question(Kind.LOGGED_LEVEL, axis).number(two) for axis in (None, 0, 1)]
    assert levels == [21, 22, 23]
    # A learner reads what a device writes.
    experiment = four_bins().experiment
    for kind, axis in itertools.product(questions_of(experiment), (None, 0, 1)):
        if kind in (Kind.SCALE, Kind.LOGGED_SCALE) and axis is None:
            continue  # test_scales.py has their numbers
        question = Question(kind, None if kind in ABOUT_REWARDS else axis)
        assert question_of(question.number(experiment), experiment) == question


def test_every_ranking_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    release = four_bins(public_arms=True)
    law = law_of(monkeypatch, lambda: draw_ranking(release))
    assert law == dict.fromkeys(itertools.permutations(range(3)), Fraction(1, 6))
    assert draw_ranking(four_bins()) == ()


def everybody(release: sv.Release, *, logged: bool = False) -> Iterator[tuple[Secret, float]]:
    """Someone in each quarter of each bin, with each arm and outcome they can have."""
    arms = len(release.experiment.arms)
    rankings: list[tuple[int, ...]] = [()]
    settings = release.experiment.settings
    public = isinstance(settings, sv.Whisper) and settings.public_arms and not logged
    if public:
        rankings = [*itertools.permutations(range(arms))]
    for point in itertools.product((0.0, 0.1, 0.3, 0.49, 0.5, 0.6, 0.75, 1.0), repeat=2):
        path = release.partition.find(point)
        offered: tuple[int, ...] = release.policies[path].arms
        for ranking, outcome in itertools.product(rankings, (0.0, 0.3, 1.0)):
            given = range(arms) if logged else offered
            if public:
                given = (next(arm for arm in ranking if arm in offered),)
            for arm in given:
                yield Secret(point, path, arm, logged=logged, ranking=ranking), outcome


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize(
    "settings", [{"epsilon": 1.0}, {"epsilon": 8.0}, {"public_arms": True}, {"arms": 2}]
)
def test_the_coins_of_a_report_are_drawn_without_a_look_at_the_person(
    monkeypatch: pytest.MonkeyPatch,
    uneven: tuple[int, ...],
    settings: dict[str, Any],
    logged: bool,
) -> None:
    """The exact law of question and ranking of whole answers is the same for everybody."""
    release = four_bins(ask=uneven, **settings)
    monkeypatch.setattr(subset, "whisper", lambda mechanism, *, cell, value: b"said")
    laws = []
    for secret, outcome in list(everybody(release, logged=logged))[::29]:

        def coins(secret: Secret = secret, outcome: float = outcome) -> Any:
            told = privatise.privatise(
                release, secret, population=0, reward=outcome, ledger=Purse()
            )
            assert told.payload == b"said"
            # The ranking was drawn before; it goes out with RANKED only.
            assert told.ranking == (secret.ranking if told.question // 3 == RANKED else ())
            return told.question

        laws.append(law_of(monkeypatch, coins))
    assert len(laws) > 5
    assert all(law == laws[0] for law in laws)


def by_the_table(
    release: sv.Release, layout: CellLayout, question: Question, secret: Secret, outcome: float
) -> tuple[int | None, float]:
    """The table in shared/whisper/questions.py once more, bin by bin."""
    place, box = 0, release.partition.box(secret.path)
    mine = None
    for policy in release.bins:
        if len(policy.arms) == 1:
            continue
        for arm in sorted({*policy.arms, *policy.waiting}) if layout.by_arm else [None]:
            if policy.path == secret.path and arm in (None, secret.arm):
                mine = place
            place += 1
    cells = layout.mechanism(question.axis)
    if mine is None:
        return (cells.parts * place if cells.elsewhere else None), 0.0
    sign = 2 * outcome - 1
    offered = release.policies[secret.path].arms
    values = {
        CONTRAST: sign if secret.arm == offered[0] else -sign,
        LEVEL: sign,
        MASS: 1.0,
        OUTCOME: sign if layout.by_arm or secret.arm == 0 else -sign,
        COUNT: 1.0,
        RANKED: sign,
        LOGGED_LEVEL: sign,
    }
    value = values[int(question.kind)]
    if question.axis is None:
        return mine, value
    low, high = box[question.axis]
    side = int(secret.point[question.axis] >= low + (high - low) / 2)
    if cells.parts == 2:
        return 2 * mine + side, value
    return mine, value if side else -value


def kinds_of(release: sv.Release, *, logged: bool) -> list[Kind]:
    settings = release.experiment.settings
    assert isinstance(settings, sv.Whisper)
    if logged:
        two = len(release.experiment.arms) == 2
        return [Kind.OUTCOME, Kind.COUNT, *([Kind.LOGGED_LEVEL] if two else [])]
    return (
        [Kind.RANKED, Kind.MASS] if settings.public_arms else [Kind.CONTRAST, Kind.LEVEL, Kind.MASS]
    )


def grown_releases() -> list[sv.Release]:
    """Releases of learners that real devices have reported to."""
    rng = random.Random(0)
    found = []
    for epsilon, public_arms in ((1.0, False), (8.0, False), (8.0, True)):
        learner = sv.Learner(
            experiment(
                epsilon=epsilon,
                method=sv.Whisper(public_arms=public_arms),
                release_every=25,
                horizon=600,
                auxiliary=walking().auxiliary,
            )
        )
        for count in range(600):
            device = sv.Device(learner.release(), public_arms=True)
            context = {"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)}
            arm = device.choose(context)
            likes = {"control": context["age"] < 50, "coach": context["bmi"] > 30}
            learner.receive(device.report(reward=0.9 if likes.get(arm, False) else 0.1))
            if count % 150 == 149:
                found.append(learner.release())
    return found


@lru_cache
def releases() -> list[sv.Release]:
    return [
        *grown_releases(),
        *(four_bins(epsilon=epsilon) for epsilon in (0.5, 2.0, 8.0)),
        *(four_bins(epsilon=epsilon, public_arms=True) for epsilon in (0.5, 8.0)),
        four_bins(epsilon=8.0, guarantee="certified"),
        *(four_bins(epsilon=epsilon, arms=2) for epsilon in (0.5, 2.0, 8.0)),
        four_bins(epsilon=8.0, arms=2, public_arms=True),
    ]


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("number", range(22))
def test_answers_are_those_of_the_table(number: int, logged: bool) -> None:
    release = releases()[number]
    arms = len(release.experiment.arms)
    for population, kind in itertools.product(range(3), kinds_of(release, logged=logged)):
        by_arm = kind == Kind.COUNT or (kind == Kind.OUTCOME and arms == 3)
        layout = cell_layout(release, population=population, by_arm=by_arm)
        if layout is None:
            continue
        for axis in [0, 1] if layout.halves.parts == 2 else [None, 0, 1]:
            question = Question(kind, axis)
            for secret, outcome in everybody(release, logged=logged):
                found = true_answer(release, layout, question, secret=secret, outcome=outcome)
                assert found == by_the_table(release, layout, question, secret, outcome)
                cell, value = found
                assert -1 <= value <= 1
                assert cell is None or 0 <= cell < layout.mechanism(axis).mechanism.cells


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_whoever_has_no_cell_is_elsewhere_or_nowhere(epsilon: float) -> None:
    release = four_bins(epsilon=epsilon)
    for by_arm, whole_cells in ((False, 3), (True, 2 + 3 + 2)):
        layout = cell_layout(release, population=0, by_arm=by_arm)
        assert layout is not None
        people = [Secret((0.9, 0.1), "10", 1, logged=by_arm)]  # a settled bin
        if by_arm:
            people += [
                Secret((0.1, 0.1), "00", 1, logged=True),  # a dropped arm
                Secret((0.9, 0.9), "11", 2, logged=True),
                Secret((0.9, 0.1), "10", 0, logged=True),
            ]
        cells = layout.mechanism(0)
        last = cells.parts * whole_cells if epsilon > 1 else None
        kind, axis = (Kind.OUTCOME if by_arm else Kind.CONTRAST), 0
        for secret, outcome in itertools.product(people, (0.0, 0.3, 1.0)):
            question = Question(kind, axis)
            told = true_answer(release, layout, question, secret=secret, outcome=outcome)
            assert told == (last, 0.0)
        expected = whole_cells if epsilon < 1 else last if last is None else last + 1
        assert cells.mechanism.cells == expected
        assert (cells.parts == 2) == (epsilon == 8.0)
    waits = Secret((0.1, 0.9), "01", 0, logged=True)  # an arm that waits is live
    assert layout is not None
    told = true_answer(release, layout, Question(Kind.COUNT, 0), secret=waits, outcome=0.0)
    assert told != (last, 0.0)
