"""How the server answers: JSON, errors, what caches may keep, and metrics of it all."""

import gzip
import hashlib
import re
import time
from functools import lru_cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sottovoce.server.metrics import REQUEST_SECONDS, REQUESTS

RETRY_AFTER = 1  # seconds

_encoder = msgspec.json.Encoder()
_requests = lru_cache(maxsize=1024)(REQUESTS.labels)
_seconds = lru_cache(maxsize=1024)(REQUEST_SECONDS.labels)


class RequestFailed(Exception):
    """A request that ends here. error: what is wrong; never what came."""

    def __init__(self, status: int, error: str, *, reason: str | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.reason = reason


def as_json(value: Any, *, status: int = 200) -> Response:
    """Answer with JSON that nobody should keep."""
    headers = {"cache-control": "no-store"}
    return Response(_encoder.encode(value), status, headers, "application/json")


def problem(status: int, error: str, *, reason: str | None = None) -> Response:
    """Answer with what is wrong; never with what came."""
    response = as_json({"error": error} | ({"reason": reason} if reason else {}), status=status)
    if status in (429, 503, 507):
        response.headers["retry-after"] = str(RETRY_AFTER)
    if status == 408:
        response.headers["connection"] = "close"  # the rest of the body is not read
    if status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def cached(request: Request, body: bytes, *, control: str) -> Response:
    """Answer with something that caches may keep: ETag, 304, gzip.

    control: the Cache-Control header.
    """
    zipped, tag = _zipped(body)
    takes_gzip = _takes_gzip(_whole_header(request, "accept-encoding"))
    headers = {"cache-control": control, "vary": "accept-encoding"}
    # The same content in other bytes: a weak tag says so, and fits the same If-None-Match.
    headers["etag"] = f"W/{tag}" if takes_gzip else tag
    known = [each.strip() for each in _whole_header(request, "if-none-match").split(",")]
    if known == ["*"] or tag in (each.removeprefix("W/") for each in known):
        return Response(None, 304, headers)
    if takes_gzip:
        return Response(zipped, 200, headers | {"content-encoding": "gzip"}, "application/json")
    return Response(body, 200, headers, "application/json")


def _whole_header(request: Request, name: str) -> str:
    """Return a header that may come in several lines, as one."""
    return ",".join(request.headers.getlist(name))


def _takes_gzip(accepted: str) -> bool:
    """Say whether Accept-Encoding names gzip, and not with a weight of 0."""
    for each in accepted.lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() == "gzip":
            return re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) is None
    return False


@lru_cache(maxsize=64)
def _zipped(body: bytes) -> tuple[bytes, str]:
    """Return the body in gzip form, and its tag: the same on every worker and machine."""
    return gzip.compress(body, mtime=0), f'"{hashlib.sha256(body).hexdigest()[:32]}"'


class RequestMetrics:
    """Counts and times the answers of an application, by endpoint and status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Its name, not its address: an address may hold anything.
                name = getattr(scope.get("endpoint"), "__name__", "none")
                _requests(name, message["status"]).inc()
                _seconds(name).observe(time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, counting)
