"""Reports of ``whisper`` as bytes and as JSON."""

import json
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from factories import experiment
from sottovoce.shared import wire

REPORTS = st.builds(
    sv.Report,
    release=st.binary(min_size=12, max_size=12),
    population=st.integers(0, 2**16 - 1),
    nonce=st.binary(min_size=16, max_size=16),
    payload=st.binary(max_size=300),
    question=st.integers(0, 2**16 - 1),
    ranking=st.sampled_from([0, 2, 3, 9, 20])
    .flatmap(lambda arms: st.permutations(range(arms)))
    .map(tuple),
)
REPORT = sv.Report(bytes(range(12)), 1, bytes(range(16)), b"\x05\xff\x00", 7, (2, 0, 1))
HEADER = 4 + 30 + 3  # what every report of this kind has


@given(REPORTS)
def test_reports_survive_bytes_and_json(report: sv.Report) -> None:
    data, text = wire.report_to_bytes(report), wire.report_to_json(report)
    assert wire.report_from_bytes(data) == report
    assert wire.report_from_json(text) == report
    assert wire.report_from_json(text.encode()) == report
    assert type(wire.report_from_bytes(data).payload) is bytes
    assert len(data) == HEADER + len(report.ranking) + len(report.payload)
    # One report, one text.
    assert wire.report_to_bytes(wire.report_from_json(text)) == data
    assert wire.report_to_json(wire.report_from_bytes(data)) == text


def test_the_bytes_of_a_report_are_as_documented() -> None:
    assert wire.report_to_bytes(REPORT) == (
        b"sv\x05\x03"
        + bytes(range(12))
        + struct.pack("<H", 1)
        + bytes(range(16))
        + struct.pack("<HB", 7, 3)
        + b"\x02\x00\x01"
        + b"\x05\xff\x00"
    )


def test_the_json_of_a_report_is_as_documented() -> None:
    assert json.loads(wire.report_to_json(REPORT)) == {
        "sottovoce": 5,
        "kind": "report",
        "release": "000102030405060708090a0b",
        "population": 1,
        "nonce": "000102030405060708090a0b0c0d0e0f",
        "question": 7,
        "ranking": [2, 0, 1],
        "set": "05ff00",
    }


@given(REPORTS, st.data())
def test_truncated_bytes_are_refused_or_are_a_report_with_a_shorter_set(
    report: sv.Report, data: st.DataObject
) -> None:
    """The set goes to the end; how long it must be is for the learner to say."""
    whole = wire.report_to_bytes(report)
    length = data.draw(st.integers(0, len(whole) - 1))
    if length < HEADER + len(report.ranking):
        with pytest.raises(sv.WireError) as caught:
            wire.report_from_bytes(whole[:length])
        assert caught.value.reason is sv.Rejection.TRUNCATED
        return
    assert isinstance(report.payload, bytes)
    shorter = wire.report_from_bytes(whole[:length])
    kept = length - HEADER - len(report.ranking)
    assert shorter == replace(report, payload=report.payload[:kept])
    assert shorter != report


@given(REPORTS, st.binary(min_size=1, max_size=20))
def test_more_bytes_make_another_report(report: sv.Report, more: bytes) -> None:
    assert isinstance(report.payload, bytes)
    longer = wire.report_from_bytes(wire.report_to_bytes(report) + more)
    assert longer == replace(report, payload=report.payload + more)


@given(REPORTS, st.data())
def test_changed_bytes_are_refused_or_are_another_report(
    report: sv.Report, data: st.DataObject
) -> None:
    changed = bytearray(wire.report_to_bytes(report))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        other = wire.report_from_bytes(bytes(changed))
    except sv.WireError:
        return
    assert other != report
    assert wire.report_to_bytes(other) == bytes(changed)


def test_a_learner_refuses_each_shorter_and_longer_report_and_counts_the_whole_one() -> None:
    for public_arms in (False, True):
        learner = sv.Learner(experiment(epsilon=8.0, method=sv.Whisper(public_arms=public_arms)))
        device = sv.Device(learner.release(), public_arms=True)
        device.choose({"age": 42, "bmi": 27.5})
        whole = wire.report_to_bytes(device.report(reward=1.0))
        before = learner.to_json()
        for data in [*(whole[:length] for length in range(len(whole))), whole + b"\0"]:
            with pytest.raises(sv.Refused) as caught:
                learner.receive(wire.report_from_bytes(data))
            assert caught.value.reason in (sv.Rejection.TRUNCATED, sv.Rejection.WRONG_LENGTH)
        assert learner.to_json() == before
        learner.receive(wire.report_from_bytes(whole))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("set", "05f"),
        ("set", "0x05ff"),
        ("set", "05FF00"),
        ("set", "05 ff 00"),
        ("set", "zz"),
        ("set", "05ff00\n"),
        ("set", "٠٥"),
        ("set", None),
        ("set", 5),
        ("set", ["05"]),
        ("set", {"hex": "05"}),
        ("question", -1),
        ("question", 2**16),
        ("question", 1.0),
        ("question", True),
        ("question", "7"),
        ("question", None),
        ("ranking", None),
        ("ranking", "210"),
        ("ranking", [2, 0, 256]),
        ("ranking", [2, 0, -1]),
        ("ranking", [2, 0, 1.0]),
        ("ranking", [2, 0, True]),
        ("ranking", [[2, 0, 1]]),
        ("ranking", {"0": 2}),
        ("ranking", [0] * 256),  # no byte can count them
        ("release", "000102030405060708090A0B"),
        ("release", 3),
        ("nonce", "00"),
        ("release", "00"),
        ("population", -1),
        ("payload", [0.5]),
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


@pytest.mark.parametrize("key", ["release", "population", "nonce", "question"])
def test_a_report_with_a_part_missing_is_refused(key: str) -> None:
    table = json.loads(wire.report_to_json(REPORT))
    del table[key]
    with pytest.raises(sv.WireError) as caught:
        wire.report_from_json(json.dumps(table))
    assert caught.value.reason is sv.Rejection.MALFORMED


@given(st.dictionaries(st.text(max_size=12), st.integers() | st.text(max_size=5), min_size=1))
def test_unknown_keys_are_refused_and_not_shown(more: dict[str, Any]) -> None:
    table = json.loads(wire.report_to_json(REPORT))
    more = {f"{key}?": value for key, value in more.items()}
    with pytest.raises(sv.WireError, match="a report must have no other keys") as caught:
        wire.report_from_json(json.dumps(table | more))
    assert str(caught.value) == f"a report must have no other keys; got {len(more)} more"


@pytest.mark.parametrize("key", ["set", "question", "ranking"])
def test_a_report_is_of_one_method_or_of_the_other(key: str) -> None:
    """Numbers have no question and no ranking, and a set has both."""
    numbers = sv.Report(bytes(range(12)), 1, bytes(16), (0.5, 1.0))
    table = json.loads(wire.report_to_json(numbers))
    table[key] = json.loads(wire.report_to_json(REPORT))[key]
    with pytest.raises(sv.WireError) as caught:
        wire.report_from_json(json.dumps(table))
    assert caught.value.reason is sv.Rejection.MALFORMED


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_read_or_refused(data: bytes) -> None:
    try:
        report = wire.report_from_bytes(b"sv\x05\x03" + data)
    except sv.WireError:
        return
    assert wire.report_to_bytes(report) == b"sv\x05\x03" + data


@pytest.mark.parametrize("arms", [2, 255, 256, 300])
def test_whatever_a_device_reports_can_be_sent(arms: int) -> None:
    """Also with more arms than a byte can count: or such an experiment must be refused."""
    try:
        many = sv.Experiment(
            arms=[f"arm {k}" for k in range(arms)],
            context=[sv.Numeric("x", 0, 1)],
            epsilon=1.0,
            method=sv.Whisper(public_arms=True),
        )
    except sv.ExperimentError:
        assert arms > 255
        return
    learner = sv.Learner(many)
    for _ in range(10):
        device = sv.Device(learner.release(), public_arms=True)
        device.choose({"x": 0.5})
        report = device.report(reward=1.0)
        assert wire.report_from_bytes(wire.report_to_bytes(report)) == report
        assert wire.report_from_json(wire.report_to_json(report)) == report
