"""People who may be asked how it went: their whole report is ε-LDP, exactly, in every case.

In an experiment with auxiliary populations some of the target's people are asked nothing else
(REWARD), also where their bin is settled and where nothing is contested at all. Others of them tell
it for their bin, or their bin alone (``test_bin_reward_privacy.py``). The law of a
report, the question's coin included, is worked out by following every draw of the device's code.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import ASK, experiment, uniform
from sottovoce.device.method import Secret
from sottovoce.device.whisper import subset
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from sottovoce.shared.whisper.subset import SignedSubset
from support.slow import slow_but
from support.subset import exact_law, mutant, power_of_e
from support.whole_reports import Code, Input, Law, shares_of, spelled_out, worst_ratio

EPSILONS = [0.5, 2.0, 8.0]
OUTCOMES = (0.0, 0.3, 0.5, 1.0)
REWARD = 18  # the seventh kind, with two features
BIN_REWARD, BIN_MASS = 132, 133  # after 8 kinds with 3 patterns, and 2 with 27 thresholds of each


def release_of(
    *,
    epsilon: float,
    contested: bool = True,
    audited: bool = True,
    reward_share: int = 24,
    **settings: Any,
) -> sv.Release:
    """Two contested bins and a settled one; or two that are settled, for different arms."""
    method = sv.Whisper(**settings)
    auxiliary = [sv.Population("clinic-b", 16.0, 10)] if audited else []
    public = experiment(epsilon=epsilon, method=method, auxiliary=auxiliary)
    share = reward_share if audited else 0
    if not contested:
        bins = (uniform("0", 1), uniform("1", 0))
        return sv.Release(public, 1, Partition(2, {"": 0}), bins, share, ASK)
    policies = (uniform("0", 0, 2), uniform("10", 1), uniform("11", 0, 1))
    return sv.Release(public, 1, Partition(2, {"": 0, "1": 1}), policies, share, ASK)


def served(release: sv.Release, ranking: tuple[int, ...] = ()) -> list[Input]:
    """Everybody who may have been served: bin, half along each feature, arm and outcome."""
    found = []
    for policy in release.bins:
        box = release.partition.box(policy.path)
        quarters = [(low + (high - low) / 4, high - (high - low) / 4) for low, high in box]
        arms = (min(policy.arms, key=ranking.index),) if ranking else policy.arms
        for point, arm, y in itertools.product(itertools.product(*quarters), arms, OUTCOMES):
            found.append((Secret(point, policy.path, arm, ranking=ranking), y))
    return found


def groups(release: sv.Release) -> list[list[Input]]:
    """Those who must not be told apart: everybody, or everybody with the same public ranking."""
    settings = release.experiment.settings
    assert isinstance(settings, sv.Whisper)
    rankings = [(0, 1, 2), (2, 1, 0)] if settings.public_arms else [()]
    return [served(release, ranking) for ranking in rankings]


def odds(epsilon: float) -> Fraction:
    """The largest number of 64 bits behind the point that is no more than e^ε."""
    least, most = power_of_e(epsilon)
    assert math.floor(2**64 * least) == math.floor(2**64 * most)
    return Fraction(math.floor(2**64 * least), 2**64)


def estimate(law: Law, epsilon: float) -> Fraction:
    """The mean of value/β of those who are asked how it went: bit 1 is plus, bit 0 is minus."""
    (coins,) = [coins for coins in law if coins[0] == REWARD]
    said = spelled_out(law[coins])
    assert said.keys() <= {b"\0", b"\1"}
    share = sum(said.values())
    a = odds(epsilon)
    return (said[b"\1"] - said[b"\0"]) / share / ((a - 1) / (a + 1))


def faults(code: Code, release: sv.Release) -> set[str]:
    """Say what the code breaks: privacy, the ledger or the estimate; each is checked exactly."""
    epsilon = release.experiment.epsilon
    found = set()
    for people in groups(release):
        try:
            laws = [code.law(release, person) for person in people]
        except (SottovoceError, ArithmeticError):
            return {"fails"}
        ratio = worst_ratio(laws)
        if ratio is None or ratio > power_of_e(epsilon)[0]:
            found.add("privacy")
        if any(shares_of(law) != shares_of(laws[0]) for law in laws):
            found.add("coin")
        for person, law in zip(people, laws, strict=True):
            if (REWARD, ()) not in law or not is_right(law, person, epsilon):
                found.add("estimate")
        for person in people[:: len(OUTCOMES)]:  # each bin, place and arm
            for told, _, purse in code.ways(release, person):
                empty = told.payload == b"" and not hasattr(told.payload, "parts")
                spent = [each[0] for each in purse.spent]
                if spent != ([] if empty else [epsilon]):
                    found.add("ledger")
    return found


def is_right(law: Law, person: Input, epsilon: float) -> bool:
    try:
        return estimate(law, epsilon) == 2 * Fraction(person[1]) - 1
    except (AssertionError, KeyError):
        return False


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("contested", [True, False], ids=["contested", "settled"])
@pytest.mark.parametrize(
    "settings", [{}, {"public_arms": True}, {"guarantee": "certified"}], ids=str
)
def test_nothing_that_an_audited_person_may_say_differs_by_more_than_e_to_the_epsilon(
    settings: dict[str, Any], contested: bool, epsilon: float
) -> None:
    release = release_of(epsilon=epsilon, contested=contested, **settings)
    assert bool(release.contested) == contested
    code = Code()
    for people in groups(release):
        laws = [code.law(release, person) for person in people]
        # The budget is used, and not a bit more: where nothing is contested, by REWARD alone.
        assert worst_ratio(laws) == odds(epsilon) <= power_of_e(epsilon)[0]
        of_reward: list[Law] = [{(REWARD, ()): law[REWARD, ()]} for law in laws]
        assert worst_ratio(of_reward) == odds(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("contested", [True, False], ids=["contested", "settled"])
@pytest.mark.parametrize("settings", slow_but([{}], [{}, {"public_arms": True}]), ids=str)
def test_as_many_as_the_release_says_are_asked_how_it_went_whoever_they_are(
    settings: dict[str, Any], contested: bool, epsilon: float
) -> None:
    """With the true shares; the others are asked what they would be asked without an audit."""
    release = release_of(epsilon=epsilon, contested=contested, **settings)
    assert release.reward_share == 24  # of 160
    alone = release_of(epsilon=epsilon, contested=contested, audited=False, **settings)
    code = Code(few_ways=False)
    for people in groups(release):
        some = people[:: len(OUTCOMES) + 1]
        assert {release.policies[secret.path].settled for secret, _ in some} >= {True}
        for person in some:
            shares = shares_of(code.law(release, person))
            told = {kind: shares.pop((kind, ()), 0) for kind in (REWARD, BIN_REWARD, BIN_MASS)}
            of_them = (1, 0, 0) if settings else (64, 77, 19)
            asked = [Fraction(3, 20) * Fraction(each, sum(of_them)) for each in of_them]
            assert list(told.values()) == asked
            usual = shares_of(code.law(alone, person))
            assert not {(kind, ()) for kind in told} & usual.keys()
            assert shares == {coins: share * Fraction(17, 20) for coins, share in usual.items()}


@pytest.mark.parametrize("reward_share", [0, 1, 96, 159, 160])
def test_a_release_may_ask_nobody_or_everybody_how_it_went(reward_share: int) -> None:
    """Also at the ends the question is drawn without a look at the person, and costs no more."""
    release = release_of(epsilon=2.0, reward_share=reward_share)
    laws = [Code(few_ways=False).law(release, person) for person in served(release)[::5]]
    assert {release.policies[secret.path].settled for secret, _ in served(release)[::5]} == {
        False,
        True,
    }
    shares = shares_of(laws[0])
    about_it = [shares.get((kind, ()), Fraction(0)) for kind in (REWARD, BIN_REWARD, BIN_MASS)]
    assert about_it == [Fraction(reward_share, 160) * each / 160 for each in (64, 77, 19)]
    assert sum(shares.values()) == 1
    assert len(shares) == (3 if reward_share == 160 else 9 + 3 * bool(reward_share))
    assert all(shares_of(law) == shares for law in laws)
    assert worst_ratio(laws) == odds(2.0) <= power_of_e(2.0)[0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_answer_about_a_reward_depends_on_nothing_but_the_outcome(epsilon: float) -> None:
    """Settled or contested, whichever arm and place, and whether anything is contested at all."""
    laws: dict[float, list[dict[bytes, Fraction]]] = {y: [] for y in OUTCOMES}
    for contested in (True, False):
        release = release_of(epsilon=epsilon, contested=contested)
        for person in served(release):
            law = Code().law(release, person)
            laws[person[1]].append(spelled_out(law[REWARD, ()]))
    for same in laws.values():
        assert len(same) == 28  # 7 pairs of a bin and its arm, 4 places in each
        assert all(law == same[0] for law in same)
    # Randomised response in full: of those with y = 1, a : 1 say so.
    a = odds(epsilon)
    share = Fraction(1, 4) * Fraction(2, 4)  # of people are asked, with shares for fewer ways
    assert laws[1.0][0] == {b"\1": share * a / (1 + a), b"\0": share / (1 + a)}
    assert laws[0.5][0] == {b"\1": share / 2, b"\0": share / 2}


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_told_estimates_the_outcome_without_bias(epsilon: float) -> None:
    release = release_of(epsilon=epsilon)
    for person in served(release):
        assert estimate(Code().law(release, person), epsilon) == 2 * Fraction(person[1]) - 1


@pytest.mark.parametrize("contested", [True, False], ids=["contested", "settled"])
def test_epsilon_is_spent_once_by_whoever_tells_something_and_not_by_others(
    contested: bool,
) -> None:
    release = release_of(epsilon=2.0, contested=contested)
    asked = set()
    for person in served(release):
        for told, _, purse in Code().ways(release, person):
            audited = told.question in (REWARD, BIN_REWARD, BIN_MASS)
            tells = audited or contested
            name, version = release.experiment.name, release.version
            once = (2.0, release.experiment.fingerprint, name, version)
            assert purse.spent == ([once] if tells else [])
            assert (told.payload == b"" and not hasattr(told.payload, "parts")) != tells
            asked.add(audited)
    assert asked == {False, True}


def test_only_served_people_of_the_target_are_asked_how_it_went() -> None:
    release = release_of(epsilon=2.0)
    secret = Secret((0.2, 0.7), "0", 2)
    logged = Secret((0.2, 0.7), "0", 2, logged=True)
    for who, population, asked in [(secret, 0, 1), (logged, 0, 0), (secret, 1, 0), (logged, 1, 0)]:
        law = Code().law(release, (who, 1.0), population=population)
        of_them = sum(coins[0] in (REWARD, BIN_REWARD, BIN_MASS) for coins in law)
        assert of_them == 3 * asked


# --- proof that the checks can fail ---------------------------------------------------------------

DRAW = "    question = draw_question(release, population=population, logged=secret.logged)\n"
IF_REWARD = "    if entry.cells == EVERYBODY:\n"
MECHANISM = "        mechanism = one_cell_mechanism(experiment, population)\n"
VALUE = "return ((0, value), "
SPEND = "    spend()\n"
WHISPER = "subset.whisper(mechanism, cell=cell, value=value)"
SEND = f"return RandomisedAnswer({WHISPER}, number, ranking)"
SETTLED = "release.policies[secret.path].settled"
OTHER = "question = Question(Kind.MASS, 0)"


def sending(payload: str) -> str:
    """Send something else in answer to the question about the reward alone."""
    sent = f"{payload} if entry.cells == EVERYBODY else {WHISPER}"
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
        "        from sottovoce.shared.whisper.subset import signed_subset\n"
        "        mechanism = signed_subset(experiment.populations[1].epsilon, 1)\n",
    ),
    "only people in settled bins are asked how it went": (
        DRAW,
        DRAW + f"    if question.kind == Kind.REWARD and not {SETTLED}:\n        {OTHER}\n",
    ),
    "only people in contested bins are asked how it went": (
        DRAW,
        DRAW + f"    if question.kind == Kind.REWARD and {SETTLED}:\n        {OTHER}\n",
    ),
    "only those with a good outcome are asked how it went": (
        DRAW,
        DRAW + f"    if question.kind == Kind.REWARD and outcome < 0.5:\n        {OTHER}\n",
    ),
    "only those with a good outcome answer": (
        IF_REWARD,
        "    if entry.cells == EVERYBODY and not outcome:\n"
        "        return RandomisedAnswer(b'', number, ranking)\n" + IF_REWARD,
    ),
    "the outcome is told twice": (SEND, sending(f"{WHISPER} + {WHISPER}")),
    "the outcome is told in the clear": (SEND, sending("bytes([int(outcome > 0.5)])")),
    "the arm is told besides": (SEND, sending(f"{WHISPER} + bytes([secret.arm])")),
}


@pytest.mark.parametrize("epsilon", slow_but([2.0], EPSILONS))
@pytest.mark.parametrize("what", BREAK_PRIVACY)
def test_code_that_breaks_privacy_is_caught(what: str, epsilon: float) -> None:
    assert "privacy" in faults(Code(BREAK_PRIVACY[what]), release_of(epsilon=epsilon))


BREAK_THE_REST = {
    "the sign is flipped": (VALUE, "return ((0, -value), ", "estimate"),
    "the value is the outcome": (VALUE, "return ((0, known), ", "estimate"),
    "everybody sends noise": (VALUE, "return ((None, value), ", "estimate"),
    "nothing is spent": (SPEND, f"    if entry.cells != EVERYBODY:\n    {SPEND}", "ledger"),
    "epsilon is spent twice": (
        SPEND,
        f"{SPEND}    if entry.cells == EVERYBODY:\n    {SPEND}",
        "ledger",
    ),
    "nothing is spent on cells": (
        SPEND,
        f"    if entry.cells == EVERYBODY:\n    {SPEND}",
        "ledger",
    ),
    "epsilon is spent twice on cells": (
        SPEND,
        f"{SPEND}    if entry.cells != EVERYBODY:\n    {SPEND}",
        "ledger",
    ),
    "another population's epsilon is spent": (
        "experiment.populations[population].epsilon",
        "experiment.populations[1].epsilon",
        "ledger",
    ),
    "the value leaves its range": (VALUE, "return ((0, 4 * known), ", "fails"),
}


@pytest.mark.parametrize("what", BREAK_THE_REST)
def test_code_that_answers_or_spends_wrongly_is_caught(what: str) -> None:
    old, new, fault = BREAK_THE_REST[what]
    for epsilon in EPSILONS:
        assert faults(Code((old, new)), release_of(epsilon=epsilon)) == {fault}


def test_code_that_spends_where_nothing_is_told_is_caught() -> None:
    empty = '            return RandomisedAnswer(b"", number, ranking)\n'
    early = "            spend()\n" + empty
    release = release_of(epsilon=2.0, contested=False)
    assert faults(Code((empty, early)), release) == {"ledger"}


def test_a_sampler_that_rounds_a_value_to_the_nearer_sign_is_biased() -> None:
    mechanism = SignedSubset(1, 1, 3, 1)  # β = 1/2
    nearest = mutant("draws.chance_of_bits(_times_plus(number), _GRID + 1)", "number > 0")

    def mean(sampler: Any, value: float) -> Fraction:
        law = exact_law(sampler, mechanism, 0, value)
        return 2 * sum((values[0] * chance for values, chance in law.items()), Fraction(0))

    for y in OUTCOMES:
        assert mean(subset.whisper, 2 * y - 1) == 2 * Fraction(y) - 1
    assert mean(nearest, 1.0) == 1
    assert mean(nearest, 2 * 0.3 - 1) == -1


def test_the_unchanged_code_has_no_faults() -> None:
    for epsilon in EPSILONS:
        for contested in (True, False):
            assert faults(Code(), release_of(epsilon=epsilon, contested=contested)) == set()
