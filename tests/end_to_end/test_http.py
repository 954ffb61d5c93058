"""The HTTP interface of a real server, on both databases."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device import signature
from sottovoce.device.releases import Verifier
from sottovoce.lab.local_server import LocalServer
from sottovoce.shared import wire
from sottovoce.shared.signed import SignedRelease, message
from support.databases import KINDS, new_database
from support.examples import experiment
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
# Learns within a few hundred reports.
QUICK = experiment(name="quick", method="whisper", epsilon=8.0, horizon=400, release_every=50)

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
        serving(folder, [WHISPER, LDPMAB, QUICK], database=url) as local,
    ):
        yield local


@pytest.fixture
def report(server: LocalServer) -> bytes:
    return report_for(release_of(server, WHISPER))


def releases(of: sv.Experiment, which: object = "current") -> str:
    return f"/experiments/{of.fingerprint}/releases/{which}"


def refused(answer: Answer, status: int, reason: str) -> None:
    assert (answer.status, answer.json()["reason"]) == (status, reason)


# Releases.


def test_a_release_can_be_verified(server: LocalServer) -> None:
    answer = get(server, releases(WHISPER))
    signed = SignedRelease.from_json(answer.body)
    assert signature.verify(bytes.fromhex(server.key), signed.signature, message(signed.text))
    assert not signature.verify(bytes.fromhex(server.key), signed.signature, b"another")
    release = wire.release_from_json(signed.text)
    assert release.version == 1
    assert release.experiment.fingerprint == WHISPER.fingerprint
    assert get(server, "/keys").json() == {"keys": [{"key": signed.key, "public": server.key}]}


def test_a_release_is_sent_once_to_those_who_know_it(server: LocalServer) -> None:
    answer = get(server, releases(WHISPER))
    tag = answer.headers["etag"]
    other = '"0123456789abcdef"'
    for known in (tag, f"W/{tag}", f"{other}, {tag}", f"W/{other},W/{tag}", "*", f" {tag} "):
        same = get(server, releases(WHISPER), If_None_Match=known)
        assert (same.status, same.body) == (304, b"")
        assert same.headers["etag"] == tag
        assert same.headers["cache-control"] == answer.headers["cache-control"]
        assert "content-type" not in same.headers
    for unknown in ("", other, f"W/{other}, {other}", tag.strip('"'), f'{tag[:-1]}0"', "W/"):
        assert get(server, releases(WHISPER), If_None_Match=unknown).body == answer.body
    assert get(server, releases(LDPMAB), If_None_Match=tag).status == 200


def test_the_tag_is_the_one_that_devices_work_out(server: LocalServer) -> None:
    answer = get(server, releases(WHISPER))
    trust = Verifier(experiment=WHISPER.fingerprint, keys=[server.key])
    verified = trust.verify(answer.body)
    assert get(server, releases(WHISPER), If_None_Match=verified.tag).status == 304


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("br, gzip;q=0.5", True),
        ("deflate,gzip ; q=0.001", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("x-gzip-not", False),
        ("", False),
    ],
)
def test_a_release_is_packed_where_that_is_understood(
    server: LocalServer, accepted: str, packed: bool
) -> None:
    plain = get(server, releases(WHISPER), Accept_Encoding="identity")
    answer = get(server, releases(WHISPER), Accept_Encoding=accepted)
    assert (answer.headers.get("content-encoding") == "gzip") is packed
    assert (gzip.decompress(answer.body) if packed else answer.body) == plain.body
    assert answer.headers["vary"] == "accept-encoding"
    # Other bytes may not have the same strong tag; a weak one is good enough to ask with.
    assert answer.headers["etag"] == ("W/" if packed else "") + plain.headers["etag"]
    again = get(
        server,
        releases(WHISPER),
        Accept_Encoding=accepted,
        If_None_Match=answer.headers["etag"],
    )
    assert (again.status, again.body) == (304, b"")


def test_numbered_releases_may_be_kept_for_ever(server: LocalServer) -> None:
    current = get(server, releases(WHISPER))
    first = get(server, releases(WHISPER, 1))
    assert current.headers["cache-control"] == "public, max-age=1"
    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert first.body == current.body


def test_the_current_release_follows_the_learner(server: LocalServer) -> None:
    before = get(server, releases(QUICK))
    first = get(server, releases(QUICK, 1))
    for _ in range(40):
        release = release_of(server, QUICK)
        if release.version > 1:
            break
        people = [rewarded(release) for _ in range(50)]
        assert post(server, wire.batch_to_bytes(people), batch=True).json()["stored"] == 50
        server.wait_until_learned(QUICK)
        until(lambda: get(server, status_of(QUICK)).json()["learned"] % 50 == 0)
    newest = release_of(server, QUICK).version
    assert newest > 1
    after = get(server, releases(QUICK), If_None_Match=before.headers["etag"])
    assert after.status == 200
    assert get(server, releases(QUICK, newest)).body == after.body
    assert get(server, releases(QUICK, 1)).body == first.body
    assert get(server, f"/experiments/{QUICK.fingerprint}/releases").json() == {"current": newest}
    assert get(server, releases(QUICK, newest + 1)).status == 404
    # Reports that were made for the old release are taken still.
    old = wire.release_from_json(first.json()["release"])
    assert post(server, report_for(old)).json() == receipt(stored=1)


def rewarded(release: sv.Release) -> bytes:
    device = sv.Device(release)
    arm = device.choose({"age": 42, "bmi": 27.5})
    return wire.report_to_bytes(device.report(reward=1.0 if arm == "coach" else 0.0))


def status_of(of: sv.Experiment) -> str:
    return f"/experiments/{of.fingerprint}/status"


@pytest.mark.parametrize(
    "which", ["0", "-1", "1.0", "one", "99999999999999999999", "%00", "²", "+1"]
)
def test_releases_that_are_not_there(server: LocalServer, which: str) -> None:
    answer = ask(server, "GET", releases(WHISPER, which.replace("²", "%C2%B2")))
    assert (answer.status, answer.json()) == (
        404,
        {"error": "there is no such release of this experiment"},
    )


@pytest.mark.parametrize(
    "page", ["", "/status", "/estimates", "/certificates", "/releases/current"]
)
@pytest.mark.parametrize("name", ["0123456789abcdef", "x", "%00", "%F0%9F%A4%AB", "%ff", "'--"])
def test_experiments_that_are_not_there(server: LocalServer, page: str, name: str) -> None:
    answer = get(server, f"/experiments/{name}{page}")
    assert (answer.status, answer.json()) == (404, {"error": "there is no such experiment here"})


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
    unknown = two[:4] + bytes(8) + two[12:]
    body = wire.batch_to_bytes([one, b"", two, one, two[:-1], unknown, other, three])
    answer = post(server, body, batch=True)
    assert answer.status == 200
    came = answer.json()
    assert (came["stored"], came["repeated"]) == (4, 1)
    assert sorted(came["refused"], key=lambda each: each["index"]) == [
        {"index": 1, "reason": "truncated"},
        {"index": 4, "reason": "wrong length"},
        {"index": 5, "reason": "unknown experiment"},
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
    nan, huge = float("nan"), 1e9
    spoiled = [
        (b"", 400, "truncated" if kind == COMPACT else "malformed"),
        (report[:4] + bytes(8) + report[12:], 404, "unknown experiment"),
        (report[:12] + b"\xff\xff\0\0" + report[16:], 404, "unknown release"),
        (report[:12] + bytes(4) + report[16:], 404, "unknown release"),
        (report[:16] + b"\x09\0" + report[18:], 404, "unknown population"),
        (report[:34] + b"\xff\xff" + report[36:], 422, "unknown question"),
        (report + b"\0", 422, "wrong length"),
        (numbers(of_numbers, 0.5), 422, "wrong length"),
        (numbers(of_numbers, *[huge] * 3), 422, "implausible"),
    ]
    if kind == COMPACT:
        spoiled += [
            (b"rubbish rubbish", 400, "malformed"),
            (report[:20], 400, "truncated"),
            (report[:2] + b"\2" + report[3:], 400, "newer wire version"),
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
        ({"sottovoce": 2}, 400, "newer wire version"),
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


def test_only_the_administrator_may_begin_and_list_experiments(server: LocalServer) -> None:
    for method in ("POST", "GET"):
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
            answer = ask(server, method, "/experiments", headers=shown, body=TOML, kind=JSON)
            assert (shown, answer.status) == (shown, status)
            assert ("www-authenticate" in answer.headers) is (status == 401)
    lower = {"Authorization": ADMIN["Authorization"].replace("Bearer", "bearer")}
    assert ask(server, "GET", "/experiments", headers=lower).status == 200


@pytest.mark.parametrize(("kind", "text"), [(JSON, json.dumps(TABLE)), ("application/toml", TOML)])
def test_an_experiment_begins_once(server: LocalServer, kind: str, text: str) -> None:
    answers = [
        ask(server, "POST", "/experiments", body=text, kind=kind, headers=ADMIN) for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [201, 200]
    made = answers[0].json()
    assert made == answers[1].json()
    assert made["populations"][0]["name"] == "target"
    listed = ask(server, "GET", "/experiments", headers=ADMIN).json()["experiments"]
    assert made in listed
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


# All the rest.


def test_pages_and_methods_that_are_not_there(server: LocalServer) -> None:
    for path in ("/", "/nothing", "/reports/", "/experiments/", "/..%2f..%2fetc/passwd", "//"):
        answer = get(server, path)
        assert (path, answer.status) == (path, 404)
        assert answer.json() == {"error": "there is no such page"}
    for method, path, allowed in [
        ("GET", "/reports", "OPTIONS, POST"),
        ("DELETE", "/experiments", "GET, HEAD, POST"),
        ("PUT", releases(WHISPER), "GET, HEAD, OPTIONS"),
        ("POST", "/health", "GET, HEAD"),
        ("TRACE", "/metrics", "GET, HEAD"),
        ("OPTIONS", "/experiments", "GET, HEAD, POST"),
    ]:
        answer = ask(server, method, path)
        assert (method, answer.status, answer.headers["allow"]) == (method, 405, allowed)
        assert answer.json() == {"error": "this page does not take that method"}


def test_head_is_get_without_the_body(server: LocalServer) -> None:
    for path in ("/health", "/ready", "/keys", "/metrics", releases(WHISPER), "/openapi.json"):
        answer = ask(server, "HEAD", path)
        assert (answer.status, answer.body) == (200, b"")
        assert int(answer.headers["content-length"]) > 0


def test_a_browser_may_read_releases_and_send_reports(server: LocalServer, report: bytes) -> None:
    asks = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    for path in ("/reports", "/reports/batch", releases(WHISPER), releases(WHISPER, 1)):
        answer = ask(server, "OPTIONS", path, headers=asks)
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["access-control-allow-methods"] == "GET, POST"
        assert "content-type" in answer.headers["access-control-allow-headers"]
    for answer in (
        post(server, report),
        post(server, b"", kind="text/plain"),
        get(server, releases(WHISPER)),
        get(server, releases(WHISPER), If_None_Match="*"),
        get(server, releases(WHISPER, 99)),
    ):
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "retry-after" in answer.headers["access-control-expose-headers"]
    # What an operator may have closed to the world stays closed to pages of others.
    for path in ("/experiments", "/metrics", status_of(WHISPER), "/health", "/keys"):
        answer = get(server, path, Origin="https://app.example")
        assert "access-control-allow-origin" not in answer.headers


def test_health_ready_and_metrics(server: LocalServer) -> None:
    assert get(server, "/health").json() == {"status": "running"}
    assert get(server, "/ready").json() == {"status": "ready"}
    assert get(server, "/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


def test_nothing_says_who_serves(server: LocalServer) -> None:
    assert "server" not in get(server, "/health").headers


@pytest.mark.parametrize(
    "request_line",
    [
        b"\0\0\0\0",
        b"GET\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"BREW /reports HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: \xb2\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(server: LocalServer, request_line: bytes) -> None:
    with opened(server) as connection:
        connection.sendall(request_line)
        assert status_on(connection) in (400, 405)
    assert get(server, "/health").status == 200


def test_requests_that_follow_each_other_at_once_are_all_answered(server: LocalServer) -> None:
    release = release_of(server, WHISPER)
    reports: list[Any] = [report_for(release) for _ in range(5)]
    before = server.store.length(WHISPER.fingerprint)
    with opened(server) as connection:
        connection.sendall(b"".join(head(length=len(each)) + each for each in reports))
        until(lambda: server.store.length(WHISPER.fingerprint) == before + 5)
