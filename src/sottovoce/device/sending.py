"""Sends the reports in the outbox until the server has answered for each of them.

A report leaves the outbox only after one of three answers that only a Sottovoce server gives: it
stored the report, it had the report already, or it refuses the report for a reason that is final:
nobody will ever read these bytes. After any other reason (the server has lost the release of the
report, or does not know it yet, or is too old or too new for the report), the report stays and is
offered again a day later. After anything else (no answer, 5xx, 408, 429, a redirect, a page of
somebody's proxy) the sender tries again soon, with the same bytes and the same nonce.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from sottovoce.device.outbox import Reports, Waiting
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.errors import Rejection

MOST_TOGETHER = 1000
"""The most reports in one request; every server takes at least that many."""

MOST_BYTES = 4 * 1024 * 1024
"""The most bytes in one request. A single larger report is sent alone."""

LARGEST_VERDICT = 1024 * 1024
OTHER = "other"
"""Replaces reasons that are not known here, so that no server can make up endlessly many."""

FIRST_WAIT = 1.0
"""The longest wait after one failure, in seconds. It doubles with each further failure."""

LONGEST_WAIT = 3600.0
"""The longest wait that failures or a server can ask for, in seconds, without the jitter."""

PUT_OFF = 86400.0
"""Seconds, on average, until a report is offered again that the server cannot read now."""

_REASONS = {reason.value for reason in Rejection}
_FINAL = {
    *(f"status {status}" for status in (413, 415)),
    *(reason.value for reason in Rejection if not reason.may_pass),
}


class Backoff:
    """When to try again: exponential backoff with full jitter.

    It uses only differences of a monotonic clock and stores none of them. So it does not matter if
    a device's clock is wrong by years, or is set back.

    clock: seconds, monotonic.
    jitter: a random number in [0, 1), so that devices that failed together do not return together.
    """

    def __init__(self, *, clock: Callable[[], float], jitter: Callable[[], float]) -> None:
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._not_before = clock()

    def chance(self) -> float:
        """Draw a number in [0, 1) for other pauses."""
        return self._jitter()

    @property
    def wait(self) -> float:
        """Seconds until the next try may begin."""
        return max(0.0, self._not_before - self._clock())

    def failed(self, response: Response | None) -> None:
        """Note a failure: wait, and at least as long as the Retry-After of an answer says."""
        said = response.headers.get("retry-after", "").strip() if response else ""
        # In whole seconds; a date is ignored, since it would need a clock.
        asked = min(LONGEST_WAIT, float(said)) if re.fullmatch("[0-9]{1,9}", said) else 0.0
        # Capped first: 2.0 ** failures overflows after a thousand failures.
        spread = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(self._failures, 32))
        self._failures += 1
        self._not_before = self._clock() + asked + spread * self._jitter()

    def succeeded(self) -> None:
        """Note a success: the next try may begin at once."""
        self._failures = 0
        self._not_before = self._clock()


class Sender:
    """Sends the reports of one experiment.

    backoff: when it may try again.
    refused: how many reports were refused for good, by reason.
    put_off: how often a report was kept for later, because the server cannot read it now.
    repeated: how many the server had already, because its answer did not arrive.
    """

    def __init__(self, server: str, *, experiment: str, outbox: Reports, backoff: Backoff) -> None:
        self._server = server
        self._experiment = experiment
        self._outbox = outbox
        self.backoff = backoff
        self._together = MOST_TOGETHER
        self.refused: Counter[str] = Counter()
        self.put_off: Counter[str] = Counter()
        self.repeated = 0

    def send(self) -> Generator[Request, Response | None, int]:
        """Send reports until none is left or one fails; return how many the server has taken."""
        if self.backoff.wait:
            return 0
        taken = 0
        while reports := self._outbox.claim(self._next()):
            response = yield _request(self._server, reports)
            verdict = _verdict(response, count=len(reports))
            if verdict is not None:
                self.backoff.succeeded()
                self._together = min(MOST_TOGETHER, 2 * self._together)
                refused, repeated = verdict
                self.repeated += repeated
                taken += self._settle(reports, refused)
            elif len(reports) > 1 and _refusal(response) is not None:
                # Too large, or one bad report spoils the request: send fewer, at last one by one.
                self._together = len(reports) // 2
            else:
                self.backoff.failed(response)
                break
        return taken

    def _next(self) -> list[Waiting]:
        reports = self._outbox.oldest(self._together, experiment=self._experiment)
        size, fitting = 0, 0
        for each in reports:
            size += len(each.report)
            if fitting and size > MOST_BYTES:
                break
            fitting += 1
        return reports[:fitting]

    def _settle(self, reports: Sequence[Waiting], refused: Mapping[int, str]) -> int:
        """Remove the reports from the outbox; count those that no other process removed before."""
        taken = [each.number for i, each in enumerate(reports) if i not in refused]
        for place, reason in refused.items():
            if reason in _FINAL:
                self.refused[reason] += self._outbox.remove([reports[place].number])
            else:
                seconds = PUT_OFF * (0.5 + self.backoff.chance())
                self._outbox.put_off([reports[place].number], seconds=seconds)
                self.put_off[reason] += 1
        return self._outbox.remove(taken)


def _request(server: str, reports: Sequence[Waiting]) -> Request:
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/octet-stream",
        "User-Agent": "sottovoce",
    }
    if len(reports) == 1:
        return Request("POST", f"{server}/reports", headers, reports[0].report)
    batch = wire.batch_to_bytes([each.report for each in reports])
    return Request("POST", f"{server}/reports/batch", headers, batch)


def _verdict(response: Response | None, *, count: int) -> tuple[dict[int, str], int] | None:
    """Return what became of the reports of a request; None if the answer leaves any doubt.

    That is the index and the reason of each report that the server refuses for good, and how many
    reports it had already.
    """
    if count == 1 and (reason := _refusal(response)) is not None:
        return {0: reason}, 0
    table = table_of(response)
    if response is None or table is None or not 200 <= response.status < 300:
        return None
    stored, repeated, entries = (table.get(key) for key in ("stored", "repeated", "refused"))
    if type(stored) is not int or type(repeated) is not int or not isinstance(entries, list):
        return None
    refused: dict[int, str] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        place, reason = entry.get("index"), entry.get("reason")
        if type(place) is not int or not 0 <= place < count or not isinstance(reason, str):
            return None
        refused[place] = _known(reason)
    # No report may be named twice, and no server's default answer may pass for a verdict.
    whole = min(stored, repeated) >= 0 and stored + repeated + len(entries) == count
    return (refused, repeated) if whole and len(refused) == len(entries) else None


def _refusal(response: Response | None) -> str | None:
    """Return why the server refuses a request for good, if it does.

    A 4xx is a refusal only if it gives its reason, or is about the size or the kind of the body.
    "No such page" is about the address, not about a report.
    """
    table = table_of(response)
    if response is None or table is None or not 400 <= response.status < 500:
        return None
    if response.status in (408, 429):
        return None
    if isinstance(reason := table.get("reason"), str):
        return _known(reason)
    in_itself = response.status in (413, 415) and isinstance(table.get("error"), str)
    return f"status {response.status}" if in_itself else None


def _known(reason: str) -> str:
    return reason if reason in _REASONS else OTHER


def table_of(response: Response | None) -> dict[str, Any] | None:
    """Return the JSON object in an answer, if it is one and not too large."""
    if response is None or len(response.body) > LARGEST_VERDICT:
        return None
    try:
        table = json.loads(response.body)
    except (ValueError, RecursionError):
        return None
    return table if isinstance(table, dict) else None
