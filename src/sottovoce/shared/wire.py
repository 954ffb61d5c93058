"""The versioned wire format: reports as compact bytes or as JSON, releases as canonical JSON.

Bytes, little-endian:

    numbers  "sv" | wire version u8 | 1 u8 | release 12 bytes | population u16 | nonce 16 bytes
             | count u32 | count doubles                                        (a report, ldpmab)
    set      "sv" | wire version u8 | 3 u8 | release 12 bytes | population u16 | nonce 16 bytes
             | question u16 | arms u8 | arms bytes: the ranking
             | the packed set, to the end                                       (a report, whisper)
    batch    "sv" | wire version u8 | 4 u8 | count u32 | count lengths u32 | the reports

JSON carries the same under ``{"sottovoce": wire version, "kind": "report", …}``. A release is JSON
only, and has one form: what is not byte for byte canonical is refused, so that nobody can mark a
copy. Decoding checks the form. Whether a report fits its release is checked by the learner's gate.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import Rejection, WireError, kind_of, malformed, must
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report

WIRE_VERSION = 5

ID_BYTES = 12
"""How much of its release's hash a report carries: 96 bits, as many as fit in the old header."""

NOT_CANONICAL = "a {} must be in its canonical form, byte for byte; got another text"

_HEAD = struct.Struct("<2sBB")
_REPORT = struct.Struct(f"<{ID_BYTES}sH16s")
_QUESTION = struct.Struct("<HB")
_LENGTH = struct.Struct("<I")
_NONCE_ENDS = _HEAD.size + _REPORT.size
_NONCE_BEGINS = _NONCE_ENDS - 16
_RANKING_BEGINS = _NONCE_ENDS + _QUESTION.size
_MAGIC = b"sv"
_NUMBERS_KIND = 1
_SET_KIND = 3
_BATCH_KIND = 4


def report_to_bytes(report: Report) -> bytes:
    """Write a report as bytes: 34, and then 4 + 8 for each number, or 3 + the packed set."""
    kind = _SET_KIND if isinstance(report.payload, bytes) else _NUMBERS_KIND
    head = _HEAD.pack(_MAGIC, WIRE_VERSION, kind) + _REPORT.pack(
        report.release, report.population, report.nonce
    )
    if isinstance(report.payload, bytes):
        coins = _QUESTION.pack(report.question, len(report.ranking)) + bytes(report.ranking)
        return head + coins + report.payload
    count = len(report.payload)
    return head + _LENGTH.pack(count) + struct.pack(f"<{count}d", *report.payload)


def report_from_bytes(data: bytes) -> Report:
    """Read one report from bytes; refuse anything else."""
    kind, body = _body(data, kinds=(_NUMBERS_KIND, _SET_KIND))
    counted = _QUESTION.size if kind == _SET_KIND else _LENGTH.size
    least = _REPORT.size + counted
    if len(body) < least:
        raise _truncated("a report's header", f"have {least} bytes", len(body))
    release, population, nonce = _REPORT.unpack_from(body)
    rest = body[least:]
    payload: tuple[float, ...] | bytes
    if kind == _SET_KIND:
        question, arms = _QUESTION.unpack_from(body, _REPORT.size)
        if len(rest) < arms:
            raise _truncated("a report's ranking", f"take {arms} bytes", len(rest))
        payload = rest[arms:]
        return Report(release, population, nonce, payload, question, tuple(rest[:arms]))
    (count,) = _LENGTH.unpack_from(body, _REPORT.size)
    _check_length("the numbers of a report", expected=8 * count, came=len(rest))
    payload = struct.unpack(f"<{count}d", rest)
    _check_finite(payload)
    return Report(release, population, nonce, payload)


def header_of_set(data: bytes) -> bytes | None:
    """Return a compact report without its nonce and packed set; None for other messages.

    Two reports with equal length and equal header differ only in nonce and packed set. So if the
    form of one is valid, the form of the other is, too.
    """
    if len(data) < _RANKING_BEGINS or data[_HEAD.size - 1] != _SET_KIND:
        return None
    ranking_ends = _RANKING_BEGINS + data[_RANKING_BEGINS - 1]
    return data[:_NONCE_BEGINS] + data[_NONCE_ENDS:ranking_ends]


def release_of(data: bytes) -> bytes:
    """Return the release's id in a compact report; for other bytes the result has no meaning."""
    return data[_HEAD.size : _HEAD.size + ID_BYTES]


def nonce_of(data: bytes) -> bytes:
    """Return the nonce of a compact report."""
    return data[_NONCE_BEGINS:_NONCE_ENDS]


def with_nonce(data: bytes, nonce: bytes) -> bytes:
    """Return a compact report with another nonce."""
    return data[:_NONCE_BEGINS] + nonce + data[_NONCE_ENDS:]


def report_to_json(report: Report) -> str:
    """Write a report as JSON, for people and other languages; a packed set is hexadecimal."""
    table: dict[str, Any] = {
        "sottovoce": WIRE_VERSION,
        "kind": "report",
        "release": report.release.hex(),
        "population": report.population,
        "nonce": report.nonce.hex(),
    }
    if isinstance(report.payload, bytes):
        table |= {"question": report.question, "ranking": list(report.ranking)}
        table |= {"set": report.payload.hex()}
    else:
        table["payload"] = list(report.payload)
    return json.dumps(table, allow_nan=False)


def report_from_json(text: str | bytes) -> Report:
    """Read a report from JSON."""
    return report_from_table(parsed(text, kind="report"))


def report_from_table(value: Any) -> Report:
    """Read a report from JSON that is parsed already."""
    table = _checked_table(value, kind="report")
    known = {"sottovoce", "kind", "release", "population", "nonce"}
    whispered = "set" in table
    known |= {"set", "question", "ranking"} if whispered else {"payload"}
    payload = hexadecimal(table, "set") if whispered else _numbers(table, "payload")
    report = Report(
        hexadecimal(table, "release", length=ID_BYTES),
        _count(table, "population", most=2**16 - 1),
        hexadecimal(table, "nonce", length=16),
        payload,
        _count(table, "question", most=2**16 - 1) if whispered else 0,
        _ranking(table) if whispered else (),
    )
    if strange := len(table.keys() - known):
        # Neither names nor values are shown: by mistake, somebody may have put raw data there.
        raise malformed("a report", "have no other keys", f"{strange} more")
    return report


def batch_to_bytes(reports: Sequence[bytes]) -> bytes:
    """Write several compact reports as one message."""
    count = len(reports)
    lengths = struct.pack(f"<{count}I", *map(len, reports))
    head = _HEAD.pack(_MAGIC, WIRE_VERSION, _BATCH_KIND) + _LENGTH.pack(count)
    return b"".join((head, lengths, *reports))


def batch_from_bytes(data: bytes) -> list[bytes]:
    """Return the compact reports of a batch, without reading them."""
    _, body = _body(data, kinds=(_BATCH_KIND,))
    if len(body) < _LENGTH.size:
        raise _truncated("a batch", "have its count", "less")
    (count,) = _LENGTH.unpack_from(body)
    start = _LENGTH.size * (1 + count)
    if len(body) < start:
        raise _truncated("the lengths in a batch", f"take {start} bytes", len(body))
    ends = list(accumulate(struct.unpack_from(f"<{count}I", body, _LENGTH.size), initial=start))
    _check_length("a batch", expected=ends[-1], came=len(body))
    return [body[begin:end] for begin, end in pairwise(ends)]


def release_to_json(release: Release) -> str:
    """Write a release as canonical JSON, so that it can be hashed, signed and cached."""
    if "text" not in release.derived:
        table = {"sottovoce": WIRE_VERSION, "kind": "release", **release.to_table()}
        release.derived["text"] = canonical_json(table).decode()
    return cast(str, release.derived["text"])


def release_from_json(text: str) -> Release:
    """Read a release from canonical JSON; refuse any other text, whatever it means."""
    try:
        release = Release.from_table(table_from_json(text, kind="release"))
    except RecursionError:
        raise WireError(Rejection.MALFORMED, "a release must not be nested so deeply") from None
    if release_to_json(release) != text:
        raise WireError(Rejection.MALFORMED, NOT_CANONICAL.format("release"))
    return release


def release_hash(text: str) -> bytes:
    """Return the SHA-256 of the canonical text of a release."""
    return hashlib.sha256(text.encode()).digest()


def release_id(release: Release) -> bytes:
    """Return what names a release in a report: the first bytes of the hash of its text."""
    if "id" not in release.derived:
        release.derived["id"] = release_hash(release_to_json(release))[:ID_BYTES]
    return cast(bytes, release.derived["id"])


def _body(data: bytes, *, kinds: tuple[int, ...]) -> tuple[int, bytes]:
    if len(data) < _HEAD.size:
        raise _truncated("a message", f"have at least {_HEAD.size} bytes", len(data))
    magic, version, came = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise malformed("a message", "begin with 'sv'", "other bytes")
    _check_version(version)
    if came not in kinds:
        raise malformed("the kind of message", "be " + " or ".join(map(str, kinds)), came)
    return came, data[_HEAD.size :]


def table_from_json(text: str | bytes, *, kind: str) -> dict[str, Any]:
    """Read a JSON object of one kind, of a wire version that is known here."""
    return _checked_table(parsed(text, kind=kind), kind=kind)


def parsed(text: str | bytes, *, kind: str) -> Any:
    """Read any JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # The decoder's own error holds the text, so it must not be chained.
        raise WireError(Rejection.MALFORMED, f"a {kind} must be valid JSON") from None


def _checked_table(table: Any, *, kind: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise malformed(f"a {kind}", "be a JSON object", type(table).__name__)
    version = table.get("sottovoce")
    if type(version) is not int:
        raise WireError(Rejection.MALFORMED, f"a {kind} must have its wire version in 'sottovoce'")
    _check_version(version)
    if table.get("kind") != kind:
        raise WireError(Rejection.MALFORMED, f"a {kind} must say so in 'kind'")
    return table


def _check_version(version: int) -> None:
    # Shown only if it can be a version: by mistake, somebody may have put raw data there.
    came = str(version) if 0 <= version < 256 else "another number"
    if version > WIRE_VERSION:
        rule, hint = f"be at most {WIRE_VERSION}", "upgrade sottovoce"
        raise WireError(Rejection.NEWER_WIRE, must("the wire version", rule, came, hint=hint))
    if version < WIRE_VERSION:
        # Version 1 named releases by a number. Version 2 knew no sets of levels, and asked about
        # every feature equally often. Version 3 knew no scales, and version 4 no question
        # about all bins.
        rule, hint = f"be at least {WIRE_VERSION}", "upgrade what sent it"
        raise WireError(Rejection.MALFORMED, must("the wire version", rule, came, hint=hint))


def _truncated(what: str, rule: str, came: object) -> WireError:
    return WireError(Rejection.TRUNCATED, must(what, rule, came))


def _check_length(what: str, *, expected: int, came: int) -> None:
    if came != expected:
        reason = Rejection.TRUNCATED if came < expected else Rejection.MALFORMED
        raise WireError(reason, must(what, f"take {expected} bytes", came))


def _check_finite(numbers: tuple[float, ...]) -> None:
    for position, number in enumerate(numbers):
        if not math.isfinite(number):
            what = f"number {position} of a report's payload"
            raise WireError(Rejection.NOT_FINITE, must(what, "be finite", number))


def hexadecimal(
    table: dict[str, Any], key: str, *, length: int | None = None, of: str = "a report"
) -> bytes:
    """Return the bytes that an entry of a table holds as digits."""
    value = table.get(key)
    digits = f"[0-9a-f]{{{2 * length}}}" if length else "(?:[0-9a-f]{2})*"
    if isinstance(value, str) and re.fullmatch(digits, value):
        return bytes.fromhex(value)
    rule = f"be {2 * length} hexadecimal digits" if length else "be hexadecimal digits, in pairs"
    raise malformed(f"{of}'s {key}", rule, kind_of(value))


def _ranking(table: dict[str, Any]) -> tuple[int, ...]:
    values: Any = table.get("ranking")
    listed = isinstance(values, list) and len(values) < 256  # one byte holds the number of arms
    if not listed or not all(type(each) is int and 0 <= each < 256 for each in values):
        raise malformed("a report's ranking", "be a list of arms", kind_of(values))
    return tuple(values)


def _count(table: dict[str, Any], key: str, *, most: int) -> int:
    value = table.get(key)
    if type(value) is not int or not 0 <= value <= most:
        rule = f"be a whole number from 0 to {most}"
        raise malformed(f"a report's {key}", rule, kind_of(value))
    return value


def _numbers(table: dict[str, Any], key: str) -> tuple[float, ...]:
    values = table.get(key)
    if not isinstance(values, list) or not all(type(each) in (int, float) for each in values):
        raise malformed(f"a report's {key}", "be a list of numbers", kind_of(values))
    try:
        numbers = tuple(float(value) for value in values)
    except OverflowError as error:
        raise WireError(Rejection.NOT_FINITE, f"a report's {key} must be finite") from error
    _check_finite(numbers)
    return numbers
