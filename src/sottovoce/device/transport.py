"""How a device talks to a server: a request goes out, a response comes back.

A client never opens a connection itself: it uses the transport that it was given, so that an app
can use its own HTTP library. The transport here needs the standard library only.
"""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, TypeVar, cast

from sottovoce.shared.errors import TransportError

SLOWEST = 300.0
"""The most seconds for the body of an answer, also if it keeps coming slowly."""

_SCHEMES = ("http://", "https://")
_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """What goes out."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """What comes back. The names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Transport = Callable[[Request], Response]
"""Sends a request; raises TransportError or OSError if no response came."""

Result = TypeVar("Result")

Steps = Generator[Request, Response | None, Result]
"""Yields requests, is sent the response to each, or None, and returns what they led to."""


def run(steps: Steps[Result], answer: Callable[[Request], Response | None]) -> Result:
    """Run steps to their end; ``answer`` sends each request."""
    response: Response | None = None
    while True:
        try:
            request = steps.send(response)
        except StopIteration as stop:
            return cast(Result, stop.value)
        response = answer(request)


AsyncTransport = Callable[[Request], Awaitable[Response]]
"""The same for asyncio."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: its address would be something that somebody else chose.

    A redirect is a response like any other.
    """

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> None:
        """Leave the response as it is."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def send(request: Request, *, timeout: float = 30.0, most: int = 64 * 1024 * 1024) -> Response:
    """Send a request with the standard library; any status is a response, not an error.

    timeout: the most seconds without a byte from the server.
    most: the most bytes of an answer, as they come over the network.
    """
    if not request.url.startswith(_SCHEMES):
        raise TransportError("a server's address must begin with http:// or https://")
    try:
        asked = urllib.request.Request(  # noqa: S310  the scheme was checked above
            request.url, data=request.body, headers=dict(request.headers), method=request.method
        )
        with _open(asked, timeout=timeout) as answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Response(answer.status, headers, _read(answer, most=most))
    except TransportError:
        raise
    except (OSError, http.client.HTTPException, ValueError, OverflowError) as error:
        # Only the kind of error is shown: its text may hold what was sent. ValueError and
        # OverflowError come from impossible addresses.
        trouble = type(error).__name__
    raise TransportError(f"the server must be reachable; {trouble}")


def _open(asked: urllib.request.Request, *, timeout: float) -> Any:
    try:
        return urllib.request.build_opener(_NoRedirects).open(asked, timeout=timeout)
    except urllib.error.HTTPError as error:
        # An HTTP error is a response, too, and is read and closed like any other.
        return error


def _read(answer: Any, *, most: int) -> bytes:
    deadline = time.monotonic() + SLOWEST
    body = bytearray()
    while block := answer.read1(_BLOCK):
        body += block
        if len(body) > most:
            raise TransportError(f"an answer must have at most {most} bytes; got more")
        if time.monotonic() > deadline:
            raise TransportError(f"an answer must come within {SLOWEST:g} s; it did not")
    announced = answer.headers.get("content-length", "")
    # What is read block by block ends in silence where the connection does.
    if announced.isdigit() and len(body) < int(announced):
        raise TransportError("an answer must come whole; the connection ended before its end")
    return bytes(body)
