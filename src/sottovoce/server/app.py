"""HTTP: which address does what. What each does is in ``endpoints.py``."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from sottovoce.server import administration, endpoints, experiments
from sottovoce.server.endpoint import Endpoint
from sottovoce.server.responses import RequestMetrics, problem
from sottovoce.server.settings import ServerSettings
from sottovoce.server.worker import Worker
from sottovoce.shared.errors import SottovoceError

logger = logging.getLogger(__name__)

# Seconds between two looks for new experiments and releases.
LOOK_EVERY = 0.1
# Seconds between two notes of what is published.
NOTE_EVERY = 2.0
# Seconds between two tries to reach a database that is away.
TRY_AGAIN = 1.0

ROUTES: tuple[tuple[str, str, Endpoint], ...] = (
    ("POST", "/reports", endpoints.take_report),
    ("POST", "/reports/batch", endpoints.take_batch),
    ("GET", "/experiments/{experiment}/releases/current", endpoints.current_release),
    ("GET", "/experiments/{experiment}/releases/{version}", endpoints.past_release),
    ("GET", "/experiments/{experiment}/releases", endpoints.list_releases),
    ("GET", "/experiments/{experiment}/chain/{block}", endpoints.chain),
    ("GET", "/experiments/{experiment}/status", endpoints.status),
    ("GET", "/experiments/{experiment}/certificates", endpoints.certificates),
    ("GET", "/experiments/{experiment}/estimates", endpoints.estimates),
    ("GET", "/experiments/{experiment}/diagnosis", endpoints.diagnosis),
    ("GET", "/experiments/{experiment}/gain", endpoints.gain),
    ("GET", "/experiments/{experiment}", experiments.page),
    ("POST", "/experiments/{experiment}/amendments", administration.amend),
    ("GET", "/experiments/{experiment}/amendments", administration.list_amendments),
    ("POST", "/experiments", administration.create_experiment),
    ("GET", "/experiments", experiments.list_experiments),
    ("GET", "/", experiments.index),
    ("GET", "/keys", endpoints.keys),
    ("GET", "/health", endpoints.health),
    ("GET", "/ready", endpoints.ready),
    ("GET", "/metrics", endpoints.show_metrics),
    ("GET", "/openapi.json", endpoints.openapi),
    ("OPTIONS", "/reports", endpoints.options),
    ("OPTIONS", "/reports/batch", endpoints.options),
    ("OPTIONS", "/experiments/{experiment}/releases/{version}", endpoints.options),
    ("OPTIONS", "/experiments/{experiment}/chain/{block}", endpoints.options),
)


class BrowserCORS(CORSMiddleware):
    """Starlette's CORS, skipped for clients that are not browsers: it takes 7 µs of some 100.

    Only for answers that no cache keeps: others must say ``Vary: Origin`` to everyone.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_from_browser = any(name == b"origin" for name, _ in scope["headers"])
        await (super().__call__ if is_from_browser else self.app)(scope, receive, send)


# Pages of any origin may send reports and read releases. They may read nothing else: no web page
# should see a server inside of somebody's network.
_CORS: dict[str, Any] = {
    "allow_origins": ("*",),
    "allow_methods": ("GET", "POST"),
    "allow_headers": ("if-none-match",),
    "expose_headers": ("etag", "retry-after"),
    "max_age": 24 * 3600,
}
MIDDLEWARE = {
    "/reports": [Middleware(BrowserCORS, **_CORS)],
    "/reports/batch": [Middleware(BrowserCORS, **_CORS)],
    "/experiments/{experiment}/releases/current": [Middleware(CORSMiddleware, **_CORS)],
    "/experiments/{experiment}/releases/{version}": [Middleware(CORSMiddleware, **_CORS)],
    "/experiments/{experiment}/chain/{block}": [Middleware(CORSMiddleware, **_CORS)],
}


def create_app(settings: ServerSettings) -> RequestMetrics:
    """Make the application of one worker."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        worker = app.state.worker = Worker.open(settings)
        tasks = [asyncio.create_task(worker.ingest.run()), asyncio.create_task(_keep_up(worker))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            worker.close()

    nothing = [("POST", "/nothing", endpoints.do_nothing)] if settings.measured else []
    app = Starlette(
        routes=[
            Route(path, endpoint, methods=[method], middleware=MIDDLEWARE.get(path))
            for method, path, endpoint in (*ROUTES, *nothing)
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _as_json, Exception: _unforeseen},
    )
    app.router.redirect_slashes = False
    return RequestMetrics(app)


async def _keep_up(worker: Worker) -> None:
    """Set up the database once it is there; then look for what is new."""
    is_set_up, looked = False, -NOTE_EVERY
    while True:
        try:
            if not is_set_up:
                await asyncio.to_thread(worker.set_up)
                is_set_up = True
            await worker.ingest.refresh()
            if monotonic() - looked >= NOTE_EVERY:
                looked = monotonic()
                await asyncio.to_thread(worker.look)
            pause = LOOK_EVERY
        except SottovoceError as error:  # also of a release that this code cannot read
            logger.warning("%s", error)
            pause = TRY_AGAIN
        await asyncio.sleep(pause)


async def _as_json(request: Request, error: Exception) -> Response:
    """Answer what Starlette itself refuses: no such page, no such method."""
    if not isinstance(error, HTTPException):
        raise error
    texts = {404: "there is no such page", 405: "this page does not take that method"}
    text = texts.get(error.status_code, "the request cannot be served")
    response = problem(error.status_code, text)
    if error.status_code == 405:
        every = request.app.routes
        routes = [each for each in every if each.matches(request.scope)[0] is not Match.NONE]
        allowed = {method for route in routes for method in route.methods}
        response.headers["allow"] = ", ".join(sorted(allowed))
    return response


async def _unforeseen(_: Request, error: Exception) -> Response:
    return problem(500, "something went wrong here")
