"""People who may tell their reward for their bin: their report is ε-LDP, exactly, in every case.

Some of those who are asked for their reward tell it for their bin, settled or not (BIN_REWARD), or
their bin alone (BIN_MASS). The law of a report, the questions' coins included, is worked out by
following every draw of the device's code.
"""

import itertools
import math
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import ASK, BIN_MASS, BIN_REWARD, experiment, uniform
from sottovoce.device.method import Secret
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.whisper.cells import all_bins_mechanism
from sottovoce.shared.whisper.subset import SignedSubset, unpack
from support.slow import slow_but
from support.subset import power_of_e
from support.whole_reports import Code, Input, Law, shares_of, spelled_out, worst_ratio

EPSILONS = [0.5, 2.0, 8.0]
OUTCOMES = (0.0, 0.3, 1.0, None)
CAP = 0.125
# On the wire, with two features: after 8 kinds with 3 patterns, and 2 with 27 thresholds of each.
NUMBERS = {BIN_REWARD: 132, BIN_MASS: 133}
PATHS = ("0", "10", "11")


def release_of(*, epsilon: float, contested: bool = True, capped: bool = False) -> sv.Release:
    """Three bins: two of them contested and one settled, or all settled; one arm may be capped."""
    first = experiment(
        arms=["a", "b"] if capped else ["a", "b", "c"],
        epsilon=epsilon,
        method=sv.Whisper(),
        auxiliary=[sv.Population("clinic-b", 16.0, 10)],
    )
    bins = (uniform("0", 0, 2), uniform("10", 1), uniform("11", 0, 1))
    if not contested:
        bins = (uniform("0", 1), uniform("10", 1), uniform("11", 0))
    partition = Partition(2, {"": 0, "1": 1})
    if not capped:
        return sv.Release(first, 1, partition, bins, 24, ASK)
    made = draft(
        first, ADD_ARM, by="operator", made=datetime(2026, 3, 1, tzinfo=UTC), arm="c", cap=CAP
    )
    bins = (BinPolicy("0", (0, 2), (1 - CAP, CAP)), *bins[1:])
    return sv.Release(amended(first, made), 2, partition, bins, 24, ASK)


def people(release: sv.Release) -> list[Any]:
    """Everybody who may be served: bin, half along each feature, arm and outcome, or none."""
    found = []
    for policy in release.bins:
        box = release.partition.box(policy.path)
        quarters = [(low + (high - low) / 4, high - (high - low) / 4) for low, high in box]
        for point, arm, y in itertools.product(itertools.product(*quarters), policy.arms, OUTCOMES):
            found.append((Secret(point, policy.path, arm), y))
    return found


def odds(epsilon: float) -> Fraction:
    """The largest number of 64 bits behind the point that is no more than e^ε."""
    return Fraction(math.floor(2**64 * power_of_e(epsilon)[0]), 2**64)


def of_kind(law: Law, kind: int) -> Law:
    return {coins: told for coins, told in law.items() if coins[0] == NUMBERS[kind]}


def estimates(law: Law, kind: int, mechanism: SignedSubset) -> list[Fraction]:
    """The mean of value/β in each cell, of those who are asked one question."""
    (payloads,) = of_kind(law, kind).values()
    said = spelled_out(payloads)
    a, w, n = mechanism.ratio, mechanism.size, mechanism.cells
    signal = w * (a - 1) / (w * a + 2 * n - w)
    total = sum(said.values()) * signal
    sets = [(unpack(mechanism, payload), chance) for payload, chance in said.items()]
    return [sum((v[c] * chance for v, chance in sets), Fraction(0)) / total for c in range(n)]


def truth(person: Input, kind: int) -> list[Fraction]:
    """What the table of the questions says: the one cell of the person's bin, settled or not."""
    secret, outcome = person
    value = Fraction(1) if kind == BIN_MASS else 2 * Fraction(outcome or 0) - 1
    return [value if path == secret.path and outcome is not None else Fraction(0) for path in PATHS]


def faults(code: Code, release: sv.Release) -> set[str]:
    """Say what the code breaks: privacy, its public coins, or what it says; all checked exactly."""
    epsilon, found = release.experiment.epsilon, set()
    mechanism = all_bins_mechanism(epsilon, len(PATHS)).mechanism
    try:
        laws = [code.law(release, person) for person in people(release)]
    except (SottovoceError, ArithmeticError):
        return {"fails"}
    ratio = worst_ratio(laws)
    if ratio is None or ratio > power_of_e(epsilon)[0]:
        found.add("privacy")
    if any(shares_of(law) != shares_of(laws[0]) for law in laws):
        found.add("coin")
    for (person, law), kind in itertools.product(
        zip(people(release), laws, strict=True), (BIN_REWARD, BIN_MASS)
    ):
        try:
            right = estimates(law, kind, mechanism) == truth(person, kind)
        except (SottovoceError, ValueError):
            right = False
        if not right:
            found.add("estimate")
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    "settings", slow_but([{}], [{}, {"contested": False}, {"capped": True}]), ids=str
)
def test_no_two_people_differ_by_more_than_e_to_the_epsilon_in_what_they_say_of_their_bin(
    settings: dict[str, Any], epsilon: float
) -> None:
    release = release_of(epsilon=epsilon, **settings)
    laws = [Code().law(release, person) for person in people(release)]
    assert worst_ratio(laws) == odds(epsilon) <= power_of_e(epsilon)[0]
    for kind in (BIN_REWARD, BIN_MASS):  # each uses the budget, but for the last of 64 bits
        assert worst_ratio([of_kind(law, kind) for law in laws]) == odds(epsilon)
    assert all(shares_of(law) == shares_of(laws[0]) for law in laws)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("settings", [{}, {"contested": False}, {"capped": True}], ids=str)
def test_everybody_tells_of_their_own_bin_without_bias(
    settings: dict[str, Any], epsilon: float
) -> None:
    """Settled or not, and whichever arm they had; who has nothing to tell is in no cell."""
    assert faults(Code(), release_of(epsilon=epsilon, **settings)) == set()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_there_is_a_cell_for_each_bin_and_no_other(epsilon: float) -> None:
    for contested in (True, False):
        release = release_of(epsilon=epsilon, contested=contested)
        mechanism = all_bins_mechanism(epsilon, 3).mechanism
        assert mechanism.cells == 3
        for told, _, purse in Code().ways(release, people(release)[0]):
            if told.question in NUMBERS.values():
                ((used, cell, _),) = told.payload.parts
                assert (used, cell) == (mechanism, 0)
                assert [each[0] for each in purse.spent] == [epsilon]


@pytest.mark.parametrize("settings", [{"public_arms": True}, {"guarantee": "certified"}], ids=str)
def test_where_arms_are_public_or_proof_is_needed_nobody_tells_of_their_bin(
    settings: dict[str, Any],
) -> None:
    release = release_of(epsilon=2.0)
    other = experiment(epsilon=2.0, method=sv.Whisper(**settings), auxiliary=[OTHERS])
    asked = sv.Release(other, 1, release.partition, release.bins, 24, ASK)
    for person in people(release)[::7]:
        ranking = (0, 1, 2) if "public_arms" in settings else ()
        secret = Secret(person[0].point, person[0].path, person[0].arm, ranking=ranking)
        law = Code().law(asked, (secret, 1.0))
        assert not {coins[0] for coins in law} & set(NUMBERS.values())


def test_where_there_is_one_bin_nobody_tells_of_it() -> None:
    release = release_of(epsilon=2.0)
    one = sv.Release(release.experiment, 1, Partition(2, {}), (uniform("", 0, 1),), 24, ASK)
    law = Code().law(one, (Secret((0.2, 0.7), "", 1), 1.0))
    assert not {coins[0] for coins in law} & set(NUMBERS.values())
    assert shares_of(law)[18, ()] == Fraction(1, 4)  # all are asked for their reward alone


OTHERS = sv.Population("clinic-b", 16.0, 10)


# --- proof that the checks can fail ---------------------------------------------------------------

DRAW = "    question = draw_question(release, population=population, logged=secret.logged)\n"
SEND = "subset.whisper(mechanism, cell=cell, value=value)"
IN_BIN = "release.policies[secret.path].settled"

BREAKS = {
    "a coin by the person's bin": (
        DRAW,
        f"{DRAW}    if question.kind == Kind.BIN_REWARD and {IN_BIN}:\n"
        "        question = Question(Kind.REWARD)\n",
        {"privacy", "coin", "estimate"},
    ),
    "the bin in the clear": (
        f"return RandomisedAnswer({SEND}, number, ranking)",
        f"return RandomisedAnswer({SEND} + bytes([cell or 0]), number, ranking)",
        {"privacy", "estimate"},
    ),
    "a sign": (
        "    value = 1.0 if entry.value == ONE else reward\n",
        "    value = 1.0 if entry.value == ONE else reward * (1, -1)[entry.settled]\n",
        {"estimate"},
    ),
    "the sign of an arm": (
        "Kind.BIN_REWARD, OUTCOME, REWARDS",
        "Kind.BIN_REWARD, SIGNED_OUTCOME, REWARDS",
        {"estimate"},
    ),
    "the outcome that never came": (
        "(own, nobody)[whole < 0 or outcome is None or silent]",
        "(own, nobody)[whole < 0 or (outcome is None and not entry.settled) or silent]",
        {"estimate"},
    ),
    "thinning": (
        "about_pair = self.cells == BINS and",
        "about_pair = self.cells in (BINS, ALL_BINS) and",
        {"estimate"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BREAKS)
def test_code_that_answers_about_bins_wrongly_is_caught(what: str) -> None:
    old, new, expected = BREAKS[what]
    capped = what == "thinning"
    assert faults(Code((old, new)), release_of(epsilon=2.0, capped=capped)) == expected
