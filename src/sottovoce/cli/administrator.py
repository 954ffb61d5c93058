"""What an administrator's commands ask of a server, over HTTP."""

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from sottovoce.device.transport import Request, Response, send
from sottovoce.shared.errors import ExperimentError, TransportError, must

# Statuses after which the same request may succeed a moment later.
LATER = (408, 429, 500, 503, 507)
TRIES, PAUSE = 4, 1.0
# Seconds for a learner to take an amendment, and between two looks.
PATIENCE, LOOK_EVERY = 10.0, 0.2

_FINGERPRINT = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Administrator:
    """Speaks to one server. token: empty for what anybody may see."""

    server: str
    token: str = field(default="", repr=False)

    def fingerprint(self, experiment: str) -> str:
        """Return the fingerprint of an experiment, named by it or by its own name."""
        if _FINGERPRINT.fullmatch(experiment):
            return experiment
        listed = self._ask("GET", "/experiments")["experiments"]
        found = [each["experiment"] for each in listed if each["name"] == experiment]
        if len(found) == 1:
            return str(found[0])
        names = sorted({str(each["name"]) for each in listed})
        rule = f"be a fingerprint, or the name of one experiment of {names}"
        came = f"{experiment!r}, which {len(found) or 'none'} have"
        raise ExperimentError(must("the experiment", rule, came))

    def amendments(self, fingerprint: str) -> dict[str, Any]:
        """Return the experiment's name, its state and its amendments."""
        return self._ask("GET", _path(fingerprint))

    def amend(self, fingerprint: str, change: dict[str, Any], *, after: int) -> dict[str, Any]:
        """Amend an experiment that has so many amendments; return the new one, taken if it is.

        Sent again, it is not made twice.
        """
        body = json.dumps({**change, "after": after}).encode()
        made = self._ask("POST", _path(fingerprint), body)
        deadline = time.monotonic() + PATIENCE
        while made["release"] is None and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY)
            made = self.amendments(fingerprint)["amendments"][after]
        return made

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Send a request until it is answered; raise TransportError if it never is."""
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        request = Request(method, self.server.rstrip("/") + path, headers, body)
        for left in reversed(range(TRIES)):
            try:
                answer = send(request)
            except TransportError:
                if not left:
                    raise
            else:
                if not left or answer.status not in LATER:
                    return _table(answer)
            time.sleep(PAUSE)
        raise AssertionError("the last try returns or raises")


def _path(fingerprint: str) -> str:
    return f"/experiments/{quote(fingerprint, safe='')}/amendments"


def _table(answer: Response) -> dict[str, Any]:
    try:
        table = json.loads(answer.body)
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise TransportError(f"the server must answer in JSON; it answered {answer.status}")
    if answer.status in LATER:
        raise TransportError(f"the server must be able to answer; it answered {answer.status}")
    if answer.status >= 400:
        error = table.get("error")
        raise ExperimentError(f"the server refused ({answer.status}): {error}")
    return table
