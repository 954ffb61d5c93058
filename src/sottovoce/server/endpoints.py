"""What each address does."""

import asyncio
import hmac
import json
import logging
import tomllib
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from sottovoce.server import metrics
from sottovoce.server import page as pages
from sottovoce.server.answers import as_json, cached, problem
from sottovoce.server.body import BadBody, read_body, reports_in, status_of
from sottovoce.server.catalogue import Current
from sottovoce.server.desk import Desk
from sottovoce.server.ingest import Receipt, TooMany
from sottovoce.server.openapi import document
from sottovoce.shared.errors import ExperimentError, StoreError, StoreFull
from sottovoce.shared.experiment import Experiment

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

# A release never changes: caches may keep it for a year.
FOR_EVER = "public, max-age=31536000, immutable"
A_MOMENT = "public, max-age=1"
# Bytes of a body that takes too long to read for the others to wait: 8 MiB of JSON take a second.
LARGE = 256 * 1024
# What a page of another origin may read, and of its headers.
ANY_PAGE = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"etag, retry-after"),
)


class Stop(Exception):
    """The endpoint ends here, with this answer."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer


def endpoint(function: Callable[[Request, Desk], Awaitable[Response]]) -> Endpoint:
    """Give an endpoint its desk, and turn each foreseen trouble into its status."""

    @wraps(function)
    async def served(request: Request) -> Response:
        try:
            return await function(request, request.app.state.desk)
        except Stop as stop:
            return stop.answer
        except BadBody as bad:
            return problem(bad.status, str(bad), reason=bad.reason)
        except TooMany:
            metrics.TURNED_AWAY.inc()
            return problem(429, "too many reports are waiting; send them again later")
        except StoreFull:
            return problem(507, "the disk of the database is full; send it again later")
        except StoreError:
            return problem(503, "the database cannot be used just now; send it again later")
        except ClientDisconnect:
            return problem(400, "the request must arrive in full")
        except Exception as error:
            # Its kind and its place only: its text may hold what came.
            place = traceback.extract_tb(error.__traceback__)[-1]
            logger.error("%s in %s:%s", type(error).__name__, place.filename, place.lineno)
            return problem(500, "something went wrong here")

    return served


def for_any_page(function: Endpoint) -> Endpoint:
    """Let a device in a browser read the answers, whatever page it is on: they are for everyone."""

    @wraps(function)
    async def served(request: Request) -> Response:
        answer = await function(request)
        answer.raw_headers.extend(ANY_PAGE)
        return answer

    return served


async def preflight(_: Request) -> Response:
    """Tell a browser that any page may ask for releases and send reports."""
    headers = {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "content-type, if-none-match",
        "access-control-max-age": "86400",
    }
    return Response(None, 204, headers)


# Reports.


@for_any_page
@endpoint
async def take_report(request: Request, desk: Desk) -> Response:
    """Store one report."""
    receipt = await desk.ingest.put(await _reports(request, desk, batch=False))
    if receipt.refused:
        ((_, reason),) = receipt.refused
        message = f"the report was refused: {reason.value}"
        return problem(status_of(reason), message, reason=reason.value)
    return as_json(_table(receipt))


@for_any_page
@endpoint
async def take_batch(request: Request, desk: Desk) -> Response:
    """Store several reports; those that are refused do not keep the others out."""
    receipt = await desk.ingest.put(await _reports(request, desk, batch=True))
    return as_json(_table(receipt))


async def _reports(request: Request, desk: Desk, *, batch: bool) -> Sequence[bytes]:
    body = await read_body(request, desk.settings)
    if len(body) < LARGE:
        return reports_in(request, body, desk.settings, batch=batch)
    return await asyncio.to_thread(reports_in, request, body, desk.settings, batch=batch)


def _table(receipt: Receipt) -> dict[str, Any]:
    refused = [{"index": place, "reason": reason.value} for place, reason in receipt.refused]
    return {"stored": receipt.stored, "repeated": receipt.repeated, "refused": refused}


# Releases.


@for_any_page
@endpoint
async def current_release(request: Request, desk: Desk) -> Response:
    """Send the newest release, signed."""
    return cached(request, (await _current(request, desk)).signed, control=A_MOMENT)


@for_any_page
@endpoint
async def past_release(request: Request, desk: Desk) -> Response:
    """Send any release, signed."""
    current = await _current(request, desk)
    text = request.path_params["version"]
    version = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    if version == current.release.version:
        return cached(request, current.signed, control=FOR_EVER)
    fingerprint = current.experiment.fingerprint
    found = await asyncio.to_thread(desk.store.release, fingerprint, version)
    if found is None:
        raise Stop(problem(404, "there is no such release of this experiment"))
    return cached(request, desk.key.sign(found.text).to_json(), control=FOR_EVER)


@endpoint
async def list_releases(request: Request, desk: Desk) -> Response:
    """Say which releases there are: each from 1 to the current one."""
    return as_json({"current": (await _current(request, desk)).release.version})


# How far it is.


@endpoint
async def status(request: Request, desk: Desk) -> Response:
    """Say how far the log and the learner are."""
    current = await _current(request, desk)
    stored, learned, standing = await _standing(current, desk)
    return as_json(
        {
            "experiment": current.experiment.fingerprint,
            "name": current.experiment.name,
            "stored": stored,
            "learned": learned,
            **standing.get("status", {}),
        }
    )


@endpoint
async def certificates(request: Request, desk: Desk) -> Response:
    """Say why each arm was dropped."""
    _, learned, standing = await _standing(await _current(request, desk), desk)
    return as_json({"learned": learned, "certificates": standing.get("certificates", [])})


@endpoint
async def estimates(request: Request, desk: Desk) -> Response:
    """Say what is known of each arm in each bin."""
    _, learned, standing = await _standing(await _current(request, desk), desk)
    return as_json({"learned": learned, "estimates": standing.get("estimates", [])})


@endpoint
async def diagnosis(request: Request, desk: Desk) -> Response:
    """Say what each auxiliary population brings; nothing where there is none, or not yet."""
    _, learned, standing = await _standing(await _current(request, desk), desk)
    empty = {"learned": learned, "sources": [], "audit": None, "warnings": []}
    return as_json(standing.get("diagnosis") or empty)


@endpoint
async def page(request: Request, desk: Desk) -> Response:
    """Show all of it to people."""
    current = await _current(request, desk)
    stored, learned, standing = await _standing(current, desk)
    html = await asyncio.to_thread(
        pages.render, current.release, standing, stored=stored, learned=learned
    )
    headers = {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    return HTMLResponse(html, headers=headers)


async def _standing(current: Current, desk: Desk) -> tuple[int, int, dict[str, Any]]:
    """Return how many reports are stored, how many are learned, and what was learned."""
    fingerprint = current.experiment.fingerprint
    stored = await asyncio.to_thread(desk.store.length, fingerprint)
    found = await asyncio.to_thread(desk.store.standing, fingerprint)
    if found is None:
        return stored, 0, {}
    learned, standing = found[0], json.loads(found[1])
    if standing["status"]["release"] > current.release.version:
        # Who is told of a release here can have it here.
        await desk.ingest.refresh()
    return stored, learned, standing


# Experiments.


@endpoint
async def create_experiment(request: Request, desk: Desk) -> Response:
    """Begin an experiment, given as JSON or TOML."""
    _check_token(request, desk)
    body = await read_body(request, desk.settings)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    readers = {"application/json": json.loads, "application/toml": tomllib.loads}
    if kind not in readers:
        raise Stop(problem(415, "an experiment must be application/json or application/toml"))
    try:
        table = await asyncio.to_thread(readers[kind], body.decode())
        experiment = Experiment.from_table(table)
    except ExperimentError as error:
        # The rule only: what came may be anything, even the data of people.
        raise Stop(problem(422, str(error).partition("; got ")[0])) from None
    except (ValueError, RecursionError):
        raise Stop(problem(400, f"an experiment must be valid {kind}, in UTF-8")) from None
    is_new = await asyncio.to_thread(desk.add, experiment)
    await desk.ingest.refresh()
    return as_json(_summary(experiment), status=201 if is_new else 200)


@endpoint
async def list_experiments(request: Request, desk: Desk) -> Response:
    """List all experiments."""
    _check_token(request, desk)
    await desk.ingest.refresh()
    found = desk.catalogue.current.values()
    return as_json({"experiments": [_summary(each.experiment) for each in found]})


def _summary(experiment: Experiment) -> dict[str, Any]:
    return {
        "experiment": experiment.fingerprint,
        "name": experiment.name,
        "arms": list(experiment.arms),
        "populations": [
            {"name": each.name, "epsilon": each.epsilon, "users": each.users}
            for each in experiment.populations
        ],
    }


def _check_token(request: Request, desk: Desk) -> None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Stop(problem(401, "an administrator's token is needed: Authorization: Bearer …"))
    if not hmac.compare_digest(token.strip().encode(), desk.settings.token.encode()):
        raise Stop(problem(403, "this is not the administrator's token"))


async def _current(request: Request, desk: Desk) -> Current:
    fingerprint = request.path_params["experiment"]
    current = desk.catalogue.current.get(fingerprint)
    # It may be new, made through another worker; or the database may be away. Whoever asks for what
    # is not there must not take the time of the thread that writes.
    if current is None and fingerprint in await asyncio.to_thread(desk.store.newest_versions):
        await desk.ingest.refresh()
        current = desk.catalogue.current.get(fingerprint)
    if current is None:
        raise Stop(problem(404, "there is no such experiment here"))
    return current


# The service itself.


@endpoint
async def keys(request: Request, desk: Desk) -> Response:
    """Tell the public key that signs. A device should not learn whom to trust from here."""
    return as_json({"keys": [{"key": desk.key.id, "public": desk.key.public.hex()}]})


@endpoint
async def health(request: Request, desk: Desk) -> Response:
    """Say that this worker runs."""
    return as_json({"status": "running"})


@endpoint
async def ready(request: Request, desk: Desk) -> Response:
    """Say whether reports can be stored just now."""
    await asyncio.to_thread(desk.store.check)
    known = desk.catalogue.current
    if not all(each.fingerprint in known for each in desk.settings.experiments):
        return problem(503, "the server is starting")
    return as_json({"status": "ready"})


@endpoint
async def show_metrics(request: Request, desk: Desk) -> Response:
    """Show the counts in Prometheus's format; those of the database only while it is there."""
    try:
        standings = await _standings(desk)
    except StoreError:
        standings = {}
    text = await asyncio.to_thread(metrics.render, standings)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _standings(desk: Desk) -> dict[str, metrics.Standing]:
    standings = {}
    for fingerprint, current in list(desk.catalogue.current.items()):
        stored, learned, standing = await _standing(current, desk)
        figures = standing.get("status", {})
        standings[fingerprint] = metrics.Standing(
            stored=stored,
            learned=learned,
            release=current.release.version,
            bins=len(current.release.bins),
            settled_bins=sum(policy.settled for policy in current.release.bins),
            late_reports=figures.get("late_reports", 0),
            dropped_cells=figures.get("dropped_cells", 0),
            sources=(standing.get("diagnosis") or {}).get("sources", ()),
        )
    return standings


@endpoint
async def do_nothing(request: Request, desk: Desk) -> Response:
    """Read a report, forget it, and answer as if it had been stored; for measurements."""
    await _reports(request, desk, batch=False)
    return as_json(_table(Receipt(stored=1)))


@endpoint
async def openapi(request: Request, desk: Desk) -> Response:
    """Describe the service to other programs."""
    return as_json(document(desk.settings))
