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
from sottovoce.server.body import read_body, reports_in, status_of
from sottovoce.server.catalogue import Current
from sottovoce.server.ingest import Receipt, TooMany
from sottovoce.server.openapi import document
from sottovoce.server.responses import RequestFailed, as_json, cached, problem
from sottovoce.server.status import ExperimentStatus, Snapshot
from sottovoce.server.worker import Worker
from sottovoce.shared.errors import ExperimentError, StoreError, StoreFull
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.signed import BLOCK, block_to_json

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

# A release never changes: caches may keep it for a year.
FOR_EVER = "public, max-age=31536000, immutable"
A_MOMENT = "public, max-age=1"
# A body of so many bytes is read in a thread, so that nobody waits: 8 MiB of JSON take a second.
LARGE = 256 * 1024


def endpoint(function: Callable[[Request, Worker], Awaitable[Response]]) -> Endpoint:
    """Give an endpoint its worker, and turn each foreseen error into its status."""

    @wraps(function)
    async def served(request: Request) -> Response:
        try:
            return await function(request, request.app.state.worker)
        except RequestFailed as failed:
            return problem(failed.status, str(failed), reason=failed.reason)
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
            # Log its kind and its place only: its text may hold what came.
            place = traceback.extract_tb(error.__traceback__)[-1]
            logger.error("%s in %s:%s", type(error).__name__, place.filename, place.lineno)
            return problem(500, "something went wrong here")

    return served


async def options(_: Request) -> Response:
    """Answer OPTIONS where no browser asks: what browsers ask is answered before (``app.py``)."""
    return Response(None, 204)


# Reports.


@endpoint
async def take_report(request: Request, worker: Worker) -> Response:
    """Store one report."""
    receipt = await worker.ingest.put(await _reports(request, worker, batch=False))
    if receipt.refused:
        reason = receipt.refused[0].reason
        error = f"the report was refused: {reason.value}"
        raise RequestFailed(status_of(reason), error, reason=reason.value)
    return as_json(receipt)


@endpoint
async def take_batch(request: Request, worker: Worker) -> Response:
    """Store several reports; those that are refused do not keep the others out."""
    return as_json(await worker.ingest.put(await _reports(request, worker, batch=True)))


async def _reports(request: Request, worker: Worker, *, batch: bool) -> Sequence[bytes]:
    body = await read_body(request, worker.settings)
    if len(body) < LARGE:
        return reports_in(request, body, worker.settings, batch=batch)
    return await asyncio.to_thread(reports_in, request, body, worker.settings, batch=batch)


# Releases.


@endpoint
async def current_release(request: Request, worker: Worker) -> Response:
    """Send the newest release, signed."""
    return cached(request, (await _current(request, worker)).signed, control=A_MOMENT)


@endpoint
async def past_release(request: Request, worker: Worker) -> Response:
    """Send any release, signed."""
    current = await _current(request, worker)
    version = _number(request.path_params["version"]) or 0
    if version == current.release.version:
        return cached(request, current.signed, control=FOR_EVER)
    fingerprint = current.release.experiment.fingerprint
    found = await asyncio.to_thread(worker.store.release, fingerprint, version)
    if found is None:
        raise RequestFailed(404, "there is no such release of this experiment")
    if version > current.release.version:  # another worker knows of it already
        await worker.ingest.refresh()
    signed = worker.key.sign(found.text, before=current.chain.before(version))
    return cached(request, signed.to_json(), control=FOR_EVER)


@endpoint
async def chain(request: Request, worker: Worker) -> Response:
    """Send the hashes of one block of releases, so that a device can check where it comes from."""
    current = await _current(request, worker)
    number = _number(request.path_params["block"])
    hashes = [] if number is None else current.chain.block(number)
    if not hashes:
        raise RequestFailed(404, "there is no such block of releases")
    # A block that will grow must never be older than the current release in the same cache.
    control = FOR_EVER if len(hashes) == BLOCK else "no-cache"
    return cached(request, block_to_json(hashes), control=control)


@endpoint
async def list_releases(request: Request, worker: Worker) -> Response:
    """Say which releases there are: each from 1 to the current one."""
    return as_json({"current": (await _current(request, worker)).release.version})


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None


# How far it is.


@endpoint
async def status(request: Request, worker: Worker) -> Response:
    """Say how far the log and the learner are."""
    return as_json((await _status(request, worker)).to_table())


@endpoint
async def certificates(request: Request, worker: Worker) -> Response:
    """Say why each arm was dropped."""
    status = await _status(request, worker)
    return as_json({"learned": status.learned, "certificates": status.snapshot.certificates})


@endpoint
async def estimates(request: Request, worker: Worker) -> Response:
    """Say what is known of each arm in each bin."""
    status = await _status(request, worker)
    return as_json({"learned": status.learned, "estimates": status.snapshot.estimates})


@endpoint
async def diagnosis(request: Request, worker: Worker) -> Response:
    """Say what each auxiliary population brings; nothing where there is none, or not yet."""
    return as_json((await _status(request, worker)).diagnosis)


@endpoint
async def page(request: Request, worker: Worker) -> Response:
    """Show all of it to people."""
    html = await asyncio.to_thread(pages.render, await _status(request, worker))
    headers = {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    return HTMLResponse(html, headers=headers)


async def _status(request: Request, worker: Worker) -> ExperimentStatus:
    return await _status_of(await _current(request, worker), worker)


async def _status_of(current: Current, worker: Worker) -> ExperimentStatus:
    fingerprint = current.release.experiment.fingerprint
    stored = await asyncio.to_thread(worker.store.length, fingerprint)
    found = await asyncio.to_thread(worker.store.snapshot, fingerprint)
    if found is None:
        return ExperimentStatus(current.release, stored)
    learned, snapshot = found[0], Snapshot.from_json(found[1])
    if snapshot.status and snapshot.status.release > current.release.version:
        # A client that learns of this release here must be able to get it here.
        await worker.ingest.refresh()
    return ExperimentStatus(current.release, stored, learned, snapshot)


# Experiments.


@endpoint
async def create_experiment(request: Request, worker: Worker) -> Response:
    """Begin an experiment, given as JSON or TOML."""
    _check_token(request, worker)
    body = await read_body(request, worker.settings)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    readers = {"application/json": json.loads, "application/toml": tomllib.loads}
    if kind not in readers:
        raise RequestFailed(415, "an experiment must be application/json or application/toml")
    try:
        table = await asyncio.to_thread(readers[kind], body.decode())
        experiment = Experiment.from_table(table)
    except ExperimentError as error:
        raise RequestFailed(422, error.requirement) from None
    except (ValueError, RecursionError):
        raise RequestFailed(400, f"an experiment must be valid {kind}, in UTF-8") from None
    is_new = await asyncio.to_thread(worker.add, experiment)
    await worker.ingest.refresh()
    return as_json(_summary(experiment), status=201 if is_new else 200)


@endpoint
async def list_experiments(request: Request, worker: Worker) -> Response:
    """List all experiments."""
    _check_token(request, worker)
    await worker.ingest.refresh()
    found = worker.catalogue.current.values()
    return as_json({"experiments": [_summary(each.release.experiment) for each in found]})


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


def _check_token(request: Request, worker: Worker) -> None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise RequestFailed(401, "an administrator's token is needed: Authorization: Bearer …")
    if not hmac.compare_digest(token.strip().encode(), worker.settings.token.encode()):
        raise RequestFailed(403, "this is not the administrator's token")


async def _current(request: Request, worker: Worker) -> Current:
    fingerprint = request.path_params["experiment"]
    current = worker.catalogue.current.get(fingerprint)
    # Another worker may have begun it. Ask outside of the thread that writes: requests for what
    # does not exist must not keep that busy.
    if current is None and fingerprint in await asyncio.to_thread(worker.store.newest_versions):
        await worker.ingest.refresh()
        current = worker.catalogue.current.get(fingerprint)
    if current is None:
        raise RequestFailed(404, "there is no such experiment here")
    return current


# The service itself.


@endpoint
async def keys(request: Request, worker: Worker) -> Response:
    """Show the public key that signs. A device must know whom to trust from elsewhere."""
    return as_json({"keys": [{"key": worker.key.id, "public": worker.key.public.hex()}]})


@endpoint
async def health(request: Request, worker: Worker) -> Response:
    """Say that this worker runs."""
    return as_json({"status": "running"})


@endpoint
async def ready(request: Request, worker: Worker) -> Response:
    """Say whether reports can be stored just now."""
    await asyncio.to_thread(worker.store.check)
    known = worker.catalogue.current
    if not all(each.fingerprint in known for each in worker.settings.experiments):
        raise RequestFailed(503, "the server is starting")
    return as_json({"status": "ready"})


@endpoint
async def show_metrics(request: Request, worker: Worker) -> Response:
    """Show the counts in Prometheus's format; those of the database only while it is there."""
    try:
        statuses = {
            fingerprint: await _status_of(current, worker)
            for fingerprint, current in list(worker.catalogue.current.items())
        }
    except StoreError:
        statuses = {}
    text = await asyncio.to_thread(metrics.render, statuses)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@endpoint
async def do_nothing(request: Request, worker: Worker) -> Response:
    """Read a report, forget it, and answer as if it had been stored; for measurements."""
    await _reports(request, worker, batch=False)
    return as_json(Receipt(stored=1))


@endpoint
async def openapi(request: Request, worker: Worker) -> Response:
    """Describe the service to other programs."""
    return as_json(document(worker.settings))
