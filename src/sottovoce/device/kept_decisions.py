"""Decisions that wait for their outcome, kept in the outbox: they survive restarts and crashes.

Of each decision there is what its report will need: the release, the population, the question and
the answer but for the outcome (``DeviceMethod.prepare``). There is no context and no arm. With
``whisper`` the answer was privatised before it is kept, so that even the file tells no more about
the person than ε allows.

Each decision ends in exactly one report, in one transaction that removes the one and adds the
other. If no outcome comes until the decision expires, the report says nothing. Where an experiment
has a ``reward_window``, a report waits in the outbox until its decision would have expired. So the
moment of a report follows from the moment of the choice alone, and does not tell whether there was
an outcome, or when.
"""

import secrets
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sottovoce.device.coins import KEY_BYTES
from sottovoce.device.deciding import Drawn
from sottovoce.device.decision import NOT_ASKED, Decision
from sottovoce.device.outbox import Outbox, put_report
from sottovoce.device.privatise import finish, outcome_of
from sottovoce.shared import wire
from sottovoce.shared.errors import DeviceError, OutboxError
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.report import Report

OPEN_FOR = timedelta(days=1)
"""How long a decision stays open where the experiment has no ``reward_window``."""

LAST = datetime(9999, 12, 31, tzinfo=UTC)
"""When a decision expires on which nobody will report."""


class KeptDecisions:
    """The open decisions of one experiment.

    now: seconds since 1970, by the clock on the wall: a decision outlives the process.
    """

    def __init__(self, outbox: Outbox, *, experiment: str, now: Callable[[], float]) -> None:
        self._outbox = outbox
        self._experiment = experiment
        self._now = now

    def expires(self, experiment: Experiment) -> datetime:
        """Return when a decision of now expires."""
        try:
            return datetime.fromtimestamp(self._now(), UTC) + (experiment.window or OPEN_FOR)
        except (OverflowError, ValueError, OSError):
            return LAST  # a clock that is wrong by millennia

    def open(self, drawn: Drawn, experiment: Experiment) -> Decision:
        """Keep a decision; with a file, it is on disk when this returns."""
        expires = self.expires(experiment)
        if drawn.prepared is None:
            return Decision(NOT_ASKED, drawn.arm, expires, asked=False)
        number = secrets.token_hex(16)
        row = (
            number,
            self._experiment,
            int(expires.timestamp()),
            experiment.window is not None,
            drawn.release,
            drawn.population,
            drawn.prepared.question,
            bytes(drawn.prepared.ranking),
            drawn.prepared.kept,
        )
        with self._outbox.transaction() as database:
            database.execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return Decision(number, drawn.arm, expires)

    def report(self, number: str, experiment: Experiment, *, reward: float | None) -> None:
        """Finish a decision: its report is in the outbox when this returns."""
        outcome_of(experiment, reward)  # an outcome that cannot be used leaves the decision open
        with self._outbox.transaction() as database:
            statement = "SELECT expires FROM decision WHERE id = ? AND experiment = ?"
            row = database.execute(statement, (number, self._experiment)).fetchone()
            if row is None:
                raise DeviceError(
                    "a decision must be open to be reported on; this one was reported on before,"
                    " has expired, or was never made here"
                )
            if row[0] > self._now():
                self._finish(database, number, experiment, reward=reward)
                return
        self.expire(experiment)
        raise DeviceError(
            "a decision must be reported on before it expires; this one has expired, and its"
            " report says nothing"
        )

    def expire(self, experiment: Experiment) -> int:
        """Turn decisions that have expired into reports that say nothing; return how many."""
        with self._outbox.transaction() as database:
            self._set_back(database, experiment)
            statement = "SELECT id FROM decision WHERE experiment = ? AND expires <= ? ORDER BY id"
            over = database.execute(statement, (self._experiment, int(self._now()))).fetchall()
            for (number,) in over:
                self._finish(database, number, experiment, reward=None)
        return len(over)

    def count(self) -> int:
        """Return how many decisions are open."""
        with self._outbox.transaction() as database:
            statement = "SELECT count(*) FROM decision WHERE experiment = ?"
            return int(database.execute(statement, (self._experiment,)).fetchone()[0])

    def key(self) -> bytes:
        """Return the random key of this device by which a person keeps an arm; draw it once."""
        with self._outbox.transaction() as database:
            fresh = (self._experiment, secrets.token_bytes(KEY_BYTES))
            database.execute("INSERT OR IGNORE INTO sticky VALUES (?, ?)", fresh)
            statement = "SELECT key FROM sticky WHERE experiment = ?"
            (key,) = database.execute(statement, (self._experiment,)).fetchone()
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise OutboxError("an outbox must hold a key of 32 bytes for its arms; it is damaged")
        return key

    def _set_back(self, database: sqlite3.Connection, experiment: Experiment) -> None:
        """Let nothing wait for longer than a window: the clock was ahead, and was set back."""
        latest = int(self.expires(experiment).timestamp())
        for statement in (
            "UPDATE decision SET expires = ? WHERE experiment = ? AND expires > ?",
            "UPDATE waiting SET due = ? WHERE experiment = ? AND due > ?",
        ):
            database.execute(statement, (latest, self._experiment, latest))

    def _finish(
        self,
        database: sqlite3.Connection,
        number: str,
        experiment: Experiment,
        *,
        reward: float | None,
    ) -> None:
        """Put the report of a decision in the place of the decision."""
        row = database.execute("SELECT * FROM decision WHERE id = ?", (number,)).fetchone()
        database.execute("DELETE FROM decision WHERE id = ?", (number,))
        _, _, expires, held, release, population, question, ranking, kept = row
        if [type(each) for each in (release, ranking, kept)] != [bytes] * 3:
            raise OutboxError("an outbox must hold decisions as they were made; it is damaged")
        report = Report(
            release=release,
            population=population,
            nonce=secrets.token_bytes(16),
            payload=finish(experiment, kept, reward=reward),
            question=question,
            ranking=tuple(ranking),
        )
        due = expires if held else 0
        document = wire.report_to_bytes(report)
        put_report(database, document, experiment=self._experiment, due=due)
