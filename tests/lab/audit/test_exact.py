"""Exact laws: by hand where that can be done, and the audit's verdict at the edge of the claim."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from sottovoce.device.draws import OPERATING_SYSTEM
from sottovoce.device.whisper.answer import asked_axis
from sottovoce.lab.audit.attack import without_nonce
from sottovoce.lab.audit.cases import LOW, crowds_of, experiment_of, release_of
from sottovoce.lab.audit.claims import Person, Scene
from sottovoce.lab.audit.exact import judge, judge_exponent, power_of_e, worst_ratio
from sottovoce.lab.audit.mechanism import RealDevice
from sottovoce.lab.ldpmab import auditing as sums
from sottovoce.lab.whisper import auditing as sets
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.cells import cell_layout
from support.slow import slow_but


def test_the_worst_ratio_is_over_all_messages_and_all_pairs() -> None:
    half = {b"a": Fraction(1, 2), b"b": Fraction(1, 2)}
    skewed = {b"a": Fraction(1, 5), b"b": Fraction(4, 5)}
    assert worst_ratio([half, skewed]) == Fraction(5, 2)
    assert worst_ratio([half, half]) == 1
    assert worst_ratio([half, {b"a": Fraction(1)}]) is None


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
def test_a_claim_is_judged_without_rounding(epsilon: float) -> None:
    edge = power_of_e(epsilon)
    assert judge(edge, epsilon=epsilon, how="").kept
    above = judge(edge * (1 + Fraction(1, 10**100)), epsilon=epsilon, how="")
    assert not above.kept
    assert above.epsilon == pytest.approx(epsilon)
    assert judge(None, epsilon=epsilon, how="").epsilon == math.inf
    assert judge_exponent(Fraction(epsilon), epsilon=epsilon, how="").kept
    assert not judge_exponent(
        Fraction(epsilon) + Fraction(1, 10**100), epsilon=epsilon, how=""
    ).kept


@pytest.mark.parametrize("epsilon", slow_but({1.0}, [1.0, 4.0]))
def test_the_ratio_of_whisper_is_nearly_reached_and_never_exceeded(epsilon: float) -> None:
    name, scene, people = next(crowds_of(Whisper(), epsilon))
    assert name == "served"
    found = sets.worst_exactly(scene, people)
    assert found.kept
    assert epsilon - 1e-15 < found.epsilon <= epsilon + 1e-15


@pytest.mark.parametrize(("epsilon", "cells"), slow_but({1.0}, [(1.0, 1), (4.0, 4)]))
def test_sets_of_levels_and_missing_values_keep_the_claim(epsilon: float, cells: int) -> None:
    """At a large ε each of the four levels is a cell of its own."""
    *_, (name, scene, people) = crowds_of(Whisper(), epsilon)
    assert name == "levels and missing values"
    assert scene.release.partition.sets == {"": {1, 3}}
    layout = cell_layout(scene.release, population=0, by_arm=False)
    assert layout is not None
    assert layout.mechanism(0).parts == cells
    found = sets.worst_exactly(scene, people)
    assert found.kept
    assert epsilon - 1e-15 < found.epsilon <= epsilon + 1e-15


def test_a_coin_with_many_sides_is_followed_by_its_comparisons() -> None:
    shares: dict[str, Fraction] = {}
    untried: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while untried:
        draws = sets.Following(*untried.pop())
        coin = 24 + draws.below(1000)
        asked = asked_axis((100, 24, 200, 700), coin)
        again = asked_axis((100, 24, 200, 700), coin)  # it stays where it is
        assert asked == again
        shares[str(asked)] = shares.get(str(asked), Fraction(0)) + draws.probability
        untried += draws.untried
    thousandths = {"-1": 76, "0": 24, "1": 200, "2": 700}
    assert shares == {name: Fraction(count, 1000) for name, count in thousandths.items()}


def test_a_coin_with_many_sides_cannot_be_used_in_another_way() -> None:
    coin = sets.Following((), Fraction(1)).below(1000)
    for use in (lambda: coin == 3, lambda: coin * 2, lambda: "abc"[coin], lambda: bool(coin)):
        with pytest.raises(TypeError):
            use()


@pytest.mark.slow
@pytest.mark.parametrize("settings", [Whisper(public_arms=True), Whisper(guarantee="certified")])
def test_variants_of_whisper_keep_their_claim(settings: Whisper) -> None:
    for _, scene, people in [*crowds_of(settings, 1.0)][:2]:
        assert sets.worst_exactly(scene, people).kept


def test_the_followed_law_is_that_of_real_reports() -> None:
    """A χ² test with a false-alarm rate of 1e-6."""
    from scipy import stats

    scene = Scene(release_of(experiment_of(Whisper(), 4.0), cuts={}, contested=""))
    person = Person(LOW, "a", 0.3)
    law = sets.exact_law(scene, person)
    assert sum(law.values()) == 1
    runs = 4000
    seen = Counter(map(without_nonce, RealDevice().reports(scene, person, runs)))
    assert seen.keys() <= law.keys()
    expected = [float(chance) * runs for chance in law.values()]
    counts = [seen[message] for message in law]
    assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_the_device_draws_from_the_operating_system_again_afterwards() -> None:
    scene = Scene(release_of(experiment_of(Whisper(), 1.0), cuts={}, contested=""))
    sets.exact_law(scene, Person(LOW, "a", 1.0))
    assert vars(OPERATING_SYSTEM) == {}


def test_a_release_that_asks_for_more_is_judged_by_its_claim() -> None:
    """The same device, with the odds of ε = 1.1 for a claim of 1."""
    _, scene, people = next(crowds_of(Whisper(), 1.1))
    laws = [sets.exact_law(scene, person) for person in people[:2]]
    assert not judge(worst_ratio(laws), epsilon=1.0, how="").kept


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_exponent_of_ldpmab_is_the_distance_over_the_scale(epsilon: float) -> None:
    for name, scene, people in crowds_of(Ldpmab(), epsilon):
        found = sums.worst_exactly(scene, people)
        assert found.kept
        if name != "rows of a source with ε/2":
            assert found.epsilon == pytest.approx(epsilon, rel=1e-12)
    alone = sums.worst_exactly(scene, people[:1] * 2)
    assert alone.epsilon == pytest.approx(0, abs=1e-15)


def test_numbers_of_a_drawn_arm_are_their_mean() -> None:
    scene = Scene(release_of(experiment_of(Ldpmab(), 1.0), cuts={}, contested=""))
    assert sums.numbers_of(scene, Person(LOW, "a", 0.5)).tolist() == [0.5, 0, 1, 0]
    assert sums.numbers_of(scene, Person(LOW, None, 0.5)).tolist() == [0.25, 0.25, 0.5, 0.5]
    assert sums.numbers_of(scene, replace(Person(LOW, "b"), reward=None)).tolist() == [0] * 4
