"""Where an arm is capped: reports are ε-LDP, exactly, and say what the learner takes them to say.

The law of a report, the coin that thins outcomes included, is worked out by following every draw of
the device's code. The coin has 53 bits, so that shares are right to 2^-53.
"""

import itertools
import math
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

import sottovoce as sv
from factories import ASK, CONTRAST, LEVEL, MASS, experiment, uniform
from sottovoce.device.method import Secret
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.subset import unpack
from support.subset import power_of_e
from support.whole_reports import Code, Input, Law, shares_of, spelled_out, worst_ratio

CAP = 0.125
EPSILONS = [0.5, 2.0, 8.0]
OUTCOMES = (0.0, 0.3, 1.0)


def release_of(*, epsilon: float, **settings: Any) -> sv.Release:
    """Two bins where the third arm is compared with others, one without it, and one settled."""
    first = experiment(arms=["a", "b"], epsilon=epsilon, method=sv.Whisper(**settings))
    made = draft(
        first, ADD_ARM, by="operator", made=datetime(2026, 3, 1, tzinfo=UTC), arm="c", cap=CAP
    )
    bins = (
        BinPolicy("00", (0, 2), (1 - CAP, CAP)),
        BinPolicy("01", (0, 1), (0.5, 0.5), waiting=(2,)),
        uniform("10", 1),
        BinPolicy("11", (1, 2), (1 - CAP, CAP)),
    )
    return sv.Release(amended(first, made), 2, Partition(2, {"": 0, "0": 1, "1": 1}), bins, ask=ASK)


def people(release: sv.Release) -> list[Input]:
    """Everybody who may be served: bin, half along each feature, arm and outcome."""
    found = []
    for policy in release.bins:
        box = release.partition.box(policy.path)
        quarters = [(low + (high - low) / 4, high - (high - low) / 4) for low, high in box]
        for point, arm, y in itertools.product(itertools.product(*quarters), policy.arms, OUTCOMES):
            found.append((Secret(point, policy.path, arm), y))
    return found


def faults(code: Code, release: sv.Release) -> set[str]:
    """Say what the code breaks: privacy, which is checked exactly, or only its answers."""
    try:
        laws = [code.law(release, person) for person in people(release)]
    except (SottovoceError, ArithmeticError):
        return {"fails"}
    found, right = set(), Code()
    ratio = worst_ratio(laws)
    if ratio is None or ratio > power_of_e(release.experiment.epsilon)[0]:
        found.add("privacy")
    if laws != [right.law(release, person) for person in people(release)]:
        found.add("answers")
    return found


def test_a_release_must_keep_the_cap() -> None:
    release = release_of(epsilon=1.0)
    read = sv.Release.from_table(release.to_table())
    assert read == release
    for policy in (
        BinPolicy("00", (0, 2), (0.5, 0.5)),  # more than may get it
        BinPolicy("00", (0, 2), (CAP, 1 - CAP)),
        BinPolicy("00", (0, 1), (1 - CAP, CAP)),  # no cap on this one
    ):
        table = release.to_table()
        table["bins"][0] |= {
            "arms": list(policy.arms),
            "propensities": list(policy.propensities),
        }
        with pytest.raises(sv.WireError, match="as the cap of one says"):
            sv.Release.from_table(table)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("settings", [{}, {"guarantee": "certified"}], ids=str)
def test_no_two_people_differ_by_more_than_e_to_the_epsilon_in_anything_they_may_say(
    settings: dict[str, Any], epsilon: float
) -> None:
    release = release_of(epsilon=epsilon, **settings)
    laws = [Code().law(release, person) for person in people(release)]
    # The budget is used, but for the last of 64 bits.
    least = power_of_e(epsilon)[0]
    assert worst_ratio(laws) == Fraction(math.floor(least * 2**64), 2**64)
    # The coin that thins changes nothing that is public.
    shares = [shares_of(law) for law in laws]
    assert all(each == shares[0] for each in shares)


def mean_of_cell(law: Law, release: sv.Release, kind: int, *, cell: int) -> Fraction:
    """The mean of what a person's answer to a plain question says of a cell, without its noise."""
    layout = cell_layout(release, population=0, by_arm=False)
    assert layout is not None
    mechanism = layout.mechanism(None).mechanism
    said = spelled_out(law[3 * kind, ()])
    total = sum(unpack(mechanism, data)[cell] * chance for data, chance in said.items())
    return Fraction(total) / sum(said.values()) / Fraction(mechanism.signal)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])  # where whole bins are asked about
def test_the_answers_of_a_capped_bin_measure_what_the_learner_takes_them_for(
    epsilon: float,
) -> None:
    """2c times a contrast and a level, and all of the people, whatever the two arms bring."""
    release = release_of(epsilon=epsilon)
    paths = [policy.path for policy in release.contested]
    for policy in release.contested:
        cell, point = paths.index(policy.path), release.partition.box(policy.path)
        middle = tuple((low + high) / 2 for low, high in point)
        told = 2 * min(policy.propensities)
        for rewards in itertools.product(OUTCOMES, repeat=2):
            means = dict.fromkeys((CONTRAST, LEVEL, MASS), Fraction(0))
            for arm, chance, y in zip(policy.arms, policy.propensities, rewards, strict=True):
                law = Code().law(release, (Secret(middle, policy.path, arm), y))
                for kind in means:
                    share = mean_of_cell(law, release, kind, cell=cell)
                    means[kind] += Fraction(chance) * share
            first, second = rewards
            assert float(means[CONTRAST]) == pytest.approx(told * (first - second), abs=1e-9)
            assert float(means[LEVEL]) == pytest.approx(told * (first + second - 1), abs=1e-9)
            assert float(means[MASS]) == pytest.approx(1, abs=1e-9)


def test_the_share_of_those_who_get_a_capped_arm_and_tell_is_the_cap() -> None:
    """Those who tell of an outcome had each of the two arms equally often."""
    release, code = release_of(epsilon=0.5), Code()
    telling = {}
    for arm, chance in ((0, 1 - CAP), (2, CAP)):
        good, bad = (code.law(release, (Secret((0.2, 0.2), "00", arm), y)) for y in (1.0, 0.0))
        told = mean_of_cell(good, release, LEVEL, cell=0) - mean_of_cell(
            bad, release, LEVEL, cell=0
        )
        telling[arm] = chance * float(told) / 2
    assert telling == pytest.approx({0: CAP, 2: CAP}, abs=1e-9)


# --- proof that the check can fail ----------------------------------------------------------------

SILENT = "silent = entry.thinned and not tells"
SEND = "return RandomisedAnswer(subset.whisper(mechanism, cell=cell, value=value), number, ranking)"
WHISPER = "subset.whisper(mechanism, cell=cell, value=value)"
BREAK_PRIVACY = {
    "who does not tell sends nothing": (
        SEND,
        f"return RandomisedAnswer({WHISPER} if tells else b'', number, ranking)",
    ),
    "whether somebody tells is sent besides": (
        SEND,
        f"return RandomisedAnswer({WHISPER} + bytes([tells]), number, ranking)",
    ),
    "who does not tell is asked something else": (
        "    number, tells = question.number(experiment), draw_telling(release, secret)\n",
        "    number, tells = question.number(experiment), draw_telling(release, secret)\n"
        "    number = number if tells else Question(Kind.MASS).number(experiment)\n",
    ),
}
WRONG_ONLY = {
    "everybody tells": (SILENT, "silent = False"),
    "who is asked for nothing but the bin is thinned, too": (SILENT, "silent = not tells"),
    "the rarer arm is thinned": (
        "place = (0, len(bounds) - 1)[secret.arm != policy.arms[0]]",
        "place = (0, len(bounds) - 1)[secret.arm == policy.arms[0]]",
    ),
}


@pytest.mark.parametrize("what", BREAK_PRIVACY)
def test_code_that_breaks_privacy_is_caught(what: str) -> None:
    for epsilon in EPSILONS:
        assert "privacy" in faults(Code(BREAK_PRIVACY[what]), release_of(epsilon=epsilon))


@pytest.mark.parametrize("what", WRONG_ONLY)
def test_code_that_answers_wrongly_is_private_all_the_same(what: str) -> None:
    for epsilon in EPSILONS:
        found = faults(Code(WRONG_ONLY[what]), release_of(epsilon=epsilon))
        assert found == {"answers"}
