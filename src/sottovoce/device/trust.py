"""Which public keys are trusted, and what they have signed."""

from collections.abc import Mapping, Sequence

from sottovoce.device import signature
from sottovoce.shared.errors import SignatureError, must
from sottovoce.shared.signed import key_id


def trusted_keys(keys: Sequence[str] | str) -> dict[str, bytes]:
    """Read public keys, each 64 hexadecimal digits, and return them by their short names."""
    trusted = [_key(each) for each in ([keys] if isinstance(keys, str) else keys)]
    if not trusted:
        raise SignatureError("keys must hold at least one public key; got none")
    return {key_id(public): public for public in trusted}


def trusted_key(trusted: Mapping[str, bytes], key: str, *, of: str) -> bytes:
    """Return the public key of a short name; refuse one that nobody trusts."""
    public = trusted.get(key)
    if public is None:
        raise SignatureError(must(of, f"be signed by one of {sorted(trusted)}", key))
    return public


def bad_signature(key: str, *, of: str) -> SignatureError:
    """Return the error for a signature that does not fit what it signs."""
    return SignatureError(f"{of} must carry a good signature; that of {key} is not")


def _key(digits: str) -> bytes:
    try:
        public = bytes.fromhex(digits)
    except (TypeError, ValueError):
        public = b""
    if not signature.is_key(public):
        rule = "be the 64 hexadecimal digits of an Ed25519 public key"
        raise SignatureError(must("a key", rule, repr(digits)))
    return public
