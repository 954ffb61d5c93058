"""Bodies of requests → compact reports. Nothing that is refused here is kept or shown."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from sottovoce.server import metrics
from sottovoce.server.responses import RequestFailed
from sottovoce.server.settings import ServerSettings
from sottovoce.shared import wire
from sottovoce.shared.errors import Rejection, WireError

COMPACT = "application/octet-stream"
JSON = "application/json"

MALFORMED = (Rejection.MALFORMED, Rejection.TRUNCATED, Rejection.NEWER_WIRE)
UNKNOWN = (Rejection.UNKNOWN_POPULATION, Rejection.UNKNOWN_RELEASE)


def answer_to(reason: Rejection) -> int:
    """Return the status of an answer to a report that was refused."""
    if reason is Rejection.ARCHIVED:
        return 410
    if reason is Rejection.LOST_RELEASE:
        return 409
    return 400 if reason in MALFORMED else 404 if reason in UNKNOWN else 422


async def read_body(request: Request, settings: ServerSettings) -> bytes:
    """Read a whole body: not too large, and not too slowly."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > settings.most_bytes:
        raise _too_large(settings)
    body = bytearray()
    # How fast a body comes is the client's affair; how fast it is answered is the server's.
    deadline: asyncio.Timeout = request.state.deadline
    deadline.reschedule(None)
    try:
        async with asyncio.timeout(settings.patience):
            async for piece in request.stream():
                body += piece
                if len(body) > settings.most_bytes:
                    raise _too_large(settings)
    except TimeoutError:
        rule = f"a request must arrive within {settings.patience:g} seconds"
        raise RequestFailed(408, rule) from None
    deadline.reschedule(asyncio.get_running_loop().time() + settings.answer_within)
    return bytes(body)


def _too_large(settings: ServerSettings) -> RequestFailed:
    return RequestFailed(413, f"a body must have at most {settings.most_bytes} bytes")


def reports_in(
    request: Request, body: bytes, settings: ServerSettings, *, batch: bool
) -> Sequence[bytes]:
    """Return the compact reports of a body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == COMPACT:
            reports = wire.batch_from_bytes(body) if batch else [body]
        elif kind == JSON:
            entries = _entries(body, settings) if batch else [wire.parsed(body, kind="report")]
            reports = [wire.report_to_bytes(wire.report_from_table(each)) for each in entries]
        else:
            raise RequestFailed(415, f"reports must be {COMPACT} or {JSON}")
    except WireError as error:
        metrics.REFUSED.labels(error.reason.value).inc()
        status, reason = answer_to(error.reason), error.reason.value
        raise RequestFailed(status, error.requirement, reason=reason) from None
    _check_count(reports, settings)
    return reports


def _check_count(reports: Sequence[object], settings: ServerSettings) -> None:
    if len(reports) > settings.most_reports:
        raise RequestFailed(413, f"a batch must have at most {settings.most_reports} reports")


def _entries(body: bytes, settings: ServerSettings) -> list[Any]:
    """Read a JSON list; each report in it is still to be read."""
    entries = wire.parsed(body, kind="batch")
    if not isinstance(entries, list):
        raise WireError(Rejection.MALFORMED, "a batch in JSON must be a list of reports")
    _check_count(entries, settings)  # before the work of reading them
    return entries
