"""The client: a device that talks to a server, for programs that may wait."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from sottovoce.device.session import Session, Settings
from sottovoce.device.steps import Done, Pause, Result, Steps
from sottovoce.device.transport import Request, Response, Transport, send
from sottovoce.shared.errors import TransportError


class Client(Session):
    """One person's device, with a server that nobody has to trust.

    server: the address, such as https://example.org/sottovoce.
    experiment: the fingerprint of the experiment to take part in.
    keys: the public keys that may sign its releases, 64 hexadecimal digits each; more than one
        while an old key gives way to a new one.
    outbox: the file in which reports wait until they are sent, and the newest release is kept.
        Without one they are kept in memory, and lost with it.
    ledger, population, most_epsilon, public_arms: as of ``Device``.
    refresh_every: seconds between two looks for a newer release; ``choose`` looks when it is due.
    transport: sends a request and returns the response; TransportError or OSError if none came.
    clock, sleep, jitter: for tests. The clock must be monotonic.

    It can be used by several threads, but chooses for one person at a time: each choice is for
    the report that follows.
    """

    def __init__(
        self,
        server: str,
        *,
        transport: Transport = send,
        sleep: Callable[[float], None] = time.sleep,
        **settings: Unpack[Settings],
    ) -> None:
        super().__init__(server, **settings)
        self._transport = transport
        self._sleep = sleep

    def refresh(self) -> bool:
        """Look for a newer release now, and return whether there was one.

        Where no server can be reached, all stays as it is. A release that cannot be trusted or
        followed raises, and all stays as it is.
        """
        return self._run(self._refresh())

    def choose(self, context: Mapping[str, Any]) -> str:
        """Return the arm for this person. It works offline once there has been a release."""
        return self._run(self._choose(context))

    def report(self, *, reward: float) -> None:
        """Report on the arm that was chosen last: privatised once, kept, then sent if possible."""
        self._run(self._report(reward))

    def send(self) -> int:
        """Send what waits, as far as that goes now; return how many reports the server has taken.

        After a failure nothing is tried until it is time again (``flush`` waits for it).
        """
        return self._run(self._send())

    def flush(self, timeout: float = 60.0) -> bool:
        """Send what waits, with pauses, and return whether nothing is left.

        timeout: seconds. It returns early if the next try would come too late.
        """
        return self._run(self._flush(timeout))

    def _run(self, steps: Steps[Result]) -> Result:
        response: Response | None = None
        while True:
            step = self._step(steps, response)
            if isinstance(step, Done):
                return step.result
            response = self._answer(step)

    def _answer(self, step: Request | Pause) -> Response | None:
        if isinstance(step, Pause):
            self._sleep(step.seconds)
            return None
        try:
            return self._transport(step)
        except (TransportError, OSError):
            return None
