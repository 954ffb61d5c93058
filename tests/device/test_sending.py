"""What becomes of reports, whatever the server does."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.device.outbox import Outbox
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from support.fake_server import FakeClock, FakeServer, answer, client_of


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(experiment(method="whisper", release_every=10))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def waiting_client(server: FakeServer, clock: FakeClock, reports: int, **more: Any) -> sv.Client:
    """A client with so many reports in its outbox, whose last try to send them failed."""
    client = client_of(server, clock, **more)
    client.refresh()
    server.online = False
    for _ in range(reports):
        client.report(client.choose(CONTEXT), reward=1)
    assert client.waiting == reports
    assert client.send() == 0
    server.online = True
    server.seen.clear()
    clock.now += 10_000
    return client


def posts(server: FakeServer) -> list[Request]:
    return [each for each in server.seen if each.method == "POST"]


def sizes(server: FakeServer) -> list[int]:
    """How many reports each request brought."""
    return [
        len(wire.batch_from_bytes(each.body or b"")) if each.url.endswith("batch") else 1
        for each in posts(server)
    ]


def test_several_reports_go_together_and_one_goes_alone(
    server: FakeServer, clock: FakeClock
) -> None:
    client = waiting_client(server, clock, 12)
    assert client.send() == 12
    assert sizes(server) == [12]
    assert server.learner.status().reports == {"target": 12}
    client.report(client.choose(CONTEXT), reward=1)
    assert sizes(server) == [12]
    assert client.send() == 1
    assert sizes(server) == [12, 1]
    assert client.send() == 0
    assert len(posts(server)) == 2


def test_a_report_is_kept_before_it_is_sent(
    server: FakeServer, clock: FakeClock, tmp_path: Path
) -> None:
    found: list[list[bytes]] = []

    def look(request: Request) -> Response | None:
        if request.method == "POST":
            kept = Outbox(tmp_path / "outbox").oldest(9, experiment=server.experiment)
            found.append([each.report for each in kept])
            assert request.body == kept[0].report
        return None

    server.instead = look
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    client.report(client.choose(CONTEXT), reward=1)
    client.send()
    assert [len(each) for each in found] == [1]
    assert client.waiting == 0


LATER: list[Callable[[Request], Response]] = [
    lambda _: Response(500, {}, b"oops"),
    lambda _: answer(500, {"error": "oops", "reason": "malformed"}),
    lambda _: answer(500, {"stored": 3, "repeated": 0, "refused": []}),
    lambda _: answer(404, {"stored": 3, "repeated": 0, "refused": []}),
    lambda _: answer(507, {"error": "the disk is full"}),
    lambda _: answer(503, {"error": "not now"}),
    lambda _: answer(429, {"error": "slower", "reason": "malformed"}),
    lambda _: answer(408, {"error": "timeout", "reason": "malformed"}),
    lambda _: Response(302, {"location": "https://elsewhere.test/"}, b""),
    lambda _: Response(304, {}, b""),
    lambda _: Response(403, {}, b"<html>pay for the network</html>"),
    lambda _: answer(404, {"error": "there is no such page"}),
    lambda _: answer(401, {"error": "who are you?"}),
    lambda _: Response(404, {}, b"Not Found"),
    lambda _: Response(422, {}, b"[" * 100_000),
    lambda _: Response(200, {}, b"<html>Welcome to the hotel</html>"),
    lambda _: Response(200, {}, b""),
    lambda _: Response(204, {}, b""),
    lambda _: Response(200, {}, b"[]"),
    lambda _: Response(200, {}, b'{"stored": ' + b"9" * 5000 + b"}"),
    lambda _: Response(200, {}, b" " * 2_000_000),
    lambda _: answer(200, {}),
    lambda _: answer(200, {"stored": 0, "repeated": 0, "refused": []}),
    lambda _: answer(200, {"stored": 7, "repeated": 0, "refused": []}),
    lambda _: answer(200, {"stored": True, "repeated": 2, "refused": []}),
    lambda _: answer(200, {"stored": 3.0, "repeated": 0, "refused": []}),
    lambda _: answer(200, {"stored": -1, "repeated": 4, "refused": []}),
    lambda _: answer(200, {"stored": 3, "repeated": 0, "refused": None}),
    lambda _: answer(200, {"stored": 2, "repeated": 0, "refused": ["all"]}),
    lambda _: answer(200, {"stored": 2, "repeated": 0, "refused": [{"index": 0}]}),
    lambda _: answer(200, {"stored": 2, "repeated": 0, "refused": [refusal(3)]}),
    lambda _: answer(200, {"stored": 2, "repeated": 0, "refused": [refusal(-1)]}),
    lambda _: answer(200, {"stored": 1, "repeated": 0, "refused": [refusal(1), refusal(1)]}),
]


def refusal(index: int) -> dict[str, object]:
    return {"index": index, "reason": "malformed"}


@pytest.mark.parametrize("later", LATER)
def test_no_report_is_lost_whatever_is_answered(
    server: FakeServer, clock: FakeClock, later: Callable[[Request], Response]
) -> None:
    client = waiting_client(server, clock, 3)
    server.instead = later
    assert client.send() == 0
    assert client.waiting == 3
    assert client.refused == {}
    assert len(server.seen) == 1
    before = server.seen[0].body
    server.instead = None
    clock.now += 10_000
    assert client.send() == 3
    assert server.seen[1].body == before
    assert len(server.bodies) == 3


@pytest.mark.parametrize("error", [sv.TransportError("no"), TimeoutError(), ConnectionResetError()])
def test_no_trouble_of_the_network_is_raised(
    server: FakeServer, clock: FakeClock, error: Exception
) -> None:
    client = waiting_client(server, clock, 1)

    def fail(_: Request) -> Response:
        raise error

    server.instead = fail
    client.report(client.choose(CONTEXT), reward=0)
    assert client.send() == 0
    assert client.waiting == 2


def test_a_report_that_was_stored_without_our_hearing_of_it_is_sent_again_and_counted_once(
    server: FakeServer, clock: FakeClock
) -> None:
    client = waiting_client(server, clock, 2)

    def store_and_hang_up(request: Request) -> Response:
        server.answer(request)
        raise ConnectionResetError

    server.instead = store_and_hang_up
    assert client.send() == 0
    server.instead = None
    clock.now += 10
    assert client.send() == 2
    assert posts(server)[0].body == posts(server)[1].body
    assert server.learner.status().reports == {"target": 2}


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_report_that_is_refused_for_a_reason_is_not_sent_again(
    server: FakeServer, clock: FakeClock, status: int
) -> None:
    client = waiting_client(server, clock, 1)
    server.instead = lambda _: answer(status, {"error": "no", "reason": "implausible"})
    assert client.send() == 0
    assert (client.waiting, client.refused) == (0, {"implausible": 1})


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "unknown release"),  # not yet, perhaps: of another worker, or after a restore
        (409, "lost release"),
        (400, "newer wire version"),  # the server will be upgraded
        (404, "no such experiment"),
        (422, "a reason that a later version has"),
    ],
)
def test_a_report_that_a_server_cannot_read_now_is_kept_and_offered_again_later(
    server: FakeServer, clock: FakeClock, status: int, reason: str
) -> None:
    client = waiting_client(server, clock, 3)
    body = vars(client)["_outbox"].oldest(3, experiment=server.experiment)
    server.instead = lambda request: (
        answer(status, {"error": "no", "reason": reason}) if request.method == "POST" else None
    )
    assert client.send() == 0
    assert (client.waiting, client.refused) == (3, {})
    sent = len(server.seen)
    clock.now += 3600
    assert client.send() == 0
    assert len(server.seen) == sent  # not every hour
    server.instead = None
    clock.now += 2 * 86400
    assert client.send() == 3
    assert sorted(server.bodies.values()) == sorted(each.report for each in body)


def test_of_several_only_those_that_are_refused_are_counted_as_such(
    server: FakeServer, clock: FakeClock
) -> None:
    client = waiting_client(server, clock, 4)
    refused = [{"index": 1, "reason": "implausible"}, {"index": 3, "reason": "x" * 9999}]
    server.instead = lambda _: answer(200, {"stored": 1, "repeated": 1, "refused": refused})
    assert client.send() == 2
    # Nobody here knows whether a reason is final that a later version has.
    assert client.waiting == 1
    assert client.refused == {"implausible": 1}
    # Such reasons are not kept by name, or a server could fill the memory.
    assert vars(client)["_sender"].put_off == {"other": 1}


def test_one_report_that_spoils_a_batch_is_found(server: FakeServer, clock: FakeClock) -> None:
    client = waiting_client(server, clock, 20)
    (first,) = [
        each.report for each in vars(client)["_outbox"].oldest(7, experiment=server.experiment)
    ][6:]

    def choke(request: Request) -> Response | None:
        if first in (request.body or b""):
            return answer(400, {"error": "no", "reason": "malformed"})
        return None

    server.instead = choke
    assert client.send() == 19
    assert (client.waiting, client.refused) == (0, {"malformed": 1})
    assert len(server.seen) < 20


def test_a_batch_that_is_too_large_is_sent_in_parts(server: FakeServer, clock: FakeClock) -> None:
    client = waiting_client(server, clock, 40)

    def small(request: Request) -> Response | None:
        return answer(413, {"error": "too large"}) if len(request.body or b"") > 500 else None

    server.instead = small
    assert client.send() == 40
    assert client.refused == {}


def test_a_single_report_that_is_too_large_is_given_up(
    server: FakeServer, clock: FakeClock
) -> None:
    client = waiting_client(server, clock, 2)
    server.instead = lambda _: answer(413, {"error": "too large"})
    assert client.send() == 0
    assert (client.waiting, client.refused) == (0, {"status 413": 2})


def test_batches_are_bounded(
    server: FakeServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = waiting_client(server, clock, 25)
    monkeypatch.setattr("sottovoce.device.sending.MOST_BYTES", 400)
    assert client.send() == 25
    assert all(len(each.body or b"") < 600 for each in posts(server))
    assert len(posts(server)) > 2


def test_waits_double_with_full_jitter_and_begin_anew(server: FakeServer, clock: FakeClock) -> None:
    # The first and the last are of the time until the next look for a release.
    jitter = iter([0.5, 0.0, 0.5, 0.25, 0.0, 0.5, 0.5, 0.5])
    client = waiting_client(server, clock, 1, jitter=lambda: next(jitter))
    server.online = False
    # The waits end at 1 (the first, which took 0), 2, 4, 8 and 16 s; each is a share of that.
    assert client.flush(timeout=6) is False
    assert clock.slept == [1.0, 1.0, 0.0]
    server.online = True
    assert client.flush(timeout=60)
    assert clock.slept == [1.0, 1.0, 0.0, 8.0]
    decision = client.choose(CONTEXT)
    server.online = False
    client.report(decision, reward=1)
    assert client.send() == 0
    clock.slept.clear()
    server.online = True
    assert client.flush(timeout=1)
    assert clock.slept == [0.5]


def test_the_wait_is_bounded_however_long_the_trouble(server: FakeServer, clock: FakeClock) -> None:
    client = waiting_client(server, clock, 1, jitter=lambda: 0.999)
    server.online = False
    for _ in range(2000):
        clock.now += 4000
        assert client.send() == 0
    assert len(posts(server)) == 2000
    server.online = True
    clock.now += 3600
    assert client.send() == 1


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7),
        (" 120 ", 120),
        ("0", 0),
        ("999999999", 3600),  # a server cannot silence a device for years
        ("9" * 5000, 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 0),
        ("-5", 0),
        ("1.5", 0),
        ("٣", 0),
        ("", 0),
    ],
)
def test_retry_after_is_heeded_in_whole_seconds(
    server: FakeServer, clock: FakeClock, header: str, wait: float
) -> None:
    client = waiting_client(server, clock, 1)
    server.instead = lambda _: answer(503, {"error": "later"}, **{"retry-after": header})
    client.send()
    server.instead = None
    most = 2.0  # the jitter's share after two failures
    if wait:
        clock.now += wait - 0.001
        assert client.send() == 0
        assert len(server.seen) == 1
    clock.now += most + 0.001
    assert client.send() == 1


def test_flush_gives_up_early_if_the_next_try_would_come_too_late(
    server: FakeServer, clock: FakeClock
) -> None:
    client = waiting_client(server, clock, 1)
    server.instead = lambda _: answer(429, {"error": "slower"}, **{"retry-after": "100"})
    begun = clock.now
    assert client.flush(timeout=50) is False
    assert clock.now == begun
    assert client.waiting == 1


def test_two_clients_with_one_outbox_lose_and_double_nothing(
    server: FakeServer, clock: FakeClock, tmp_path: Path
) -> None:
    one = waiting_client(server, clock, 6, outbox=tmp_path / "outbox")
    two = client_of(server, clock, outbox=tmp_path / "outbox")
    taken: list[int] = []

    def meanwhile(request: Request) -> Response | None:
        if request.method == "POST":
            server.instead = None
            taken.append(two.send())
        return None

    server.instead = meanwhile
    assert one.send() == 0  # by the time of the answer the other one had it all
    assert taken == [6]
    assert len(server.bodies) == 6
    assert server.learner.status().reports == {"target": 6}


def test_reports_of_another_experiment_in_the_same_outbox_are_left_alone(
    server: FakeServer, clock: FakeClock, tmp_path: Path
) -> None:
    Outbox(tmp_path / "outbox").put(b"another's", experiment="0" * 16)
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    client.report(client.choose(CONTEXT), reward=1)
    assert client.flush()
    assert Outbox(tmp_path / "outbox").count(experiment="0" * 16) == 1
    assert client.refused == {}


def test_threads_can_share_a_client(server: FakeServer, clock: FakeClock) -> None:
    client = waiting_client(server, clock, 50)
    gate, count = threading.Lock(), 4

    def guarded(request: Request) -> Response:
        with gate:
            return server.answer(request)

    server.instead = guarded
    threads = [threading.Thread(target=client.send) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert client.waiting == 0
    assert server.learner.status().reports == {"target": 50}


def test_a_device_is_not_to_be_told_by_its_headers(server: FakeServer, clock: FakeClock) -> None:
    client = waiting_client(server, clock, 1)
    client.send()
    assert json.loads(json.dumps(dict(server.seen[0].headers))) == {
        "Accept": "application/json",
        "Content-Type": "application/octet-stream",
        "User-Agent": "sottovoce",
    }
