"""The numbers of signed subset selection, and sets as bytes."""

import doctest
import itertools
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.shared.whisper import subset as shared
from sottovoce.shared.whisper.subset import SignedSubset, odds, pack, signed_subset, unpack
from support.paths import ROOT
from support.subset import (
    all_sets,
    power_of_e,
)

EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0]
SMALL = [(cells, size) for cells in range(1, 7) for size in range(1, cells + 1)]


# --- the constants --------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, *EPSILONS, math.log(3), 20.0, 50.0, 63.9, 64.0])
def test_the_odds_are_the_last_ones_below_e_to_the_epsilon(epsilon: float) -> None:
    told, other = odds(epsilon)
    least, most = power_of_e(epsilon)
    assert other == 2**64
    assert Fraction(told, other) <= least
    assert most < Fraction(told + 1, other)


@settings(deadline=None)
@given(st.floats(1e-9, 64))
def test_the_odds_of_any_epsilon_are_certain(epsilon: float) -> None:
    told, other = odds(epsilon)
    assert 1 < Fraction(told, other) <= power_of_e(epsilon)[0]
    assert power_of_e(epsilon)[1] < Fraction(told + 1, other)


@pytest.mark.parametrize("epsilon", [64.0, 65.0, 1e3, 1e6])
def test_beyond_64_the_odds_stay(epsilon: float) -> None:
    assert odds(epsilon) == odds(64)
    assert signed_subset(epsilon, 100).size == 1
    assert math.isclose(signed_subset(epsilon, 100).contains, 1)


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, *EPSILONS, math.log(3), 1.3, 64.0])
@pytest.mark.parametrize("cells", [*range(1, 14), 40])
def test_no_other_size_has_less_variance(cells: int, epsilon: float) -> None:
    a = Fraction(*odds(epsilon))

    def variance(size: int) -> Fraction:
        theta = Fraction(size, 2 * cells)
        beta = theta * (a - 1) / (1 + theta * (a - 1))
        return size / (cells * beta**2)

    best = signed_subset(epsilon, cells).size
    assert best == min(range(1, cells + 1), key=variance)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.0986])
def test_up_to_ln_3_every_cell_is_in_the_set(epsilon: float) -> None:
    for cells in (1, 2, 12, 200):
        assert signed_subset(epsilon, cells).size == cells
        # One-bit randomised response: the sign is kept with probability a/(1 + a).
        kept = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert math.isclose(signed_subset(epsilon, cells).contains, kept, rel_tol=1e-15)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, *EPSILONS, 50.0, 1e6])
@pytest.mark.parametrize(("cells", "size"), [(1, 1), (2, 1), (12, 12), (24, 5), (200, 200)])
def test_the_floats_are_right_to_the_last_digit(epsilon: float, cells: int, size: int) -> None:
    mechanism = signed_subset(epsilon, cells, size=size)
    a, theta = mechanism.ratio, Fraction(size, 2 * cells)
    z = 1 + theta * (a - 1)
    beta = theta * (a - 1) / z
    assert mechanism.signal == float(beta)
    assert mechanism.contains == float(theta * a / z)
    assert mechanism.variance == float(size / (cells * beta**2))
    if cells > 1:
        o = (size - theta * (a + 1) / z) / (cells - 1)
        assert mechanism.noise == float(o / beta**2)
    else:
        assert mechanism.noise == mechanism.variance


def test_the_number_of_sets_is_right() -> None:
    for cells, size in SMALL:
        assert signed_subset(1.0, cells, size=size).sets == len(all_sets(cells, size))


def test_the_example_in_the_docstring_is_so() -> None:
    assert doctest.testmod(shared).failed == 0


# --- sets as bytes --------------------------------------------------------------------------------


def by_hand(cells: int, values: tuple[int, ...]) -> int:
    """The three layouts as they are documented, one after the other; the least number of bytes."""
    chosen = [cell for cell in range(cells) if values[cell]]
    digits: int = sum((0, 2, 1)[value] * 3**cell for cell, value in enumerate(values))
    symbols: int = sum(
        (2 * cell + (values[cell] == 1)) * (2 * cells) ** place for place, cell in enumerate(chosen)
    )
    if len(chosen) == cells:
        return sum(1 << cell for cell in chosen if values[cell] == 1)
    shorter = length((2 * cells) ** len(chosen)) <= length(3**cells)
    return symbols if shorter else digits


def length(numbers: int) -> int:
    """The fewest bytes that hold so many numbers."""
    return next(count for count in itertools.count() if 256**count >= numbers)


@pytest.mark.parametrize(("cells", "size"), [*SMALL, (7, 4), (8, 5), (9, 2), (9, 9), (10, 8)])
def test_every_set_of_a_few_cells_survives_its_bytes(cells: int, size: int) -> None:
    mechanism = signed_subset(1.0, cells, size=size)
    packed = set()
    for values in all_sets(cells, size):
        data = pack(mechanism, values)
        assert unpack(mechanism, data) == list(values)
        assert int.from_bytes(data, "little") == by_hand(cells, values)
        assert len(data) == mechanism.length
        packed.add(data)
    assert len(packed) == mechanism.sets


@pytest.mark.parametrize(
    ("cells", "size"), [*SMALL, (7, 4), (8, 8), (8, 1), (8, 5), (9, 3), (10, 5), (12, 12), (100, 1)]
)
def test_every_byte_string_is_refused_or_is_the_one_packing_of_a_set(cells: int, size: int) -> None:
    mechanism = signed_subset(1.0, cells, size=size)
    assert mechanism.length in (1, 2)
    taken = 0
    for data in map(bytes, itertools.product(range(256), repeat=mechanism.length)):
        try:
            values = unpack(mechanism, data)
        except sv.ReportRejected:
            continue
        taken += 1
        assert pack(mechanism, values) == data
    assert taken == mechanism.sets


@st.composite
def signed_sets(draw: st.DrawFn) -> tuple[SignedSubset, list[int]]:
    cells = draw(st.integers(1, 300) | st.sampled_from([1999, 2000, 2001, 4301, 6000]))
    size = draw(st.integers(1, cells))
    values = [0] * cells
    random = draw(st.randoms(use_true_random=False))
    for cell in random.sample(range(cells), size):
        values[cell] = random.choice((-1, 1))
    return signed_subset(1.0, cells, size=size), values


@settings(max_examples=40)
@given(signed_sets())
def test_sets_of_many_cells_survive_their_bytes(case: tuple[SignedSubset, list[int]]) -> None:
    mechanism, values = case
    data = pack(mechanism, values)
    assert unpack(mechanism, data) == values
    assert int.from_bytes(data, "little") == by_hand(mechanism.cells, tuple(values))


@settings(max_examples=40)
@given(signed_sets(), st.data())
def test_changed_bytes_are_refused_or_are_another_set(
    case: tuple[SignedSubset, list[int]], data: st.DataObject
) -> None:
    mechanism, values = case
    changed = bytearray(pack(mechanism, values))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        other = unpack(mechanism, bytes(changed))
    except sv.ReportRejected:
        return
    assert other != values
    assert pack(mechanism, other) == changed


@settings(deadline=None)
@given(st.integers(2, 300), st.integers(1, 300), st.binary(max_size=100))
def test_any_bytes_at_all_are_read_or_refused(cells: int, size: int, data: bytes) -> None:
    mechanism = signed_subset(1.0, cells, size=min(size, cells))
    fitting = data[: mechanism.length].ljust(mechanism.length, b"\0")
    for each in (data, fitting):
        try:
            values = unpack(mechanism, each)
        except sv.ReportRejected:
            continue
        assert pack(mechanism, values) == each


@pytest.mark.parametrize("size", [1, 7, 100, 200])
def test_a_wrong_length_is_refused(size: int) -> None:
    mechanism = signed_subset(1.0, 200, size=size)
    data = pack(mechanism, [1] * size + [0] * (200 - size))
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(sv.ReportRejected, match="must take") as caught:
            unpack(mechanism, wrong)
        assert caught.value.reason is sv.Rejection.WRONG_LENGTH


def symbols(*numbers: int) -> bytes:
    """Three symbols in base 40, the first one lowest."""
    whole: int = sum(number * 40**place for place, number in enumerate(numbers))
    return whole.to_bytes(2, "little")


@pytest.mark.parametrize(
    ("cells", "size", "data"),
    [
        (20, 3, symbols(8, 8, 10)),  # a cell twice
        (20, 3, symbols(8, 9, 10)),  # a cell twice with both signs
        (20, 3, symbols(10, 8, 12)),  # not increasing
        (20, 3, symbols(0, 2, 40)),  # a cell that is not there
        (20, 3, symbols(0, 2)),  # too few cells: the third is cell 0 again
        (20, 19, (3**20 - 1).to_bytes(4, "little")),  # too many cells
        (20, 19, (3**18 - 1).to_bytes(4, "little")),  # too few
        (20, 19, ((3**19 - 1) // 2 + 3**20).to_bytes(4, "little")),  # right, but for a stray digit
        (12, 12, b"\0\x10"),  # a stray bit
    ],
)
def test_what_is_no_set_is_refused(cells: int, size: int, data: bytes) -> None:
    with pytest.raises(
        sv.ReportRejected, match=f"a set that holds {size} of {cells} cells"
    ) as caught:
        unpack(signed_subset(1.0, cells, size=size), data)
    assert caught.value.reason is sv.Rejection.MALFORMED


@pytest.mark.parametrize(
    "values",
    [
        *([], [1], [1, 0], [1, 0, 0, 0]),
        *([1, 1, 0], [0, 0, 0], [2, 0, 0], [-2, 0, 0], [1000, 0, 0], [0.5, 0, 0], ["1", 0, 0]),
    ],
)
def test_only_a_set_of_the_right_size_is_packed(values: Any) -> None:
    with pytest.raises(sv.ReportRejected, match="a set that holds 1 of 3 cells"):
        pack(signed_subset(1.0, 3, size=1), values)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", [0, 0.0, -1.0, math.nan, math.inf, 1e-10, 1e7, True, None, "1", [1.0], Decimal(1)]
)
def test_epsilons_that_cannot_be_are_refused(epsilon: Any) -> None:
    signed_subset(1.0, 5)  # what is remembered for 1.0 must not serve for True
    for make in (odds, lambda epsilon: signed_subset(epsilon, 5)):
        with pytest.raises(sv.ExperimentError, match="epsilon must"):
            make(epsilon)


@pytest.mark.parametrize("cells", [0, -1, 1.0, True, None, "3"])
def test_cells_that_cannot_be_are_refused(cells: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="the number of contested cells must"):
        signed_subset(1.0, cells)
    with pytest.raises(sv.ExperimentError, match="the number of contested cells must"):
        SignedSubset(cells, 1, 3, 2)


@pytest.mark.parametrize("size", [0, -1, 6, 1.0, True])
def test_sizes_that_cannot_be_are_refused(size: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="the size of a set must"):
        signed_subset(1.0, 5, size=size)
    with pytest.raises(sv.ExperimentError, match="the size of a set must"):
        SignedSubset(5, size, 3, 2)


@pytest.mark.parametrize(("told", "other"), [(2, 2), (1, 2), (2, 0), (0, -1)])
def test_weights_that_cannot_be_are_refused(told: int, other: int) -> None:
    with pytest.raises(sv.ExperimentError, match="the weights of a set must"):
        SignedSubset(5, 1, told, other)


# --- the document ---------------------------------------------------------------------------------


def test_the_table_in_the_document_is_what_the_code_says() -> None:
    text = (ROOT / "docs" / "explanation" / "mechanism.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| (\d+) \| (\S+) \| (\S+) \| (\d+) \|$", text, re.M)
    assert [(int(row[0]), float(row[1])) for row in rows] == [
        *itertools.product([12, 24, 100, 200], EPSILONS)
    ]
    for cells, epsilon, *said in rows:
        m = signed_subset(float(epsilon), int(cells))
        assert said == [str(m.size), f"{m.signal:.4f}", f"{m.variance:.4g}", str(m.length)]
