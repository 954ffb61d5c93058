"""A signed release: what a server publishes and any cache may carry.

JSON: ``{"sottovoce": 1, "kind": "signed release", "key": …, "signature": …, "release": text}``.
The signature is Ed25519 (RFC 8032) over ``message(text)``. The text is the release's canonical JSON
as it was signed, in a string of its own, so that nobody has to write JSON again in just the same
way in order to verify it.
"""

import hashlib
import json
from dataclasses import dataclass

from sottovoce.shared.errors import Rejection, WireError
from sottovoce.shared.wire import WIRE_VERSION, hexadecimal, table_from_json


@dataclass(frozen=True, slots=True)
class SignedRelease:
    """The text of a release, and who signed it.

    key: the ``key_id`` of the public key.
    signature: 64 bytes.
    text: the release in canonical JSON.
    """

    key: str
    signature: bytes
    text: str

    def to_json(self) -> bytes:
        """Write it for the wire."""
        table = {
            "sottovoce": WIRE_VERSION,
            "kind": "signed release",
            "key": self.key,
            "signature": self.signature.hex(),
            "release": self.text,
        }
        return json.dumps(table, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "SignedRelease":
        """Read it; whether the signature is good is for the device to say."""
        table = table_from_json(data, kind="signed release")
        key = hexadecimal(table, "key", length=8, of="a signed release").hex()
        signature = hexadecimal(table, "signature", length=64, of="a signed release")
        text = table.get("release")
        if not isinstance(text, str):
            raise WireError(Rejection.MALFORMED, "a signed release must hold its release as text")
        return cls(key, signature, text)


def message(text: str) -> bytes:
    """Return the bytes that are signed: a signature of a release can stand for nothing else."""
    return b"sottovoce release 1\n" + text.encode()


def key_id(public: bytes) -> str:
    """Return the short name of a public key: 16 hexadecimal digits."""
    return hashlib.sha256(public).hexdigest()[:16]
