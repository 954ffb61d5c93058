"""The client: a device that talks to a server, for programs that may block."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Unpack

from sottovoce.device.decision import Decision
from sottovoce.device.session import ClientSettings, Done, Pause, Result, Session, Steps
from sottovoce.device.transport import Response, Transport, send
from sottovoce.shared.errors import TransportError


class Client(Session):
    """One person's device, with a server that nobody has to trust.

    server: the address, such as https://example.org/sottovoce.
    experiment: the fingerprint of the experiment to take part in.
    keys: the public keys that may sign its releases, 64 hexadecimal digits each. Give two while
        the server changes its key.
    most_epsilon: the most ε that one report may spend, whatever a release asks for.
    outbox: the file that keeps decisions, reports until they are sent, and the newest release.
        Without a file they are kept in memory, and lost when the process ends.
    ledger: where ε is spent. Without one, the client reports once to the experiment, and the
        outbox remembers that. Without a file, it is once in this process.
    population, public_arms: as of ``Device``.
    sticky: whether a person keeps the same arm until the policy for them changes. Where arms are
        public, they never do.
    default: the arm for people before the first release has come, and for those who have left.
    shipped: a signed release that came with the app, for its first start without a network.
    refresh_every: seconds, on average, from one look for a newer release to the next. ``choose``
        makes the requests, before it looks at the context: it asks for the release, and sends the
        reports that wait. The time is between half and one and a half of this, at random.
    transport: sends a request and returns the response; it raises TransportError or OSError if
        none came.
    clock, now, sleep, jitter: for tests. ``clock`` must be monotonic; ``now`` is the time in
        seconds since 1970.

    Several threads and processes may use it. ``report`` never uses the network. An app that will
    not choose again calls ``flush``, for example when it ends.
    """

    def __init__(
        self,
        server: str,
        *,
        transport: Transport = send,
        sleep: Callable[[float], None] = time.sleep,
        **settings: Unpack[ClientSettings],
    ) -> None:
        super().__init__(server, **settings)
        self._transport = transport
        self._sleep = sleep

    def refresh(self) -> bool:
        """Ask for a newer release now, and return whether there was one.

        If no server can be reached, the client keeps the release that it has. It does so, too, if
        the new release cannot be trusted or followed, and raises.
        """
        return self._run(self._refresh())

    def choose(self, context: Mapping[str, Any]) -> Decision:
        """Decide for this person: return the arm, and what is needed to report on it later.

        It works offline, once the client has a release. The ε of the report is spent now. A person
        whose budget is spent is served all the same, and is not asked how it went.

        If it is time to look for a newer release, it does so first, and sends what waits.
        """
        return self._run(self._choose(context))

    def report(self, decision: Decision | str, *, reward: float | bool | None) -> None:
        """Finish a decision: privatise its outcome, and keep the report. It is sent later.

        decision: what ``choose`` returned, or its id. Any number may be open, in any order.
        reward: as the experiment counts rewards. None if no outcome came: the report then tells
            nothing, and looks like any other. A decision that expires is reported on like that.
        """
        self._run(self._report(decision, reward))

    def leave(self) -> None:
        """Leave the experiment for good: forget all that is kept of it, and send nothing more.

        What was spent stays in the ledger. ``choose`` then gives the ``default`` arm, if there is
        one, and raises otherwise.
        """
        self._run(self._leave())

    def send(self) -> int:
        """Send the reports in the outbox; return how many the server has taken.

        After a failure it does nothing until the next try is due (``flush`` waits for that).
        """
        return self._run(self._send())

    def flush(self, timeout: float = 60.0) -> bool:
        """Send the reports in the outbox, with pauses after failures; return whether all are sent.

        timeout: seconds. It returns early if the next try would come too late.
        """
        return self._run(self._flush(timeout))

    def _run(self, steps: Steps[Result]) -> Result:
        response: Response | None = None
        while not isinstance(step := self._step(steps, response), Done):
            response = None
            if isinstance(step, Pause):
                self._sleep(step.seconds)
                continue
            with suppress(TransportError, OSError):
                response = self._transport(step)
        return step.result
