"""Sets that are unpacked many at once are those that are unpacked one by one."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.estimate.whisper.unpack import unpack_many
from sottovoce.shared.whisper.subset import SignedSubset, pack, signed_subset, unpack


def one_by_one(mechanism: SignedSubset, rows: list[bytes]) -> tuple[list[list[int]], list[bool]]:
    values, valid = [], []
    for row in rows:
        try:
            values.append(unpack(mechanism, row))
            valid.append(True)
        except sv.ReportRejected:
            values.append([0] * mechanism.cells)
            valid.append(False)
    return values, valid


def assert_alike(mechanism: SignedSubset, rows: list[bytes]) -> int:
    """Compare, and return how many rows were sets."""
    data = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), mechanism.length)
    values, valid = unpack_many(mechanism, data)
    expected, which = one_by_one(mechanism, rows)
    assert values.dtype == np.int8
    assert values.shape == (len(rows), mechanism.cells)
    assert valid.tolist() == which
    assert values.tolist() == expected
    return sum(which)


def of(cells: int, size: int) -> SignedSubset:
    return signed_subset(1.0, cells, size=size)


SMALL = [
    (cells, size)
    for cells in range(1, 26)
    for size in range(1, cells + 1)
    if of(cells, size).length == 1
]


@pytest.mark.parametrize(("cells", "size"), SMALL)
def test_every_byte_is_read_alike(cells: int, size: int) -> None:
    mechanism = of(cells, size)
    rows = [bytes([byte]) for byte in range(256)]
    assert assert_alike(mechanism, rows) == mechanism.sets


@pytest.mark.parametrize(
    ("cells", "size"),
    # bits; digits, with and without room to spare in the last five; symbols
    [(9, 9), (16, 16), (6, 4), (8, 5), (10, 3), (10, 9), (9, 4), (11, 3), (20, 3), (100, 2)],
)
def test_every_two_bytes_are_read_alike(cells: int, size: int) -> None:
    mechanism = of(cells, size)
    assert mechanism.length == 2
    rows = [number.to_bytes(2, "little") for number in range(2**16)]
    assert assert_alike(mechanism, rows) == mechanism.sets


def drawn(rng: random.Random, mechanism: SignedSubset) -> bytes:
    values = [0] * mechanism.cells
    for cell in rng.sample(range(mechanism.cells), mechanism.size):
        values[cell] = rng.choice([-1, 1])
    return pack(mechanism, values)


def mutated(rng: random.Random, row: bytes) -> bytes:
    changed = bytearray(row)
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def edges(mechanism: SignedSubset) -> list[bytes]:
    """Numbers around what each layout can hold, and around limbs."""
    cells, size, length = mechanism.cells, mechanism.size, mechanism.length
    powers = [0, 2**cells, 3**cells, (2 * cells) ** size, 256**length]
    powers += [(2 * cells) ** (size - 1), 3 ** (cells - 1), *(2**bits for bits in (32, 64, 96))]
    around = {power + step for power in powers for step in (-2, -1, 0, 1)}
    return [each.to_bytes(length, "little") for each in sorted(around) if 0 <= each < 256**length]


@settings(deadline=None, max_examples=150)
@given(
    cells=st.integers(1, 300),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32),
    few=st.booleans(),
)
def test_sets_and_what_is_none_are_read_alike(
    cells: int, share: float, seed: int, few: bool
) -> None:
    mechanism = of(cells, max(1, round(share**3 * cells)))
    rng = random.Random(seed)
    rows = [drawn(rng, mechanism) for _ in range(5 if few else 40)]
    assert assert_alike(mechanism, rows) == len(rows)
    rows += [mutated(rng, row) for row in rows]
    rows += [rng.randbytes(mechanism.length) for _ in rows]
    rows += edges(mechanism)
    rng.shuffle(rows)
    assert_alike(mechanism, rows[:12] if few else rows)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 4.0, 8.0, 64.0])
@pytest.mark.parametrize("cells", [1, 2, 20, 61, 121, 181])
def test_mechanisms_that_are_used_are_read_alike(epsilon: float, cells: int) -> None:
    mechanism, rng = signed_subset(epsilon, cells), random.Random(cells)
    rows = [drawn(rng, mechanism) for _ in range(100)]
    assert assert_alike(mechanism, rows) == 100
    assert_alike(mechanism, [mutated(rng, row) for row in rows] + edges(mechanism))
