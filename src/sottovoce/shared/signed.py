"""A signed release: what a server publishes. Any cache may carry it.

JSON: ``{"sottovoce": 1, "kind": "signed release", "key": …, "signature": …, "release": text}``.
The signature is Ed25519 (RFC 8032) over ``message(text)``. The text is the canonical JSON of the
release, as a string inside the document. So a device verifies the text as it came, and need not
write the same JSON again.
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
        """Return the signed release as JSON."""
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
        """Read a signed release from JSON. The device verifies the signature."""
        table = table_from_json(data, kind="signed release")
        key = hexadecimal(table, "key", length=8, of="a signed release").hex()
        signature = hexadecimal(table, "signature", length=64, of="a signed release")
        text = table.get("release")
        if not isinstance(text, str):
            raise WireError(Rejection.MALFORMED, "a signed release must hold its release as text")
        return cls(key, signature, text)


def message(text: str) -> bytes:
    """Return the bytes to sign; the prefix makes the signature valid for releases only."""
    return b"sottovoce release 1\n" + text.encode()


def key_id(public: bytes) -> str:
    """Return the short name of a public key: 16 hexadecimal digits."""
    return hashlib.sha256(public).hexdigest()[:16]
