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

from sottovoce.device.coins import Coins, FreshCoins, StickyCoins
from sottovoce.device.deciding import DecidingDevice
from sottovoce.device.decision import NOT_ASKED, Decision
from sottovoce.device.kept_decisions import LAST, KeptDecisions
from sottovoce.device.ledger import AnyLedger
from sottovoce.device.one_report import OneKeptReport
from sottovoce.device.outbox import Kept, Outbox
from sottovoce.device.releases import Releases, Verified, left_at
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
    sticky: bool
    default: str | None
    shipped: bytes | None
    refresh_every: float
    clock: Callable[[], float]
    now: Callable[[], float]
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
    sticky: bool = True
    default: str | None = None
    shipped: bytes | None = None
    refresh_every: float = 3600.0
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
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
        self._outbox = Outbox(chosen.outbox, now=chosen.now)
        self._decisions = KeptDecisions(self._outbox, experiment=chosen.experiment, now=chosen.now)
        self._sticky = chosen.sticky
        self._default = chosen.default
        self._ledger = OneKeptReport(self._outbox) if chosen.ledger is None else chosen.ledger
        self._make_device = partial(
            DecidingDevice,
            population=chosen.population,
            ledger=self._ledger,
            most_epsilon=most_epsilon,
            public_arms=chosen.public_arms,
        )
        self._device: DecidingDevice | None = None
        self._clock = chosen.clock
        self._jitter = chosen.jitter
        self._refresh_every = chosen.refresh_every
        self._next_look = chosen.clock()
        self._trouble: tuple[type[SottovoceError], str] = (TransportError, "none was asked for")
        self._looking = Backoff(clock=chosen.clock, jitter=chosen.jitter)
        self._sender = Sender(
            self._releases.server,
            experiment=chosen.experiment,
            outbox=self._outbox,
            backoff=Backoff(clock=chosen.clock, jitter=chosen.jitter),
        )
        self._known: Verified | None = None
        if self._catch_up() is None and chosen.shipped is not None:
            self._begin_with(chosen.shipped)

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
        """How many reports wait to be sent, those that are not due yet among them."""
        with self._lock:
            self._expire()
            return self._outbox.count(experiment=self._experiment)

    @property
    def open(self) -> int:
        """How many decisions wait for their outcome."""
        with self._lock:
            self._expire()
            return self._decisions.count()

    @property
    def refused(self) -> Counter[str]:
        """How many reports this client has seen refused for good, by reason."""
        return Counter(self._sender.refused)

    def _refresh(self) -> Steps[bool]:
        if self._outbox.has_left(experiment=self._experiment):
            return False
        # With jitter, so that devices that began together do not come in the same second.
        self._next_look = self._clock() + self._refresh_every * (0.5 + self._jitter())
        try:
            moved = yield from self._look()
        except SottovoceError as error:
            self._next_look = self._clock()
            self._looking.failed(self._releases.answer)
            # Not the error itself: it would keep the caller's frames alive.
            self._trouble = type(error), str(error)
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
        trail = self._outbox.trail(experiment=self._experiment)
        found = yield from self._releases.newest(self._known, trail)
        if found is None or (self._known is not None and found.point == self._known.point):
            return self._known is not before
        device = self._device or self._make_device(found.release)
        device.check(found.release)
        if not self._keep(found, instead_of=kept):
            return self._known is not before  # another one has moved on meanwhile: look again later
        device.follow(found.release)
        self._device, self._known = device, found
        return True

    def _keep(self, found: Verified, *, instead_of: Kept | None) -> bool:
        """Keep a release; after a restore, give back the ε of what was never sent and is lost."""
        known = self._known
        restore = None if known is None else left_at(found.release, known.release)
        erased = self._outbox.keep(
            Kept(*found.point, found.document),
            experiment=self._experiment,
            instead_of=instead_of,
            followed=[each.followed for each in (known, found) if each is not None],
            after=None if restore is None else restore.release,
        )
        if erased is None:
            return False
        # A ledger of one's own need not be able to take anything back: then ε stays spent.
        give_back = getattr(self._ledger, "give_back", None)
        for version, count in erased.items():
            if give_back is not None:
                give_back(experiment=self._experiment, release=version, count=count)
        if restore is not None:
            text = "the server was restored and goes on from release %s, as branch %s; %s reports"
            text += " for what it has lost were erased before they were sent"
            _logger.warning(text, restore.release, (restore.branch or "")[:8], erased.total())
        return True

    def _catch_up(self) -> Kept | None:
        """Follow what another process has kept since; return what is kept."""
        kept = self._outbox.kept(experiment=self._experiment)
        link = b"" if self._known is None else self._known.signed.link
        if kept is not None and kept.link != link:  # after a restore, its version may be lower
            try:
                found = self._releases.verify(kept.release)
                device = self._device or self._make_device(found.release)
                device.follow(found.release)
                self._device, self._known = device, found
            except SottovoceError as error:
                # Its key may not be trusted any more: then nothing has to continue what it signed.
                _logger.warning("the release that was kept was not used: %s", error)
        return kept

    def _begin_with(self, shipped: bytes) -> None:
        """Follow the release that came with the app, until a server is reached."""
        found = self._releases.verify(shipped)
        device = self._make_device(found.release)
        new = Kept(*found.point, found.document)
        keep = self._outbox.keep
        if keep(new, experiment=self._experiment, instead_of=None) is not None:
            self._device, self._known = device, found

    def _choose(self, context: Mapping[str, Any]) -> Steps[Decision]:
        if self._outbox.has_left(experiment=self._experiment):
            return self._without_policy(DeviceError("this person has left the experiment"))
        # The network comes first: nothing about this person decides whether there is a request.
        due = self._device is None or self._clock() >= self._next_look
        if due and not self._looking.wait:
            yield from self._look_and_send()
        if self._device is None:
            kind, trouble = self._trouble
            kind = kind if issubclass(kind, TransportError) else TransportError
            return self._without_policy(
                kind(f"a first release must come from the server; {trouble}")
            )
        self._expire()
        experiment = self._device.experiment
        with self._outbox.room():
            drawn = self._device.draw(context, coins=self._coins())
        decision = self._decisions.open(drawn, experiment)
        if drawn.trouble is not None:
            # Its report will say nothing, when the decision expires that nobody was given.
            raise drawn.trouble
        return decision

    def _coins(self) -> Coins:
        return StickyCoins(self._decisions.key()) if self._sticky else FreshCoins()

    def _without_policy(self, trouble: SottovoceError) -> Decision:
        """Serve the default arm, if there is one; nobody is asked how it went."""
        if self._default is None:
            raise trouble
        return Decision(NOT_ASKED, self._default, LAST, asked=False)

    def _expire(self) -> None:
        """Let decisions end whose time is over."""
        if self._device is not None:
            self._decisions.expire(self._device.experiment)

    def _look_and_send(self) -> Steps[None]:
        try:
            yield from self._refresh()
        except SottovoceError as error:
            # With a good release at hand, a bad one must not keep a person from an arm.
            if self._device is None:
                raise
            _logger.warning("a release was not used: %s", error)
        yield from self._send()

    def _report(self, decision: Decision | str, reward: float | bool | None) -> Steps[None]:
        number = decision.id if isinstance(decision, Decision) else decision
        if number == NOT_ASKED:
            return
        if self._device is None:
            raise DeviceError("choose must come before a report; nothing was chosen yet")
        # The report goes to the outbox. If it went out at once, its moment would tell when the
        # outcome came.
        self._decisions.report(number, self._device.experiment, reward=reward)
        yield from ()

    def _leave(self) -> Steps[None]:
        self._outbox.leave(experiment=self._experiment)
        self._device = self._known = None
        yield from ()

    def _send(self) -> Steps[int]:
        self._expire()
        return (yield from self._sender.send())

    def _flush(self, timeout: float) -> Steps[bool]:
        deadline = self._clock() + timeout
        while True:
            yield from self._send()
            if not self._outbox.due(experiment=self._experiment):
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
