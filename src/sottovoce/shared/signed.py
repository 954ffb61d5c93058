r"""A signed release, and the chain that ties it to all releases before it.

Every signed release names the history before it by one hash, its link:

    link of version 0  =  SHA-256("sottovoce chain 1\n" | the experiment's fingerprint, 32 bytes)
    link of version v  =  SHA-256(link of version v − 1 | SHA-256(text of release v))

Its signature is over the link of the version before and its own text. So whoever holds release v
and is shown release w > v can check that the second continues the first: from the link of v and the
hashes of the releases between them follows the link that release w names. A server sends these
hashes in blocks, which are the same for everyone.

Two signed releases whose links disagree are a proof, for anybody who sees both, that the holder of
the key has told two histories.
"""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import Rejection, WireError, malformed
from sottovoce.shared.wire import (
    NOT_CANONICAL,
    WIRE_VERSION,
    hexadecimal,
    release_hash,
    table_from_json,
)

LINK_BYTES = 32


class Point(NamedTuple):
    """A place in the chain: a version, and the link that stands for all of its history."""

    version: int
    link: bytes


BLOCK = 256
"""How many releases one block of the chain covers.

A device asks for whole blocks, so that a server sees no more than where in the history it was.
"""


@dataclass(frozen=True, slots=True)
class SignedRelease:
    """What a server publishes. Any cache may carry it, and cannot mark a copy.

    The holder of the key can: Ed25519 has many good signatures of one text. So a device sends
    nothing back of it, and whoever compares releases compares texts and links.

    before: the link of the version before.
    key: the ``key_id`` of the public key.
    signature: 64 bytes, Ed25519 (RFC 8032) over ``message(before, text)``.
    text: the release in canonical JSON. It is a string inside of the document, so that a device
        verifies the text as it came.
    """

    before: bytes
    key: str
    signature: bytes
    text: str

    @property
    def link(self) -> bytes:
        """The link of this version, which the next one names."""
        return next_link(self.before, release_hash(self.text))

    def to_json(self) -> bytes:
        """Return the signed release as canonical JSON."""
        table = {
            "sottovoce": WIRE_VERSION,
            "kind": "signed release",
            "before": self.before.hex(),
            "key": self.key,
            "signature": self.signature.hex(),
            "release": self.text,
        }
        return canonical_json(table)

    @classmethod
    def from_json(cls, data: bytes) -> "SignedRelease":
        """Read a signed release in its canonical form. The device verifies the signature."""
        what = "a signed release"
        table = table_from_json(data, kind="signed release")
        text = table.get("release")
        if not isinstance(text, str):
            raise WireError(Rejection.MALFORMED, "a signed release must hold its release as text")
        if not text.isascii():
            # Canonical JSON is ASCII; half a character could not even be hashed.
            raise WireError(Rejection.MALFORMED, NOT_CANONICAL.format("release"))
        signed = cls(
            hexadecimal(table, "before", length=LINK_BYTES, of=what),
            hexadecimal(table, "key", length=8, of=what).hex(),
            hexadecimal(table, "signature", length=64, of=what),
            text,
        )
        if signed.to_json() != data:
            raise WireError(Rejection.MALFORMED, NOT_CANONICAL.format("signed release"))
        return signed


def message(before: bytes, text: str) -> bytes:
    """Return the bytes to sign; the prefix makes the signature valid for releases only."""
    return b"sottovoce release 2\n" + before + text.encode()


def key_id(public: bytes) -> str:
    """Return the short name of a public key, 16 hexadecimal digits. Trust is in the whole key."""
    return hashlib.sha256(public).hexdigest()[:16]


def first_link(fingerprint: str) -> bytes:
    """Return the link before the first release of an experiment."""
    return hashlib.sha256(b"sottovoce chain 1\n" + bytes.fromhex(fingerprint)).digest()


def next_link(link: bytes, hashed: bytes) -> bytes:
    """Return the link of a version from the link before and the hash of its text."""
    return hashlib.sha256(link + hashed).digest()


def links_after(link: bytes, hashes: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a link, and those of the versions that follow it."""
    yield link
    for hashed in hashes:
        link = next_link(link, hashed)
        yield link


def last_link(link: bytes, hashes: Iterable[bytes]) -> bytes:
    """Return the link after several versions."""
    return deque(links_after(link, hashes), maxlen=1)[0]


def block_of(version: int) -> int:
    """Return the block that holds the hash of a version: 0 for 1 to 256, and so on."""
    return (version - 1) // BLOCK


def block_to_json(hashes: Sequence[bytes]) -> bytes:
    """Write the hashes of the releases of one block, in order; the last block may have fewer."""
    digits = [each.hex() for each in hashes]
    return canonical_json({"sottovoce": WIRE_VERSION, "kind": "chain", "hashes": digits})


def block_from_json(data: bytes) -> list[bytes]:
    """Read one block in its canonical form."""
    table = table_from_json(data, kind="chain")
    digits = table.get("hashes")
    if not isinstance(digits, list) or len(digits) > BLOCK:
        raise malformed("a chain", f"hold at most {BLOCK} hashes", "something else")
    entries = [{"hash": each} for each in digits]
    hashes = [hexadecimal(each, "hash", length=LINK_BYTES, of="a chain") for each in entries]
    if block_to_json(hashes) != data:
        raise WireError(Rejection.MALFORMED, NOT_CANONICAL.format("chain"))
    return hashes
