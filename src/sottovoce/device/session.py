"""What a client does, as steps: get releases, choose, report, send.

An operation is a generator. It yields a ``Request`` and is sent the ``Response``, or None if none
came. Or it yields a ``Pause`` and is sent None when the pause is over. So every decision is written
once, and ``Client`` and ``AsyncClient`` differ only in how they wait.
"""

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from threading import RLock
from typing import Any, Generic, Required, TypedDict, TypeVar, Unpack

from sottovoce.device.device import Device
from sottovoce.device.kept_coins import KeptCoins, OneKeptReport
from sottovoce.device.ledger import AnyLedger
from sottovoce.device.outbox import Kept, Outbox
from sottovoce.device.releases import Releases, Verified
from sottovoce.device.sending import Backoff, Sender
from sottovoce.device.transport import Request, Response
from sottovoce.shared import check
from sottovoce.shared.errors import DeviceError, SottovoceError, TransportError
from sottovoce.shared.experiment import TARGET
from sottovoce.shared.release import Release

_random = secrets.SystemRandom().random
_logger = logging.getLogger(__name__)

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


class ClientSettings(TypedDict, total=False):
    """The settings of both clients; ``Client`` explains them."""

    experiment: Required[str]
    keys: Required[Sequence[str]]
    outbox: str | PathLike[str] | None
    ledger: AnyLedger | None
    population: str
    most_epsilon: Required[float]
    public_arms: bool
    refresh_every: float
    clock: Callable[[], float]
    jitter: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The same settings, with what is taken where none was given."""

    experiment: str
    keys: Sequence[str]
    most_epsilon: float
    outbox: str | PathLike[str] | None = None
    ledger: AnyLedger | None = None
    population: str = TARGET
    public_arms: bool = False
    refresh_every: float = 3600.0
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = _random


class Session:
    """What both clients share: one device, the release it follows, and its outbox.

    It runs one step at a time, and holds no lock while a client waits for the network.
    """

    def __init__(self, server: str, **settings: Unpack[ClientSettings]) -> None:
        self._lock = RLock()
        chosen = _Chosen(**settings)
        self._experiment = chosen.experiment
        self._releases = Releases(server, experiment=chosen.experiment, keys=chosen.keys)
        most_epsilon = check.epsilon(chosen.most_epsilon, what="most_epsilon")
        self._outbox = Outbox(chosen.outbox)
        self._make_device = partial(
            Device,
            population=chosen.population,
            ledger=OneKeptReport(self._outbox) if chosen.ledger is None else chosen.ledger,
            most_epsilon=most_epsilon,
            public_arms=chosen.public_arms,
            coins=KeptCoins(self._outbox, experiment=chosen.experiment),
        )
        self._device: Device | None = None
        self._clock = chosen.clock
        self._jitter = chosen.jitter
        self._refresh_every = chosen.refresh_every
        self._next_look = chosen.clock()
        self._trouble = "none was asked for"
        self._looking = Backoff(clock=chosen.clock, jitter=chosen.jitter)
        self._sender = Sender(
            self._releases.server,
            experiment=chosen.experiment,
            outbox=self._outbox,
            backoff=Backoff(clock=chosen.clock, jitter=chosen.jitter),
        )
        self._known: Verified | None = None
        self._catch_up()

    @property
    def release(self) -> Release | None:
        """The release in use, if there is one yet."""
        return None if self._known is None else self._known.release

    @property
    def document(self) -> bytes | None:
        """The release in use as it was signed, to compare with what others were given."""
        return None if self._known is None else self._known.document

    @property
    def waiting(self) -> int:
        """How many reports wait to be sent."""
        with self._lock:
            return self._outbox.count(experiment=self._experiment)

    @property
    def refused(self) -> Counter[str]:
        """How many reports this client has seen refused for good, by reason."""
        return Counter(self._sender.refused)

    def _refresh(self) -> Steps[bool]:
        # With jitter, so that devices that began together do not come in the same second.
        self._next_look = self._clock() + self._refresh_every * (0.5 + self._jitter())
        try:
            moved = yield from self._look()
        except SottovoceError as error:
            self._next_look = self._clock()
            self._looking.failed(self._releases.answer)
            # Only the text is kept: the error itself would keep the caller's frames alive.
            self._trouble = str(error)
            if not isinstance(error, TransportError):
                raise
            if self._releases.answer is not None:
                _logger.warning("a release was not used: %s", error)
            return False
        self._looking.succeeded()
        return moved

    def _look(self) -> Steps[bool]:
        """Ask for a newer release, and follow it if it continues what was followed so far.

        The outbox decides what that is: threads and processes that share it follow one history.
        """
        before = self._known
        kept = self._catch_up()
        followed = None if self._known is None else self._known.point
        found = yield from self._releases.newest(followed)
        if found is None or (self._known is not None and found.point == self._known.point):
            return self._known is not before
        device = self._device or self._make_device(found.release)
        device.check(found.release)
        new = Kept(*found.point, found.document)
        if not self._outbox.keep(new, experiment=self._experiment, instead_of=kept):
            return self._known is not before  # another one has moved on meanwhile: look again later
        device.follow(found.release)
        self._device, self._known = device, found
        return True

    def _catch_up(self) -> Kept | None:
        """Follow what another process has kept since; return what is kept."""
        kept = self._outbox.kept(experiment=self._experiment)
        version = 0 if self._known is None else self._known.release.version
        if kept is not None and kept.version > version:
            try:
                found = self._releases.verify(kept.release)
                device = self._device or self._make_device(found.release)
                device.follow(found.release)
                self._device, self._known = device, found
            except SottovoceError as error:
                # Its key may not be trusted any more: then nothing has to continue what it signed.
                _logger.warning("the release that was kept was not used: %s", error)
        return kept

    def _choose(self, context: Mapping[str, Any]) -> Steps[str]:
        # The network comes first: nothing about this person decides whether there is a request.
        due = self._device is None or self._clock() >= self._next_look
        if due and not self._looking.wait:
            yield from self._look_and_send()
        if self._device is None:
            raise TransportError(f"a first release must come from the server; {self._trouble}")
        return self._device.choose(context)

    def _look_and_send(self) -> Steps[None]:
        try:
            yield from self._refresh()
        except SottovoceError as error:
            # With a good release at hand, a bad one must not keep a person from an arm.
            if self._device is None:
                raise
            _logger.warning("a release was not used: %s", error)
        yield from self._sender.send()

    def _report(self, reward: float | None) -> Steps[None]:
        if self._device is None:
            raise DeviceError("choose must come before each report; nothing was chosen yet")
        # The report goes to the outbox. If it went out at once, its moment would tell when the
        # outcome came.
        self._device.report(reward=reward)
        yield from ()

    def _send(self) -> Steps[int]:
        return (yield from self._sender.send())

    def _flush(self, timeout: float) -> Steps[bool]:
        deadline = self._clock() + timeout
        while True:
            yield from self._sender.send()
            if not self.waiting:
                return True
            wait = self._sender.backoff.wait
            if self._clock() + wait > deadline:
                return False
            yield Pause(wait)

    def _step(
        self, steps: Steps[Result], response: Response | None
    ) -> Request | Pause | Done[Result]:
        """Run an operation up to its next step."""
        with self._lock:
            try:
                return steps.send(response)
            except StopIteration as stop:
                return Done(stop.value)
