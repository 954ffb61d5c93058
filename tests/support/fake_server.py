"""A server in memory: a real learner behind the HTTP of the service."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sottovoce as sv
from sottovoce.device.transport import Request, Response
from sottovoce.server.catalogue import Chain
from sottovoce.shared import wire
from sottovoce.shared.signed import SignedRelease, block_to_json, key_id, message

ADDRESS = "https://sottovoce.test/api"


class Key:
    """A key that signs releases."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def sign(self, text: str, before: bytes = bytes(32)) -> bytes:
        signature = self._private.sign(message(before, text))
        return SignedRelease(before, key_id(self.public), signature, text).to_json()

    def sign_bytes(self, data: bytes) -> bytes:
        return self._private.sign(data)


class FakeServer:
    """Answers as the service does.

    instead: if it is set, it answers first; where it returns None, the server does.
    seen: every request that came. bodies: every report that was stored, once each.
    """

    def __init__(self, experiment: sv.Experiment) -> None:
        self.learner = sv.Learner(experiment)
        self.key = Key()
        self.experiment = experiment.fingerprint
        self.instead: Callable[[Request], Response | None] | None = None
        self.online = True
        self.seen: list[Request] = []
        self.bodies: dict[bytes, bytes] = {}
        self.releases = [self.learner.release()]
        self.chain = Chain(self.experiment)
        self.chain.add(wire.release_to_json(self.learner.release()))

    def __call__(self, request: Request) -> Response:
        self.seen.append(request)
        if not self.online:
            raise sv.TransportError("the server must be reachable; TimeoutError")
        if self.instead is not None and (answer := self.instead(request)) is not None:
            return answer
        return self.answer(request)

    async def later(self, request: Request) -> Response:
        return self(request)

    def document(self, release: sv.Release | None = None) -> bytes:
        """A release as the server signs it; one of its own continues its chain."""
        release = release or self.releases[-1]
        while len(self.releases) < release.version - 1:
            self.publish(replace(self.releases[-1], version=len(self.releases) + 1))
        if len(self.releases) < release.version:
            self.publish(release)
        return self.key.sign(wire.release_to_json(release), self.chain.before(release.version))

    def publish(self, release: sv.Release) -> None:
        """Add a release to the chain, without a learner."""
        self.releases.append(release)
        self.chain.add(wire.release_to_json(release))

    def answer(self, request: Request) -> Response:
        path = "/" + request.url.split("/", 3)[3]
        if request.method == "GET" and path.endswith("/releases/current"):
            return self._release(request, path)
        if request.method == "GET" and "/chain/" in path:
            hashes = self.chain.block(int(path.rsplit("/", 1)[1]))
            return Response(200, {}, block_to_json(hashes))
        if request.method == "POST" and path.endswith("/reports"):
            return self._one(request.body or b"")
        if request.method == "POST" and path.endswith("/reports/batch"):
            return self._batch(request.body or b"")
        return answer(404, {"error": "there is no such page"})

    def _release(self, request: Request, path: str) -> Response:
        if f"/experiments/{self.experiment}/" not in path:
            return answer(404, {"error": "…", "reason": "no such experiment"})
        body = self.document()
        headers = {name.lower(): value for name, value in request.headers.items()}
        if headers.get("accept-encoding") == "gzip":
            return Response(200, {"content-encoding": "gzip"}, gzip.compress(body))
        return Response(200, {}, body)

    def _one(self, body: bytes) -> Response:
        try:
            stored = self._take(body)
        except sv.Refused as error:
            return answer(422, {"error": "refused", "reason": error.reason.value})
        return answer(200, {"stored": stored, "repeated": 1 - stored, "refused": []})

    def _batch(self, body: bytes) -> Response:
        stored, refused, reports = 0, [], wire.batch_from_bytes(body)
        for index, each in enumerate(reports):
            try:
                stored += self._take(each)
            except sv.Refused as error:
                refused.append({"index": index, "reason": error.reason.value})
        repeated = len(reports) - stored - len(refused)
        return answer(200, {"stored": stored, "repeated": repeated, "refused": refused})

    def _take(self, body: bytes) -> int:
        report = wire.report_from_bytes(body)
        if report.nonce in self.bodies:
            assert self.bodies[report.nonce] == body  # a report is never made twice
            return 0
        self.learner.receive(report)
        self.bodies[report.nonce] = body
        if self.learner.release().version > len(self.releases):
            self.publish(self.learner.release())
        return 1


class History(FakeServer):
    """Shows any of its releases by its version, too."""

    def answer(self, request: Request) -> Response:
        last = request.url.rsplit("/", 1)[1]
        if "/releases/" in request.url and last.isdigit():
            if int(last) > len(self.releases):
                return Response(404, {}, b"{}")
            return Response(200, {}, self.document(self.releases[int(last) - 1]))
        return super().answer(request)


def answer(status: int, table: Any, **headers: str) -> Response:
    return Response(status, headers, json.dumps(table).encode())


@contextmanager
def on_loopback(handle: Callable[[Request], Response]) -> Iterator[str]:
    """Serve over real HTTP on this machine; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            response = handle(Request(self.command, address + self.path, dict(self.headers), body))
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            if "content-length" not in response.headers:
                self.send_header("content-length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class FakeClock:
    """A clock that moves only when somebody sleeps or says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def sleep_later(self, seconds: float) -> None:
        self.sleep(seconds)


class Plenty:
    """A ledger without end, for tests that are not about the ledger."""

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        pass


def async_client_of(server: FakeServer, clock: FakeClock, **settings: Any) -> sv.AsyncClient:
    """The same for asyncio."""
    return sv.AsyncClient(
        ADDRESS,
        experiment=server.experiment,
        keys=[server.key.public.hex()],
        most_epsilon=1.0,
        ledger=Plenty(),
        transport=server.later,
        clock=clock,
        sleep=clock.sleep_later,
        jitter=lambda: 0.5,
        **settings,
    )


def client_of(server: FakeServer, clock: FakeClock | None = None, **settings: Any) -> sv.Client:
    """A client that trusts this server's key and can report without end."""
    clock = clock or FakeClock()
    defaults: dict[str, Any] = {
        "experiment": server.experiment,
        "keys": [server.key.public.hex()],
        "most_epsilon": 1e6,
        "ledger": Plenty(),
        "transport": server,
        "clock": clock,
        "now": clock,
        "sleep": clock.sleep,
        "jitter": lambda: 0.5,
    }
    return sv.Client(ADDRESS, **{**defaults, **settings})
