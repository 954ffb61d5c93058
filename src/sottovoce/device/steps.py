"""What the two clients share: operations as steps, with all waiting left to whoever runs them.

An operation is a generator. It yields a ``Request`` and is sent the ``Response``, or None where
none came; or it yields a ``Pause`` and is sent None when that is over. So everything that decides
anything is written once, and ``Client`` and ``AsyncClient`` only differ in how they wait.
"""

from collections.abc import Generator
from dataclasses import dataclass
from threading import RLock
from typing import Generic, TypeVar

from sottovoce.device.transport import Request, Response

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """The operation is over."""

    result: Result


Steps = Generator[Request | Pause, Response | None, Result]


class Runner:
    """Runs steps one at a time. The lock is never held while anybody waits for the network."""

    def __init__(self) -> None:
        self._lock = RLock()

    def _step(
        self, steps: Steps[Result], response: Response | None
    ) -> Request | Pause | Done[Result]:
        """Go on to the next step."""
        with self._lock:
            try:
                return steps.send(response)
            except StopIteration as stop:
                return Done(stop.value)
