"""The third method is private and right: exactly, by following every draw of its device."""

import math
import secrets
from collections.abc import Iterator
from fractions import Fraction

import pytest

import sottovoce as sv
from contracts.methods import ONE_BIT
from contracts.one_bit import device, shared
from factories import Purse, experiment
from sottovoce.device import privatise
from sottovoce.device.method import Secret
from sottovoce.shared.methods import register, unregister
from support.subset import Following, power_of_e

OUTCOMES = (0.0, 0.25, 1.0)
Law = dict[tuple[int, tuple[float, ...] | bytes], Fraction]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register("one_bit", modules=ONE_BIT)
    yield
    unregister("one_bit")


def law_of(monkeypatch: pytest.MonkeyPatch, arm: int, outcome: float, *, logged: bool) -> Law:
    """What a person may tell and how often, where odds of 3 : 1 stand for those of ε."""
    release = sv.Learner(experiment(method="one_bit")).release()
    secret = Secret((0.5, 0.5), "", arm, logged=logged)
    law: Law = {}
    untried: list[tuple[tuple[int, ...], int, int]] = [((), 1, 1)]
    monkeypatch.setattr(device, "odds", lambda epsilon: (3, 1))
    while untried:
        draws, purse = Following(*untried.pop()), Purse()
        monkeypatch.setattr(secrets, "randbelow", draws.below)
        told = privatise.privatise(release, secret, population=0, reward=outcome, ledger=purse)
        assert len(purse.spent) == 1
        said = (told.question, told.payload)
        law[said] = law.get(said, Fraction(0)) + draws.probability
        untried += draws.untried
    return law


@pytest.mark.parametrize("logged", [False, True])
def test_no_two_people_differ_by_more_than_the_odds(
    monkeypatch: pytest.MonkeyPatch, logged: bool
) -> None:
    laws = [
        law_of(monkeypatch, arm, outcome, logged=logged) for arm in range(3) for outcome in OUTCOMES
    ]
    said = set().union(*laws)
    assert said == {(question + 3 * logged, bit) for question in range(3) for bit in (b"\0", b"\1")}
    ratios = [max(law[each] for law in laws) / min(law[each] for law in laws) for each in said]
    assert max(ratios) == 3


def test_the_bit_estimates_what_an_arm_brings_to_those_who_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for arm in range(3):
        for outcome in OUTCOMES:
            law = law_of(monkeypatch, arm, outcome, logged=False)
            for about in range(3):
                difference = 3 * (law[about, b"\1"] - law[about, b"\0"])
                right = Fraction(outcome) if about == arm else 0
                assert difference / Fraction(3 - 1, 3 + 1) == 2 * right - 1


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 8.0, 64.0])
def test_the_odds_are_below_e_to_the_epsilon_by_less_than_one_unit(epsilon: float) -> None:
    told, other = shared.odds(epsilon)
    assert other == 2**64
    assert told == math.floor(power_of_e(epsilon)[0] * 2**64)
