"""Signed subset selection: one person's (cell, value), or nothing, as a random set of cells.

Proof that it is ε-LDP, in full in docs/explanation/mechanism.md. Of the M = 2^w·C(N, w) sets, a
share θ = w/(2N) holds a given (cell, sign). Someone with that cell and sign sends each of these
with probability a/(MZ) and each other set with 1/(MZ), where a = A/B and Z = 1 + θ(a − 1);
someone with no cell sends each set with 1/M. A value in [−1, 1] is first rounded at random to a
sign, so that its law is a mixture of the laws of two signs. For any set, all these probabilities
lie in [1/(MZ), a/(MZ)], as 1 ≤ Z ≤ a. Hence no two differ by more than a factor a = A/B ≤ e^ε.

The sampler below has exactly this law. It draws what the person's own cell is to be:

    (cell, sign)     with odds wA : (2N − w)B, that is with probability θa/Z;
    or else          (cell, −sign) with odds w : 2(N − w), as C(N−1, w−1)·2^(w−1) sets hold it
                     and C(N−1, w)·2^w sets hold neither.

The rest of the set must be uniform. The sampler draws a uniform set of all N cells, U, and puts the
own cell right. If U has the cell where it is wanted, or lacks it where it is not, the rest of U is
uniform as it is. If the cell must come in, a uniform member of U goes out for it: what is left is a
uniform set of w − 1 others. If the cell must go out, a uniform cell outside of U comes in, with the
fair sign that the cell had: this makes a uniform set of w others. Someone with no cell sends U.

Even work: every coin and every pick is drawn for everybody, in the same order and with limits that
are public, and the same steps follow whatever came. U and all that its time depends on are
independent of the person. Where people differ, the code picks from a tuple and does not branch.

It draws integers only, so that no data can leak through the rounding of floating-point numbers.
"""

import math
from array import array
from functools import lru_cache

from sottovoce.device.draws import OPERATING_SYSTEM, OperatingSystem
from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import DeviceError, RewardError, kind_of, must
from sottovoce.shared.whisper.subset import SignedSubset, pack, unpack

# One draw for many picks is faster than one for each, unless the numbers become too long.
_PICKS_AT_ONCE = 64
# Every float in [−1, 1] is a whole multiple of 2^−1126: 53 bits, the last one at least 2^−1126.
_GRID = 1126
# Bits as text become signs, as signed bytes.
_SIGN_OF_BIT = bytes.maketrans(b"01", b"\xff\x01")


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
    at = 0 if cell is None else cell
    if type(at) is not int or not 0 <= at < cells:
        rule = f"be None or a whole number from 0 to {cells - 1}"
        raise DeviceError(must("a cell", rule, kind_of(cell)))

    truth = size * mechanism.told
    rest = (2 * cells - size) * mechanism.other
    sign = (-1, 1)[draws.chance_of_bits(_times_plus(number), _GRID + 1)]
    told = draws.chance(truth, truth + rest)
    turned = draws.chance(size, 2 * cells - size)
    values, leaver, joiner = _uniform_set(cells, size, draws=draws)

    here = values[at]
    wanted = (0, -sign, sign, sign)[2 * told + turned]
    own = (wanted, here)[cell is None]
    # 0 if the cell is right, 1 if it must come in, −1 (the last of the three) if it must go out.
    partner = (at, leaver, joiner)[(own != 0) - (here != 0)]
    values[partner] = here
    values[at] = own
    return pack(mechanism, values)


def turned(mechanism: SignedSubset, packed: bytes) -> bytes:
    """Return the same cells with all signs turned: a set for a value becomes one for its opposite.

    Turning maps the sets that hold (cell, sign) to those that hold (cell, −sign), one to one. So
    the law of a turned set for (cell, value) is the law of a set for (cell, −value).
    """
    return pack(mechanism, [-value for value in unpack(mechanism, packed)])


def rounded_up(value: float, *, draws: OperatingSystem = OPERATING_SYSTEM) -> bool:
    """Round a value in [−1, 1] at random to a sign, as ``whisper`` does; say whether it is plus."""
    return draws.chance_of_bits(_times_plus(value), _GRID + 1)


def _times_plus(value: float) -> int:
    """Return how many of the 2^1127 outcomes of a draw give a plus: a share of (1 + value)/2."""
    mantissa, exponent = math.frexp(value)
    return (1 << _GRID) + (int(mantissa * 2**53) << (exponent + _GRID - 53))


def _uniform_set(cells: int, size: int, *, draws: OperatingSystem) -> tuple[list[int], int, int]:
    """Return each of the 2^size·C(cells, size) sets with the same probability, as values.

    Return also a uniform member of the set, and a uniform cell outside of it, given the set. They
    are not independent of each other. If the set holds every cell, they mean nothing.
    """
    few = min(size, cells - size)
    order = _order(cells, few + 1 if few else 0, draws=draws)
    # The first few are a uniform subset, in uniform order; the next one is any of the others.
    first, next_one = order[0], order[few]
    if size == few:
        members, leaver, joiner = order[:few], first, next_one
    else:
        members, leaver, joiner = order[few:], next_one, first
    # The signs are fair coins, whatever the cells are and in whatever order they come.
    signs = array("b", f"{draws.bits(size):0{size}b}".encode().translate(_SIGN_OF_BIT))
    values = [0] * cells
    for member, sign in zip(members, signs, strict=True):
        values[member] = sign
    return values, leaver, joiner


def _order(cells: int, picks: int, *, draws: OperatingSystem) -> list[int]:
    """Return all cells, the first ones picked without replacement (Fisher and Yates)."""
    order = list(range(cells))
    for start in range(0, picks, _PICKS_AT_ONCE):
        stop = min(start + _PICKS_AT_ONCE, picks)
        number = draws.below(_ways(cells - start, stop - start))
        for place in range(start, stop):
            number, further = divmod(number, cells - place)
            pick = place + further
            order[place], order[pick] = order[pick], order[place]
    return order


@lru_cache(maxsize=1024)
def _ways(left: int, picks: int) -> int:
    """Return left·(left − 1)⋯, one factor for each pick: the product of their ranges."""
    return math.perm(left, picks)
