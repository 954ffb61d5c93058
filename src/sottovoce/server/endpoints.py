"""What each address does, but for those that begin, list and amend experiments."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from sottovoce.server import metrics
from sottovoce.server.body import answer_to, read_body, reports_in
from sottovoce.server.endpoint import BEHIND, current_of, endpoint, status_for, status_of
from sottovoce.server.gain import gain_table, gain_words
from sottovoce.server.ingest import Receipt
from sottovoce.server.openapi import document
from sottovoce.server.responses import RequestFailed, as_json, cached
from sottovoce.server.worker import Worker
from sottovoce.shared.errors import StoreError
from sottovoce.shared.signed import block_to_json

# Caches ask whether it is still so: a server that was restored goes on with other releases under
# numbers that lost ones had.
IF_STILL_SO = "public, no-cache"
A_MOMENT = "public, max-age=1"
# A body of so many bytes is read in a thread, so that nobody waits: 8 MiB of JSON take a second.
LARGE = 256 * 1024


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
        raise RequestFailed(answer_to(reason), error, reason=reason.value)
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
    return cached(request, (await current_of(request, worker)).signed, control=A_MOMENT)


@endpoint
async def past_release(request: Request, worker: Worker) -> Response:
    """Send any release, signed."""
    current = await current_of(request, worker)
    version = _number(request.path_params["version"]) or 0
    if version == current.release.version:
        return cached(request, current.signed, control=IF_STILL_SO)
    fingerprint = current.release.experiment.fingerprint
    found = await asyncio.to_thread(worker.store.release, fingerprint, version)
    if found is None:
        raise RequestFailed(404, "there is no such release of this experiment")
    if version > current.release.version:  # another worker knows of it already
        await worker.ingest.refresh()
    signed = worker.key.sign(found.text, before=current.chain.before(version))
    return cached(request, signed.to_json(), control=IF_STILL_SO)


@endpoint
async def chain(request: Request, worker: Worker) -> Response:
    """Send the hashes of one block of releases, so that a device can check where it comes from."""
    current = await current_of(request, worker)
    number = _number(request.path_params["block"])
    hashes = [] if number is None else current.chain.block(number)
    if not hashes:
        raise RequestFailed(404, "there is no such block of releases")
    # It must never be older than the current release in the same cache.
    return cached(request, block_to_json(hashes), control=IF_STILL_SO)


@endpoint
async def list_releases(request: Request, worker: Worker) -> Response:
    """Say which releases there are: each from 1 to the current one."""
    return as_json({"current": (await current_of(request, worker)).release.version})


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None


# How far it is.


@endpoint
async def status(request: Request, worker: Worker) -> Response:
    """Say how far the log and the learner are."""
    return as_json((await status_for(request, worker)).to_table())


@endpoint
async def certificates(request: Request, worker: Worker) -> Response:
    """Say why each arm was dropped."""
    status = await status_for(request, worker)
    return as_json({"learned": status.learned, "certificates": status.snapshot.certificates})


@endpoint
async def estimates(request: Request, worker: Worker) -> Response:
    """Say what is known of each arm in each bin, and over all bins."""
    status = await status_for(request, worker)
    known = status.snapshot
    return as_json(
        {
            "learned": status.learned,
            "estimates": known.estimates,
            "bins": known.bins,
            "arms": known.arms,
            "value": known.value,
        }
    )


@endpoint
async def diagnosis(request: Request, worker: Worker) -> Response:
    """Say what each auxiliary population brings; nothing where there is none, or not yet."""
    return as_json((await status_for(request, worker)).diagnosis)


@endpoint
async def gain(request: Request, worker: Worker) -> Response:
    """Say what the policy brings over the baseline; nothing without one, or not yet."""
    status = await status_for(request, worker)
    experiment, found = status.release.experiment, status.snapshot.gain
    table = None if found is None else gain_table(found, experiment)
    words = gain_words(found, experiment)
    return as_json({"learned": status.learned, "gain": table, "words": words})


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
    """Say whether reports can be stored just now, and will be counted."""
    if worker.catalogue.behind:
        raise RequestFailed(503, BEHIND, reason="database behind")
    if worker.health.is_full:
        await asyncio.to_thread(worker.store.check_room)
        worker.health.is_full = False
    await asyncio.to_thread(worker.store.check)
    for reason, trouble in worker.health.troubles().items():
        raise RequestFailed(503, trouble, reason=reason)
    known = worker.catalogue.current
    if not all(each.fingerprint in known for each in worker.settings.experiments):
        raise RequestFailed(503, "the server is starting")
    return as_json({"status": "ready"})


@endpoint
async def show_metrics(request: Request, worker: Worker) -> Response:
    """Show the counts in Prometheus's format; those of the database only while it is there."""
    try:
        statuses = {
            fingerprint: await status_of(current, worker)
            for fingerprint, current in list(worker.catalogue.current.items())
        }
    except StoreError:
        statuses = {}
    troubles = set(worker.health.troubles()) | ({"behind"} if worker.catalogue.behind else set())
    text = await asyncio.to_thread(metrics.render, statuses, troubles)
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
