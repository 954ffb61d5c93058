"""Many packed sets at once: ``shared.whisper.subset.unpack``, with the same verdicts, on arrays."""

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.gate import Bytes, Flags, Values
from sottovoce.shared.errors import ReportRejected
from sottovoce.shared.whisper.subset import SignedSubset, unpack

_FEW = 16  # are read faster one by one than by long division on arrays
_LIMB = 32  # bits; with a remainder of as many in front it fits 64
_VALUE_OF_DIGIT = np.array([0, -1, 1], dtype=np.int8)
# Five digits in base 3 are below 3^5 = 243.
_VALUES_OF_FIVE = _VALUE_OF_DIGIT[np.arange(3**5)[:, None] // 3 ** np.arange(5) % 3]


def unpack_many(mechanism: SignedSubset, data: Bytes) -> tuple[Values, Flags]:
    """Read the value −1, 0 or +1 of each cell, (n, cells), and which rows are sets at all, (n,).

    data (n, length): a packed set in each row. Rows that ``pack`` does not write are all 0.
    """
    cells, size = mechanism.cells, mechanism.size
    if size == cells:
        values, valid = _read_bits(cells, data)
    elif len(data) < _FEW:
        values, valid = _read_one_by_one(mechanism, data)
    # Of symbols and digits the shorter ones are used: symbols are, if so many bytes hold them all.
    elif (2 * cells) ** size <= 256**mechanism.length:
        values, valid = _read_symbols(cells, size, data)
    else:
        values, valid = _read_digits(cells, size, data)
    if not valid.all():
        values[~valid] = 0
    return values, valid


def _read_bits(cells: int, data: Bytes) -> tuple[Values, Flags]:
    bits = np.unpackbits(data.reshape(-1), bitorder="little").reshape(len(data), -1)
    return 2 * bits[:, :cells].astype(np.int8) - 1, ~np.any(bits[:, cells:], axis=1)


def _read_one_by_one(mechanism: SignedSubset, data: Bytes) -> tuple[Values, Flags]:
    values = np.zeros((len(data), mechanism.cells), dtype=np.int8)
    valid = np.ones(len(data), dtype=np.bool_)
    for row, packed in enumerate(data):
        try:
            values[row] = unpack(mechanism, packed.tobytes())
        except ReportRejected:
            valid[row] = False
    return values, valid


def _read_symbols(cells: int, size: int, data: Bytes) -> tuple[Values, Flags]:
    symbols, whole = _digits(data, base=2 * cells, count=size)
    named = symbols >> 1
    values = np.zeros((len(data), cells), dtype=np.int8)
    values[np.arange(len(data)), named] = 2 * (symbols & 1).astype(np.int8) - 1
    return values, whole & (named[1:] > named[:-1]).all(axis=0)


def _read_digits(cells: int, size: int, data: Bytes) -> tuple[Values, Flags]:
    fives, whole = _digits(data, base=3**5, count=-(-cells // 5))
    values = _VALUES_OF_FIVE[fives.T].reshape(len(data), -1)
    # The last five may hold more places than there are cells.
    stray = values[:, cells:].any(axis=1)
    values = values[:, :cells]
    return values, whole & ~stray & (np.count_nonzero(values, axis=1) == size)


def _digits(data: Bytes, *, base: int, count: int) -> tuple[NDArray[np.uint64], Flags]:
    """Return the lowest digits of whole numbers, (count, n), and whether those are all, (n,).

    data (n, length): a number in each row, little-endian. It is long division by the largest power
    of the base that fits a limb; each remainder then falls into several digits.
    """
    at_once = 1
    while base ** (at_once + 1) < 2**_LIMB:
        at_once += 1
    divisor = base**at_once
    # Each number in limbs, (limbs, n), the lowest one first.
    length, bits = data.shape[1], 8 * data.shape[1]
    padded = np.zeros((len(data), -(-bits // _LIMB) * _LIMB // 8), dtype=np.uint8)
    padded[:, :length] = data
    limbs = padded.view("<u4").T.astype(np.uint64, order="C")
    parts = np.zeros((-(-count // at_once), len(data)), dtype=np.uint64)
    for part in parts:
        for limb in limbs[::-1]:
            part <<= _LIMB
            part |= limb
            np.divmod(part, divisor, out=(limb, part))
        # What is left is smaller by the divisor: higher limbs are 0 by now.
        bits = max(bits - divisor.bit_length() + 1, 0)
        limbs = limbs[: -(-bits // _LIMB)]
    split = np.empty((len(parts), at_once, len(data)), dtype=np.uint64)
    for place in range(at_once):
        np.divmod(parts, base, out=(parts, split[:, place]))
    digits = split.reshape(-1, len(data))
    return digits[:count], ~(np.any(limbs, axis=0) | np.any(digits[count:], axis=0))
