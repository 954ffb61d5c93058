"""People who are asked where they are: their whole report is ε-LDP, exactly, in every case.

At first some people and rows are asked whether they are at or above a public threshold of one axis
(SCALE, LOGGED_SCALE), also where their bin is settled and where nothing is contested at all. The
law of a report, the coins for question and axis included, is worked out by following every draw of
the device's code.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import ASK, experiment, uniform
from sottovoce.device.method import Secret
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from support.slow import slow_but
from support.subset import power_of_e
from support.whole_reports import Code, Input, Law, shares_of, spelled_out, worst_ratio

EPSILONS = [0.5, 2.0, 8.0]
OTHER_EPSILON = 3.0
OUTCOMES = (0.0, 0.3, 1.0, None)  # None: nothing to tell, a null report
SETTINGS: list[dict[str, Any]] = [{}, {"public_arms": True}, {"guarantee": "certified"}]
ASKED = (14, 3)  # the thresholds of both axes, counted from 1 …
AT = (0.5, 8 / 2048)  # … and where they are
# Below a threshold, on it and above, along each axis; just below, where no other one is between.
PLACES = [(0.499, AT[0], 1.0), (0.0, AT[1], 0.7)]
TAIL = tuple((piece / 32) ** 3 for piece in range(33))


def number(axis: int, *, logged: bool = False) -> int:
    """On the wire: after 8 kinds with 3 patterns each, 27 thresholds of 2 axes, twice."""
    return 24 + (2 * logged + axis) * 27 + ASKED[axis] - 1


def release_of(
    *, epsilon: float, contested: bool = True, audited: bool = True, **settings: Any
) -> sv.Release:
    """Two contested bins and a settled one, or two settled; the second axis has a scale."""
    auxiliary = [sv.Population("clinic-b", OTHER_EPSILON, 10)] if audited else []
    method = sv.Whisper(**settings)
    public = experiment(epsilon=epsilon, method=method, auxiliary=auxiliary)
    cuts = {"": 1, "1": 0} if contested else {"": 1}
    policies: tuple[Any, ...] = (uniform("0", 1), uniform("1", 0))
    if contested:
        policies = (uniform("0", 0, 2), uniform("10", 1), uniform("11", 0, 1))
    partition = Partition(2, cuts, scales={1: TAIL})
    release = sv.Release(public, 1, partition, policies, 24 * audited, ASK, 40, ASKED)
    assert sv.Release.from_table(release.to_table()) == release
    return release


def people_of(
    release: sv.Release, *, logged: bool = False, ranking: tuple[int, ...] = ()
) -> list[Input]:
    """Everybody: where they are, arm and outcome."""
    found: list[Any] = []
    for point in itertools.product(*PLACES):
        path = release.partition.find(point)
        policy = release.policies[path]
        given: Any = range(3) if logged else policy.arms
        if ranking:
            given = (min(policy.arms, key=ranking.index),)
        for arm, y in itertools.product(given, OUTCOMES):
            found.append((Secret(point, path, arm, logged=logged, ranking=ranking), y))
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


def about_places(law: Law) -> Law:
    """What is said in answer to questions about places."""
    return {coins: said for coins, said in law.items() if coins[0] in ABOUT_PLACES}


ABOUT_PLACES = range(24, 132)  # the numbers on the wire: 27 thresholds, 2 axes, people and rows
FOR_REWARD = (18, 132, 133)  # the reward alone, or with the bin, or the bin alone


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("contested", [True, False], ids=["contested", "settled"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_no_two_places_differ_by_more_than_e_to_the_epsilon_in_anything_they_may_say(
    settings: dict[str, Any], contested: bool, epsilon: float
) -> None:
    release = release_of(epsilon=epsilon, contested=contested, **settings)
    code = Code()
    for people in groups(release):
        laws = [code.law(release, person) for person in people]
        # The budget is used, and not a bit more; by the questions about places alone, too.
        assert worst_ratio(laws) == odds(epsilon) <= power_of_e(epsilon)[0]
        assert worst_ratio([about_places(law) for law in laws]) == odds(epsilon)
        # The question and its axis are drawn without a look at the person.
        shares = [shares_of(law) for law in laws]
        assert all(each == shares[0] for each in shares)
        assert sum(shares[0].values()) == 1


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("logged", [False, True])
def test_people_of_each_population_answer_under_their_own_epsilon(
    epsilon: float, logged: bool
) -> None:
    release, code = release_of(epsilon=epsilon), Code()
    for population, own in enumerate((epsilon, OTHER_EPSILON)):
        people = people_of(release, logged=logged)
        laws = [code.law(release, person, population=population) for person in people]
        assert worst_ratio(laws) == odds(own)
        assert worst_ratio([about_places(law) for law in laws]) == odds(own)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("contested", [True, False], ids=["contested", "settled"])
def test_as_many_as_the_release_says_are_asked_where_they_are_whoever_they_are(
    contested: bool, settings: dict[str, Any]
) -> None:
    """With the true shares: 24 of 160 for the reward, 40 of 160 others; each axis as often."""
    release = release_of(epsilon=2.0, contested=contested, **settings)
    nobody = replace(release, scale_share=0, thresholds=())
    code = Code(few_ways=False)
    for people in groups(release):
        for person in people[:: len(OUTCOMES) + 3]:
            secret, _ = person
            shares = shares_of(code.law(release, person))
            asked = Fraction(1, 4) if secret.logged else Fraction(17, 20) / 4
            for axis in range(2):
                assert shares.pop((number(axis, logged=secret.logged), ())) == asked / 2
            usual = shares_of(code.law(nobody, person))
            reward = {coins: share for coins, share in usual.items() if coins[0] in FOR_REWARD}
            assert bool(reward) != secret.logged
            others = {coins: share * Fraction(3, 4) for coins, share in usual.items()}
            assert shares == {**others, **reward}


@pytest.mark.parametrize("share", [1, 159, 160])
@pytest.mark.parametrize("thresholds", [(27, 0), (0, 1), (1, 27)])
def test_a_release_may_ask_about_any_threshold_of_some_axes_or_all(
    thresholds: tuple[int, int], share: int
) -> None:
    release = replace(
        release_of(epsilon=2.0, audited=False), scale_share=share, thresholds=thresholds
    )
    told = [axis for axis in range(2) if thresholds[axis]]
    people = [person for person in people_of(release) if person[1] in (1.0, None)]
    for point in ((0.0, 0.0), (1.0, 1.0)):  # below every threshold, and above
        path = release.partition.find(point)
        secret = Secret(point, path, release.policies[path].arms[0])
        people[:0] = [(secret, 1.0)] * 3
    laws = [Code(few_ways=False).law(release, person) for person in people[::3]]
    shares = shares_of(laws[0])
    places = {coins[0]: each for coins, each in shares.items() if coins[0] in ABOUT_PLACES}
    numbers = {24 + 27 * axis + thresholds[axis] - 1 for axis in told}
    assert places == dict.fromkeys(numbers, Fraction(share, 160) / len(told))
    assert all(shares_of(law) == shares for law in laws)
    assert worst_ratio(laws) == odds(2.0)


@pytest.mark.parametrize("epsilon", slow_but([2.0], EPSILONS))
def test_the_answer_says_whether_a_person_is_at_or_above_the_threshold_and_nothing_else(
    epsilon: float,
) -> None:
    """Randomised response in full, whatever arm, outcome, bin and population of bins."""
    a, share = odds(epsilon), Fraction(1, 4) / 2  # with shares for fewer ways
    for contested, logged in itertools.product((True, False), repeat=2):
        release = release_of(epsilon=epsilon, contested=contested, audited=False)
        for secret, outcome in people_of(release, logged=logged):
            law = Code().law(release, (secret, outcome))
            for axis in range(2):
                said = spelled_out(law[number(axis, logged=logged), ()])
                above = secret.point[axis] >= AT[axis]
                plus = share * (a if above else 1) / (1 + a)
                if outcome is None:  # a null report: a fair coin, wherever they are
                    plus = share / 2
                assert said == {b"\1": plus, b"\0": share - plus}


def test_epsilon_is_spent_once_by_whoever_tells_where_they_are() -> None:
    for contested in (True, False):
        release = release_of(epsilon=2.0, contested=contested)
        asked = set()
        for person in people_of(release)[::3]:
            for told, _, purse in Code().ways(release, person):
                if told.question in ABOUT_PLACES:
                    once = (2.0, release.experiment.fingerprint, release.experiment.name, 1)
                    assert purse.spent == [once]
                    asked.add(told.question)
        assert asked == {number(0), number(1)}


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
MECHANISM = "        mechanism = one_cell_mechanism(experiment, population)\n"
EVERYBODY_S = "answer_of_everybody(experiment, question, secret=secret, outcome=outcome)"
ANSWER = f"        cell, value = {EVERYBODY_S}\n"
WHISPER = "subset.whisper(mechanism, cell=cell, value=value)"
SEND = f"return RandomisedAnswer({WHISPER}, number, ranking)"
ABOUT = "question.kind in (Kind.SCALE, Kind.LOGGED_SCALE)"


def sending(payload: str) -> str:
    """Send something else in answer to the question about places."""
    sent = f"{payload} if {ABOUT} else {WHISPER}"
    return f"return RandomisedAnswer({sent}, number, ranking)"


BREAK_PRIVACY = {
    "the odds are squared, that is the noise is halved": (
        MECHANISM,
        MECHANISM
        + "        told, other = mechanism.told**2, mechanism.other**2\n"
        + "        mechanism = type(mechanism)(1, 1, told, other)\n",
    ),
    "the odds are those of another population": (
        MECHANISM,
        MECHANISM.replace("population)", "1)"),
    ),
    "people far up are asked about the other axis": (
        DRAW,
        DRAW
        + f"    if {ABOUT} and secret.point[0] > 0.5:\n"
        + f"        question = Question(question.kind, 1, {ASKED[1] - 1})\n",
    ),
    "the threshold is near the person": (
        DRAW,
        DRAW
        + f"    if {ABOUT} and secret.point[question.axis] > 0.5:\n"
        + "        question = Question(question.kind, question.axis, question.row + 1)\n",
    ),
    "only those above the threshold answer": (
        ANSWER,
        ANSWER
        + f"        if {ABOUT} and value < 0:\n"
        + "            return RandomisedAnswer(b'', number, ranking)\n",
    ),
    "the place is told twice": (SEND, sending(f"{WHISPER} + {WHISPER}")),
    "the place is told in the clear": (SEND, sending("bytes([int(value > 0)])")),
    "the outcome is told besides": (SEND, sending(f"{WHISPER} + bytes([outcome is None])")),
}


@pytest.mark.parametrize("what", BREAK_PRIVACY)
def test_code_that_breaks_privacy_is_caught(what: str) -> None:
    assert "privacy" in faults(Code(BREAK_PRIVACY[what]), release_of(epsilon=2.0))


WRONG_ONLY = {
    "the sign is flipped": (
        "2.0 * (position >= threshold) - 1.0",
        "1.0 - 2.0 * (position >= threshold)",
    ),
    "people on a threshold say that they are below": (
        "position >= threshold",
        "position > threshold",
    ),
    "the threshold is the next one": ("THRESHOLDS[question.row]", "THRESHOLDS[question.row + 1]"),
    "the axis is the other one": (
        "secret.point[question.axis], T",
        "secret.point[1 - question.axis], T",
    ),
    "the value is half": (
        "2.0 * (position >= threshold) - 1.0",
        "1.0 * (position >= threshold) - 0.5",
    ),
    "null reports tell the truth": ("((0, value), (None, 0.0))", "((0, value), (0, value))"),
    "everybody sends noise": ("((0, value), (None, 0.0))", "((None, 0.0), (None, 0.0))"),
    "one axis is never asked about": ("axes[draws.below(len(axes))]", "axes[0]"),
}


@pytest.mark.parametrize("what", WRONG_ONLY)
def test_code_that_asks_or_answers_wrongly_is_private_all_the_same(what: str) -> None:
    assert faults(Code(WRONG_ONLY[what]), release_of(epsilon=2.0)) == {"answers"}


def test_the_unchanged_code_has_no_faults() -> None:
    for epsilon in EPSILONS:
        assert faults(Code(), release_of(epsilon=epsilon)) == set()
