"""Scales: knots say where places lie on an axis, and only rising ones of numbers are read."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.shared.errors import Rejection, WireError
from sottovoce.shared.scale import Knots, checked_scales, position_at
from support.partitions import COORDINATE, knots

IDENTITY: Knots = tuple(piece / 32 for piece in range(33))
TAIL = [(piece / 32) ** 3 for piece in range(1, 32)]


@given(COORDINATE)
def test_the_scale_of_an_even_axis_changes_nothing(place: float) -> None:
    assert position_at(IDENTITY, place) == pytest.approx(place, rel=1e-15, abs=1e-300)


@given(st.integers(0, 2**48))
def test_the_scale_of_an_even_axis_changes_no_midpoint_at_all(numerator: int) -> None:
    assert position_at(IDENTITY, numerator / 2**48) == numerator / 2**48


@given(knots())
def test_a_scale_is_exact_at_its_knots(scale: Knots) -> None:
    assert [position_at(scale, piece / 32) for piece in range(33)] == list(scale)


@given(knots(), st.lists(COORDINATE, min_size=2, max_size=20))
def test_a_scale_never_falls_and_stays_between_its_knots(scale: Knots, places: list[float]) -> None:
    positions = [position_at(scale, place) for place in sorted(places)]
    assert all(low <= high for low, high in pairwise(positions))
    for place, position in zip(sorted(places), positions, strict=True):
        piece = min(int(place * 32), 31)
        assert scale[piece] <= position <= scale[piece + 1]


def test_a_place_between_two_knots_lies_on_the_line_between_them() -> None:
    scale = (0.0, *TAIL, 1.0)
    assert position_at(scale, 0.5 + 1 / 64) == pytest.approx((scale[16] + scale[17]) / 2)
    assert position_at(scale, 3.25 / 32) == pytest.approx(0.75 * scale[3] + 0.25 * scale[4])


def test_scales_of_axes_of_numbers_are_read() -> None:
    numbers = [True, False, True]
    found = checked_scales(3, numbers, {"0": TAIL, "2": TAIL})
    assert found == {0: (0.0, *TAIL, 1.0), 2: (0.0, *TAIL, 1.0)}
    assert checked_scales(3, numbers, {}) == {}


@pytest.mark.parametrize(
    "table",
    [
        None,
        [],
        [TAIL],
        "0",
        {"1": TAIL},  # its levels are places
        {"3": TAIL},  # there is no such axis
        {"-1": TAIL},
        {"00": TAIL},
        {" 0": TAIL},
        {"+0": TAIL},
        {"0.0": TAIL},
        {"٠": TAIL},  # a zero, but not ours
        {"": TAIL},
        {"9" * 5000: TAIL},  # too long for Python to read
        {0: TAIL},
        {"0": None},
        {"0": {}},
        {"0": tuple(TAIL)},
        {"0": "0.5" * 31},
        {"0": []},
        {"0": TAIL[1:]},
        {"0": [*TAIL, 0.999]},
        {"0": [0.0, *TAIL[1:]]},
        {"0": [-0.1, *TAIL[1:]]},
        {"0": [*TAIL[:-1], 1.0]},
        {"0": [*TAIL[:-1], 1.5]},
        {"0": [*TAIL[:-1], TAIL[-2]]},  # it stays
        {"0": [*TAIL[:-2], TAIL[-1], TAIL[-2]]},  # it falls
        {"0": [*TAIL[:-1], float("nan")]},
        {"0": [float("nan")] * 31},
        {"0": [*TAIL[:-1], float("inf")]},
        {"0": [*TAIL[:-1], "0.99"]},
        {"0": [*TAIL[:-1], None]},
        {"0": [*TAIL[:-1], True]},
        {"0": [0, *TAIL[1:]]},
    ],
)
def test_scales_that_no_learner_makes_are_refused(table: Any) -> None:
    with pytest.raises(WireError) as caught:
        checked_scales(3, [True, False, True], table)
    assert caught.value.reason is Rejection.MALFORMED
