"""Reports and experiments that are posted to a real server, on both databases."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.lab.local_server import LocalServer
from sottovoce.shared import wire
from support.databases import KINDS, new_database
from support.http import (
    ADMIN,
    COMPACT,
    JSON,
    Answer,
    as_json,
    ask,
    get,
    head,
    opened,
    post,
    receipt,
    release_of,
    report_for,
    serving,
    status_on,
    until,
)
from support.spoiled import numbers

WHISPER = experiment(method="whisper", auxiliary=[sv.Population("clinic-b", 4.0, 500)])
LDPMAB = experiment(name="numbers")

TOML = """
name = "walking"
arms = ["control", "coach"]
epsilon = 1.0
[[context]]
name = "age"
numeric = [18, 90]
"""
TABLE = {
    "name": "running",
    "arms": ["a", "b"],
    "epsilon": 1,
    "context": [{"name": "age", "numeric": [0, 1]}],
}


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    with (
        new_database(request.param, folder=folder) as url,
        serving(folder, [WHISPER, LDPMAB], database=url) as local,
    ):
        yield local


@pytest.fixture
def report(server: LocalServer) -> bytes:
    return report_for(release_of(server, WHISPER))


def refused(answer: Answer, status: int, reason: str) -> None:
    assert (answer.status, answer.json()["reason"]) == (status, reason)


# Reports.


def test_a_report_is_stored_once_however_often_it_comes(server: LocalServer, report: bytes) -> None:
    before = server.store.length(WHISPER.fingerprint)
    first = post(server, report)
    assert (first.status, first.json()) == (200, receipt(stored=1))
    for again in (
        post(server, report),
        post(server, as_json(report), kind=JSON),
        post(server, wire.batch_to_bytes([report]), batch=True),
        post(server, b"[" + as_json(report) + b"]", kind=JSON, batch=True),
    ):
        assert (again.status, again.json()) == (200, receipt(repeated=1))
    assert server.store.length(WHISPER.fingerprint) == before + 1
    assert server.store.read(WHISPER.fingerprint, after=before, limit=9) == [report]


def test_json_is_stored_as_the_same_bytes(server: LocalServer) -> None:
    for each in (WHISPER, LDPMAB):
        before = server.store.length(each.fingerprint)
        report = report_for(release_of(server, each))
        assert post(server, as_json(report), kind=f"{JSON}; charset=utf-8").status == 200
        assert server.store.read(each.fingerprint, after=before, limit=9) == [report]


def test_a_batch_stores_what_is_good_in_it(server: LocalServer) -> None:
    release = release_of(server, WHISPER)
    one, two, three = (report_for(release) for _ in range(3))
    other = report_for(release_of(server, LDPMAB))
    unknown = two[:4] + bytes(12) + two[16:]
    body = wire.batch_to_bytes([one, b"", two, one, two[:-1], unknown, other, three])
    answer = post(server, body, batch=True)
    assert answer.status == 200
    came = answer.json()
    assert (came["stored"], came["repeated"]) == (4, 1)
    assert sorted(came["refused"], key=lambda each: each["index"]) == [
        {"index": 1, "reason": "truncated"},
        {"index": 4, "reason": "wrong length"},
        {"index": 5, "reason": "unknown release"},
    ]


def test_an_empty_batch_is_no_trouble(server: LocalServer) -> None:
    assert post(server, wire.batch_to_bytes([]), batch=True).json() == receipt()
    assert post(server, b"[]", kind=JSON, batch=True).json() == receipt()


def test_a_nonce_counts_within_its_experiment_only(server: LocalServer) -> None:
    one = report_for(release_of(server, WHISPER))
    other = report_for(release_of(server, LDPMAB))
    other = other[:18] + one[18:34] + other[34:]
    assert post(server, wire.batch_to_bytes([one, other]), batch=True).json() == receipt(stored=2)


@pytest.mark.parametrize("kind", [COMPACT, JSON])
def test_each_reason_has_its_status(server: LocalServer, report: bytes, kind: str) -> None:
    of_numbers = report_for(release_of(server, LDPMAB))
    nan, count = float("nan"), (len(of_numbers) - 38) // 8
    spoiled = [
        (b"", 400, "truncated" if kind == COMPACT else "malformed"),
        (report[:4] + bytes(12) + report[16:], 404, "unknown release"),
        (report[:15] + bytes([report[15] ^ 1]) + report[16:], 404, "unknown release"),
        (report[:16] + b"\x09\0" + report[18:], 404, "unknown population"),
        (report[:34] + b"\xff\xff" + report[36:], 422, "unknown question"),
        (report + b"\0", 422, "wrong length"),
        (numbers(of_numbers, 0.5), 422, "wrong length"),
        (numbers(of_numbers, *[1e9] * count), 422, "implausible"),
    ]
    if kind == COMPACT:
        spoiled += [
            (b"rubbish rubbish", 400, "malformed"),
            (report[:20], 400, "truncated"),
            (report[:2] + b"\6" + report[3:], 400, "newer wire version"),
            (numbers(of_numbers, nan, 0.5), 422, "not finite"),
        ]
    before = [server.store.length(each.fingerprint) for each in (WHISPER, LDPMAB)]
    for data, status, reason in spoiled:
        body = data if kind == COMPACT or not data else as_json(data)
        answer = post(server, body, kind=kind)
        assert (data, answer.status, answer.json()["reason"]) == (data, status, reason)
    assert before == [server.store.length(each.fingerprint) for each in (WHISPER, LDPMAB)]


def test_each_reason_of_json_has_its_status(server: LocalServer, report: bytes) -> None:
    table = json.loads(as_json(report))
    of_numbers = json.loads(as_json(report_for(release_of(server, LDPMAB))))
    for change, status, reason in [
        ({"sottovoce": 6}, 400, "newer wire version"),
        ({"sottovoce": 2}, 400, "malformed"),
        ({"nonce": table["nonce"].upper() + "Z"}, 400, "malformed"),
        ({"reward": 1}, 400, "malformed"),
        (of_numbers | {"payload": [float("nan")]}, 422, "not finite"),
        (of_numbers | {"payload": [10**400]}, 422, "not finite"),
    ]:
        changed = change if "payload" in change else table | change
        body = json.dumps(changed).encode()
        refused(post(server, body, kind=JSON), status, reason)
        refused(post(server, b"[" + body + b"]", kind=JSON, batch=True), status, reason)


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"{}",
        b'"x"',
        b"{",
        b"\xff\xfe\xfd",
        b"[" * 100_000,
        b"[" + b'{"a":' * 990 + b"1" + b"}" * 990 + b"]",
        b"[" + b"[" * 985 + b"]" * 986,
        b"[1" + b"0" * 5000 + b"]",
        b"[1e999]",
        b'["\\ud800"]',
    ],
)
def test_json_that_is_no_batch(server: LocalServer, body: bytes) -> None:
    refused(post(server, body, kind=JSON, batch=True), 400, "malformed")
    assert post(server, body, kind=JSON).status == 400


def test_a_batch_that_is_none(server: LocalServer, report: bytes) -> None:
    batch = wire.batch_to_bytes([report])
    refused(post(server, report, batch=True), 400, "malformed")
    refused(post(server, batch), 400, "malformed")
    refused(post(server, batch[:-1], batch=True), 400, "truncated")
    refused(post(server, batch + b"\0", batch=True), 400, "malformed")
    refused(post(server, batch[:4] + b"\xff" * 4 + batch[8:], batch=True), 400, "truncated")


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "json"])
def test_other_types_are_refused(server: LocalServer, report: bytes, kind: str) -> None:
    assert post(server, report, kind=kind).status == 415
    assert post(server, wire.batch_to_bytes([report]), kind=kind, batch=True).status == 415
    made = ask(server, "POST", "/experiments", body=TOML, kind=kind, headers=ADMIN)
    assert made.status == 415


def test_too_much_is_refused_and_the_connection_goes_on(server: LocalServer, report: bytes) -> None:
    many = wire.batch_to_bytes([b""] * 10_001)
    assert post(server, many, batch=True).status == 413
    assert post(server, b"[" + b"1," * 10_000 + b"1]", kind=JSON, batch=True).status == 413
    assert post(server, wire.batch_to_bytes([report] * 10_000), batch=True).json() == receipt(
        stored=1, repeated=9_999
    )
    large = server.settings.most_bytes + 1
    with opened(server) as connection:
        # It is answered before the body is sent.
        connection.sendall(head(length=large))
        assert status_on(connection) == 413
    with opened(server) as connection:
        connection.sendall(head(length=None))
        for _ in range(large // 2**20 + 1):
            connection.sendall(b"100000\r\n" + bytes(2**20) + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        assert status_on(connection) == 413
    assert post(server, bytes(large - 1)).status == 400
    for path in ("/experiments", "/reports/batch"):
        kind = {"Content-Type": JSON, **ADMIN}
        answer = ask(server, "POST", path, body=iter([bytes(large)]), headers=kind, chunked=True)
        assert answer.status == 413


# Experiments.


def test_only_the_administrator_may_begin_and_amend_experiments(server: LocalServer) -> None:
    for path in ("/experiments", f"/experiments/{WHISPER.fingerprint}/amendments"):
        for shown, status in [
            ({}, 401),
            ({"Authorization": ""}, 401),
            ({"Authorization": "Bearer"}, 401),
            ({"Authorization": "Basic YTpi"}, 401),
            ({"Authorization": "Bearer wrong"}, 403),
            ({"Authorization": ADMIN["Authorization"] + "x"}, 403),
            ({"Authorization": ADMIN["Authorization"][:-1]}, 403),
            ({"Authorization": "Bearer \xe9"}, 403),
        ]:
            answer = ask(server, "POST", path, headers=shown, body=TOML, kind=JSON)
            assert (shown, answer.status) == (shown, status)
            assert ("www-authenticate" in answer.headers) is (status == 401)
    lower = {"Authorization": ADMIN["Authorization"].replace("Bearer", "bearer")}
    assert ask(server, "POST", "/experiments", headers=lower, body=b"{", kind=JSON).status == 400
    assert server.store.amendments(WHISPER.fingerprint) == []


@pytest.mark.parametrize(("kind", "text"), [(JSON, json.dumps(TABLE)), ("application/toml", TOML)])
def test_an_experiment_begins_once(server: LocalServer, kind: str, text: str) -> None:
    answers = [
        ask(server, "POST", "/experiments", body=text, kind=kind, headers=ADMIN) for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [201, 200]
    made = answers[0].json()
    assert made == answers[1].json()
    assert made["populations"][0]["name"] == "target"
    listed = get(server, "/experiments").json()["experiments"]
    assert made | {"people": 0} in listed
    assert {each["experiment"] for each in listed} >= {WHISPER.fingerprint, LDPMAB.fingerprint}
    page = f"/experiments/{made['experiment']}"
    assert get(server, f"{page}/releases/current").status == 200
    until(lambda: get(server, f"{page}/estimates").json()["estimates"] != [])
    for part in ("/status", "/certificates", "/releases"):
        assert get(server, page + part).status == 200
    shown = get(server, page)
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert made["name"] in shown.body.decode()


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        (JSON, b"", 400),
        (JSON, b"{", 400),
        (JSON, b"\xff", 400),
        (JSON, b"[" * 100_000, 400),
        (JSON, b'{"a":' * 100_000, 400),
        (JSON, b"1" * 5000, 400),
        (JSON, b"[]", 422),
        (JSON, b"{}", 422),
        (JSON, json.dumps(TABLE | {"epsilon": 0}).encode(), 422),
        (JSON, json.dumps(TABLE | {"epsilon": float("nan")}).encode(), 422),
        (JSON, json.dumps(TABLE | {"arms": ["a"]}).encode(), 422),
        (JSON, json.dumps(TABLE | {"reward": 1}).encode(), 422),
        (JSON, json.dumps(TABLE | {"method": {"name": ["whisper"]}}).encode(), 422),
        (JSON, json.dumps(TABLE | {"name": "\ud800"}).encode(), 422),
        ("application/toml", b"= 1", 400),
        ("application/toml", b"\xff", 400),
        ("application/toml", b"a = " + b"[" * 100_000, 400),
        ("application/toml", b"epsilon = 1979-05-27", 422),
        ("application/toml", TOML.replace("1.0", "0x" + "f" * 5000).encode(), 400),
    ],
)
def test_an_experiment_that_cannot_be(
    server: LocalServer, kind: str, body: bytes, status: int
) -> None:
    answer = ask(server, "POST", "/experiments", body=body, kind=kind, headers=ADMIN)
    assert (answer.status, set(answer.json())) == (status, {"error"})
    assert "got" not in answer.json()["error"]  # what came may be anything
