"""Signed subset selection: one person's (cell, value), or nothing, as a random set of cells.

Proof that it is ε-LDP, in full in docs/explanation/mechanism.md. Of the M = 2^w·C(N, w) sets, a
share θ = w/(2N) holds a given (cell, sign). Someone with that cell and sign sends each of these
with probability a/(MZ) and each other set with 1/(MZ), where a = A/B and Z = 1 + θ(a − 1);
someone with no cell sends each set with 1/M. A value in [−1, 1] is first rounded at random to a
sign, so that its law is a mixture of the laws of two signs. For any set, all these probabilities
lie in [1/(MZ), a/(MZ)], as 1 ≤ Z ≤ a. Hence no two differ by more than a factor a = A/B ≤ e^ε.

The sampler below has exactly this law:

    the set holds (cell, sign)    with odds wA : (2N − w)B, that is with probability θa/Z;
    or else (cell, −sign)         with odds w : 2(N − w), as C(N−1, w−1)·2^(w−1) sets hold it
                                  and C(N−1, w)·2^w sets hold neither;
    the rest of the set           is uniform.

It draws integers only, so that no data can leak through the rounding of floating-point numbers.
"""

import math
import secrets
from functools import lru_cache

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import DeviceError, RewardError, kind_of, must
from sottovoce.shared.whisper.subset import SignedSubset, pack


class OperatingSystem:
    """The operating system's randomness. No seed can be set.

    A test puts something else in its place, to follow every possible draw.
    """

    def chance(self, numerator: int, denominator: int) -> bool:
        """Return true with probability numerator/denominator."""
        return secrets.randbelow(denominator) < numerator

    def below(self, limit: int) -> int:
        """Return each of 0, …, limit − 1 with the same probability."""
        return secrets.randbelow(limit)

    def bits(self, count: int) -> int:
        """Return each of 0, …, 2^count − 1 with the same probability."""
        return secrets.randbits(count)


OPERATING_SYSTEM = OperatingSystem()

# One draw for many picks is faster than one for each, unless the numbers become too long.
_PICKS_AT_ONCE = 64


def whisper(
    mechanism: SignedSubset,
    *,
    cell: int | None,
    value: float,
    draws: OperatingSystem = OPERATING_SYSTEM,
) -> bytes:
    """Return a packed random set that is ε-LDP in (cell, value).

    cell: the person's contested cell, or None if there is none; then value has no effect.
    value: in [−1, 1]; what the learner estimates for the cell (2y − 1 for a reward y).
    """
    cells, size = mechanism.cells, mechanism.size
    number = finite_float(value)
    if number is None or not -1 <= number <= 1:
        raise RewardError(must("a value", "be a number in [-1, 1]", kind_of(value)))
    if cell is None:
        return pack(mechanism, _uniform_set(cells, size, draws=draws))
    if type(cell) is not int or not 0 <= cell < cells:
        rule = f"be None or a whole number from 0 to {cells - 1}"
        raise DeviceError(must("a cell", rule, kind_of(cell)))

    # P(sign = +1) = (1 + value)/2, computed exactly: a float is a fraction.
    over, under = number.as_integer_ratio()
    sign = 1 if draws.chance(under + over, 2 * under) else -1

    truth = size * mechanism.told
    rest = (2 * cells - size) * mechanism.other
    if draws.chance(truth, truth + rest):
        own = sign
    elif draws.chance(size, 2 * cells - size):
        own = -sign
    else:
        own = 0
    values = _uniform_set(cells - 1, size - abs(own), draws=draws)
    values.insert(cell, own)
    return pack(mechanism, values)


def _uniform_set(cells: int, size: int, *, draws: OperatingSystem) -> list[int]:
    """Return each of the 2^size·C(cells, size) sets with the same probability, as values."""
    chosen: set[int] | list[int]
    if 2 * size <= cells:
        chosen = _uniform_subset(cells, size, draws=draws)
    else:
        omitted = _uniform_subset(cells, cells - size, draws=draws)
        chosen = [cell for cell in range(cells) if cell not in omitted]
    values = [0] * cells
    # The signs are fair coins, whatever the cells are and in whatever order they come.
    signs = f"{draws.bits(size):0{size}b}"
    for cell, sign in zip(chosen, signs, strict=False):
        values[cell] = 1 if sign == "1" else -1
    return values


def _uniform_subset(cells: int, size: int, *, draws: OperatingSystem) -> set[int]:
    """Return each subset of that size with the same probability, by Floyd's algorithm.

    Before the step for ``last``, the subset is uniform over those of its size from 0 … last − 1.
    The step picks a cell from 0 … last, and takes ``last`` if the subset has the pick already. A
    larger subset with ``last`` comes about by picking ``last`` or one of its other cells. A larger
    subset without ``last`` comes about by picking any one of its cells. So all are equally likely.
    """
    subset: set[int] = set()
    for start in range(cells - size, cells, _PICKS_AT_ONCE):
        stop = min(start + _PICKS_AT_ONCE, cells)
        number = draws.below(_ways(start, stop))
        for last in range(start, stop):
            number, pick = divmod(number, last + 1)
            subset.add(last if pick in subset else pick)
    return subset


@lru_cache(maxsize=1024)
def _ways(start: int, stop: int) -> int:
    """Return (start + 1)(start + 2)⋯stop, the product of the ranges of these picks."""
    return math.perm(stop, stop - start)
