"""A real server with any settings, and requests to it byte by byte."""

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import sottovoce as sv
from sottovoce.lab.local_server import LocalServer
from sottovoce.server.keys import SigningKey
from sottovoce.server.serve import Listening, serve
from sottovoce.server.settings import ServerSettings
from sottovoce.server.store.store import Store
from sottovoce.shared import wire

TOKEN = "the-token-of-the-administrator"  # noqa: S105
COMPACT = "application/octet-stream"
JSON = "application/json"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
# Seconds that anything here may take before it counts as never.
NEVER = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        assert self.headers["content-type"] == JSON
        return json.loads(self.body)


def ask(
    server: LocalServer,
    method: str,
    path: str,
    *,
    body: Any = None,
    kind: str | None = None,
    headers: Mapping[str, str] | None = None,
    chunked: bool = False,
) -> Answer:
    """Send one request on a connection of its own. kind: the Content-Type."""
    parts = urlsplit(server.url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        given = dict(headers or {}) | ({"Content-Type": kind} if kind else {})
        connection.request(method, path, body=body, headers=given, encode_chunked=chunked)
        came = connection.getresponse()
        named = {name.lower(): value for name, value in came.getheaders()}
        return Answer(came.status, named, came.read())


def get(server: LocalServer, path: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(server, "GET", path, headers=named)


def post(server: LocalServer, body: bytes, *, kind: str = COMPACT, batch: bool = False) -> Answer:
    return ask(server, "POST", "/reports/batch" if batch else "/reports", body=body, kind=kind)


def receipt(*, stored: int = 0, repeated: int = 0, refused: Sequence[Any] = ()) -> Any:
    return {"stored": stored, "repeated": repeated, "refused": list(refused)}


def opened(server: LocalServer) -> socket.socket:
    """A connection on which anything can be sent."""
    parts = urlsplit(server.url)
    return socket.create_connection((str(parts.hostname), parts.port or 80), timeout=NEVER)


def head(path: str = "/reports", *, length: int | None = None, kind: str = COMPACT) -> bytes:
    """The beginning of a POST; without a length it is chunked."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{size}\r\n\r\n".encode()


def status_on(connection: socket.socket) -> int:
    """Read one answer's head from a connection, and leave its body unread."""
    came = b""
    while b"\r\n" not in came:
        some = connection.recv(4096)
        if not some:
            return 0
        came += some
    return int(came.split(b" ", 2)[1])


def release_of(server: LocalServer, experiment: sv.Experiment) -> sv.Release:
    answer = get(server, f"/experiments/{experiment.fingerprint}/releases/current")
    return wire.release_from_json(answer.json()["release"])


def report_for(release: sv.Release) -> bytes:
    """A new report, as a device makes it, of somebody."""
    device = sv.Device(release)
    device.choose({"age": 42, "bmi": 27.5})
    return wire.report_to_bytes(device.report(reward=1.0))


def as_json(report: bytes) -> bytes:
    return wire.report_to_json(wire.report_from_bytes(report)).encode()


@contextmanager
def serving(
    folder: Path,
    experiments: Sequence[sv.Experiment] = (),
    *,
    database: str = "",
    workers: int = 1,
    wait: bool = True,
    **limits: Any,
) -> Iterator[LocalServer]:
    """Start a server with these settings, and stop it in the end.

    wait: until it is ready; otherwise until it answers at all.
    """
    key = SigningKey.read_or_create(folder / "key.pem")
    settings = ServerSettings(
        database=database or f"sqlite:///{folder}/store.db",
        key=folder / "key.pem",
        token=TOKEN,
        experiments=tuple(experiments),
        **limits,
    )
    listening = Listening.on("127.0.0.1", 0)
    stopped = threading.Event()
    watcher = threading.Thread(
        target=serve, args=(settings, listening), kwargs={"workers": workers, "stopped": stopped}
    )
    watcher.start()
    store = Store.open(settings.database)
    local = LocalServer(listening.url, key.public.hex(), store, settings)
    try:
        until(lambda: get(local, "/ready" if wait else "/health").status == 200)
        for each in experiments if wait else ():
            status = f"/experiments/{each.fingerprint}/status"
            until(lambda path=status: get(local, path).status == 200)
        yield local
    finally:
        stopped.set()
        watcher.join()
        store.close()
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)  # its folder is gone


def until(true: Any, *, patience: float = NEVER) -> None:
    """Wait until something is so; no answer at all counts as no."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            if true():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def metric(server: LocalServer, name: str, **labels: str) -> float:
    """The sum of a metric over all that has these labels; the text must be Prometheus's."""
    from prometheus_client.parser import text_string_to_metric_families

    answer = get(server, "/metrics")
    assert answer.status == 200
    families = text_string_to_metric_families(answer.body.decode())
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )
