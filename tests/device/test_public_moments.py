"""Whether, when and how large: what a client sends does not depend on what is private.

Two lives are the same app at the same moments, with other people in them. All that the network
sees of them is compared: the moment, the address, the headers and the size of every request, and
every byte of a report but for its nonce and its randomised payload.
"""

import asyncio
import dataclasses
import getpass
import os
import platform
import random
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, four_bins, settled_release
from sottovoce.device.moments import TURN
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from support.fake_server import FakeClock, async_client_of, client_of, on_loopback
from support.shelf import Shelf

CONTESTED, SETTLED = {"age": 20, "bmi": 20}, {"age": 80, "bmi": 20}
DAYS = 40


@dataclass(frozen=True)
class Life:
    """What is private: who comes on each day, what comes of it, and when that is known.

    delays: seconds from the choice to the outcome. host: the name of the machine.
    """

    contexts: list[dict[str, Any]]
    rewards: list[Any]
    delays: list[float]
    host: str


LIVES = {
    "contested": Life([CONTESTED], [1.0, 0.0], [1.0], "tablet"),
    "settled": Life([SETTLED], [1.0], [1.0], "tablet"),
    "without an outcome": Life([CONTESTED], [None], [1.0], "tablet"),
    "slow to answer": Life([CONTESTED], [0.0], [1.0, 5000.0, 80_000.0], "tablet"),
    "refused at first": Life([{"age": 20}, SETTLED], [7.0, "good", 0.5], [1.0], "tablet"),
    "on another machine": Life([SETTLED, CONTESTED], [0.25, None], [60.0], "anna-lindqvist"),
}


class Network:
    """Writes down all that it sees of a client."""

    def __init__(self, server: Shelf, clock: FakeClock) -> None:
        self._server = server
        self._clock = clock
        self.seen: list[tuple[Any, ...]] = []

    def __call__(self, request: Request) -> Response:
        body = request.body or b""
        reports = []
        if request.method == "POST":
            is_one = not request.url.endswith("batch")
            reports = [body] if is_one else list(wire.batch_from_bytes(body))
        public = [(len(each), public_part(wire.report_from_bytes(each))) for each in reports]
        headers = dict(request.headers)
        self.seen.append((self._clock.now, request.method, request.url, headers, len(body), public))
        return self._server(request)


def public_part(report: sv.Report) -> sv.Report:
    return dataclasses.replace(report, nonce=bytes(16), payload=b"")


def live(life: Life, release: sv.Release, folder: Path, rng: random.Random) -> Network:
    """Let the app run for some weeks: it starts anew on some days, and some are offline.

    rng: all randomness of the operating system. Each report begins at the same place of it.
    """
    clock, jitter = FakeClock(), random.Random(3).random
    server = Shelf(release)
    server.key = KEY
    network = Network(server, clock)

    def start() -> sv.Client:
        return client_of(
            server,
            clock,
            outbox=folder / "outbox",
            transport=network,
            jitter=jitter,
            refresh_every=3 * 86_400,
            public_arms=True,
        )

    client = start()
    for day in range(DAYS):
        begin = 1000.0 + 86_400.0 * day
        clock.now = begin
        server.online = day % 7 not in (3, 4)
        if day % 10 == 9:
            client = start()
        if day % 15 == 14:
            server.current = dataclasses.replace(server.current, version=8 + day)
        rng.seed(2 * day)
        with suppress(sv.ContextError):
            client.choose(life.contexts[day % len(life.contexts)])
        decision = client.choose(life.contexts[-1])
        clock.now += life.delays[day % len(life.delays)]
        rng.seed(2 * day + 1)
        try:
            client.report(decision, reward=life.rewards[day % len(life.rewards)])
        except sv.RewardError:
            client.report(decision, reward=None)
    clock.now = begin + 86_400.0
    server.online = True
    assert client.flush(timeout=10_000)
    # Each day somebody is decided for twice, and reported on once; the other decision expires.
    assert len(server.bodies) == 2 * DAYS
    return network


KEY = Shelf(four_bins()).key


def name_the_machine(patch: pytest.MonkeyPatch, host: str) -> None:
    patch.setattr(socket, "gethostname", lambda: host)
    patch.setattr(socket, "getfqdn", lambda *_: host)
    patch.setattr(platform, "node", lambda: host)
    patch.setattr(platform, "platform", lambda *_, **__: host)
    patch.setattr(getpass, "getuser", lambda: host)
    for name in ("HOSTNAME", "USER", "LOGNAME", "LANG"):
        patch.setitem(os.environ, name, host)


RELEASES = {
    "private arms": four_bins(),
    "public arms": four_bins(public_arms=True),
    "nothing contested": settled_release(),
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES.keys())
def test_the_network_sees_the_same_of_every_life(
    release: sv.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(0)

    def draw(limit: int) -> int:
        # The moment at which a call ends has a coin of its own: a refused call draws one, too.
        return 0 if limit == TURN else rng.randrange(limit)

    monkeypatch.setattr(secrets, "randbelow", draw)
    monkeypatch.setattr(secrets, "randbits", rng.getrandbits)
    seen: dict[str, list[tuple[Any, ...]]] = {}
    for name, life in LIVES.items():
        (folder := tmp_path / name).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            name_the_machine(patch, life.host)
            seen[name] = live(life, release, folder, rng).seen
    first = seen["contested"]
    for name, other in seen.items():
        for one, two in zip(first, other, strict=False):
            assert one == two, name
        assert len(first) == len(other), name
    methods = [each[1] for each in first]
    assert min(methods.count("GET"), methods.count("POST")) > 5  # the check itself has work to do


def test_every_header_is_one_that_all_devices_send(tmp_path: Path) -> None:
    """Over real HTTP, with all that the library adds."""
    server = Shelf(four_bins())
    came: list[tuple[str, dict[str, str]]] = []

    def note(request: Request) -> Response:
        names = {name.lower(): value for name, value in request.headers.items()}
        came.append((request.method, names))
        return server.answer(request)

    with on_loopback(note) as address:
        client = sv.Client(
            address,
            experiment=server.experiment,
            keys=[server.key.public.hex()],
            most_epsilon=1.0,
            outbox=tmp_path / "outbox",
        )
        client.report(client.choose(CONTEXT), reward=1)
        assert client.flush()
    always = {
        "accept": "application/json",
        "connection": "close",
        "host": address.removeprefix("http://"),
        "user-agent": "sottovoce",
    }
    size = str(len(next(iter(server.bodies.values()))))
    body = {"content-type": "application/octet-stream", "content-length": size}
    assert came == [
        ("GET", {**always, "accept-encoding": "gzip"}),
        ("POST", {**always, **body, "accept-encoding": "identity"}),
    ]


def moments(server: Shelf) -> list[str]:
    return [each.method for each in server.seen]


def test_report_never_uses_the_network(tmp_path: Path) -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox")
    decision = client.choose(CONTEXT)
    for _ in range(3):
        clock.now += 80_000  # a look is long due
        client.report(decision, reward=None)
        assert moments(server) == ["GET"]
        server.seen.clear()
        decision = client.choose(CONTEXT)
        assert moments(server) == ["GET", "POST"]
        server.seen[1:] = []


def test_the_same_for_asyncio(tmp_path: Path) -> None:
    server, clock = Shelf(four_bins()), FakeClock()

    async def use() -> None:
        client = async_client_of(server, clock, outbox=tmp_path / "outbox")
        await client.report(await client.choose(CONTEXT), reward=None)
        assert moments(server) == ["GET"]
        clock.now += 100_000
        await client.choose(CONTEXT)
        assert moments(server) == ["GET", "GET", "POST"]

    asyncio.run(use())


class Watched(Mapping[str, Any]):
    """A context that notes how many requests there were when somebody looked at it."""

    def __init__(self, server: Shelf) -> None:
        self._server = server
        self.looks: list[int] = []

    def __getitem__(self, key: str) -> Any:
        self.looks.append(len(self._server.seen))
        return CONTEXT[key]

    def __iter__(self) -> Any:
        self.looks.append(len(self._server.seen))
        return iter(CONTEXT)

    def __len__(self) -> int:
        self.looks.append(len(self._server.seen))
        return len(CONTEXT)


def test_all_requests_come_before_anybody_looks_at_the_context() -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    client = client_of(server, clock)
    client.report(client.choose(CONTEXT), reward=1)
    clock.now += 100_000
    context = Watched(server)
    client.choose(context)
    assert moments(server) == ["GET", "GET", "POST"]
    assert set(context.looks) == {3}


def test_a_context_that_is_refused_does_not_keep_a_request_back() -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    client = client_of(server, clock)
    with pytest.raises(sv.ContextError):
        client.choose({})
    assert moments(server) == ["GET"]


@pytest.mark.parametrize(("coin", "share"), [(0.0, 0.5), (0.25, 0.75), (0.999, 1.499)])
def test_looks_come_after_a_random_share_of_the_period(coin: float, share: float) -> None:
    server, clock = Shelf(four_bins()), FakeClock()
    client = client_of(server, clock, refresh_every=1000, jitter=lambda: coin)
    for look in range(1, 4):
        client.choose(CONTEXT)
        assert len(server.seen) == look
        clock.now += 1000 * share - 0.01
        client.choose(CONTEXT)
        assert len(server.seen) == look
        clock.now += 0.02
