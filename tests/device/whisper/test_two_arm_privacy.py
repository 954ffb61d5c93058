"""Whole reports of logged rows in an experiment with two arms are ε-LDP, exactly.

There one cell is for both arms: which of them a row had is told by the sign of OUTCOME alone, and
LOGGED_LEVEL does not ask for it. The law of a report, the question's coin included, is worked out
by following every draw of the device's code.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import ASK, COUNT, LOGGED_LEVEL, OUTCOME, experiment, uniform
from sottovoce.device.method import Secret
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from support.slow import slow_but
from support.subset import power_of_e
from support.whole_reports import Code, Input, Law, shares_of, worst_ratio

EPSILONS = [0.5, 2.0, 4.0, 8.0]  # at 4, halves are cells for some questions and not for others
OUTCOMES = (0.0, 0.3, 1.0)
UNKNOWN, OTHER, KNOWN = range(3)  # the populations; the first is the target, with a log of its own


def release_of(*, epsilon: float, **settings: Any) -> sv.Release:
    """Two contested bins, and two that are settled, for different arms."""
    other = sv.Population("clinic-b", 16.0, 10)
    known = sv.Population("clinic-c", epsilon, 10, (0.3, 0.7))
    public = experiment(
        arms=["control", "coach"],
        epsilon=epsilon,
        method=sv.Whisper(**settings),
        auxiliary=[other, known],
    )
    bins = (uniform("00", 0, 1), uniform("01", 0), uniform("10", 1), uniform("11", 0, 1))
    return sv.Release(public, 1, Partition(2, {"": 0, "0": 1, "1": 1}), bins, 24, ASK)


def rows(release: sv.Release) -> list[Input]:
    """Everybody who may be in a log: bin, half along each feature, arm and outcome."""
    found = []
    for policy in release.bins:
        box = release.partition.box(policy.path)
        quarters = [(low + (high - low) / 4, high - (high - low) / 4) for low, high in box]
        for point, arm, y in itertools.product(itertools.product(*quarters), (0, 1), OUTCOMES):
            found.append((Secret(point, policy.path, arm, logged=True), y))
    return found


def odds(epsilon: float) -> Fraction:
    """The largest number of 64 bits behind the point that is no more than e^ε."""
    return Fraction(math.floor(2**64 * power_of_e(epsilon)[0]), 2**64)


def of_kind(law: Law, kind: int) -> Law:
    """What is said in answer to the questions of one kind; there are two features."""
    return {coins: payloads for coins, payloads in law.items() if coins[0] // 3 == kind}


def faults(code: Code, release: sv.Release, *, population: int) -> set[str]:
    """Say what the code breaks: privacy, which is checked exactly, or only its answers."""
    try:
        laws = [code.law(release, row, population=population) for row in rows(release)]
    except (SottovoceError, ArithmeticError):
        return {"fails"}
    found, right = set(), Code()
    ratio = worst_ratio(laws)
    if ratio is None or ratio > power_of_e(release.experiment.epsilon)[0]:
        found.add("privacy")
    if laws != [right.law(release, row, population=population) for row in rows(release)]:
        found.add("answers")
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("population", [UNKNOWN, KNOWN], ids=["unknown", "known"])
@pytest.mark.parametrize(
    "settings",
    slow_but([{}], [{}, {"public_arms": True}, {"guarantee": "certified"}]),
    ids=str,
)
def test_no_two_rows_differ_by_more_than_e_to_the_epsilon_in_anything_they_may_say(
    settings: dict[str, Any], population: int, epsilon: float
) -> None:
    release = release_of(epsilon=epsilon, **settings)
    laws = [Code().law(release, row, population=population) for row in rows(release)]
    assert len(laws) == 4 * 4 * 2 * len(OUTCOMES)
    # The budget is used, and not a bit more, by each kind of question.
    for kind in (OUTCOME, COUNT, LOGGED_LEVEL):
        said = [of_kind(law, kind) for law in laws]
        assert worst_ratio(said) == odds(epsilon) <= power_of_e(epsilon)[0]
    assert worst_ratio(laws) == odds(epsilon)
    # There is no other question, and each is asked of everybody alike.
    shares = [shares_of(law) for law in laws]
    assert all(each == shares[0] for each in shares)
    assert {number // 3 for number, _ in shares[0]} == {OUTCOME, COUNT, LOGGED_LEVEL}
    assert all(ranking == () for _, ranking in shares[0])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("population", [UNKNOWN, KNOWN], ids=["unknown", "known"])
def test_each_question_is_asked_as_often_as_is_public(population: int, epsilon: float) -> None:
    """With the true shares, of 160: the same for whoever is in the log."""
    release = release_of(epsilon=epsilon)
    counts = 16 if population == KNOWN else 80
    expected = {COUNT: counts, LOGGED_LEVEL: 32, OUTCOME: 160 - 32 - counts}
    code = Code(few_ways=False)
    for row in rows(release)[:: len(OUTCOMES) * 2 + 1]:
        law = code.law(release, row, population=population)
        for kind, share in expected.items():
            asked = sum(shares_of(of_kind(law, kind)).values())
            assert asked == Fraction(share, 160)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_arm_changes_the_sign_of_a_difference_and_nothing_else(epsilon: float) -> None:
    """A row with one arm that went well says what a row with the other says that went badly."""
    release = release_of(epsilon=epsilon)
    for path, point in {"00": (0.1, 0.4), "11": (0.6, 0.9)}.items():
        laws = {
            (arm, y): Code().law(release, (Secret(point, path, arm, logged=True), y))
            for arm, y in itertools.product((0, 1), (0.0, 1.0))
        }
        for arm in (0, 1):
            assert of_kind(laws[arm, 0.0], OUTCOME) == of_kind(laws[1 - arm, 1.0], OUTCOME)
            assert of_kind(laws[arm, 0.0], OUTCOME) != of_kind(laws[arm, 1.0], OUTCOME)
        for y in (0.0, 1.0):
            assert of_kind(laws[0, y], LOGGED_LEVEL) == of_kind(laws[1, y], LOGGED_LEVEL)
            assert of_kind(laws[0, y], LOGGED_LEVEL) != of_kind(laws[0, 1 - y], LOGGED_LEVEL)


def test_whoever_is_in_a_settled_bin_says_the_same_with_either_arm() -> None:
    for epsilon in EPSILONS:
        release = release_of(epsilon=epsilon)
        laws = [
            Code().law(release, (secret, y))
            for secret, y in rows(release)
            if release.policies[secret.path].settled
        ]
        assert len(laws) == 2 * 4 * 2 * len(OUTCOMES)
        assert all(law == laws[0] for law in laws)


# --- proof that the check can fail ----------------------------------------------------------------

DRAW = "    question = draw_question(release, population=population, logged=secret.logged)\n"
LAYOUT = "layout = _layout(release, entry, population)\n        if layout is None:"
ANSWER = "        cell, value = true_answer("
WHISPER = "subset.whisper(mechanism, cell=cell, value=value)"
SEND = f"return RandomisedAnswer({WHISPER}, number, ranking)"
SETTLED = "release.policies[secret.path].settled"


def sending(payload: str) -> str:
    """Send something else; rows of a log are asked about cells only."""
    return f"return RandomisedAnswer({payload}, number, ranking)"


BREAK_PRIVACY = {
    "the question tells the arm, and not the sign": (
        DRAW,
        DRAW
        + "    if question.kind == Kind.OUTCOME and secret.arm == 1:\n"
        + "        question = Question(Kind.LOGGED_LEVEL, question.axis)\n",
    ),
    "the sign is told besides": (SEND, sending(f"{WHISPER} + bytes([value < 0])")),
    "the arm is told besides": (SEND, sending(f"{WHISPER} + bytes([secret.arm])")),
    "rows of a settled bin are not asked about both arms": (
        DRAW,
        DRAW
        + f"    if question.kind == Kind.LOGGED_LEVEL and {SETTLED}:\n"
        + "        question = Question(Kind.OUTCOME, question.axis)\n",
    ),
    "rows of a settled bin say nothing of how arms differ": (
        ANSWER,
        f"        if question.kind == Kind.OUTCOME and {SETTLED}:\n"
        "            return RandomisedAnswer(b'', number, ranking)\n" + ANSWER,
    ),
    "rows of a settled bin send a fixed set": (
        ANSWER,
        f"        if {SETTLED}:\n"
        "            return RandomisedAnswer(bytes(mechanism.length), number, ranking)\n" + ANSWER,
    ),
    "the first arm has a cell of its own": (
        LAYOUT,
        LAYOUT.replace("entry,", "entry._replace(cells=(entry.cells, 2)[secret.arm == 0]),"),
    ),
    "epsilon is doubled": (
        SEND,
        "told, other = mechanism.told**2, mechanism.other**2\n"
        "    mechanism = type(mechanism)(mechanism.cells, mechanism.size, told, other)\n"
        f"    {SEND}",
    ),
    "the answers to two questions are sent for the price of one": (
        SEND,
        sending(f"{WHISPER} + {WHISPER.replace('value=value', 'value=2 * outcome - 1')}"),
    ),
    "another population's epsilon is used": (
        LAYOUT,
        LAYOUT.replace("population)", f"{OTHER})"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("what", BREAK_PRIVACY)
def test_code_that_breaks_privacy_is_caught(what: str, epsilon: float) -> None:
    code, release = Code(BREAK_PRIVACY[what]), release_of(epsilon=epsilon)
    for population in (UNKNOWN, KNOWN):
        assert "privacy" in faults(code, release, population=population)


FIRST = "release.policies[secret.path].arms[0]"
WRONG_ONLY = {
    "a difference has no sign": (
        "_logged(Kind.OUTCOME, BINS, SIGNED_OUTCOME,",
        "_logged(Kind.OUTCOME, BINS, OUTCOME,",
    ),
    "the sign of the second arm is kept": (
        "if entry.value == SIGNED_OUTCOME and second:",
        "if entry.value == SIGNED_OUTCOME and second and not entry.logged:",
    ),
    "the sign is that of the other arm": (FIRST, FIRST.replace("[0]", "[-1]")),
    "the sum of both has a sign": (
        "Kind.LOGGED_LEVEL, BINS, OUTCOME,",
        "Kind.LOGGED_LEVEL, BINS, SIGNED_OUTCOME,",
    ),
    "the sum of both is a count": (
        "Kind.LOGGED_LEVEL, BINS, OUTCOME,",
        "Kind.LOGGED_LEVEL, BINS, ONE,",
    ),
    "everything has a sign": ("if entry.value == SIGNED_OUTCOME and second:", "if second:"),
    "each arm has a cell in every question": (
        LAYOUT,
        LAYOUT.replace("entry,", "entry._replace(cells=2),"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG_ONLY)
def test_code_that_answers_wrongly_is_private_all_the_same(what: str) -> None:
    """The mechanism does not care what the true answer is: privacy rests on one function alone."""
    for epsilon in EPSILONS:
        found = faults(Code(WRONG_ONLY[what]), release_of(epsilon=epsilon), population=KNOWN)
        assert found == {"answers"}


def test_the_unchanged_code_has_no_faults() -> None:
    for epsilon, population in itertools.product(EPSILONS, (UNKNOWN, KNOWN)):
        assert faults(Code(), release_of(epsilon=epsilon), population=population) == set()
