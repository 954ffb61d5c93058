"""ε → the constants of signed subset selection, and its sets as bytes.

A person is in one of N contested cells with a sign, or in none (null). The report is a set of w
different cells, each with a sign. A set that holds the person's own (cell, sign) has weight A, any
other has weight B; from a null person all have the same. With a = A/B ≤ e^ε, θ = w/(2N) and
Z = 1 + θ(a − 1) (docs/explanation/mechanism.md derives each of these):

    P(the set holds the truth)  = θa/Z
    E[value of the own cell]    = β·sign,   β = θ(a − 1)/Z
    E[value² of another cell]   = o = (w − θ(a + 1)/Z)/(N − 1);  from a null person w/N

In integers, with T = 2NB + w(A − B) = 2NB·Z: θa/Z = wA/T, β = w(A − B)/T, θ(a + 1)/Z = w(A + B)/T.
Python divides integers with one correct rounding, so that each float here is as precise as a float
can be, also where a − 1 is tiny.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, Rejection, ReportRejected, must

# For a larger ε the odds stay the same. The report is then more private than was asked for. Nobody
# can tell: even so, it misses the truth less than 2N times in e^64 (6·10^27) reports.
_LARGEST_EXPONENT = 64.0
_UNIT = 2**64
# Rounding in the series is amplified by at most e^64 < 2^93 and happens at most 400 times. It
# changes these bits only, and none of the 64 bits of the result.
_GUARD_BITS = 192


def odds(epsilon: float) -> tuple[int, int]:
    """Return integers (A, B) with 1 < A/B ≤ e^ε for certain: B = 2^64 and A = ⌊B·e^min(ε, 64)⌋."""
    return _odds(check.epsilon(epsilon))


@lru_cache(maxsize=1024)
def _odds(epsilon: float) -> tuple[int, int]:
    # e^x = Σ x^k/k!, and x > 0 is an exact fraction. Each term is rounded down and the tail left
    # out; all terms are positive, so the sum cannot exceed the truth.
    numerator, denominator = min(epsilon, _LARGEST_EXPONENT).as_integer_ratio()
    term = total = _UNIT << _GUARD_BITS
    count = 0
    while term:
        count += 1
        term = term * numerator // (denominator * count)
        total += term
    return total >> _GUARD_BITS, _UNIT


@dataclass(frozen=True, slots=True)
class SignedSubset:
    """One mechanism: all that the device and the learner must agree on.

    cells: N, how many cells are contested.
    size: w, how many of them a set holds.
    told: A, the weight of a set that holds the truth.
    other: B, the weight of any other set.
    """

    cells: int
    size: int
    told: int
    other: int

    def __post_init__(self) -> None:
        check.whole_number(self.cells, what="the number of contested cells", least=1)
        check.whole_number(self.size, what="the size of a set", least=1)
        if self.size > self.cells:
            rule = f"be at most the number of cells, {self.cells}"
            raise ExperimentError(must("the size of a set", rule, self.size))
        if not self.told > self.other > 0:
            rule = "be positive, with more for the truth than for the rest"
            raise ExperimentError(must("the weights of a set", rule, (self.told, self.other)))

    def __str__(self) -> str:
        return f"a set that holds {self.size} of {self.cells} cells, each once and with a sign"

    @property
    def ratio(self) -> Fraction:
        """The greatest likelihood ratio between any two people, a = A/B. It is reached."""
        return Fraction(self.told, self.other)

    @property
    def sets(self) -> int:
        """How many sets there are: 2^w·C(N, w)."""
        return math.comb(self.cells, self.size) << self.size

    @property
    def signal(self) -> float:
        """β: a cell's value divided by it estimates sign·1{the person is in the cell}."""
        return self.size * (self.told - self.other) / self._total

    @property
    def contains(self) -> float:
        """The probability that the set holds the person's own cell with its sign."""
        return self.size * self.told / self._total

    @property
    def variance(self) -> float:
        """w/(Nβ²): the variance of value/β in each cell from a null person.

        From anybody it is the mean over cells of the mean of (value/β)².
        """
        gap = self.told - self.other
        return self._total**2 / (self.cells * self.size * gap**2)

    @property
    def noise(self) -> float:
        """o/β²: the variance of value/β in a cell, from a person in another cell."""
        if self.cells == 1:
            return self.variance  # Only a null person is outside of the one cell.
        left = self._total - self.told - self.other
        gap = self.told - self.other
        return left * self._total / ((self.cells - 1) * self.size * gap**2)

    @property
    def inside(self) -> float:
        """The mean of (value/β)² in the cell that the person is in: P(it is in the set)/β²."""
        gap = self.told - self.other
        return (self.told + self.other) * self._total / (self.size * gap**2)

    @property
    def length(self) -> int:
        """How many bytes each packed set takes."""
        return _packing(self.cells, self.size)[1]

    @property
    def _total(self) -> int:
        """T = wA + (2N − w)B, the sum of all weights up to a factor."""
        return self.size * self.told + (2 * self.cells - self.size) * self.other


def signed_subset(epsilon: float, cells: int, *, size: int | None = None) -> SignedSubset:
    """Return the mechanism for ε and N, with the size that makes the variance least.

    >>> mechanism = signed_subset(1.0, 12)
    >>> mechanism.size, round(mechanism.signal, 3), round(mechanism.variance, 2)
    (12, 0.462, 4.68)
    """
    told, other = odds(epsilon)
    cells = check.whole_number(cells, what="the number of contested cells", least=1)
    if size is None:
        size = _best_size(cells, told, other)
    return _mechanism(cells, check.whole_number(size, what="the size of a set", least=1), told)


@lru_cache(maxsize=1024)
def _mechanism(cells: int, size: int, told: int) -> SignedSubset:
    return SignedSubset(cells, size, told, _UNIT)


def _best_size(cells: int, told: int, other: int) -> int:
    """Return the w in 1..N that minimises w/(Nβ²).

    With x = θ(a − 1) = w/c and c = 2NB/(A − B), w/(Nβ²) is 2/(a − 1) times (1 + x)²/x, which is
    x + 1/x + 2: convex, and least at w = c. Of w and w + 1 the first is the better if and only if
    w/c + c/w < (w + 1)/c + c/(w + 1), that is c² < w(w + 1). They are never equal: w(w + 1) lies
    between two squares, and so c would be no fraction.
    """
    gap, full = told - other, 2 * cells * other
    below = full // gap
    size = below if below * (below + 1) * gap**2 > full**2 else below + 1
    return min(size, cells)


class Packing(Enum):
    """How a set is written. N and w alone decide which, so that it reveals nothing.

    Each is one whole number, little-endian, cell 0 or the first cell in the lowest place.
    """

    BITS = "one bit a cell: 1 is plus (every cell is in the set)"
    SYMBOLS = "2·cell + (1 if plus) of each cell in the set, by increasing cell, in base 2N"
    DIGITS = "one digit a cell in base 3: 0 is not in the set, 1 minus, 2 plus"


@lru_cache(maxsize=1024)
def _packing(cells: int, size: int) -> tuple[Packing, int]:
    """Choose the shortest packing, and say how many bytes it takes."""
    if size == cells:
        return Packing.BITS, _bytes_for(2**cells)
    # If both are equally long, symbols are faster: their time grows with w, not with N.
    symbols, digits = _bytes_for((2 * cells) ** size), _bytes_for(3**cells)
    return (Packing.SYMBOLS, symbols) if symbols <= digits else (Packing.DIGITS, digits)


def _bytes_for(numbers: int) -> int:
    return ((numbers - 1).bit_length() + 7) // 8


# Values as signed bytes 0, 1 and 255 become digits; "x" is no digit in any base used here.
_DIGIT_OF_BYTE = bytes({0: 48, 255: 49, 1: 50}.get(byte, 120) for byte in range(256))
_BIT_OF_DIGIT = bytes.maketrans(b"12", b"01")
# Five digits are below 3^5 = 243: read and written five at a time, five times as fast.
_VALUES_OF_FIVE = [[(0, -1, 1)[five // 3**place % 3] for place in range(5)] for five in range(3**5)]
# Python reads at most 4300 digits at once in a base that is no power of 2.
_DIGITS_AT_ONCE = 2000


def pack(mechanism: SignedSubset, values: Sequence[int]) -> bytes:
    """Write a set, given as the value −1, 0 (not in the set) or +1 of each cell."""
    try:
        digits = array("b", values).tobytes().translate(_DIGIT_OF_BYTE)
    except (OverflowError, TypeError):
        digits = b"x"
    cells, size = mechanism.cells, mechanism.size
    if len(digits) != cells or digits.count(b"0") != cells - size or b"x" in digits:
        raise _malformed(mechanism)
    packing, length = _packing(cells, size)
    if packing is Packing.BITS:
        number = int(digits[::-1].translate(_BIT_OF_DIGIT), 2)
    elif packing is Packing.SYMBOLS:
        number = 0
        for cell in range(cells - 1, -1, -1):
            if values[cell]:
                number = number * 2 * cells + 2 * cell + (values[cell] > 0)
    else:
        number = 0
        for start in range((cells - 1) // _DIGITS_AT_ONCE * _DIGITS_AT_ONCE, -1, -_DIGITS_AT_ONCE):
            piece = digits[start : start + _DIGITS_AT_ONCE]
            number = number * 3 ** len(piece) + int(piece[::-1], 3)
    return number.to_bytes(length, "little")


def unpack(mechanism: SignedSubset, data: bytes) -> list[int]:
    """Read the value −1, 0 or +1 of each cell; refuse all bytes that ``pack`` does not write."""
    cells, size = mechanism.cells, mechanism.size
    packing, length = _packing(cells, size)
    if len(data) != length:
        wrong = must("a packed set", f"take {length} bytes", len(data))
        raise ReportRejected(Rejection.WRONG_LENGTH, wrong)
    number, values = int.from_bytes(data, "little"), [0] * cells
    if packing is Packing.BITS:
        values = [1 if bit == "1" else -1 for bit in reversed(f"{number:0{cells}b}")]
        number = 0
    elif packing is Packing.SYMBOLS:
        before = -1
        for _ in range(size):
            number, symbol = divmod(number, 2 * cells)
            cell, plus = divmod(symbol, 2)
            if cell <= before:
                raise _malformed(mechanism)
            values[cell] = 1 if plus else -1
            before = cell
    else:
        values = []
        for _ in range(0, cells, 5):
            number, five = divmod(number, 3**5)
            values += _VALUES_OF_FIVE[five]
    # There may be more places than cells: more bits, or the rest of the last five digits.
    stray = any(values[cells:])
    del values[cells:]
    if number or stray or values.count(0) != cells - size:
        raise _malformed(mechanism)
    return values


def _malformed(mechanism: SignedSubset) -> ReportRejected:
    rule, came = f"be {mechanism}", "something else"
    return ReportRejected(Rejection.MALFORMED, must("packed cells", rule, came))
