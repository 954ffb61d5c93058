"""Load for a server: HTTP/1.1 over kept connections, as fast as one core can send it.

Not a client for anything else: it sends requests that were made before, and of an answer it reads
the status and skips the body.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import numpy as np


@dataclass(slots=True)
class Load:
    """What came of it.

    seconds: how long it took.
    statuses: how often each came.
    latencies: seconds, one for each answer.
    """

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers with status 200, a second."""
        return self.statuses.get(200, 0) / self.seconds

    def quantile(self, share: float) -> float:
        """Return a quantile of the latencies, in milliseconds."""
        return 1e3 * float(np.quantile(self.latencies, share)) if self.latencies else float("nan")


def post(path: str, body: bytes) -> bytes:
    """Write a request with compact reports."""
    head = f"POST {path} HTTP/1.1\r\nHost: load\r\nContent-Type: application/octet-stream\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def as_fast_as_possible(
    url: str, requests: Callable[[], bytes], *, connections: int, seconds: float
) -> Load:
    """Send the next request on each connection as soon as the last one is answered."""
    deadline = time.perf_counter() + seconds
    in_time = iter(lambda: time.perf_counter() < deadline, False)
    return await all_of(url, (requests() for _ in in_time), connections=connections)


async def all_of(url: str, requests: Iterator[bytes], *, connections: int) -> Load:
    """Send each of some requests once."""

    async def keep_on(sender: _Sender) -> None:
        for request in requests:
            await sender.ask(request, since=time.perf_counter())

    return await _send(url, keep_on, connections=connections)


async def at_rate(
    url: str, requests: Callable[[], bytes], *, rate: float, connections: int, seconds: float
) -> Load:
    """Send so many requests a second, whatever the answers do.

    A latency counts from the moment at which the request was due, so that a server which stops for
    a while cannot hide behind requests that were never sent.
    """
    begun = time.perf_counter()
    due = itertools.count()

    async def keep_on(sender: _Sender) -> None:
        while (at := begun + next(due) / rate) < begun + seconds:
            await asyncio.sleep(at - time.perf_counter())
            await sender.ask(requests(), since=at)

    return await _send(url, keep_on, connections=connections)


async def _send(
    url: str, keep_on: Callable[["_Sender"], Awaitable[None]], *, connections: int
) -> Load:
    load = Load()
    loop = asyncio.get_running_loop()
    parts = urlsplit(url)
    senders = [
        (
            await loop.create_connection(
                lambda: _Sender(load), parts.hostname or "", parts.port or 80
            )
        )[1]
        for _ in range(connections)
    ]
    begun = time.perf_counter()
    try:
        await asyncio.gather(*(keep_on(sender) for sender in senders))
    finally:
        load.seconds = time.perf_counter() - begun
        for sender in senders:
            sender.close()
    return load


class _Sender(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""
        self._since = 0.0
        self._answered: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes, *, since: float) -> "asyncio.Future[None]":
        self._since = since
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end or len(rest) < _content_length(head):
            return
        self._buffer = b""
        status = int(head[9:12])
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        self._load.latencies.append(time.perf_counter() - self._since)
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionError("the server closed the connection"))

    def close(self) -> None:
        self._transport.close()


def _content_length(head: bytes) -> int:
    _, _, after = head.lower().partition(b"content-length: ")
    return int(after.partition(b"\r\n")[0] or 0)
