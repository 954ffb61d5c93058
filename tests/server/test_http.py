"""Releases, and all that is not posted, of a real server on both databases."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device import signature
from sottovoce.lab.local_server import LocalServer
from sottovoce.shared import wire
from sottovoce.shared.signed import SignedRelease, message
from support.databases import KINDS, new_database
from support.http import (
    COMPACT,
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

WHISPER = experiment(method="whisper", auxiliary=[sv.Population("clinic-b", 4.0, 500)])
LDPMAB = experiment(name="numbers")
# Learns within a few hundred reports.
QUICK = experiment(name="quick", method="whisper", epsilon=8.0, horizon=400, release_every=50)


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


# Releases.


def test_a_release_can_be_verified(server: LocalServer) -> None:
    answer = get(server, releases(WHISPER))
    signed = SignedRelease.from_json(answer.body)
    assert signature.verify(
        bytes.fromhex(server.key), signed.signature, message(signed.before, signed.text)
    )
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
    assert answer.headers["vary"] == "accept-encoding, Origin"
    # Other bytes may not have the same strong tag; a weak one is good enough to ask with.
    assert answer.headers["etag"] == ("W/" if packed else "") + plain.headers["etag"]
    again = get(
        server,
        releases(WHISPER),
        Accept_Encoding=accepted,
        If_None_Match=answer.headers["etag"],
    )
    assert (again.status, again.body) == (304, b"")


def test_caches_ask_whether_numbered_releases_are_still_so(server: LocalServer) -> None:
    """A server that was restored goes on with other releases under numbers of lost ones."""
    current = get(server, releases(WHISPER))
    first = get(server, releases(WHISPER, 1))
    assert current.headers["cache-control"] == "public, max-age=1"
    assert first.headers["cache-control"] == "public, no-cache"
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
    "page", ["", "/status", "/estimates", "/certificates", "/diagnosis", "/releases/current"]
)
@pytest.mark.parametrize("name", ["0123456789abcdef", "x", "%00", "%F0%9F%A4%AB", "%ff", "'--"])
def test_experiments_that_are_not_there(server: LocalServer, page: str, name: str) -> None:
    answer = get(server, f"/experiments/{name}{page}")
    assert answer.status == 404
    assert answer.json() == {
        "error": "there is no such experiment here",
        "reason": "no such experiment",
    }


# All the rest.


def test_pages_and_methods_that_are_not_there(server: LocalServer) -> None:
    for path in ("/nothing", "/reports/", "/experiments/", "/..%2f..%2fetc/passwd", "//"):
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
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["access-control-allow-methods"] == "GET, POST"
        allowed = answer.headers["access-control-allow-headers"].lower()
        assert {"content-type", "if-none-match"} <= set(allowed.split(", "))
        assert ask(server, "OPTIONS", path).status == 204
    page = {"Origin": "https://app.example"}
    for answer in (
        ask(server, "POST", "/reports", body=report, kind=COMPACT, headers=page),
        ask(server, "POST", "/reports", body=b"", kind="text/plain", headers=page),
        get(server, releases(WHISPER), **page),
        get(server, releases(WHISPER), If_None_Match="*", **page),
        get(server, releases(WHISPER, 99), **page),
    ):
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "retry-after" in answer.headers["access-control-expose-headers"]
        assert "Origin" in answer.headers["vary"]  # a cache must not mix the two
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
