"""Signed subset selection: privacy, bias and variance exactly, on the device's own code."""

import math
import secrets
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.device.draws import OperatingSystem
from sottovoce.device.whisper import subset as device
from sottovoce.device.whisper.subset import whisper
from sottovoce.shared.whisper.subset import signed_subset, unpack
from support.slow import slow_but
from support.subset import (
    exact_law,
    expected_law,
    faults,
    mutant,
    worst_ratio,
)

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0]
SMALL = [(cells, size) for cells in range(1, 7) for size in range(1, cells + 1)]


# --- the exact law of the device's own code -------------------------------------------------------


@pytest.mark.parametrize(("cells", "size"), slow_but(range(1, 5), SMALL))
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_sampler_keeps_every_promise_exactly(epsilon: float, cells: int, size: int) -> None:
    assert faults(whisper, signed_subset(epsilon, cells, size=size), epsilon=epsilon) == set()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.1, 20.0, 64.0])
def test_extreme_epsilons_keep_every_promise_too(epsilon: float) -> None:
    assert faults(whisper, signed_subset(epsilon, 3), epsilon=epsilon) == set()


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_picks_that_take_several_draws_are_as_good(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(device, "_PICKS_AT_ONCE", at_once)
    for size in (2, 3):
        assert faults(whisper, signed_subset(1.0, 5, size=size), epsilon=1.0) == set()


def test_the_worst_ratio_is_between_two_signs_and_null_is_hidden_among_them() -> None:
    mechanism = signed_subset(1.0, 4, size=2)
    plus, minus, null = (
        exact_law(whisper, mechanism, cell, value) for cell, value in [(0, 1), (0, -1), (None, 0)]
    )
    z = 1 + Fraction(2, 8) * (mechanism.ratio - 1)
    assert worst_ratio([plus, minus]) == mechanism.ratio
    assert worst_ratio([plus, null]) == max(z, mechanism.ratio / z) < mechanism.ratio


@settings(deadline=None)
@given(st.floats(-1, 1))
@example(5e-324)
@example(-1 + 2**-53)
@example(-0.0)
def test_any_value_is_rounded_to_a_sign_without_error(value: float) -> None:
    mechanism = signed_subset(1.0, 2, size=1)
    law = exact_law(whisper, mechanism, 1, value)
    assert law == expected_law(2, 1, mechanism.ratio, 1, value)


def test_the_operating_system_is_asked_for_each_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = OperatingSystem()
    asked = []

    def randbelow(limit: int) -> int:
        asked.append(limit)
        return answer

    monkeypatch.setattr(secrets, "randbelow", randbelow)
    answers = []
    for answer in range(7):
        assert draws.below(7) == answer
        answers.append(draws.chance(3, 7))
    assert answers == [True] * 3 + [False] * 4
    assert asked == [7] * 14
    monkeypatch.setattr(secrets, "randbits", lambda count: 2**count - 1)
    assert draws.bits(5) == 31


# --- proof that the check can fail ----------------------------------------------------------------

PLUS = "draws.chance_of_bits(_times_plus(number), _GRID + 1)"
TRUTH = "draws.chance(truth, truth + rest)"
TURNED = "draws.chance(size, 2 * cells - size)"
OWN = "own = (wanted, here)[cell is None]"
MUTATIONS = [
    # the odds
    ("truth = size * mechanism.told", "truth = size * mechanism.told + 1", "ratio"),
    ("truth = size * mechanism.told", "truth = size * mechanism.told - 1", "law"),
    ("truth = size * mechanism.told", "truth = (size + 1) * mechanism.told", "privacy"),
    ("truth = size * mechanism.told", "truth = size * mechanism.other", "law"),
    ("- size) * mechanism.other", "- size) * mechanism.other - 1", "privacy"),
    ("rest = (2 * cells - size)", "rest = (2 * cells - size - 1)", "privacy"),
    (TRUTH, "True", "privacy"),
    (TRUTH, "draws.chance(rest, truth + rest)", "mean"),
    (TRUTH, "draws.chance(truth, truth + rest + 1)", "law"),
    # what a set that lacks the truth holds
    (TURNED, "draws.chance(size, 2 * cells)", "law"),
    (TURNED, "draws.chance(size, size)", "privacy"),
    (TURNED, "False", "privacy"),
    (TURNED, "draws.chance(1, 2)", "law"),
    ("(0, -sign, sign, sign)", "(sign, -sign, sign, sign)", "privacy"),
    # signs and values
    ("(0, -sign, sign, sign)", "(0, -sign, -sign, -sign)", "mean"),
    ("(0, -sign, sign, sign)", "(0, sign, sign, sign)", "privacy"),
    ("(0, -sign, sign, sign)", "(0, -sign, sign, -sign)", "law"),
    (PLUS, "number > 0", "mean"),
    (PLUS, "draws.chance(1, 2)", "mean"),
    (PLUS, PLUS.replace("_times_plus(number)", "max(_times_plus(number) - 1, 0)"), "mean"),
    ("sign = (-1, 1)", "sign = (1, -1)", "mean"),
    ("number = finite_float(value)", "number = round(value, 1) * 0.9", "mean"),
    ("(1 << _GRID) +", "(1 << _GRID) -", "mean"),
    ("mantissa * 2**53", "mantissa * 2**24", "mean"),
    # null
    (OWN, "own = (wanted, 0)[cell is None]", "privacy"),
    (OWN, "own = (wanted, abs(here))[cell is None]", "privacy"),
    (OWN, "own = wanted", "square"),
    (OWN, "own = (wanted, here)[cell is None or cell == cells - 1]", "mean"),
    # which cells
    ("values[at] = own", "values[0] = own", "mean"),
    ("values[at] = own", "values[at] = here", "mean"),
    ("values[partner] = here", "values[partner] = own", "fails"),
    ("(at, leaver, joiner)[", "(at, joiner, leaver)[", "fails"),
    ("(at, leaver, joiner)[", "(at, leaver, at)[", "fails"),
    ("first, next_one = order[0], order[few]", "first, next_one = order[0], order[-1]", "law"),
    ("few + 1 if few", "few if few", "law"),
    # the uniform rest
    (r'b"\xff\x01"', r'b"\x01\x01"', "privacy"),
    ("draws.bits(size)", "draws.bits(max(size - 1, 0))", "privacy"),
    ("math.perm(left, picks)", "math.perm(left, picks) - 1", "law"),
    ("math.perm(left, picks)", "math.perm(left, picks) + 1", "law"),
    ("math.perm(left, picks)", "1", "privacy"),
    ("pick = place + further", "pick = further", "law"),
    ("pick = place + further", "pick = place", "privacy"),
    ("divmod(number, cells - place)", "divmod(number, cells - place - 1 or 1)", "law"),
]


def found_in_small_cases(sampler: Any) -> set[str]:
    cases = [(3, 2), (3, 3), (4, 2), (5, 2)]
    return set().union(
        *(
            faults(sampler, signed_subset(1.0, cells, size=size), epsilon=1.0)
            for cells, size in cases
        )
    )


def test_the_unchanged_copy_has_no_fault() -> None:
    assert found_in_small_cases(mutant(OWN, OWN)) == set()


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "fault"), MUTATIONS)
def test_each_mutation_of_the_sampler_is_found(old: str, new: str, fault: str) -> None:
    assert fault in found_in_small_cases(mutant(old, new))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_unit_too_much_of_2_to_the_64_is_found(epsilon: float) -> None:
    mechanism = signed_subset(epsilon, 3)
    more, less = (replace(mechanism, told=mechanism.told + change) for change in (1, -1))
    assert {"privacy", "ratio"} <= faults(whisper, more, epsilon=epsilon)
    assert "ratio" in faults(whisper, less, epsilon=epsilon)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-6, 50.0, 1e6])
def test_unusual_epsilons_work(epsilon: float) -> None:
    mechanism = signed_subset(epsilon, 5)
    assert len(unpack(mechanism, whisper(mechanism, cell=4, value=1.0))) == 5
    assert len(unpack(mechanism, whisper(mechanism, cell=None, value=1.0))) == 5


@pytest.mark.parametrize(
    "value", [1.0000001, -1.5, 57.721566, math.nan, math.inf, -math.inf, None, "0.57721566", True]
)
@pytest.mark.parametrize("cell", [None, 1])
def test_values_that_cannot_be_are_refused_and_not_shown(cell: int | None, value: Any) -> None:
    with pytest.raises(sv.RewardError, match=r"a value must be a number in \[-1, 1\]") as caught:
        whisper(signed_subset(1.0, 5), cell=cell, value=value)
    assert "7721566" not in str(caught.value)


@pytest.mark.parametrize("cell", [-1, 5, 57721566, 1.0, True, "1", math.nan])
def test_cells_that_are_not_there_are_refused_and_not_shown(cell: Any) -> None:
    with pytest.raises(sv.DeviceError, match="a cell must be None or a whole number") as caught:
        whisper(signed_subset(1.0, 5), cell=cell, value=0.5)
    assert "7721566" not in str(caught.value)
