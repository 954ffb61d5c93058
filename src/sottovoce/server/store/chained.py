r"""The log is chained: one hash stands for all of its reports, in their order.

    hash of 0 reports  =  SHA-256("sottovoce log 1\n" | the experiment's fingerprint, in digits)
    hash of i reports  =  SHA-256(hash of i - 1 reports | report i)

Each commit writes the hash of the log with its reports, in the same transaction. So whoever reads
the log once more (``sottovoce replay``) finds every report that was changed, is missing or stands
elsewhere. Where reports were erased, the chain begins after them, at the hash that they had.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sottovoce.shared.errors import StoreDamaged

# Reports that are read at once where the chain has to catch up with its log.
AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Chained:
    """The hash of a log. hash: of the first ``position`` reports.

    begins, before: how many of them are erased, and the hash of these.
    """

    begins: int
    before: str
    position: int
    hash: str


def first_hash(fingerprint: str) -> str:
    """Return the hash of no reports."""
    return hashlib.sha256(b"sottovoce log 1\n" + fingerprint.encode()).hexdigest()


def nothing_chained(fingerprint: str) -> Chained:
    """Return the chain of an empty log."""
    first = first_hash(fingerprint)
    return Chained(0, first, 0, first)


def hash_after(before: str, bodies: Iterable[bytes]) -> str:
    """Return the hash of a log after some more reports."""
    now, sha256 = bytes.fromhex(before), hashlib.sha256
    for body in bodies:
        now = sha256(now + body).digest()
    return now.hex()


def hash_at(known: Chained, position: int, *, read: Callable[[int, int], list[bytes]]) -> str:
    """Return the hash of a log that should end where its chain does.

    A log may be longer, where an older version of this package has written to it: the rest is read.
    read: returns the reports after a position, up to so many.
    """
    if known.position > position:
        lost = known.position - position
        raise StoreDamaged(f"the log must have {known.position} reports; the last {lost} are gone")
    at, now = known.position, known.hash
    while at < position:
        some = read(at, min(AT_ONCE, position - at))
        if not some:
            raise StoreDamaged(f"the log must have {position} reports; {position - at} are missing")
        at, now = at + len(some), hash_after(now, some)
    return now
