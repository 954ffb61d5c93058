"""Ed25519 (RFC 8032), verification only, in whole numbers of the standard library.

Key, signature and message are public. So the time that the code takes can leak nothing, and plain
integers are good enough. This module must never sign.

It is strict where RFC 8032 leaves a choice: S < L, only canonical encodings, no key of small order
(under such a key one signature can fit many messages). It checks the
equation without the cofactor, [S]B = R + [k]A, which RFC 8032 (5.1.7) calls sufficient. OpenSSL and
most others check the same, so that all of them accept the same releases.
"""

import hashlib
from typing import cast

KEY_LENGTH = 32
SIGNATURE_LENGTH = 64

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]
"""Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x·y = T/Z."""

NEUTRAL: Point = (0, 1, 1, 0)


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the key's owner has signed the message. It never raises."""
    if len(signature) != SIGNATURE_LENGTH:
        return False
    key = _key(public)
    first, scalar = signature[:32], int.from_bytes(signature[32:], "little")
    if key is None or scalar >= L:
        return False
    digest = hashlib.sha512(first + public + message).digest()
    challenge = int.from_bytes(digest, "little") % L
    x, y, z, t = key
    # R = [S]B + [k](-A), compared as bytes: an R that is not canonical equals nothing.
    return _encode(_sum_of_products(scalar, BASE, challenge, (P - x, y, z, P - t))) == first


def is_key(public: bytes) -> bool:
    """Return whether these bytes can be trusted as a public key."""
    return _key(public) is not None


def _key(public: bytes) -> Point | None:
    """Decode a key; refuse one of small order, for which [8]A is the neutral element."""
    point = _decode(public)
    if point is None:
        return None
    x, y, z, _ = _double(_double(_double(point)))
    return None if x == 0 and y == z else point


def _decode(encoded: bytes) -> Point | None:
    """Decode a point by RFC 8032, 5.1.3; None if the bytes are no point or not canonical."""
    if len(encoded) != KEY_LENGTH:
        return None
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    x = _root_of_ratio(y * y - 1, D * y * y + 1)
    if x is None or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


def _root_of_ratio(u: int, v: int) -> int | None:
    """Return a square root of u/v modulo P, if there is one."""
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if (v * x * x - u) % P == 0:
        return x
    if (v * x * x + u) % P == 0:
        return x * ROOT_OF_MINUS_ONE % P
    return None


def _encode(point: Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(KEY_LENGTH, "little")


def _add(one: Point, other: Point) -> Point:
    """Add two points (RFC 8032, 5.1.4). The formula is complete: there are no special cases."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * D * one[3] * other[3] % P
    d = 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _double(point: Point) -> Point:
    a = point[0] * point[0] % P
    b = point[1] * point[1] % P
    h = a + b
    e = h - (point[0] + point[1]) ** 2
    g = a - b
    f = 2 * point[2] * point[2] + g
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _sum_of_products(m: int, one: Point, n: int, other: Point) -> Point:
    """Return [m]one + [n]other by Straus's method: both together, from the highest bit down."""
    added = (None, one, other, _add(one, other))
    total = NEUTRAL
    for place in reversed(range(L.bit_length())):
        total = _double(total)
        term = added[(m >> place & 1) + 2 * (n >> place & 1)]
        if term is not None:
            total = _add(total, term)
    return total


# The point with y = 4/5 and an even x.
BASE = cast(Point, _decode((4 * pow(5, -1, P) % P).to_bytes(KEY_LENGTH, "little")))
