"""The server's signing key: Ed25519, in a PEM file that only its owner can read.

What a key signs is a public release, so that a device can trust a copy from any cache. Losing the
key does not weaken anybody's privacy by itself: a device spends ε by its own rules, whoever signed.
"""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sottovoce.shared.errors import SignatureError, must
from sottovoce.shared.policy import SignedPolicy, policy_message
from sottovoce.shared.signed import SignedRelease, key_id, message


class SigningKey:
    """Signs releases."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.id = key_id(self.public)

    def sign(self, text: str, *, before: bytes) -> SignedRelease:
        """Sign the canonical JSON of a release, with the link of the version before it."""
        return SignedRelease(before, self.id, self._private.sign(message(before, text)), text)

    def sign_policy(self, text: str) -> SignedPolicy:
        """Sign the canonical JSON of a policy."""
        return SignedPolicy(self.id, self._private.sign(policy_message(text)), text)

    @classmethod
    def create(cls, path: Path) -> "SigningKey":
        """Make a new key in a new file, readable by its owner only."""
        key = cls(Ed25519PrivateKey.generate())
        pem = key._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        try:
            path.touch(mode=0o600, exist_ok=False)
            path.write_bytes(pem)
        except FileExistsError:
            raise SignatureError(
                must("a new key", "go to a new file", f"{path}, which exists")
            ) from None
        except OSError as error:
            raise SignatureError(f"{path} must be a file that can be written; {error}") from error
        return key

    @classmethod
    def read(cls, path: Path) -> "SigningKey":
        """Read a key from its PEM file."""
        try:
            private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            # The kind of error only: no part of a key belongs into a message.
            raise SignatureError(
                must(str(path), "be a readable PEM file with a private key", type(error).__name__)
            ) from None
        if not isinstance(private, Ed25519PrivateKey):
            raise SignatureError(must(str(path), "hold an Ed25519 key", "another kind of key"))
        return cls(private)

    @classmethod
    def read_or_create(cls, path: Path) -> "SigningKey":
        """Read a key; make it first where there is no file."""
        return cls.read(path) if path.exists() else cls.create(path)
