"""Signatures are judged as OpenSSL judges them."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.device.signature import verify

BYTES_32 = st.binary(min_size=32, max_size=32)


def openssl(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@given(BYTES_32, st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_what_openssl_signs_is_good(secret: bytes, message: bytes) -> None:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    assert verify(key.public_key().public_bytes_raw(), key.sign(message), message)


@given(BYTES_32, st.binary(min_size=1, max_size=60), st.data())
@settings(max_examples=150, deadline=None)
def test_what_was_changed_is_judged_as_openssl_judges_it(
    secret: bytes, message: bytes, data: st.DataObject
) -> None:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    whole = bytearray(key.public_key().public_bytes_raw() + key.sign(message) + message)
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=2)):
        whole[place] = data.draw(st.integers(0, 255))
    public, signature, text = bytes(whole[:32]), bytes(whole[32:96]), bytes(whole[96:])
    assert verify(public, signature, text) == openssl(public, signature, text)


@given(BYTES_32, st.binary(min_size=64, max_size=64), st.binary(max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_bytes_at_all_get_a_verdict(public: bytes, signature: bytes, message: bytes) -> None:
    assert verify(public, signature, message) is False
