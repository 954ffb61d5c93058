import json
import math
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from factories import grown
from sottovoce.shared import wire

REPORTS = st.builds(
    sv.Report,
    release=st.binary(min_size=12, max_size=12),
    population=st.integers(0, 2**16 - 1),
    nonce=st.binary(min_size=16, max_size=16),
    payload=st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(tuple),
)
REPORT = sv.Report(bytes(range(12)), 1, bytes(range(16)), (0.5, -1.25, 1e-300))
RELEASE = grown().release()


def same(one: sv.Report, other: sv.Report) -> bool:
    """Equal, and to the sign of every zero."""
    signs = [math.copysign(1, x) for x in one.payload], [math.copysign(1, x) for x in other.payload]
    return one == other and signs[0] == signs[1]


@given(REPORTS)
def test_reports_survive_bytes_and_json(report: sv.Report) -> None:
    assert same(wire.report_from_bytes(wire.report_to_bytes(report)), report)
    assert same(wire.report_from_json(wire.report_to_json(report)), report)


@given(st.integers(0, 200), st.integers(0, 50), st.sampled_from(["paper", "authors"]))
def test_releases_survive_bytes_and_json(reports: int, seed: int, preset: Any) -> None:
    method = sv.Ldpmab(preset, c=0.1)
    release = grown(reports=reports or 1, seed=seed, method=method).release()
    assert wire.release_from_json(wire.release_to_json(release)) == release


def test_the_bytes_of_a_report_are_as_documented() -> None:
    assert wire.report_to_bytes(REPORT) == (
        b"sv\x05\x01"
        + bytes(range(12))
        + struct.pack("<H", 1)
        + bytes(range(16))
        + struct.pack("<I3d", 3, 0.5, -1.25, 1e-300)
    )


def test_a_release_is_the_same_text_each_time() -> None:
    text = wire.release_to_json(RELEASE)
    assert wire.release_to_json(wire.release_from_json(text)) == text


def test_truncated_bytes_are_refused() -> None:
    data = wire.report_to_bytes(REPORT)
    for length in range(len(data)):
        with pytest.raises(sv.WireError) as caught:
            wire.report_from_bytes(data[:length])
        assert caught.value.reason is sv.Rejection.TRUNCATED
    with pytest.raises(sv.WireError, match="must take"):
        wire.report_from_bytes(data + b"\0")


@pytest.mark.parametrize("depth", [100, 900, 985, 990, 5000, 100_000])
@pytest.mark.parametrize("key", ["arms", "context", "name", "method", "auxiliary"])
def test_a_release_that_is_nested_deeply_is_refused(key: str, depth: int) -> None:
    table = json.loads(wire.release_to_json(RELEASE))
    table["experiment"][key] = "@"
    text = json.dumps(table).replace('"@"', "[" * depth + "]" * depth)
    with pytest.raises(sv.WireError):
        wire.release_from_json(text)


def test_a_newer_wire_version_is_refused_and_says_so() -> None:
    newer = b"sv\x06" + wire.report_to_bytes(REPORT)[3:]
    text = wire.report_to_json(REPORT).replace('"sottovoce": 5', '"sottovoce": 6')
    readers: list[tuple[Any, Any]] = [
        (wire.report_from_bytes, newer),
        (wire.report_from_json, text),
    ]
    for read, data in readers:
        with pytest.raises(sv.WireError, match="wire version must be at most 5; got 6") as caught:
            read(data)
        assert caught.value.reason is sv.Rejection.NEWER_WIRE


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_an_older_wire_version_is_refused(version: int) -> None:
    """What it says would be misread.

    Version 4 asked nobody about all bins. Version 3 knew no scales: bins would be others. Version 2
    asked about each axis equally often, and knew no sets.
    """
    told = f"at least 5; got {version}; upgrade what sent it"
    data = b"sv" + bytes([version]) + wire.report_to_bytes(REPORT)[3:]
    text = wire.report_to_json(REPORT).replace('"sottovoce": 5', f'"sottovoce": {version}')
    readers: list[tuple[Any, Any]] = [(wire.report_from_bytes, data), (wire.report_from_json, text)]
    for read, message in readers:
        with pytest.raises(sv.WireError, match=told) as caught:
            read(message)
        assert caught.value.reason is sv.Rejection.MALFORMED


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(number: float) -> None:
    data = wire.report_to_bytes(replace(REPORT, payload=(0.0, number)))
    text = wire.report_to_json(REPORT).replace("0.5", json.dumps(number))
    readers: list[tuple[Any, Any]] = [
        (wire.report_from_bytes, data),
        (wire.report_from_json, text),
    ]
    for read, message in readers:
        with pytest.raises(sv.WireError, match="must be finite") as caught:
            read(message)
        assert caught.value.reason is sv.Rejection.NOT_FINITE


def test_json_with_a_huge_whole_number_is_refused() -> None:
    text = wire.report_to_json(REPORT).replace("0.5", "1" + "0" * 400)
    with pytest.raises(sv.WireError, match="must be finite"):
        wire.report_from_json(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sottovoce", None),
        ("sottovoce", 0),
        ("sottovoce", True),
        ("kind", "release"),
        ("experiment", "xyz"),
        ("experiment", "zz23456789abcdef"),
        ("release", -1),
        ("release", 1.5),
        ("release", 2**32),
        ("population", "target"),
        ("population", True),
        ("nonce", "00"),
        ("nonce", " " * 32),
        ("experiment", "01 23 45 67 89  "),
        ("experiment", "0123456789ABCDEF"),
        ("payload", "0.5"),
        ("payload", [True]),
        ("payload", [[1.0]]),
        ("payload", None),
        ("reward", 0.731),
    ],
)
def test_a_malformed_report_is_refused(key: str, value: object) -> None:
    table = json.loads(wire.report_to_json(REPORT))
    table[key] = value
    with pytest.raises(sv.WireError) as caught:
        wire.report_from_json(json.dumps(table))
    assert caught.value.reason is sv.Rejection.MALFORMED
    assert "0.731" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000, '"sv"', b"\xff\xfe"])
def test_text_that_is_no_report_is_refused(text: Any) -> None:
    with pytest.raises(sv.WireError):
        wire.report_from_json(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 0}, "a release's version must be a whole number from 1"),
        ({"version": True}, "a release's version must be a whole number from 1"),
        ({"version": 2**32}, "a release's version must be a whole number from 1 to 4294967295"),
        ({"bins": list(reversed(RELEASE.to_table()["bins"]))}, "one entry for each bin"),
        ({"bins": []}, "one entry for each bin"),
        ({"bins": None}, "must have version, experiment, cuts and bins"),
        ({"cuts": {"": 9}}, "cuts must map paths to axes"),
        ({"reward_share": 1}, "reward_share must be a whole number from 0 to 0; got 1"),
        ({"reward_share": "0"}, "reward_share must be a whole number from 0 to 0; got '0'"),
        ({"reward_share": None}, "reward_share must be a whole number from 0 to 0; got None"),
        (
            {"experiment": {"arms": ["a"]}},
            "a release must have an experiment; an experiment must have",
        ),
    ],
)
def test_a_malformed_release_is_refused(change: dict[str, Any], message: str) -> None:
    table = json.loads(wire.release_to_json(RELEASE)) | change
    with pytest.raises(sv.WireError, match=message):
        wire.release_from_json(json.dumps(table))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("arms", [], "the arms of bin"),
        ("arms", [0, 0], "the arms of bin"),
        ("arms", [0, 9], "the arms of bin"),
        ("arms", [0, 3], "the arms of bin"),
        ("arms", [-1, 0], "the arms of bin"),
        ("propensities", [0.5, 0.50001], "the propensities of bin"),
        ("propensities", [1.0, 0.0], "the propensities of bin"),
        ("propensities", [-0.5, 1.5], "the propensities of bin"),
        ("propensities", [0.5, 0.6], "the propensities of bin"),
        ("propensities", [1.0], "the propensities of bin"),
    ],
)
def test_a_release_with_a_bad_policy_is_refused(key: str, value: object, message: str) -> None:
    table = json.loads(wire.release_to_json(RELEASE))
    entry = next(entry for entry in table["bins"] if len(entry["arms"]) == 2)
    entry[key] = value
    with pytest.raises(sv.WireError, match=message):
        wire.release_from_json(json.dumps(table))


@given(st.binary(max_size=200), st.sampled_from([b"", b"sv\x05\x01", b"sv\x05\x03"]))
def test_any_bytes_at_all_are_read_or_refused(data: bytes, head: bytes) -> None:
    for read in (wire.report_from_bytes, wire.batch_from_bytes):
        try:
            read(head + data)
        except sv.WireError:
            continue
