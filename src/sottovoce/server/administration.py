"""What an administrator does: begin experiments and amend them. Anybody may see what was done."""

import asyncio
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sottovoce.server.amendments import document_of, experiment_after, text_of
from sottovoce.server.body import read_body
from sottovoce.server.endpoint import check_token, current_of, endpoint, status_for
from sottovoce.server.experiments import summary
from sottovoce.server.responses import RequestFailed, as_json
from sottovoce.server.status import entry_of
from sottovoce.server.store.store import LoggedAmendment, Store
from sottovoce.server.worker import Worker
from sottovoce.shared import check
from sottovoce.shared.amending import amended, draft, kinds_in
from sottovoce.shared.amendment import WRITTEN, Amendment
from sottovoce.shared.errors import ExperimentError
from sottovoce.shared.experiment import Experiment

# An amendment is part of every release that follows: nobody's name is longer than this.
MOST_BYTES = 16 * 1024
# Others may amend at the same moment: so often it is tried to be the next.
TRIES = 10

WRONG_STATE, AMENDED_MEANWHILE = "wrong state", "amended meanwhile"
"""The reasons of a 409."""


@endpoint
async def create_experiment(request: Request, worker: Worker) -> Response:
    """Begin an experiment, given as JSON or TOML."""
    check_token(request, worker)
    readers = {"application/json": json.loads, "application/toml": tomllib.loads}
    table = await _table(request, worker, readers, what="an experiment")
    request.state.deadline.reschedule(None)  # the first learner of a method may take its time
    try:
        experiment = Experiment.from_table(table)
    except ExperimentError as error:
        raise RequestFailed(422, error.requirement) from None
    except ValueError:  # of TOML: a whole number with more digits than Python writes
        raise RequestFailed(400, "numbers must have at most 4,300 digits") from None
    is_new = await asyncio.to_thread(worker.add, experiment)
    await worker.ingest.refresh()
    current = worker.catalogue.current.get(experiment.fingerprint)
    now = current.release.experiment if current else experiment
    return as_json(summary(now), status=201 if is_new else 200)


@endpoint
async def amend(request: Request, worker: Worker) -> Response:
    """Store an amendment; the learner takes it in a moment."""
    check_token(request, worker)
    current = await current_of(request, worker)
    readers = {"application/json": json.loads}
    table = await _table(request, worker, readers, what="an amendment", most=MOST_BYTES)
    try:
        wanted = Wanted.from_table(table)
        experiment = current.release.experiment
        first = experiment.first_form
        logged, is_new = await asyncio.to_thread(_add, worker.store, first, wanted)
    except ExperimentError as error:
        raise RequestFailed(422, error.requirement) from None
    return as_json(entry_of(logged), status=201 if is_new else 200)


@endpoint
async def list_amendments(request: Request, worker: Worker) -> Response:
    """Say what was amended, by whom, and which release it led to."""
    status = await status_for(request, worker)
    experiment, logged = status.release.experiment, status.amendments
    told = {"experiment": experiment.fingerprint, "name": experiment.name}
    return as_json(told | {"state": experiment.state, "amendments": list(map(entry_of, logged))})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody asks for.

    about: what else an amendment of this kind says.
    after: how many amendments there were when they asked; None if they do not say.
    """

    kind: str
    by: str
    about: dict[str, Any]
    after: int | None

    @classmethod
    def from_table(cls, table: Any) -> "Wanted":
        """Read the body of a request; what an amendment may say is checked when it is drafted."""
        known = {"kind", "by", "arm", "horizon", "cap", "after"}
        entries = dict(check.known_keys(table, what="an amendment", known=known))
        if missing := sorted({"kind", "by"} - entries.keys()):
            raise ExperimentError(f"an amendment must say {missing}")
        after = entries.pop("after", None)
        if after is not None:
            after = check.whole_number(after, what="after", least=0)
        return cls(entries.pop("kind"), entries.pop("by"), entries, after)

    def is_said_by(self, amendment: Amendment) -> bool:
        """Whether an amendment says just this."""
        said = amendment.to_table()
        about = {key: value for key, value in self.about.items() if value is not None}
        times = {key: said[key] for key in ("before", "made")}
        return {**about, **times, "kind": self.kind, "by": self.by} == said


def _add(store: Store, first: Experiment, wanted: Wanted) -> tuple[LoggedAmendment, bool]:
    """Write what is wanted as the next amendment; say whether it is new."""
    for _ in range(TRIES):
        logged = store.amendments(first.fingerprint)
        count = len(logged)
        if wanted.after is not None and wanted.after != count:
            if wanted.after < count and wanted.is_said_by(document_of(logged[wanted.after])):
                return logged[wanted.after], False  # the same request, sent again
            error = f"there are {count} amendments by now: look at them, and ask again"
            raise RequestFailed(409, error, reason=AMENDED_MEANWHILE)
        text = text_of(_next(experiment_after(first, logged), wanted))
        if store.add_amendment(first.fingerprint, count + 1, text):
            return LoggedAmendment(count + 1, text), True
    raise RequestFailed(503, "others amend the experiment just now; send it again later")


def _next(experiment: Experiment, wanted: Wanted) -> Amendment:
    """Return what is wanted as a document, if an experiment may be amended so."""
    made = datetime.now(UTC)
    if experiment.amendments:  # a clock that was put back must not keep the next one out
        last = datetime.strptime(experiment.amendments[-1].made, WRITTEN).replace(tzinfo=UTC)
        made = max(made, last)
    amendment = draft(experiment, wanted.kind, by=wanted.by, made=made, **wanted.about)
    allowed = kinds_in(experiment.state)
    if amendment.kind not in allowed:
        may = f"it may be amended by {', '.join(sorted(allowed))}" if allowed else "this is its end"
        raise RequestFailed(409, f"the experiment is {experiment.state}: {may}", reason=WRONG_STATE)
    amended(experiment, amendment)
    return amendment


async def _table(
    request: Request,
    worker: Worker,
    readers: Mapping[str, Callable[[str], Any]],
    *,
    what: str,
    most: int | None = None,
) -> Any:
    """Read a body of one of several types."""
    body = await read_body(request, worker.settings)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in readers:
        raise RequestFailed(415, f"{what} must be {' or '.join(readers)}")
    if most is not None and len(body) > most:
        raise RequestFailed(413, f"{what} must have at most {most} bytes")
    try:
        return await asyncio.to_thread(readers[kind], body.decode())
    except (ValueError, RecursionError):
        raise RequestFailed(400, f"{what} must be valid {kind}, in UTF-8") from None
