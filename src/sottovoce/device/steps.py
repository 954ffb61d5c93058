"""What the two clients share: operations as steps, without any waiting.

An operation is a generator. It yields a ``Request`` and is sent the ``Response``, or None if none
came. Or it yields a ``Pause`` and is sent None when the pause is over. So every decision is written
once, and ``Client`` and ``AsyncClient`` differ only in how they wait.
"""

from collections.abc import Generator
from dataclasses import dataclass
from threading import RLock
from typing import Generic, TypeVar

from sottovoce.device.transport import Request, Response

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """The operation is over."""

    result: Result


Steps = Generator[Request | Pause, Response | None, Result]


class Runner:
    """Runs one step at a time. It holds no lock while a client waits for the network."""

    def __init__(self) -> None:
        self._lock = RLock()

    def _step(
        self, steps: Steps[Result], response: Response | None
    ) -> Request | Pause | Done[Result]:
        """Run an operation up to its next step."""
        with self._lock:
            try:
                return steps.send(response)
            except StopIteration as stop:
                return Done(stop.value)
