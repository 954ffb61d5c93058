import hashlib

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sottovoce.device import signature as ed25519
from sottovoce.device.signature import is_key, verify

ORDER = 7237005577332262213973186563042994240857116359379907606001950938285454250989

# RFC 8032, 7.1: secret key, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
        "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]

# Every point whose order divides 8, as RFC 8032 writes it.
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]
# y >= p, or x = 0 with a sign.
NOT_CANONICAL = [
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def openssl_agrees(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS)
def test_the_vectors_of_rfc_8032(secret: str, public: str, message: str, signature: str) -> None:
    signed, data = bytes.fromhex(signature), bytes.fromhex(message)
    assert Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret)).sign(data) == signed
    assert verify(bytes.fromhex(public), signed, data)
    assert not verify(bytes.fromhex(public), signed, data + b"\0")


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS)
def test_a_second_signature_cannot_be_made_by_adding_the_order(
    secret: str, public: str, message: str, signature: str
) -> None:
    first, scalar = bytes.fromhex(signature[:64]), bytes.fromhex(signature[64:])
    more = (int.from_bytes(scalar, "little") + ORDER).to_bytes(32, "little")
    assert not verify(bytes.fromhex(public), first + more, bytes.fromhex(message))


def test_every_bit_of_key_signature_and_message_counts() -> None:
    public, message, signed = (bytes.fromhex(each) for each in VECTORS[2][1:])
    for place in range(8 * len(public)):
        assert not verify(flipped(public, place), signed, message)
    for place in range(8 * len(signed)):
        assert not verify(public, flipped(signed, place), message)
    for place in range(8 * len(message)):
        assert not verify(public, signed, flipped(message, place))


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


@pytest.mark.parametrize("encoded", SMALL_ORDER)
def test_a_key_of_small_order_is_refused(encoded: str) -> None:
    public = bytes.fromhex(encoded)
    assert ed25519._decode(public) is not None  # it is a point, and canonical
    assert not is_key(public)
    # Under such a key this fits some message, or all.
    forged = bytes.fromhex(SMALL_ORDER[0]) + bytes(32)
    messages = [bytes([number]) for number in range(64)]
    assert any(openssl_agrees(public, forged, message) for message in messages)
    assert not any(verify(public, forged, message) for message in messages)


@pytest.mark.parametrize("encoded", NOT_CANONICAL)
def test_an_encoding_that_is_not_canonical_is_refused(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert ed25519._decode(data) is None
    assert not is_key(data)
    assert not verify(data, bytes(64), b"")
    public = bytes.fromhex(VECTORS[0][1])
    assert not verify(public, data + bytes(32), b"")


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_other_lengths_are_refused(length: int) -> None:
    public, _, signed = (bytes.fromhex(each) for each in VECTORS[0][1:])
    assert not verify((public * 2)[:length], signed, b"")
    assert not is_key((public * 2)[:length])
    for other in (signed[:63], signed + b"\0", b"", signed[:length]):
        assert verify(public, other, b"") is (other == signed)


def test_half_of_all_numbers_are_no_point() -> None:
    points = sum(is_key(number.to_bytes(32, "little")) for number in range(2, 402))
    assert 150 < points < 250


def test_the_equation_is_the_one_without_the_cofactor_as_openssl_has_it() -> None:
    # A key with a part of order 8: the equation with the cofactor always holds, the other one
    # where the challenge happens to be a multiple of 8.
    torsion = ed25519._decode(bytes.fromhex(SMALL_ORDER[4]))
    assert torsion is not None
    secret, once = 1234567890123456789, 9876543210987654321
    own = ed25519._sum_of_products(secret, ed25519.BASE, 0, ed25519.BASE)
    public = ed25519._encode(ed25519._add(own, torsion))
    first = ed25519._encode(ed25519._sum_of_products(once, ed25519.BASE, 0, ed25519.BASE))
    verdicts = []
    for number in range(64):
        message = bytes([number])
        digest = hashlib.sha512(first + public + message).digest()
        challenge = int.from_bytes(digest, "little") % ORDER
        signed = first + ((once + challenge * secret) % ORDER).to_bytes(32, "little")
        verdicts.append(verify(public, signed, message))
        assert verdicts[-1] == openssl_agrees(public, signed, message) == (challenge % 8 == 0)
    assert 0 < sum(verdicts) < 64
