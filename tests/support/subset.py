"""The exact law of a signed subset sampler, by following every draw it can make; and its faults."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from sottovoce.device.whisper import subset as device
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.whisper.subset import SignedSubset, unpack

Sampler = Callable[..., bytes]
Input = tuple[int | None, float]
Law = dict[tuple[int, ...], Fraction]

# Both signs for certain, and values that are rounded at random; 0.3 is no short fraction.
VALUES = (-1.0, 1.0, 0.3, -0.5, 0.0)


class Following:
    """Randomness that takes one way, and notes every way it might have taken instead."""

    def __init__(self, way: tuple[int, ...] = (), share: int = 1, whole: int = 1) -> None:
        self.way = way
        # The probability of the way so far is share/whole: whole numbers, which are fast.
        self.share = share
        self.whole = whole
        self.untried: list[tuple[tuple[int, ...], int, int]] = []
        self._known = len(way)
        self._made = 0

    def _pick(self, denominator: int, *shares: tuple[range, int]) -> int:
        """Take one of the picks; each in a range has the same share of the denominator."""
        if self._made == self._known:
            whole = self.whole * denominator
            ways = [
                ((*self.way, pick), self.share * share, whole)
                for picks, share in shares
                if share
                for pick in picks
            ]
            self.way, self.share, self.whole = ways.pop()
            self.untried += ways
            self._known += 1
        self._made += 1
        return self.way[self._made - 1]

    @property
    def probability(self) -> Fraction:
        """The probability of the way so far."""
        return Fraction(self.share, self.whole)

    def chance(self, numerator: int, denominator: int) -> bool:
        assert 0 <= numerator <= denominator
        yes, no = (range(1, 2), numerator), (range(1), denominator - numerator)
        return bool(self._pick(denominator, yes, no))

    def chance_of_bits(self, numerator: int, count: int) -> bool:
        return self.chance(numerator, 2**count)

    def below(self, limit: int) -> int:
        return self._pick(limit, (range(limit), 1))

    def bits(self, count: int) -> int:
        return self.below(2**count)


def exact_law(sampler: Sampler, mechanism: SignedSubset, cell: int | None, value: float) -> Law:
    """Run the sampler once along each way that its draws can go."""
    shares: Counter[tuple[bytes, int]] = Counter()
    untried: list[tuple[tuple[int, ...], int, int]] = [((), 1, 1)]
    while untried:
        draws = Following(*untried.pop())
        data = sampler(mechanism, cell=cell, value=value, draws=draws)
        shares[data, draws.whole] += draws.share
        untried += draws.untried
    law: Law = {}
    for (data, whole), share in shares.items():
        values = tuple(unpack(mechanism, data))
        law[values] = law.get(values, Fraction(0)) + Fraction(share, whole)
    return law


def all_sets(cells: int, size: int) -> list[tuple[int, ...]]:
    """Every set as values, by trying all."""
    every = itertools.product((-1, 0, 1), repeat=cells)
    return [values for values in every if values.count(0) == cells - size]


@lru_cache
def power_of_e(epsilon: float) -> tuple[Fraction, Fraction]:
    """Bounds on e^ε that are certain: ``decimal`` rounds its exp correctly in the last digit."""
    with localcontext() as context:
        context.prec = 120
        value = Fraction(Decimal(epsilon).exp())
    return value * (1 - Fraction(1, 10**118)), value * (1 + Fraction(1, 10**118))


def expected_law(cells: int, size: int, a: Fraction, cell: int | None, value: float) -> Law:
    """The law as it is defined: weight a for the truth, 1 for the rest, mixed over the signs."""
    sets = all_sets(cells, size)
    if cell is None:
        return dict.fromkeys(sets, Fraction(1, len(sets)))
    law = dict.fromkeys(sets, Fraction(0))
    for sign in (-1, 1):
        weights = {values: a if values[cell] == sign else Fraction(1) for values in sets}
        share = (1 + sign * Fraction(value)) / 2 / sum(weights.values())
        for values, weight in weights.items():
            law[values] += share * weight
    return {values: probability for values, probability in law.items() if probability}


def faults(sampler: Sampler, mechanism: SignedSubset, *, epsilon: float) -> set[str]:
    """Say which promises the sampler breaks: all of them are checked exactly.

    Of the mechanism only N and w are taken on trust; the odds are worked out here again.
    """
    cells, size = mechanism.cells, mechanism.size
    least, most = power_of_e(epsilon)
    a = Fraction(math.floor(2**64 * least), 2**64)
    assert math.floor(2**64 * most) == a * 2**64
    inputs: list[Input] = [(None, 0.0), *itertools.product(range(cells), VALUES)]
    try:
        laws = {each: exact_law(sampler, mechanism, *each) for each in inputs}
    except (SottovoceError, ArithmeticError, ValueError, AssertionError):
        return {"fails"}
    found = set()
    for (cell, value), law in laws.items():
        if sum(law.values()) != 1:
            found.add("sum")
        if law != expected_law(cells, size, a, cell, value):
            found.add("law")
        found |= _wrong_moments(law, cells, size, a, cell, value)
    ratio = worst_ratio(list(laws.values()))
    if ratio is None or ratio > least:
        found.add("privacy")
    if ratio != a:
        found.add("ratio")
    return found


def worst_ratio(laws: list[Law]) -> Fraction | None:
    """The greatest likelihood ratio of any set between any two inputs; None if it is infinite."""
    worst = Fraction(1)
    for values in set().union(*laws):
        chances = [law.get(values, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return None
        worst = max(worst, max(chances) / min(chances))
    return worst


def _wrong_moments(
    law: Law, cells: int, size: int, a: Fraction, cell: int | None, value: float
) -> set[str]:
    """Means and mean squares of every cell, and means of products of every two, by the formulas."""
    theta = Fraction(size, 2 * cells)
    z = 1 + theta * (a - 1)
    beta = theta * (a - 1) / z
    # Sums in whole numbers: many times as fast as in fractions.
    unit = math.lcm(*(p.denominator for p in law.values()))
    weights = [(values, int(p * unit)) for values, p in law.items()]
    found = set()
    for one in range(cells):
        mean = Fraction(sum(p * values[one] for values, p in weights), unit) / beta
        if mean != (Fraction(value) if one == cell else 0):
            found.add("mean")
        square = Fraction(sum(p * values[one] ** 2 for values, p in weights), unit)
        if cell is None:
            right = Fraction(size, cells)
        elif one == cell:
            right = theta * (a + 1) / z
        else:
            right = (size - theta * (a + 1) / z) / (cells - 1)
        if square != right:
            found.add("square")
        for other in range(one):
            if sum(p * values[one] * values[other] for values, p in weights) != 0:
                found.add("product")
    return found


def mutant(old: str, new: str) -> Sampler:
    """The device's own code with one piece of its text replaced."""
    text = Path(device.__file__).read_text()
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    module: Any = ModuleType("mutant")
    exec(compile(text.replace(old, new), "mutant", "exec"), module.__dict__)  # noqa: S102
    sampler: Sampler = module.whisper
    return sampler
