"""All experiments of a server, for people and for programs."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sottovoce.server import page as pages
from sottovoce.server.body import JSON
from sottovoce.server.endpoint import (
    as_page,
    current_of,
    endpoint,
    no_such_experiment,
    status_for,
    status_of,
)
from sottovoce.server.responses import RequestFailed, as_json
from sottovoce.server.status import ExperimentStatus
from sottovoce.server.worker import Worker
from sottovoce.shared.experiment import Experiment

AMBIGUOUS = "ambiguous name"
"""The reason of a 404 for a name that several experiments have."""


@endpoint
async def list_experiments(request: Request, worker: Worker) -> Response:
    """List all experiments."""
    return _as_list(await _all(worker))


@endpoint
async def index(request: Request, worker: Worker) -> Response:
    """Show all experiments to people; list them for programs that ask for JSON."""
    statuses = await _all(worker)
    response = _as_list(statuses)
    if not _prefers_json(request.headers.get("accept", "")):
        response = as_page(await asyncio.to_thread(pages.render_index, statuses))
    response.headers["vary"] = "accept"
    return response


@endpoint
async def page(request: Request, worker: Worker) -> Response:
    """Show one experiment to people; its name leads there, too, if no other has it."""
    name = request.path_params["experiment"]
    if name not in worker.catalogue.current:
        try:
            await current_of(request, worker)
        except RequestFailed:
            return RedirectResponse(f"/experiments/{_named(name, worker)}", 307)
    return as_page(await asyncio.to_thread(pages.render, await status_for(request, worker)))


def _named(name: str, worker: Worker) -> str:
    """Return the fingerprint of the one experiment that has a name."""
    found = [
        fingerprint
        for fingerprint, current in worker.catalogue.current.items()
        if current.release.experiment.name == name
    ]
    if len(found) > 1:
        raise RequestFailed(404, "several experiments have this name: see /", reason=AMBIGUOUS)
    if not found:
        raise no_such_experiment()
    return found[0]


def _prefers_json(accepted: str) -> bool:
    """Say whether Accept names JSON, and does not name HTML before it."""
    kinds = [each.partition(";")[0].strip().lower() for each in accepted.split(",")]
    return JSON in kinds and "text/html" not in kinds[: kinds.index(JSON)]


def _as_list(statuses: Sequence[ExperimentStatus]) -> Response:
    listed = [summary(each.release.experiment) | {"people": each.people} for each in statuses]
    return as_json({"experiments": listed})


def summary(experiment: Experiment) -> dict[str, Any]:
    """Say what an experiment is now."""
    retired = experiment.retired
    return {
        "experiment": experiment.fingerprint,
        "name": experiment.name,
        "state": experiment.state,
        "arms": list(experiment.arms),
        "retired": [arm for k, arm in enumerate(experiment.arms) if k in retired],
        "populations": [
            {"name": each.name, "epsilon": each.epsilon, "users": each.users}
            for each in experiment.populations
        ],
    }


async def _all(worker: Worker) -> list[ExperimentStatus]:
    await worker.ingest.refresh()
    return [await status_of(each, worker) for each in list(worker.catalogue.current.values())]
