"""Whole reports about levels without order are ε-LDP, exactly, and measure each level by itself.

At a small ε the value changes its sign with a row of a Hadamard matrix. At a larger one each level
is a cell. Bins are sets of levels. The law of a report, with the coins for axis and row, is worked
out by following every draw of the device's code.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import COUNT, OUTCOME, RANKED, experiment, uniform
from sottovoce.device.method import Secret
from sottovoce.device.whisper.answer import asked_axis, part_and_sign, true_answer
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from sottovoce.shared.schema import Feature
from sottovoce.shared.whisper.axes import pattern_sign
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.questions import Question, question_of
from sottovoce.shared.whisper.subset import unpack
from support.slow import slow_but
from support.subset import power_of_e
from support.whole_reports import Code, Input, Law, law_of_payload, shares_of, worst_ratio

EPSILONS = [0.5, 3.0, 8.0]  # rows; levels are cells and halves are not; both are
OUTCOMES = (0.0, 0.3, 1.0, None)  # None: nothing to tell, a null report
SETTINGS: list[dict[str, Any]] = [{}, {"public_arms": True}, {"guarantee": "certified"}]
CONTEXTS: dict[str, list[Feature]] = {
    "levels": [sv.Numeric("age", 18, 90), sv.Categorical("city", ("Rome", "Oslo", "Bern"))],
    "gaps": [sv.Numeric("age", 18, 90, optional=True), sv.Boolean("smokes", optional=True)],
}
SHARE = {"levels": (624, 250, 150), "gaps": (524, 250, 150, 100)}


def release_of(context: str, *, epsilon: float, arms: int = 3, **settings: Any) -> sv.Release:
    """Two contested bins and one that is settled; the last axis has three levels without order.

    The second level is a bin of its own. The others are split along the first axis.
    """
    public = experiment(
        arms=["control", "reminder", "coach"][:arms],
        context=CONTEXTS[context],
        epsilon=epsilon,
        method=sv.Whisper(**settings),
        auxiliary=[sv.Population("clinic-b", epsilon, 10)],
    )
    last = public.dimension - 1
    assert public.axes[last].levels == 3
    assert not public.axes[last].ordered
    partition = Partition(
        public.dimension, {"": last, "1": 0}, (0,) * last + (3,), {"": frozenset({0, 2})}
    )
    policies = (uniform("0", 0, arms - 1), uniform("10", 1), uniform("11", 0, 1))
    release = sv.Release(public, 1, partition, policies, 24, SHARE[context])
    assert sv.Release.from_table(release.to_table()) == release
    return release


def people_of(
    release: sv.Release, *, logged: bool = False, ranking: tuple[int, ...] = ()
) -> list[Input]:
    """Everybody: bin, half or level along each axis, arm and outcome."""
    found: list[Any] = []
    partition, arms = release.partition, range(len(release.experiment.arms))
    for policy in release.bins:
        places = []
        for axis, (low, high) in enumerate(partition.box(policy.path)):
            quarter, levels = (high - low) / 4, partition.levels[axis]
            here = partition.places(policy.path, axis) if levels else ()
            middles = [(level + 0.5) / levels for level in sorted(here)]
            places.append(middles or [low + quarter, high - quarter])
        given: Any = arms if logged else policy.arms
        if ranking:
            given = (min(policy.arms, key=ranking.index),)
        for point, arm, y in itertools.product(itertools.product(*places), given, OUTCOMES):
            assert partition.find(point) == policy.path
            found.append((Secret(point, policy.path, arm, logged=logged, ranking=ranking), y))
    return found


def groups(release: sv.Release) -> list[list[Input]]:
    """Those who must not be told apart: served, with the same public ranking; rows of a log."""
    public = release.experiment.settings.arms_are_public
    rankings: list[tuple[int, ...]] = [(0, 1, 2), (2, 1, 0)] if public else [()]
    served = [people_of(release, ranking=ranking) for ranking in rankings]
    return [*served, people_of(release, logged=True)]


def odds(epsilon: float) -> Fraction:
    """The largest number of 64 bits behind the point that is no more than e^ε."""
    return Fraction(math.floor(2**64 * power_of_e(epsilon)[0]), 2**64)


def hadamard(size: int) -> list[list[int]]:
    """Sylvester's matrix: each step puts four copies together, the last of them negated."""
    rows = [[1]]
    while len(rows) < size:
        rows = [row + row for row in rows] + [row + [-each for each in row] for row in rows]
    return rows


def about_levels(law: Law, release: sv.Release) -> Law:
    """What is said in answer to questions about the axis with levels."""
    last = release.experiment.dimension - 1
    return {
        coins: said
        for coins, said in law.items()
        if question_of(coins[0], release.experiment).axis == last
    }


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("settings", slow_but([{}], SETTINGS), ids=str)
def test_no_two_levels_differ_by_more_than_e_to_the_epsilon_in_anything_they_may_say(
    settings: dict[str, Any], context: str, epsilon: float
) -> None:
    release = release_of(context, epsilon=epsilon, **settings)
    code = Code()
    for people in groups(release):
        laws = [code.law(release, person) for person in people]
        # The budget is used, and not a bit more; by the questions about levels alone, too.
        assert worst_ratio(laws) == odds(epsilon) <= power_of_e(epsilon)[0]
        said = [about_levels(law, release) for law in laws]
        assert worst_ratio(said) == odds(epsilon)
        # Axis and row are drawn without a look at the person.
        shares = [shares_of(law) for law in laws]
        assert all(each == shares[0] for each in shares)
        assert sum(shares[0].values()) == 1


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("population", [0, 1])
def test_two_arms_of_logged_rows_share_a_cell_for_each_level(
    epsilon: float, population: int
) -> None:
    release = release_of("levels", epsilon=epsilon, arms=2)
    code, rows = Code(), people_of(release, logged=True)
    laws = [code.law(release, row, population=population) for row in rows]
    assert worst_ratio([about_levels(law, release) for law in laws]) == odds(epsilon)
    assert worst_ratio(laws) == odds(epsilon) <= power_of_e(epsilon)[0]
    assert all(shares_of(law) == shares_of(laws[0]) for law in laws)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_each_row_is_drawn_as_often_and_only_where_levels_are_no_cells(
    epsilon: float, settings: dict[str, Any], context: str
) -> None:
    release = release_of(context, epsilon=epsilon, **settings)
    rows = epsilon == 0.5 or "guarantee" in settings
    for people in groups(release):
        shares = shares_of(about_levels(Code().law(release, people[0]), release))
        by_kind: dict[int, dict[int, Fraction]] = {}
        for (number, _), share in shares.items():
            question = question_of(number, release.experiment)
            by_kind.setdefault(question.kind, {})[question.row] = share
        assert len(by_kind) >= 2
        for found in by_kind.values():
            assert sorted(found) == ([0, 1, 2, 3] if rows else [0])
            assert len(set(found.values())) == 1


def means_of(law: Law, release: sv.Release, *, by_arm: bool) -> dict[int, list[Fraction]]:
    """The mean of value/β in each cell, for each row of the questions of one kind."""
    layout = cell_layout(release, population=0, by_arm=by_arm)
    assert layout is not None
    mechanism = layout.mechanism(release.experiment.dimension - 1).mechanism
    a, w = mechanism.ratio, Fraction(mechanism.size)
    beta = w * (a - 1) / (2 * mechanism.cells + w * (a - 1))
    means = {}
    for (number, _), payloads in law.items():
        share = sum(payloads.values())
        cells = [Fraction(0)] * mechanism.cells
        for parts, chance in payloads.items():
            for payload, more in law_of_payload(parts).items():
                for cell, value in enumerate(unpack(mechanism, payload)):
                    cells[cell] += value * chance * more / share / beta
        means[question_of(number, release.experiment).row] = cells
    return means


@pytest.mark.parametrize("settings", [{}, {"guarantee": "certified"}], ids=str)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_answers_of_all_rows_together_measure_each_level_by_itself(
    kind: int, epsilon: float, settings: dict[str, Any]
) -> None:
    """Exactly: Σ over rows of sign·value/β, over their number, is v in the own level, 0 elsewhere.

    Summed over people that is p·q·v, with p in the bin and q of these in the level.
    """
    release = release_of("levels", epsilon=epsilon, **settings)
    numbers = range(kind * 6, kind * 6 + 6)  # no axis, the first axis, four rows
    matrix, code = hadamard(4), Code()
    for secret, y in people_of(release):
        law = code.law(release, (secret, y))
        about = about_levels(law, release)
        said = {coins: each for coins, each in about.items() if coins[0] in numbers}
        means = means_of(said, release, by_arm=False)
        value = Fraction(0)
        settled = release.policies[secret.path].settled
        if y is not None and not settled:
            value = [2 * Fraction(y) - 1, 2 * Fraction(y) - 1, Fraction(1)][kind]
            if kind == 0 and secret.arm != release.policies[secret.path].arms[0]:
                value = -value
        own, whole = int(secret.point[-1] * 3), {"0": 0, "11": 1}.get(secret.path)
        for index, level in itertools.product(range(2), range(3)):
            if len(means) == 1:  # each level is a cell
                (found,) = (cells[3 * index + level] for cells in means.values())
            else:
                assert sorted(means) == [0, 1, 2, 3]
                signed = (matrix[row][level] * cells[index] for row, cells in means.items())
                found = sum(signed, Fraction(0)) / 4
            assert found == (value if (index, level) == (whole, own) else 0)


def test_signs_are_those_of_sylvester_s_matrix() -> None:
    for size in (1, 2, 4, 8, 64, 1024):
        matrix = hadamard(size)
        some = range(0, size, max(1, size // 37))
        for row, level in itertools.product([*some, size - 1], repeat=2):
            assert pattern_sign(row, level) == matrix[row][level]
    # Row 0 has no minus: it asks about the whole bin.
    assert {pattern_sign(0, level) for level in range(1024)} == {1}


@pytest.mark.parametrize("levels", [3, 4, 5, 9, 17])
def test_any_two_levels_have_the_same_sign_in_half_of_the_rows(levels: int) -> None:
    rows = 1 << (levels - 1).bit_length()
    for one, other in itertools.product(range(levels), repeat=2):
        total = sum(pattern_sign(row, one) * pattern_sign(row, other) for row in range(rows))
        assert total == (rows if one == other else 0)


@pytest.mark.parametrize("levels", [3, 5, 1000, 1024])
def test_a_person_is_in_the_part_of_their_level(levels: int) -> None:
    for level in {0, 1, levels // 2, levels - 2, levels - 1}:
        for row in (0, 1, 2, levels - 1):
            found = part_and_sign((level + 0.5) / levels, math.nan, levels, row)
            assert found == (level, pattern_sign(row, level))


def test_levels_of_logged_rows_have_a_cell_for_each_arm() -> None:
    release = release_of("levels", epsilon=8.0)
    layout = cell_layout(release, population=0, by_arm=True)
    assert layout is not None
    cells = layout.mechanism(1)
    assert (cells.parts, cells.elsewhere, cells.mechanism.cells) == (3, True, 3 * 4 + 1)
    order = [("0", 0), ("0", 2), ("11", 0), ("11", 1)]
    for secret, y in people_of(release, logged=True):
        for kind in (OUTCOME, COUNT):
            told = true_answer(release, layout, Question(kind, 1), secret=secret, outcome=y)
            mine = (secret.path, secret.arm)
            if y is None or mine not in order:
                assert told == (12, 0.0)
            else:
                cell = 3 * order.index(mine) + int(secret.point[1] * 3)
                assert told == (cell, 1.0 if kind == COUNT else 2 * y - 1)


def test_an_axis_is_asked_about_as_often_as_the_release_says() -> None:
    """Every coin of 1024, and where some axis is asked about never."""
    for ask in [(624, 250, 150), (0, 1024, 0), (1, 0, 1023), (1023, 0, 1), (0, 1, 1023)]:
        axes = [asked_axis(ask, coin) for coin in range(1024)]
        assert [axes.count(axis) for axis in (-1, 0, 1)] == list(ask)


# --- proof that the checks can fail ---------------------------------------------------------------


def faults(code: Code, release: sv.Release) -> set[str]:
    """Say what the code breaks: privacy, which is checked exactly, or only its answers."""
    found, right = set(), Code()
    for people in groups(release):
        try:
            laws = [code.law(release, person) for person in people]
        except (SottovoceError, ArithmeticError):
            return {"fails"}
        ratio = worst_ratio(laws)
        if ratio is None or ratio > power_of_e(release.experiment.epsilon)[0]:
            found.add("privacy")
        if laws != [right.law(release, person) for person in people]:
            found.add("answers")
    return found


DRAW = "    question = draw_question(release, population=population, logged=secret.logged)\n"
BREAK_PRIVACY = {
    "the row is the person's level": (
        DRAW,
        DRAW
        + "    if question.axis == 1:\n"
        + "        row = int(secret.point[1] * 3)\n"
        + "        question = Question(question.kind, 1, row)\n",
    ),
    "only people with the first level are asked about levels": (
        DRAW,
        DRAW
        + "    if question.axis == 1 and secret.point[1] > 1 / 3:\n"
        + "        question = Question(question.kind, 0)\n",
    ),
    "the number of the question is that of a row with a plus": (
        "number, tells = question.number(experiment),",
        "number, tells = question.number(experiment)"
        " + (question.axis == 1 and secret.point[1] > 0.5),",
    ),
}


@pytest.mark.parametrize("what", BREAK_PRIVACY)
def test_code_that_breaks_privacy_is_caught(what: str) -> None:
    assert "privacy" in faults(Code(BREAK_PRIVACY[what]), release_of("levels", epsilon=0.5))


WRONG_ONLY = {
    "no row has a minus": ("return 1 - 2 * (bits & 1)", "return 1", 0.5),
    "the row is not drawn": ("draws.below(1 if divided else count)", "0", 0.5),
    "a row is never drawn": (
        "draws.below(1 if divided else count)",
        "draws.below(1 if divided else max(1, count - 1))",
        0.5,
    ),
    "a level's sign is that of the next": (
        "pattern_sign(row, level)\n",
        "pattern_sign(row, level + 1)\n",
        0.5,
    ),
    "a level's cell is that of the next": (
        "return level, pattern_sign",
        "return (level + 1) % levels, pattern_sign",
        8.0,
    ),
    "the release's shares of axes are not used": (
        "asked_axis(release.ask, ",
        "asked_axis((3, 1, 0), ",
        0.5,
    ),
}


@pytest.mark.parametrize("what", WRONG_ONLY)
def test_code_that_asks_or_answers_wrongly_is_private_all_the_same(what: str) -> None:
    old, new, epsilon = WRONG_ONLY[what]
    assert faults(Code((old, new)), release_of("levels", epsilon=epsilon)) == {"answers"}


def test_the_unchanged_code_has_no_faults() -> None:
    for context, epsilon in itertools.product(CONTEXTS, (0.5, 8.0)):
        assert faults(Code(), release_of(context, epsilon=epsilon)) == set()


def test_the_public_ranking_goes_out_with_ranked_answers_about_levels() -> None:
    release = release_of("levels", epsilon=0.5, public_arms=True)
    person = people_of(release, ranking=(2, 1, 0))[0]
    for number, ranking in Code().law(release, person):
        kind = question_of(number, release.experiment).kind
        assert ranking == ((2, 1, 0) if kind == RANKED else ())
