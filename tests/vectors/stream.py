"""A given stream of random bytes, in the place of the operating system's.

A device takes all its randomness from the module ``secrets``: whole numbers below a limit, bits,
and bytes. ``given`` replaces these three. The bytes of a stream are those of SHA-256 of its seed, a
space and 0, then of its seed, a space and 1, and so on.
"""

import hashlib
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from sottovoce.device import moments


class Stream:
    """Bytes that follow from a seed. taken: how many so far."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._ready = b""
        self._blocks = 0
        self.taken = 0

    def bytes(self, count: int = 32) -> bytes:
        while len(self._ready) < count:
            self._ready += hashlib.sha256(f"{self._seed} {self._blocks}".encode()).digest()
            self._blocks += 1
        taken, self._ready = self._ready[:count], self._ready[count:]
        self.taken += count
        return taken

    def bits(self, count: int) -> int:
        """As many bytes as are needed, the first one the highest, less the last bits."""
        length = (count + 7) // 8
        return int.from_bytes(self.bytes(length), "big") >> (8 * length - count)

    def below(self, limit: int) -> int:
        """As many bits as the limit has, again and again until the number is below it."""
        while (number := self.bits(limit.bit_length())) >= limit:
            pass
        return number


@contextmanager
def given(stream: Stream) -> Iterator[Stream]:
    """Let devices draw from a stream."""
    with _apart_from_moments() as patch:
        patch.setattr(secrets, "randbelow", stream.below)
        patch.setattr(secrets, "randbits", stream.bits)
        patch.setattr(secrets, "token_bytes", stream.bytes)
        yield stream


@contextmanager
def given_below(stream: Stream) -> Iterator[Stream]:
    """The same one floor lower: let Python's own ``secrets`` have its bytes from a stream."""
    with _apart_from_moments() as patch:
        patch.setattr(random, "_urandom", stream.bytes)
        yield stream


@contextmanager
def _apart_from_moments() -> Iterator[pytest.MonkeyPatch]:
    """Leave the moments at which calls end out of it: they are no part of a report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments, "secrets", SimpleNamespace(randbelow=lambda limit: 0))
        yield patch
