r"""Reports that are kept no longer: folded into a learner's sums and a hash, and then erased.

An operator may ask that reports be kept for some days only. Once a day the learner notes how long
the log is; nothing finer is known of when a report came. When all reports up to a position are old
enough, a second learner counts them once more, from the end of the fold before. Only if the very
releases come of it that were published, this learner is stored as a checkpoint, and the bodies are
erased. From then on restarts and replays begin at the checkpoint.

What was there is tied to what is left by a hash:

    hash of fold 0  =  SHA-256("sottovoce fold 1\n" | the experiment's fingerprint, 32 bytes)
    hash of fold i  =  SHA-256(hash of fold i - 1 | its last position, u64 | SHA-256 of its reports
                               | SHA-256 of the checkpoint's text)

The reports of a fold are hashed in order, each after its length, u32; numbers are little-endian.
So whoever has an older copy of the log can show that it is what was folded, and nobody can change
one fold without all that follow.
"""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from sottovoce.estimate.learner import Learner
from sottovoce.server.following import learn, pieces, stretches, take
from sottovoce.server.store.chained import hash_after
from sottovoce.server.store.store import Fold, LearnerSession, LoggedRelease
from sottovoce.shared.errors import ExperimentError, StateError, StoreDamaged, must
from sottovoce.shared.experiment import Experiment

logger = logging.getLogger(__name__)

DAY = timedelta(days=1)
# Reports whose bodies are erased in one transaction: others wait for it.
ERASED_AT_ONCE = 20_000


def whole_days(keep: timedelta) -> timedelta:
    """Return for how long reports are kept, if that can be: days are all that is noted."""
    if keep < DAY or keep % DAY:
        raise ExperimentError(must("keep-reports", "be a whole number of days, at least 1", keep))
    return keep


def today() -> date:
    """Return the day, in UTC."""
    return datetime.now(UTC).date()


class Retention:
    """Folds the old reports of one experiment, a piece at a time, beside its learner."""

    def __init__(self, session: LearnerSession, experiment: Experiment, *, keep: timedelta) -> None:
        self._session = session
        self._experiment = experiment
        self._keep = keep
        self._noted: date | None = None
        self._due = 0
        self._work: Iterator[None] | None = None
        self._is_given_up = False

    def turn(self, *, learned: int) -> None:
        """Note the day, if it is a new one; do some of the work, if there is any.

        learned: up to where the log was counted and its releases are published.
        """
        if self._is_given_up:
            return
        now = today()
        if now != self._noted:
            self._session.note_day(now.isoformat())
            # What was noted on a day may have come on that day: it is old one day later.
            self._due = self._session.arrived_by((now - self._keep - DAY).isoformat())
            self._noted = now
            self._work = self._work or self._fold(self._due)
        if self._work is None or learned < self._due:
            return
        try:
            if next(self._work, self) is self:
                self._work = None
        except (StoreDamaged, StateError) as error:
            self._is_given_up = True
            text = "no report of %s is erased: %s"
            logger.error(text, self._experiment.fingerprint, error)

    def _fold(self, until: int) -> Iterator[None]:
        """Fold up to a position, and erase; begin with what a process that died has left."""
        session = self._session
        folds = session.folds()
        if folds:
            yield from self._erase(folds[-1])
        if until <= (folds[-1].position if folds else 0):
            return
        learner, position = begin(session, self._experiment, folds)
        number, before = len(folds) + 1, last_hash(self._experiment.fingerprint, folds)
        published = session.releases_until(until, after=learner.release().version)
        amendments = session.amendments(after=len(learner.experiment.amendments))
        taken = [one for one in amendments if one.position is not None and one.position <= until]
        hashed = ReportsHash()
        log_hash = session.chained(self._experiment.fingerprint).before
        again: list[LoggedRelease] = []
        for end, amendment in stretches(taken, until=until):
            for reports in pieces(session.read, after=position, until=end):
                hashed.add(reports)
                log_hash = hash_after(log_hash, reports)
                again += learn(learner, reports, position=position)
                position += len(reports)
                yield
            if amendment is not None:
                again.append(take(learner, amendment, position=position)[1])
        if position != until or again != published:
            raise StoreDamaged("its releases must follow from its log; they do not: see replay")
        text = learner.to_json()
        reports_hash, learner_hash = hashed.hexdigest(), text_hash(text)
        chained = next_hash(before, until, reports_hash, learner_hash)
        erased = folds[-1].position if folds else 0
        fold = Fold(number, until, reports_hash, learner_hash, chained, erased)
        session.fold(fold, text, chained=log_hash)
        logger.info("folded %s up to report %s", self._experiment.fingerprint, until)
        yield
        yield from self._erase(fold)

    def _erase(self, fold: Fold) -> Iterator[None]:
        erased = fold.erased
        if erased == fold.position:
            return
        while erased < fold.position:
            until = min(erased + ERASED_AT_ONCE, fold.position)
            now = Fold(fold.number, fold.position, fold.reports, fold.learner, fold.hash, erased)
            self._session.erase(now, until=until)
            erased = until
            yield
        self._session.forget()


def begin(
    session: LearnerSession, experiment: Experiment, folds: Sequence[Fold]
) -> tuple[Learner, int]:
    """Return the learner at the end of the last fold; a new one where nothing was folded."""
    if not folds:
        return Learner(experiment), 0
    return checkpoint_of(folds[-1], session.checkpoint())


def checkpoint_of(fold: Fold, stored: tuple[int, str] | None) -> tuple[Learner, int]:
    """Read the learner at the end of a fold, which has to be the one that was stored then."""
    if stored is None or stored[0] != fold.position or text_hash(stored[1]) != fold.learner:
        raise StoreDamaged(f"the checkpoint must be that of fold {fold.number}; it is not")
    try:
        learner = Learner.from_json(stored[1])
    except StateError as error:
        hint = "the reports before it are gone: use the version of sottovoce that wrote it"
        raise StoreDamaged(f"the checkpoint must be readable; {error}; {hint}") from None
    if sum(learner.status().reports.values()) != fold.position:
        raise StoreDamaged(f"the checkpoint must have counted {fold.position} reports")
    return learner, fold.position


class ReportsHash:
    """The hash of the reports of a fold."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, reports: Sequence[bytes]) -> None:
        """Add reports, in order."""
        for body in reports:
            self._hash.update(len(body).to_bytes(4, "little") + body)

    def hexdigest(self) -> str:
        """Return the hash of those that were added."""
        return self._hash.hexdigest()


def text_hash(text: str) -> str:
    """Return the hash of a checkpoint's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def next_hash(before: str, position: int, reports: str, learner: str) -> str:
    """Return the hash of a fold and all before."""
    parts = bytes.fromhex(before), position.to_bytes(8, "little")
    return hashlib.sha256(b"".join((*parts, *map(bytes.fromhex, (reports, learner))))).hexdigest()


def last_hash(fingerprint: str, folds: Sequence[Fold]) -> str:
    """Return the hash that the next fold follows, if all before follow from each other."""
    hashed = hashlib.sha256(b"sottovoce fold 1\n" + bytes.fromhex(fingerprint)).hexdigest()
    position = 0
    for number, fold in enumerate(folds, start=1):
        hashed = next_hash(hashed, fold.position, fold.reports, fold.learner)
        whole = fold.number == number and position < fold.position and hashed == fold.hash
        if not whole or fold.erased > fold.position:
            raise StoreDamaged(f"fold {number} must follow from those before it; it does not")
        position = fold.position
    return hashed
