"""Everybody's report takes the same draws, in the same order and from the same ranges."""

import itertools
from typing import Any

import pytest

from sottovoce.device.whisper.subset import whisper
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset, unpack

VALUES = (-1.0, 1.0, 0.0, -0.0, 0.3, 5e-324, -1 + 2**-53)
# A set that holds one cell, some, half, most, and all; more picks than one draw makes.
SIZES = [(1, 1), (2, 1), (5, 2), (6, 3), (7, 6), (9, 9), (200, 101), (300, 280), (700, 300)]
COINS = list(itertools.product([False, True], repeat=3))


class Counting:
    """Randomness that notes what it is asked for; its coins fall as they are told to."""

    def __init__(self, coins: tuple[bool, ...], *, first: bool) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._coins = list(coins)
        self._first = first

    def chance(self, numerator: int, denominator: int) -> bool:
        self.asked.append(("chance", numerator, denominator))
        return self._coins.pop(0)

    def chance_of_bits(self, numerator: int, count: int) -> bool:
        # The numerator is the person's value: all that may differ.
        assert 0 <= numerator <= 2**count
        self.asked.append(("chance of bits", count))
        return self._coins.pop(0)

    def below(self, limit: int) -> int:
        self.asked.append(("below", limit))
        return 0 if self._first else limit - 1

    def bits(self, count: int) -> int:
        self.asked.append(("bits", count))
        return 0 if self._first else 2**count - 1


def asked(
    mechanism: SignedSubset, cell: int | None, value: float, coins: tuple[bool, ...], first: bool
) -> tuple[tuple[Any, ...], ...]:
    draws: Any = Counting(coins, first=first)
    data = whisper(mechanism, cell=cell, value=value, draws=draws)
    assert len(unpack(mechanism, data)) == mechanism.cells
    return tuple(draws.asked)


def may_fall(coins: tuple[bool, ...], mechanism: SignedSubset) -> bool:
    """A set that holds every cell holds the person's own: its third coin falls one way."""
    return coins[2] or mechanism.size < mechanism.cells


@pytest.mark.parametrize(("cells", "size"), SIZES)
def test_the_draws_are_the_same_whatever_the_cell_the_value_and_the_coins(
    cells: int, size: int
) -> None:
    mechanism = signed_subset(1.0, cells, size=size)
    ways = {
        asked(mechanism, cell, value, coins, first)
        for cell in (None, 0, cells // 2, cells - 1)
        for value in VALUES
        for coins in COINS
        for first in (False, True)
        if may_fall(coins, mechanism)
    }
    (way,) = ways
    kinds = [each[0] for each in way]
    assert kinds[:3] == ["chance of bits", "chance", "chance"]
    assert kinds[-1] == "bits"
    assert set(kinds[3:-1]) <= {"below"}


def test_both_coins_of_the_odds_are_drawn_with_their_odds() -> None:
    mechanism = signed_subset(1.0, 5, size=2)
    way = asked(mechanism, 0, 0.3, (True, True, True), True)
    truth, rest = 2 * mechanism.told, 8 * mechanism.other
    assert way[1:3] == (("chance", truth, truth + rest), ("chance", 2, 8))


def test_picks_have_one_more_than_the_smaller_side_of_the_set() -> None:
    for size in (2, 5):
        way = asked(signed_subset(1.0, 7, size=size), None, 0.0, (True, True, True), True)
        assert way[3:] == (("below", 7 * 6 * 5), ("bits", size))
