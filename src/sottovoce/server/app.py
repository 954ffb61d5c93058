"""HTTP: which address does what. What each does is in ``endpoints.py``."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from sottovoce.server import endpoints
from sottovoce.server.answers import CountedAnswers, problem
from sottovoce.server.desk import Desk
from sottovoce.server.settings import Settings
from sottovoce.shared.errors import SottovoceError

logger = logging.getLogger(__name__)

# Seconds between two looks for new experiments and releases.
LOOK_EVERY = 0.1
# Seconds between two tries to reach a database that is away.
TRY_AGAIN = 1.0

ROUTES: tuple[tuple[str, str, Callable[[Request], Awaitable[Response]]], ...] = (
    ("POST", "/reports", endpoints.take_report),
    ("POST", "/reports/batch", endpoints.take_batch),
    ("GET", "/experiments/{experiment}/releases/current", endpoints.current_release),
    ("GET", "/experiments/{experiment}/releases/{version}", endpoints.past_release),
    ("GET", "/experiments/{experiment}/releases", endpoints.list_releases),
    ("GET", "/experiments/{experiment}/status", endpoints.status),
    ("GET", "/experiments/{experiment}/certificates", endpoints.certificates),
    ("GET", "/experiments/{experiment}/estimates", endpoints.estimates),
    ("GET", "/experiments/{experiment}/diagnosis", endpoints.diagnosis),
    ("GET", "/experiments/{experiment}", endpoints.page),
    ("POST", "/experiments", endpoints.create_experiment),
    ("GET", "/experiments", endpoints.list_experiments),
    ("GET", "/keys", endpoints.keys),
    ("GET", "/health", endpoints.health),
    ("GET", "/ready", endpoints.ready),
    ("GET", "/metrics", endpoints.show_metrics),
    ("GET", "/openapi.json", endpoints.openapi),
    ("OPTIONS", "/reports", endpoints.preflight),
    ("OPTIONS", "/reports/batch", endpoints.preflight),
    ("OPTIONS", "/experiments/{experiment}/releases/{version}", endpoints.preflight),
)


def create_app(settings: Settings) -> CountedAnswers:
    """Make the application of one worker."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        desk = app.state.desk = Desk.open(settings)
        tasks = [asyncio.create_task(desk.ingest.run()), asyncio.create_task(_keep_up(desk))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            desk.close()

    nothing = [("POST", "/nothing", endpoints.do_nothing)] if settings.measured else []
    app = Starlette(
        routes=[
            Route(path, endpoint, methods=[method])
            for method, path, endpoint in (*ROUTES, *nothing)
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _as_json, Exception: _unforeseen},
    )
    app.router.redirect_slashes = False
    return CountedAnswers(app)


async def _keep_up(desk: Desk) -> None:
    """Set up the database once it is there; then look for what is new."""
    is_set_up = False
    while True:
        try:
            if not is_set_up:
                await asyncio.to_thread(desk.set_up)
                is_set_up = True
            await desk.ingest.refresh()
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
    answer = problem(
        error.status_code, texts.get(error.status_code, "the request cannot be served")
    )
    if error.status_code == 405:
        answer.headers["allow"] = ", ".join(sorted(_methods(request)))
    return answer


def _methods(request: Request) -> set[str]:
    """Return what the address of a request takes, by all routes of that address."""
    return {
        method
        for route in request.app.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods
    }


async def _unforeseen(_: Request, error: Exception) -> Response:
    return problem(500, "something went wrong here")
