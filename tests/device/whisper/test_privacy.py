"""Whole reports of ``whisper`` are ε-LDP: exactly, for every question and every private input.

A report is what ``privatise`` returns: the question, the ranking and the packed set. Its law is
worked out by following every draw of the device's own code. What is public is the same for all who
are compared: the release, the population, whether rows are logged and, with public arms, the
ranking.
"""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.method import Secret
from sottovoce.device.whisper import answer, draw
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.whisper import questions
from sottovoce.shared.whisper.cells import cell_layout
from support.slow import slow_but
from support.subset import power_of_e
from support.whole_reports import Code, Input, shares_of, worst_ratio

EPSILONS = [0.5, 2.0, 8.0]
OUTCOMES = (0.0, 0.3, 1.0)


def uniform(path: str, *arms: int, waiting: tuple[int, ...] = ()) -> BinPolicy:
    return BinPolicy(path, arms, (1 / len(arms),) * len(arms), waiting)


REWARD_SHARE = 24  # what a learner starts with
ASK = (704, 160, 160)  # of no axis, and of each


def release_of(bins: int, *, epsilon: float, **settings: Any) -> sv.Release:
    """So many contested bins, and a settled one."""
    method = sv.Whisper(**settings)
    other = sv.Population("clinic-b", 16.0, 10)
    public = experiment(epsilon=epsilon, method=method, auxiliary=[other])
    if bins == 2:
        policies = [uniform("0", 0, 2), uniform("10", 1), uniform("11", 0, 1)]
        cuts = Partition(2, {"": 0, "1": 1})
        return sv.Release(public, 1, cuts, tuple(policies), REWARD_SHARE, ASK)
    middle = uniform("01", 0, 1, 2) if method.public_arms else uniform("01", 0, 1, waiting=(2,))
    policies = [uniform("00", 0, 2), middle, uniform("10", 1), uniform("11", 1, 2)]
    cuts = Partition(2, {"": 0, "0": 1, "1": 1})
    return sv.Release(public, 1, cuts, tuple(policies), REWARD_SHARE, ASK)


def inputs(release: sv.Release, *, logged: bool, ranking: tuple[int, ...] = ()) -> list[Input]:
    """Everybody who may have sent a report: bin, half along each feature, arm and outcome."""
    found = []
    for policy in release.bins:
        box = release.partition.box(policy.path)
        quarters = [(low + (high - low) / 4, high - (high - low) / 4) for low, high in box]
        for point in itertools.product(*quarters):
            arms: tuple[int, ...] = policy.arms
            if logged:
                arms = (0, 1, 2)
            elif ranking:
                arms = (min(policy.arms, key=ranking.index),)
            for arm, outcome in itertools.product(arms, OUTCOMES):
                secret = Secret(point, policy.path, arm, logged=logged, ranking=ranking)
                found.append((secret, outcome))
    return found


def groups(release: sv.Release) -> Iterator[list[Input]]:
    """Those who must not be told apart: served, for each ranking; logged."""
    settings = release.experiment.settings
    assert isinstance(settings, sv.Whisper)
    rankings = itertools.permutations(range(3)) if settings.public_arms else iter([()])
    for ranking in rankings:
        yield inputs(release, logged=False, ranking=ranking)
    yield inputs(release, logged=True)


def faults(code: Code, release: sv.Release) -> set[str]:
    """Say what the code breaks: privacy, which is checked exactly, or only its answers."""
    least, _ = power_of_e(release.experiment.epsilon)
    found, right = set(), Code()
    for people in groups(release):
        try:
            laws = [code.law(release, person) for person in people]
        except (SottovoceError, ArithmeticError):
            return {"fails"}
        ratio = worst_ratio(laws)
        if ratio is None or ratio > least:
            found.add("privacy")
        if laws != [right.law(release, person) for person in people]:
            found.add("answers")
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("bins", slow_but([2], [2, 3]))
@pytest.mark.parametrize(
    "settings", [{}, {"public_arms": True}, {"guarantee": "certified"}], ids=str
)
def test_no_two_people_differ_by_more_than_e_to_the_epsilon_in_anything_they_may_say(
    settings: dict[str, Any], bins: int, epsilon: float
) -> None:
    release = release_of(bins, epsilon=epsilon, **settings)
    assert len(release.contested) == bins
    least, _ = power_of_e(epsilon)
    # The budget is used, but for the last of 64 bits.
    expected = Fraction(math.floor(least * 2**64), 2**64)
    code = Code()
    for people in groups(release):
        laws = [code.law(release, person) for person in people]
        assert worst_ratio(laws) == expected <= least
        # Every question is there, and is asked of everybody alike.
        questions = [shares_of(law) for law in laws]
        assert all(each == questions[0] for each in questions)
        # Kinds × (whole, features); and those who were served may be asked how it went, in one way
        # or in three.
        served = not people[0][0].logged
        assert len(questions[0]) - served * (1 if settings else 3) in (4, 6, 9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_budget_of_a_population_is_its_own(epsilon: float) -> None:
    """The other population has ε = 16; the target's people must not be held to that."""
    release = release_of(2, epsilon=epsilon)
    for by_arm in (False, True):
        layouts = [cell_layout(release, population=m, by_arm=by_arm) for m in (0, 1)]
        for axis in (None, 0, 1):
            asked = [layout.mechanism(axis) for layout in layouts if layout is not None]
            own, other = (cells.mechanism for cells in asked)
            assert own.ratio <= power_of_e(epsilon)[0] < other.ratio


# --- proof that the check can fail ----------------------------------------------------------------

DRAW = "    question = draw_question(release, population=population, logged=secret.logged)\n"
LAYOUT = "layout = _layout(release, entry, population)\n        if layout is None:"
ANSWER = "        cell, value = true_answer("
WHISPER = "subset.whisper(mechanism, cell=cell, value=value)"
SEND = f"return RandomisedAnswer({WHISPER}, number, ranking)"
ABOUT_CELLS = "entry.cells != EVERYBODY"  # all questions but the one about the reward alone
CELL = "(secret.path, secret.arm if layout.by_arm else None)"
ELSEWHERE = "(cells.mechanism.cells - 1 if cells.elsewhere else None)"


def sending(payload: str) -> str:
    """Send something else in answer to questions about cells."""
    return f"return RandomisedAnswer({payload} if {ABOUT_CELLS} else {WHISPER}, number, ranking)"


BREAK_PRIVACY = {
    "which half is asked about depends on where one is": (
        DRAW,
        DRAW + "    question = Question(question.kind, int(secret.point[0] >= 0.5))\n",
    ),
    "what is asked depends on the outcome": (
        DRAW,
        DRAW + "    if outcome == 1:\n        question = Question(Kind.MASS, question.axis)\n",
    ),
    "whoever has no cell sends nothing": (
        ANSWER,
        f"        if {CELL} not in layout.indices:\n"
        "            return RandomisedAnswer(b'', number, ranking)\n" + ANSWER,
    ),
    "whoever has no cell sends a fixed set": (
        ANSWER,
        f"        if {CELL} not in layout.indices:\n"
        "            return RandomisedAnswer(bytes(mechanism.length), number, ranking)\n" + ANSWER,
    ),
    "the arm decides on the cells": (
        LAYOUT,
        LAYOUT.replace("entry,", "entry._replace(cells=(1, 2)[secret.arm == 0]),"),
    ),
    "two sets are sent for the price of one": (SEND, sending(f"{WHISPER} + {WHISPER}")),
    "the outcome is told besides": (SEND, sending(f"{WHISPER} + bytes([int(outcome > 0.5)])")),
    "the noise is halved, that is the odds are squared": (
        "        mechanism = layout.mechanism(question.axis).mechanism\n",
        "        odds = layout.mechanism(question.axis).mechanism\n"
        "        told, other = odds.told**2, odds.other**2\n"
        "        mechanism = type(odds)(odds.cells, odds.size, told, other)\n",
    ),
    "another population's epsilon is used": (
        LAYOUT,
        LAYOUT.replace("population)", "1)"),
    ),
    "the arm is told as a ranking": (
        "ranking = secret.ranking if entry.ranked else ()",
        "ranking = (secret.arm,)",
    ),
    "the number of the question tells the outcome": (
        "number, tells = question.number(experiment),",
        "number, tells = question.number(experiment) + (outcome > 0.5),",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("what", BREAK_PRIVACY)
def test_code_that_breaks_privacy_is_caught(what: str, epsilon: float) -> None:
    release = release_of(2, epsilon=epsilon)
    assert "privacy" in faults(Code(BREAK_PRIVACY[what]), release)


WRONG_ONLY = {
    "the sign of a contrast is that of another arm": (
        "secret.arm != release.policies[secret.path].arms[0]",
        "secret.arm != release.policies[secret.path].arms[-1]",
        EPSILONS,
    ),
    "whoever has no cell is in the first one": (ELSEWHERE, "0", EPSILONS),
    "whoever has no cell sends noise, though there is a place for them": (
        ELSEWHERE,
        "None",
        [2.0, 8.0],
    ),
    "an outcome of 0 is nowhere": (
        "[whole < 0 or outcome is None or silent]",
        "[whole <= 0 or not outcome or silent]",
        EPSILONS,
    ),
    "the halves are the wrong way round": (
        "half = int(position >= middle)",
        "half = int(position < middle)",
        EPSILONS,
    ),
    "a count has a sign": (
        "1.0 if entry.value == ONE else reward",
        "1.0 if entry.kind == Kind.MASS else reward",
        EPSILONS,
    ),
    "a count has a sign, by the table": (
        "_logged(Kind.COUNT, BIN_ARMS, ONE,",
        "_logged(Kind.COUNT, BIN_ARMS, OUTCOME,",
        EPSILONS,
    ),
    "a mass has a sign, by the table": (
        "_served(Kind.MASS, BINS, ONE,",
        "_served(Kind.MASS, BINS, OUTCOME,",
        EPSILONS,
    ),
    "a contrast has no sign, by the table": (
        "_served(Kind.CONTRAST, BINS, SIGNED_OUTCOME,",
        "_served(Kind.CONTRAST, BINS, OUTCOME,",
        EPSILONS,
    ),
    "the lower half of a bin has the sign of the upper": (
        "return half, 2 * half - 1",
        "return half, 1",
        [0.5, 2.0],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG_ONLY)
def test_code_that_answers_wrongly_is_private_all_the_same(what: str) -> None:
    """The mechanism does not care what the true answer is: privacy rests on one function alone."""
    old, new, epsilons = WRONG_ONLY[what]
    for epsilon in epsilons:
        assert faults(Code((old, new)), release_of(2, epsilon=epsilon)) == {"answers"}


@pytest.mark.parametrize(
    ("mutation", "epsilon"),
    [
        (("value = 1.0 if", "value = 2.0 if"), 0.5),
        (
            (
                "if parts > 1:\n        return parts * whole + part",
                "if part == 1:\n        return 2 * whole + 2",
            ),
            0.5,
        ),
    ],
)
def test_code_that_leaves_the_range_of_the_mechanism_fails(
    mutation: tuple[str, str], epsilon: float
) -> None:
    assert faults(Code(mutation), release_of(2, epsilon=epsilon)) == {"fails"}


def test_the_unchanged_code_has_no_faults() -> None:
    for epsilon in EPSILONS:
        assert faults(Code(), release_of(2, epsilon=epsilon)) == set()


def test_each_piece_of_a_mutant_uses_the_others() -> None:
    code = Code()
    parts = code.modules
    assert parts["method"].draw_question is parts["draw"].draw_question is not draw.draw_question
    assert parts["method"].true_answer is parts["answer"].true_answer is not answer.true_answer
    assert parts["answer"].own_cell is not answer.own_cell
    assert parts["draw"].asked_kind is parts["answer"].asked_kind
    for name in ("answer", "draw", "method"):
        assert parts[name].questions_of is parts["questions"].questions_of
    assert parts["questions"].questions_of is not questions.questions_of
    assert parts["door"].Secret is Secret
