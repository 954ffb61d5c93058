"""The same client for asyncio."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Unpack

from sottovoce.device.decision import Decision
from sottovoce.device.session import ClientSettings, Done, Pause, Result, Session, Steps
from sottovoce.device.transport import AsyncTransport, Request, Response, send
from sottovoce.shared.errors import TransportError


async def send_in_thread(request: Request) -> Response:
    """Send a request with the standard library, in a thread."""
    return await asyncio.to_thread(send, request)


class AsyncClient(Session):
    """``Client`` for asyncio: the same settings, the same methods, each to be awaited.

    Its steps write to the disk and verify signatures. They run in threads, so that the event loop
    never waits for them. A step runs to its end even if the task that awaits it is cancelled: if
    budget was spent on a report, the report is in the outbox.
    """

    def __init__(
        self,
        server: str,
        *,
        transport: AsyncTransport = send_in_thread,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **settings: Unpack[ClientSettings],
    ) -> None:
        super().__init__(server, **settings)
        self._transport = transport
        self._sleep = sleep

    async def refresh(self) -> bool:
        """Ask for a newer release now, and return whether there was one."""
        return await self._run(self._refresh())

    async def choose(self, context: Mapping[str, Any]) -> Decision:
        """Return the arm for this person. It works offline, once the client has a release."""
        return await self._run(self._choose(context))

    async def report(self, decision: Decision | str, *, reward: float | bool | None) -> None:
        """Finish a decision: privatise its outcome, and keep the report. It is sent later."""
        await self._run(self._report(decision, reward))

    async def leave(self) -> None:
        """Leave the experiment for good: forget all that is kept of it, and send nothing more."""
        await self._run(self._leave())

    async def send(self) -> int:
        """Send the reports in the outbox; return how many the server has taken."""
        return await self._run(self._send())

    async def flush(self, timeout: float = 60.0) -> bool:
        """Send the reports in the outbox, with pauses; return whether all are sent."""
        return await self._run(self._flush(timeout))

    async def _run(self, steps: Steps[Result]) -> Result:
        response: Response | None = None
        while not isinstance(step := await asyncio.to_thread(self._step, steps, response), Done):
            response = None
            if isinstance(step, Pause):
                await self._sleep(step.seconds)
                continue
            with suppress(TransportError, OSError):
                response = await self._transport(step)
        return step.result
