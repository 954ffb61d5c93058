"""What endpoints share: their worker, the experiment that is asked for, and errors as statuses."""

import asyncio
import hmac
import logging
import traceback
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from sottovoce.server import metrics
from sottovoce.server.catalogue import Current
from sottovoce.server.ingest import TooMany
from sottovoce.server.responses import RequestFailed, problem
from sottovoce.server.status import ExperimentStatus, Snapshot
from sottovoce.server.store.log import LoggedAmendment
from sottovoce.server.worker import Worker
from sottovoce.shared.errors import StoreBehind, StoreError, StoreFull

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

BEHIND = (
    "the database has lost releases that were published; nothing is served until it has them again,"
    " or until its operator has declared a new branch"
)
NO_SUCH_EXPERIMENT = "no such experiment"
"""The reason of a 404 by which a client tells a wrong fingerprint from a wrong address."""


def endpoint(function: Callable[[Request, Worker], Awaitable[Response]]) -> Endpoint:
    """Give an endpoint its worker, and turn each foreseen error into its status."""

    @wraps(function)
    async def served(request: Request) -> Response:
        worker: Worker = request.app.state.worker
        try:
            async with asyncio.timeout(worker.settings.answer_within) as deadline:
                request.state.deadline = deadline
                return await function(request, worker)
        except TimeoutError:
            text = "the database does not answer just now; send it again later"
            return problem(503, text, reason="no answer")
        except RequestFailed as failed:
            return problem(failed.status, str(failed), reason=failed.reason)
        except TooMany:
            metrics.TURNED_AWAY.inc()
            return problem(429, "too many reports are waiting; send them again later")
        except StoreBehind:
            return problem(503, BEHIND, reason="database behind")
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


async def current_of(request: Request, worker: Worker) -> Current:
    """Return the experiment that an address names by its fingerprint."""
    fingerprint = request.path_params["experiment"]
    if worker.catalogue.behind:
        raise RequestFailed(503, BEHIND, reason="database behind")
    current = worker.catalogue.current.get(fingerprint)
    # Another worker may have begun it. Ask outside of the thread that writes: requests for what
    # does not exist must not keep that busy.
    if current is None and fingerprint in await asyncio.to_thread(worker.store.newest_versions):
        await worker.ingest.refresh()
        current = worker.catalogue.current.get(fingerprint)
    if current is None:
        raise no_such_experiment()
    return current


def no_such_experiment() -> RequestFailed:
    """Return the error for an experiment that is not here."""
    return RequestFailed(404, "there is no such experiment here", reason=NO_SUCH_EXPERIMENT)


async def status_for(request: Request, worker: Worker) -> ExperimentStatus:
    """Return how far the experiment is that an address names."""
    return await status_of(await current_of(request, worker), worker)


async def status_of(current: Current, worker: Worker) -> ExperimentStatus:
    """Return how far an experiment is."""
    fingerprint = current.release.experiment.fingerprint
    stored = await asyncio.to_thread(worker.store.length, fingerprint)
    # The amendments first: those that are taken then are in the snapshot that is read next.
    amendments = tuple(await asyncio.to_thread(worker.store.amendments, fingerprint))
    found = await asyncio.to_thread(worker.store.snapshot, fingerprint)
    if found is None:
        return ExperimentStatus(current.release, stored, amendments=amendments)
    learned, snapshot = found[0], Snapshot.from_json(found[1])
    told = max([snapshot.status.release if snapshot.status else 0, *map(_version, amendments)])
    if told > current.release.version:
        # A client that learns of this release here must be able to get it here.
        await worker.ingest.refresh()
        current = worker.catalogue.current.get(fingerprint, current)
    return ExperimentStatus(current.release, stored, learned, snapshot, amendments)


def _version(amendment: LoggedAmendment) -> int:
    return amendment.version or 0


def check_token(request: Request, worker: Worker) -> None:
    """Refuse whoever is not the administrator."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise RequestFailed(401, "an administrator's token is needed: Authorization: Bearer …")
    if not hmac.compare_digest(token.strip().encode(), worker.settings.token.encode()):
        raise RequestFailed(403, "this is not the administrator's token")


def as_page(html: str) -> Response:
    """Answer with a page for people, which loads nothing from elsewhere and runs nothing."""
    headers = {
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    return HTMLResponse(html, headers=headers)
