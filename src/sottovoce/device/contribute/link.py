"""A custodian's link to the server: gets releases, sends reports, and waits where it must.

As for any other device, ``releases.py`` checks releases and ``sending.py`` checks answers. This
module decides only how long to wait.

Whoever watches the network sees when requests are made. Rows are read and privatised in turns: a
turn begins when a release has come, and the next request follows at its end. How long a turn takes
depends on how many rows and features it has, which is public, and on a coin, but not on what is in
the rows.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from secrets import SystemRandom
from typing import cast

from sottovoce.device.contribute.journal import Journal
from sottovoce.device.contribute.rows import Columns
from sottovoce.device.contribute.summary import OnProgress
from sottovoce.device.releases import HEADERS, Releases, Verified
from sottovoce.device.sending import Backoff, Sender, table_of
from sottovoce.device.transport import Request, Response, Transport, run, send
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, RowsError, TransportError, must
from sottovoce.shared.release import Release

# Waiting does not help here: the address or the experiment is wrong.
_NOT_HERE = frozenset({400, 401, 403, 404, 410})

# The most seconds to wait for the learner to count a chunk, and between two looks at its progress.
MOMENT, LOOK_EVERY = 1.0, 0.03

# How long a turn takes: for files and the journal, for each row, and for each feature of a row. On
# an idle desktop `whisper` takes 0.04 ms for a row and 0.002 ms for a feature; the rest is for
# slower and busier machines. 100,000 rows of a few features then take two minutes to look at, and
# two to four to send.
SECONDS_A_TURN, SECONDS_A_ROW, SECONDS_A_FEATURE = 0.1, 0.001, 0.00002

# Up to this much longer, by chance, so that what the end of a turn still shows of the machine's
# load is blurred.
JITTER = 0.1

OnWait = Callable[[str, float], None]
"""Called before a pause, with the trouble and the seconds."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What decides when requests are made; tests have a clock of their own.

    now: seconds, monotonic. sleep: waits for some seconds.
    chance: a random number in [0, 1), drawn without a look at any data.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = field(default_factory=lambda: SystemRandom().random)


@dataclass(frozen=True, slots=True, kw_only=True)
class Custodian:
    """Whose rows are contributed, and how.

    experiment: its fingerprint. keys: the public keys that may sign its releases.
    population: whose rows these are. epsilon: the most ε that one row may spend.
    columns: which columns of the files hold what.
    state: the journal; see ``default_state``. Keep it: if it is deleted or restored from a copy,
        rows may be reported twice, at 2ε.
    refused: a file that lists the rows that do not fit, with file, line and reason.
    only_check: say which rows fit, and send nothing.
    most_unfit: the largest share of a file's rows that may not fit. With more, it is probably the
        wrong file, or has other columns: nothing is sent, and nothing spent.
    chunk: how many rows are read, privatised and sent at once. With fewer rows, reports follow the
        releases more closely. By default, as many as the learner takes in between two steps.
    patience: the run stops after this many seconds without any success at the server.
    progress: called after each chunk. on_wait: called before each pause.
    """

    experiment: str
    keys: Sequence[str]
    population: str
    epsilon: float
    columns: Columns = field(default_factory=Columns)
    state: str | PathLike[str] | None = None
    refused: str | PathLike[str] | None = None
    only_check: bool = False
    most_unfit: float = 0.2
    chunk: int | None = None
    patience: float = 300.0
    transport: Transport = send
    clock: Clock = field(default_factory=Clock)
    progress: OnProgress = lambda path, done, rows: None
    on_wait: OnWait = lambda trouble, seconds: None

    def __post_init__(self) -> None:
        if self.chunk is not None:
            check.whole_number(self.chunk, what="chunk", least=1)
        share = check.finite_float(self.most_unfit)
        if share is None or not 0 <= share <= 1:
            raise RowsError(must("most_unfit", "be a share from 0 to 1", repr(self.most_unfit)))


class Link:
    """One experiment on one server.

    taken: how many reports the server has taken. repeated: how many of these it had before.
    refused: how many the server refused for good, by reason.
    """

    def __init__(self, server: str, custodian: Custodian) -> None:
        self._experiment = custodian.experiment
        self._releases = Releases(server, experiment=self._experiment, keys=custodian.keys)
        self._server = self._releases.server
        self._transport = custodian.transport
        self._patience, self._on_wait = custodian.patience, custodian.on_wait
        self._clock = clock = custodian.clock
        self._backoff = Backoff(clock=clock.now, jitter=clock.chance)
        self._success = self._turn_began = clock.now()
        self._features = 0
        self._trouble = ""
        self._known: Verified | None = None
        self.taken = 0
        self.repeated = 0
        self.refused: Counter[str] = Counter()
        self.put_off: Counter[str] = Counter()

    def release(self) -> Release:
        """Return the newest release, verified, and never an older one than before.

        A turn begins: until ``wait_for_turn``, nothing may be requested.
        """
        self._success = self._clock.now()
        while True:
            try:
                newest = run(self._releases.newest(self._known), self._answer)
            except TransportError:
                response = self._releases.answer
                if response is not None and response.status in _NOT_HERE:
                    rule = f"have experiment {self._experiment}"
                    raise ExperimentError(must("the server", rule, self._trouble)) from None
                self._backoff.failed(response)
                self._wait()
                continue
            self._backoff.succeeded()
            # An older one is left aside, so there is one that it is older than.
            self._known = newest or cast(Verified, self._known)
            self._features = self._known.release.experiment.dimension
            self._turn_began = self._clock.now()
            return self._known.release

    def wait_for_turn(self, rows: int) -> None:
        """Wait until the turn ends, in which some rows were read.

        If a machine is too slow for that, the turn is as long as two turns, or three, and so on.
        Then it can be seen how many these are, and nothing finer.

        rows: how many; their number is public, and nothing else of them counts.
        """
        a_row = SECONDS_A_ROW + SECONDS_A_FEATURE * self._features
        turn = (SECONDS_A_TURN + a_row * rows) * (1 + JITTER * self._clock.chance())
        took = self._clock.now() - self._turn_began
        self._clock.sleep(max(1, math.ceil(took / turn)) * turn - took)

    def send(self, journal: Journal) -> None:
        """Send all reports that wait in a journal."""
        sender = Sender(
            self._server, experiment=self._experiment, outbox=journal, backoff=self._backoff
        )
        self._success = self._clock.now()
        waiting = journal.count(experiment=self._experiment)
        while waiting:
            self.taken += run(sender.send(), self._answer)
            left = journal.count(experiment=self._experiment)
            if left < waiting:
                self._success = self._clock.now()
            if left:
                self._wait()
            waiting = left
        self.refused += sender.refused
        self.put_off += sender.put_off
        self.repeated += sender.repeated

    def wait_for_learner(self) -> None:
        """Give the learner time to count what was sent, so that the next rows use its new policy.

        A report for an older release tells the learner less. It is still counted.
        """
        address = f"{self._server}/experiments/{self._experiment}/status"
        page = Request("GET", address, dict(HEADERS))
        deadline = self._clock.now() + MOMENT
        while self._clock.now() < deadline and _is_behind(self._answer(page)):
            self._clock.sleep(LOOK_EVERY)

    def _answer(self, request: Request) -> Response | None:
        try:
            response = self._transport(request)
        except (TransportError, OSError):
            self._trouble = "no answer"
            return None
        self._trouble = f"status {response.status}"
        return response

    def _wait(self) -> None:
        """Wait until the next try is due, or give up if that is too late."""
        wait = self._backoff.wait
        if self._clock.now() + wait - self._success > self._patience:
            rule = f"answer as it should within {self._patience:g} s"
            trouble = f"{self._trouble}. Nothing is lost: start again with the same journal"
            raise TransportError(must("the server", rule, trouble))
        self._on_wait(self._trouble, wait)
        self._clock.sleep(wait)


def _is_behind(response: Response | None) -> bool:
    """Return whether the server has stored reports that its learner has not counted yet."""
    table = (table_of(response) or {}) if response and response.status == 200 else {}
    stored, learned = table.get("stored"), table.get("learned")
    return type(stored) is int and type(learned) is int and stored > learned
