"""The learner at work: the log → the next release. One process at a time for each experiment.

What it keeps beside the log is only to save time: the learner's state, so that a restart need not
begin at the first report, and a snapshot for those who ask how far it is. Both follow from the log
and the amendments, as do the releases: ``replay.py`` works them out again.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from sottovoce.estimate.learner import Learner
from sottovoce.server import following
from sottovoce.server.amendments import text_of
from sottovoce.server.diagnosis import DiagnosisCache
from sottovoce.server.following import learn, pieces, stretches, take
from sottovoce.server.health import Pulse
from sottovoce.server.retention import Retention, begin, last_hash
from sottovoce.server.status import Snapshot
from sottovoce.server.store.store import LearnerSession, LoggedAmendment, LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.errors import SottovoceError, StateError, StoreDamaged, StoreError
from sottovoce.shared.experiment import Experiment

logger = logging.getLogger(__name__)

# Seconds between two snapshots: while reports flow, and when all are counted.
SNAPSHOT_EVERY, SNAPSHOT_EVERY_IDLE = 0.5, 0.05
# Seconds between two times that the learner is saved.
SAVE_EVERY = 10.0
# Seconds between two looks for experiments without a learner.
LOOK_EVERY = 0.25
# Seconds to wait when nothing came: little while reports flow, more when none do.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.25
# The same while the database is away or full: each try may have to learn some of the log again.
LONGEST_PAUSE_IN_TROUBLE = 2.0


class ExperimentLearner:
    """One experiment's learner, which follows the log until it is closed or its session is lost.

    keep: for how long reports are kept; None to keep all.
    """

    def __init__(
        self, session: LearnerSession, experiment: Experiment, *, keep: timedelta | None = None
    ) -> None:
        self._session = session
        self._learner, self._position = _resume(session, experiment)
        self._retention = Retention(session, experiment, keep=keep) if keep else None
        self._diagnosis = DiagnosisCache(self._learner)
        self._saved_at = time.monotonic()
        self._snapshot_at = 0.0
        self._snapshot_position = -1

    @property
    def published(self) -> tuple[int, str]:
        """The newest release that is in the database: its version and its text."""
        release = self._learner.release()
        return release.version, wire.release_to_json(release)

    def poll(self) -> bool:
        """Count what is new in the log and publish what follows; say whether there was any."""
        self._take_amendments()
        before = self._position
        releases: list[LoggedRelease] = []
        for reports in pieces(
            self._session.read, after=before, until=before + following.READ_AT_ONCE
        ):
            releases += learn(self._learner, reports, position=self._position)
            self._position += len(reports)
        has_counted = self._position > before
        now = time.monotonic()
        wait = SNAPSHOT_EVERY if has_counted else SNAPSHOT_EVERY_IDLE
        is_new = self._snapshot_position != self._position or self._diagnosis.is_due(self._position)
        snapshot = is_new and now - self._snapshot_at >= wait
        save = has_counted and now - self._saved_at >= SAVE_EVERY
        if releases or snapshot or save:
            self._write(releases, snapshot=snapshot, save=save)
        if self._retention is not None:
            self._retention.turn(learned=self._position)
        return has_counted

    def close(self) -> None:
        """Save the learner and let go of it."""
        try:
            self._diagnosis.at(self._position, at_once=True)
            self._write([], snapshot=True, save=True)
        finally:
            self._session.close()

    def abandon(self) -> None:
        """Let go without saving: what was learned may be ahead of what could be published."""
        self._session.close()

    def _take_amendments(self) -> None:
        """Take those that wait, here: their releases and their place are written at once."""
        learner = self._learner
        waiting = self._session.amendments(after=len(learner.experiment.amendments))
        if not waiting:
            return
        both = [take(learner, each, position=self._position) for each in waiting]
        amendments, releases = zip(*both, strict=True)
        self._write(releases, amendments=amendments, snapshot=True, save=False)

    def _write(
        self,
        releases: Sequence[LoggedRelease],
        *,
        amendments: Sequence[LoggedAmendment] = (),
        snapshot: bool,
        save: bool,
    ) -> None:
        position = self._position
        shown = Snapshot.of(self._learner, self._diagnosis.at(position)) if snapshot else None
        self._session.publish(
            releases,
            amendments=amendments,
            snapshot=(position, shown.to_json()) if shown else None,
            saved=(position, self._learner.to_json()) if save else None,
        )
        now = time.monotonic()
        if snapshot:
            self._snapshot_position, self._snapshot_at = position, now
        if save:
            self._saved_at = now


def _resume(session: LearnerSession, experiment: Experiment) -> tuple[Learner, int]:
    """Go on from the saved learner; where it is missing or unfit, from where reports are kept.

    Releases may have been published after it was saved; they are worked out once more and have to
    be the same.
    """
    folds = session.folds()
    last_hash(experiment.fingerprint, folds)
    learner, position = _saved(session, experiment) or (None, 0)
    if learner is None or (folds and position < folds[-1].position):
        learner, position = begin(session, experiment, folds)
        if not _has_taken(learner, session.amendments(), position=position):
            raise StoreDamaged("the amendments must be those that were folded; they are not")
    published = session.releases(after=learner.release().version)
    amendments = session.amendments(after=len(learner.experiment.amendments))
    taken = [each for each in amendments if not each.waits]
    until = published[-1].position if published else position
    again: list[LoggedRelease] = []
    retaken: list[LoggedAmendment] = []
    for end, amendment in stretches(taken, until=until):
        for reports in pieces(session.read, after=position, until=end):
            again += learn(learner, reports, position=position)
            position += len(reports)
        if amendment is not None:
            amendment, release = take(learner, amendment, position=position)
            retaken.append(amendment)
            again.append(release)
    if again != published or retaken != taken:
        raise StoreDamaged(
            f"the releases of {experiment.fingerprint} must follow from its log; they do not:"
            " see sottovoce replay"
        )
    return learner, position


def _saved(session: LearnerSession, experiment: Experiment) -> tuple[Learner, int] | None:
    """Return the saved learner and its position, if there is one and it fits the log."""
    try:
        saved = session.saved()
        if saved is None:
            return None
        learner, position = Learner.from_json(saved[1]), saved[0]
    except (StateError, StoreDamaged):
        fits = False
    else:
        release = learner.release()
        counted = sum(learner.status().reports.values())
        known = session.releases(after=release.version - 1)
        is_published = bool(known) and known[0].text == wire.release_to_json(release)
        fits = is_published and known[0].position <= position == counted <= session.length()
        fits = fits and _has_taken(learner, session.amendments(), position=position)
    if not fits:
        logger.warning("the saved learner of %s cannot be used", experiment.fingerprint)
        return None
    return learner, position


def _has_taken(learner: Learner, logged: Sequence[LoggedAmendment], *, position: int) -> bool:
    """Say whether a saved learner has taken what the database says that it had by then."""
    ours = [text_of(each) for each in learner.experiment.amendments]
    theirs = logged[: len(ours)]
    places = [-1 if each.position is None else each.position for each in theirs]
    return [each.text for each in theirs] == ours and all(0 <= at <= position for at in places)


class LearnerPool:
    """The learners of all experiments of a database that this process could get hold of."""

    def __init__(
        self, store: Store, *, keep: timedelta | None = None, pulse: Pulse | None = None
    ) -> None:
        self._store = store
        self._keep = keep
        self._pulse = pulse or Pulse(None)
        self._learners: dict[str, ExperimentLearner] = {}
        self._failed: dict[str, str] = {}
        self._published: dict[str, tuple[int, str]] = {}
        self._looked = -LOOK_EVERY
        self._warned = ""

    def poll(self) -> bool:
        """Let each learner count what is new; say whether there was any."""
        if time.monotonic() - self._looked >= LOOK_EVERY:
            self._take_over()
            self._looked = time.monotonic()
        has_counted = False
        for fingerprint, learner in list(self._learners.items()):
            with self._others_go_on(fingerprint, let_go=learner.abandon):
                has_counted |= learner.poll()
                self._published[fingerprint] = learner.published
                self._pulse.beat()
        self._pulse.beat()
        return has_counted

    def close(self) -> None:
        """Save and let go of all; go on with the others where one cannot be saved."""
        for learner in self._learners.values():
            try:
                learner.close()
            except StoreError as error:
                logger.warning("%s", error)
        self._learners.clear()

    def abandon(self) -> None:
        """Let go of all as they are."""
        for learner in self._learners.values():
            learner.abandon()
        self._learners.clear()
        self._looked = -LOOK_EVERY

    def _take_over(self) -> None:
        """Learn what nobody learns: new experiments, and those of a process that has died."""
        for fingerprint, text in self._store.experiments():
            if fingerprint in self._learners or fingerprint in self._failed:
                continue
            try:
                session = self._store.learner_session(fingerprint)
            except StoreError as error:
                if not self._learners:
                    raise
                # Each takes a connection, and there may be no more: the other learners go on.
                self._warn(f"experiment {fingerprint} has to wait for a learner: {error}")
                return
            if session is None:
                continue
            with self._others_go_on(fingerprint, let_go=session.close):
                session.on_read = self._pulse.beat
                self._check_published(session, fingerprint)
                experiment = Experiment.from_table(json.loads(text))
                learner = ExperimentLearner(session, experiment, keep=self._keep)
                self._learners[fingerprint] = learner
                logger.info("learning %s", fingerprint)

    def _check_published(self, session: LearnerSession, fingerprint: str) -> None:
        """Refuse a database that has lost what this process has published or read there."""
        version, text = self._published.get(fingerprint, (0, ""))
        there = session.releases(after=version - 1)[:1] if version else []
        if version and [(each.version, each.text) for each in there] != [(version, text)]:
            hint = "put the database back, or see sottovoce restore --declared"
            raise StoreDamaged(f"the database must have release {version}, which it had; {hint}")

    def _warn(self, text: str) -> None:
        if text != self._warned:  # once, however long it lasts
            self._warned = text
            logger.warning("%s", text)

    @contextmanager
    def _others_go_on(self, fingerprint: str, *, let_go: Callable[[], None]) -> Iterator[None]:
        """Give up an experiment that cannot be learned, and go on with the others.

        It keeps its releases, and its log grows, until somebody has looked and has started the
        server again. An error of the database itself is not one experiment's, and is raised.
        """
        try:
            yield
        except Exception as error:
            let_go()
            self._learners.pop(fingerprint, None)
            if isinstance(error, StoreError) and not isinstance(error, StoreDamaged):
                raise
            is_foreseen = isinstance(error, SottovoceError)
            text = "experiment %s cannot be learned: %s"
            logger.error(text, fingerprint, error, exc_info=not is_foreseen)
            self._failed[fingerprint] = str(error) if is_foreseen else type(error).__name__
            self._pulse.failed(self._failed)


def learn_until(
    stopped: Callable[[], bool],
    store: Store,
    *,
    keep: timedelta | None = None,
    pulse: Pulse | None = None,
) -> None:
    """Learn until told to stop. Whatever happens to the database, try again.

    keep: for how long reports are kept; None to keep all. pulse: takes its signs of life.
    """
    pulse = pulse or Pulse(None)
    pool = LearnerPool(store, keep=keep, pulse=pulse)
    pause = SHORTEST_PAUSE
    is_set_up = False
    trouble = ""
    while not stopped():
        try:
            if not is_set_up:
                store.migrate()
                is_set_up = True
            has_counted = pool.poll()
        except StoreError as error:
            # The session may be lost, and the lock with it: begin anew from what is stored.
            pool.abandon()
            has_counted = False
            pause = min(max(2 * pause, LONGEST_PAUSE), LONGEST_PAUSE_IN_TROUBLE)
            if str(error) != trouble:  # once, however long it lasts
                trouble = str(error)
                logger.warning("%s", trouble)
        else:
            trouble = ""
            pause = SHORTEST_PAUSE if has_counted else min(1.5 * pause, LONGEST_PAUSE)
        pulse.beat()  # also while the database is away: that is not for a new learner to mend
        if not has_counted:
            time.sleep(pause)
    pool.close()
