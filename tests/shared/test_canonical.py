"""Every document has one form: what is not byte for byte canonical is refused.

Otherwise whoever hands out copies could mark each of them, and know a device by its copy.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from factories import grown, whispering
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.signed import SignedRelease, block_from_json, block_to_json

RELEASE = grown().release()
TEXT = wire.release_to_json(RELEASE)
SIGNED = SignedRelease(bytes(range(32)), "0123456789abcdef", bytes(64), TEXT)
BLOCK = block_to_json([bytes(32), bytes(range(32))])

Read = Callable[[bytes], Any]


def read_release(data: bytes) -> sv.Release:
    return wire.release_from_json(data.decode())


DOCUMENTS: dict[str, tuple[bytes, Read]] = {
    "release": (TEXT.encode(), read_release),
    "signed release": (SIGNED.to_json(), SignedRelease.from_json),
    "chain": (BLOCK, block_from_json),
}
each_document = pytest.mark.parametrize("kind", DOCUMENTS)


def reordered(data: bytes) -> bytes:
    table = json.loads(data)
    return json.dumps(dict(reversed(table.items())), separators=(",", ":")).encode()


def with_key(data: bytes, key: str, value: str) -> bytes:
    """Put one more key, at its place in the order."""
    return canonical_json({**json.loads(data), key: value})


OTHERWISE: dict[str, Callable[[bytes], bytes]] = {
    "a space": lambda data: data.replace(b":", b": ", 1),
    "a line at the end": lambda data: data + b"\n",
    "a space before": lambda data: b" " + data,
    "another order": reordered,
    "an unknown key": lambda data: with_key(data, "you", "number 7"),
    "an unknown key that comes first": lambda data: with_key(data, "A", "7"),
    "a key twice": lambda data: data.replace(b'"kind":', b'"kind":"x","kind":', 1),
    "a letter escaped": lambda data: data.replace(b'"kind"', b'"\\u006bind"', 1),
    "a mark of the byte order": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "upper case": lambda data: data.replace(b"ab", b"AB", 1).replace(b"0a", b"0A", 1),
}


@each_document
def test_the_canonical_form_is_read_and_is_the_same_again(kind: str) -> None:
    data, read = DOCUMENTS[kind]
    again = read(data)
    if kind == "release":
        assert wire.release_to_json(again).encode() == data
    elif kind == "signed release":
        assert again.to_json() == data
    else:
        assert block_to_json(again) == data


@each_document
@pytest.mark.parametrize("way", OTHERWISE)
def test_any_other_form_is_refused(kind: str, way: str) -> None:
    data, read = DOCUMENTS[kind]
    changed = OTHERWISE[way](data)
    if changed == data:
        pytest.skip("this document has nothing of the kind")
    with pytest.raises((sv.WireError, UnicodeDecodeError)):
        read(changed)


@pytest.mark.parametrize("kind", ["signed release", "chain"])
def test_a_key_that_is_missing_is_refused(kind: str) -> None:
    data, read = DOCUMENTS[kind]
    for key in json.loads(data):
        table = json.loads(data)
        del table[key]
        with pytest.raises(sv.WireError):
            read(canonical_json(table))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"epsilon":1.0', '"epsilon":1'),
        ('"epsilon":1.0', '"epsilon":1.00'),
        ('"epsilon":1.0', '"epsilon":1e0'),
        ('"version":1', '"version":1.0'),
        ('"arms":[0,1],', '"arms":[0, 1],'),
        ("[0.5,0.5]", "[0.50,0.5]"),
        ("[0.5,0.5]", "[0.5,5e-1]"),
        ('"seed":0', '"seed":-0'),
        ('"name":"experiment"', '"name":"experim\\u0065nt"'),
        ('"bins":[{', '"bins":[{"a":1,'),
        ('"cuts":{}', '"cuts":{},"reward_share":0'),
    ],
)
def test_a_number_or_a_name_written_in_another_way_is_refused(old: str, new: str) -> None:
    text = wire.release_to_json(sv.Learner(whispering(arms=2, epsilon=1.0)).release())
    wire.release_from_json(text)
    assert old in text, text
    with pytest.raises(sv.WireError):
        wire.release_from_json(text.replace(old, new, 1))


@given(st.integers(0, len(TEXT)), st.sampled_from(list(' \t\n"{}[],:0aA\\')))
def test_one_more_character_anywhere_is_refused_or_another_release(at: int, more: str) -> None:
    changed = TEXT[:at] + more + TEXT[at:]
    try:
        release = wire.release_from_json(changed)
    except sv.WireError:
        return
    assert wire.release_to_json(release) == changed
    assert wire.release_id(release) != wire.release_id(RELEASE)


def test_each_text_has_its_own_id() -> None:
    other = replace(RELEASE, version=RELEASE.version + 1)
    assert wire.release_id(other) != wire.release_id(RELEASE)
    assert wire.release_id(RELEASE) == wire.release_hash(TEXT)[:12]
    assert wire.release_id(wire.release_from_json(TEXT)) == wire.release_id(RELEASE)
