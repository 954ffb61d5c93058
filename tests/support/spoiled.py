"""Compact reports that something is wrong with, one way or another."""

import random
import struct
from collections.abc import Callable, Sequence

import sottovoce as sv
from sottovoce.shared import wire

NONCE = slice(18, 34)


def verdict(take: Callable[[sv.Report], object], data: bytes) -> sv.Rejection | None:
    """What becomes of one report that is decoded and then handed to somebody."""
    try:
        take(wire.report_from_bytes(data))
    except sv.Refused as refused:
        return refused.reason
    return None


def numbers(data: bytes, *values: float) -> bytes:
    """The same report with numbers in place of its payload."""
    count = struct.pack(f"<I{len(values)}d", len(values), *values)
    return data[:3] + b"\1" + data[4:34] + count


def spoil(rng: random.Random, data: bytes) -> bytes:
    """Damage a report in one of many ways; some of them leave it as good as it was."""
    question = struct.pack("<H", rng.choice([rng.randrange(20), rng.randrange(150)]))
    ways = [
        b"",
        data[: rng.randrange(len(data))],
        data[: rng.randrange(34, 38)],
        data + rng.randbytes(1),
        data[:-1],
        data[:-1] + rng.randbytes(1),
        b"sw" + data[2:],
        data[:2] + b"\6" + data[3:],  # a newer wire version
        data[:2] + b"\2" + data[3:],  # an older one
        data[:2] + b"\0" + data[3:],
        data[:3] + bytes([rng.randrange(6)]) + data[4:],
        data[:4] + rng.randbytes(12) + data[16:],  # another release
        data[:4] + bytes(12) + data[16:],
        data[:4] + b"\xff" * 12 + data[16:],
        data[:16] + struct.pack("<H", rng.randrange(5)) + data[18:],
        data[:34] + question + data[36:],
        data[:36] + bytes([rng.randrange(5)]) + data[37:],
        data[:36] + b"\3" + bytes(rng.sample(range(4), 3)) + data[37:],
        data[:36] + b"\0" + data[37:],
        numbers(data),
        numbers(data, 0.5, float("nan")),
        numbers(data, 0.5, 1e9),
        rng.randbytes(len(data)),
    ]
    spoiled = bytearray(rng.choice(ways))
    if spoiled and rng.random() < 0.1:
        spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def cut_at_random(rng: random.Random, data: Sequence[bytes], *, most: int) -> list[list[bytes]]:
    """Cut reports into pieces, some of them empty."""
    pieces, start = [], 0
    while start < len(data):
        end = start + rng.choice([0, 1, 2, rng.randrange(most)])
        pieces.append(list(data[start:end]))
        start = end
    return pieces
