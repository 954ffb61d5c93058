"""The coins of a choice: which arm on offer a person gets, and what of a report is public.

**Where arms are private**, the arm is drawn anew for each choice, or it stays: the same person then
keeps the same arm until the policy of their bin changes. What stays is one random key of the
device. The draw follows from it and from the policy of the bin, by HMAC-SHA256, so that nothing
about the person has to be kept. To everybody without the key it looks like a fresh draw.

**Where arms are public**, the report shows the ranking that chose the arm. It is drawn anew for
each report: one that stayed would tell which reports come from the same person. A device without
an outbox has one choice at a time, and may choose as often as it likes before it reports. If each
choice had a ranking of its own, the app would pick one of them, perhaps by what it knows about the
person, and the report would show which. So there a ranking stays until a report is made with it.

**Where there is a baseline**, the report shows the group that a coin put the person in. The same
holds of that coin: it is drawn anew for each report, whoever comes back, and it does not wait for
a choice that somebody likes better. It never follows from the key of the device: a group that
stayed would tell which reports come from the same person.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from typing import Protocol

from sottovoce.shared.errors import DeviceError
from sottovoce.shared.release import BinPolicy

Ranking = tuple[int, ...]

BITS = 53
"""Of one draw of an arm."""

KEY_BYTES = 32


class Coins(Protocol):
    """Where the draws of a choice come from."""

    def bits(self, policy: BinPolicy) -> int:
        """Return the BITS random bits that draw an arm of this bin."""

    def ranking(self, draw: Callable[[], Ranking]) -> Ranking:
        """Return the public ranking of the arms."""

    def group(self, draw: Callable[[], int]) -> int:
        """Return the public coin that decides on a group."""


class FreshCoins:
    """Every choice has draws of its own, and ends in a report of its own."""

    def bits(self, policy: BinPolicy) -> int:
        """Return fresh bits from the operating system."""
        return secrets.randbits(BITS)

    def ranking(self, draw: Callable[[], Ranking]) -> Ranking:
        """Return a fresh ranking."""
        return draw()

    def group(self, draw: Callable[[], int]) -> int:
        """Return a fresh coin."""
        return int(draw())


class StickyCoins(FreshCoins):
    """The same person keeps the same arm until the policy of their bin changes.

    key: KEY_BYTES random bytes, which never leave the device.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def bits(self, policy: BinPolicy) -> int:
        """Return the bits that follow from the key and from this policy."""
        text = repr((policy.path, policy.arms, policy.propensities)).encode()
        digest = hmac.digest(self._key, text, hashlib.sha256)
        return int.from_bytes(digest[:8], "big") >> (64 - BITS)


class OneChoice(FreshCoins):
    """The coins of a device that has one choice at a time: public ones stay until they are used."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._ranking: Ranking = ()
        self._group: int | None = None

    def ranking(self, draw: Callable[[], Ranking]) -> Ranking:
        """Return the ranking of the next report; draw it if there is none yet."""
        self._check_process("a ranking")
        if not self._ranking:
            self._ranking = draw()
        return self._ranking

    def group(self, draw: Callable[[], int]) -> int:
        """Return the coin of the next report; draw it if there is none yet."""
        self._check_process("a coin")
        if self._group is None:
            self._group = draw()
        return self._group

    def use(self) -> None:
        """Forget what is public of a report, now that it was made."""
        self._ranking = ()
        self._group = None

    def _check_process(self, what: str) -> None:
        # A fork copies what was drawn. Of several copies an app could pick one to report with.
        if self._process != os.getpid():
            raise DeviceError(f"{what} must be used where it was drawn; got another process")
