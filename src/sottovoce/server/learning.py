"""The learner at work: the log → the next release. One process at a time for each experiment.

What it keeps beside the log is only to save time: the learner's state, so that a restart need not
begin at the first report, and its standing, for those who ask how far it is. Both follow from the
log, as do the releases: ``replay.py`` works them out again.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Protocol

from sottovoce.estimate.learner import Learner
from sottovoce.server.diagnosing import Watch, diagnosis_of
from sottovoce.server.store.store import Learning, LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.errors import SottovoceError, StateError, StoreDamaged, StoreError
from sottovoce.shared.experiment import Experiment

logger = logging.getLogger(__name__)

# Reports that are read at once: so many, or fewer if they are large; at first, not knowing, few.
READ_AT_ONCE, READ_FIRST = 20_000, 1000
MOST_BYTES = 32 * 1024 * 1024
STANDING_EVERY, LEAST_BETWEEN = 0.5, 0.05  # seconds
SAVE_EVERY = 10.0
LOOK_EVERY = 0.25
# Seconds to wait when nothing came: little while reports flow, more when none do.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.25
# The same while the database is away or full: each try may have to learn some of the log again.
LONGEST_IN_TROUBLE = 2.0


def learn(learner: Learner, reports: Sequence[bytes], *, position: int) -> Iterator[LoggedRelease]:
    """Count the reports that follow a position; yield each release at the position it follows from.

    They are handed over up to the learner's next step and no further, so that a release is never
    said to follow from more than it does.
    """
    every = learner.experiment.release_every
    taken = 0
    while taken < len(reports):
        until_step = every - sum(learner.status().reports.values()) % every
        before = learner.release().version
        some = reports[taken : taken + until_step]
        learner.receive_many(some)
        taken += len(some)
        release = learner.release()
        if release.version != before:
            text = wire.release_to_json(release)
            yield LoggedRelease(release.version, position + taken, text)


class Reads(Protocol):
    """Reads the log of one experiment."""

    def __call__(self, *, after: int, limit: int) -> list[bytes]:
        """Return the reports at the positions after + 1, after + 2, … in order."""


def pieces(read: Reads, *, after: int, until: int) -> Iterator[list[bytes]]:
    """Read the log from one position to another, or to its end, in pieces that fit in memory."""
    most = READ_FIRST
    while after < until:
        asked = min(most, until - after)
        reports = read(after=after, limit=asked)
        if reports:
            yield reports
            most = max(1, min(READ_AT_ONCE, MOST_BYTES // max(map(len, reports))))
        if len(reports) < asked:
            return
        after += asked


def standing_of(learner: Learner, *, diagnosis: dict[str, Any] | None = None) -> str:
    """Write how far a learner is, for status pages.

    diagnosis: that of a moment ago, if there is one; otherwise it is worked out.
    """
    return json.dumps(
        {
            "status": asdict(learner.status()),
            "certificates": [asdict(each) for each in learner.certificates()],
            "estimates": [asdict(each) for each in learner.estimates()],
            "history": [
                {"reports": each.reports, "kind": type(each.event).__name__, **asdict(each.event)}
                for each in learner.history()
            ],
            "diagnosis": diagnosis or diagnosis_of(learner),
        },
        allow_nan=False,
    )


class Seat:
    """One experiment's learner, held by this process until it is closed or its session is lost."""

    def __init__(self, session: Learning, experiment: Experiment) -> None:
        self._session = session
        self._learner, self._position = _resume(session, experiment)
        self._watch = Watch(self._learner)
        self._saved = time.monotonic()
        self._stood = 0.0
        self._told = -1  # the position of the last standing that was saved

    def turn(self) -> bool:
        """Count what is new in the log and publish what follows; say whether there was any."""
        before = self._position
        releases: list[LoggedRelease] = []
        for reports in pieces(self._session.read, after=before, until=before + READ_AT_ONCE):
            releases += learn(self._learner, reports, position=self._position)
            self._position += len(reports)
        has_counted = self._position > before
        now = time.monotonic()
        # While reports flow, now and then; when all are counted, at once.
        since = STANDING_EVERY if has_counted else LEAST_BETWEEN
        is_news = self._told != self._position or self._watch.is_due(self._position)
        tell = is_news and now - self._stood >= since
        save = has_counted and now - self._saved >= SAVE_EVERY
        if releases or tell or save:
            self._write(releases, tell=tell, save=save)
        return has_counted

    def close(self) -> None:
        """Save the learner and let go of it."""
        try:
            self._watch.at(self._position, at_once=True)
            self._write([], tell=True, save=True)
        finally:
            self._session.close()

    def abandon(self) -> None:
        """Let go without saving: what was learned may be ahead of what could be published."""
        self._session.close()

    def _write(self, releases: Sequence[LoggedRelease], *, tell: bool, save: bool) -> None:
        self._session.publish(
            releases,
            standing=(self._position, self._standing()) if tell else None,
            saved=(self._position, self._learner.to_json()) if save else None,
        )
        now = time.monotonic()
        if tell:
            self._told, self._stood = self._position, now
        if save:
            self._saved = now

    def _standing(self) -> str:
        return standing_of(self._learner, diagnosis=self._watch.at(self._position))


def _resume(session: Learning, experiment: Experiment) -> tuple[Learner, int]:
    """Go on from the saved learner, or from the first report where it is missing or unfit.

    Releases may have been published after it was saved; they are worked out once more and have to
    be the same.
    """
    learner, position = _saved(session, experiment) or (Learner(experiment), 0)
    published = session.releases(after=learner.release().version)
    until = published[-1].position if published else position
    again: list[LoggedRelease] = []
    for reports in pieces(session.read, after=position, until=until):
        again += learn(learner, reports, position=position)
        position += len(reports)
    if again != published:
        raise StoreDamaged(
            f"the releases of {experiment.fingerprint} must follow from its log; they do not:"
            " see sottovoce replay"
        )
    return learner, position


def _saved(session: Learning, experiment: Experiment) -> tuple[Learner, int] | None:
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
    if not fits:
        logger.warning("the saved learner of %s cannot be used", experiment.fingerprint)
        return None
    return learner, position


class School:
    """The learners of all experiments of a database that this process could get hold of."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seats: dict[str, Seat] = {}
        self._set_aside: set[str] = set()
        self._looked = -LOOK_EVERY
        self._warned = ""

    def turn(self) -> bool:
        """Give each learner a turn; say whether any report was counted."""
        if time.monotonic() - self._looked >= LOOK_EVERY:
            self._look()
            self._looked = time.monotonic()
        counted = False
        for fingerprint, seat in list(self._seats.items()):
            with self._others_go_on(fingerprint, let_go=seat.abandon):
                counted |= seat.turn()
        return counted

    def close(self) -> None:
        """Save and let go of all; go on with the others where one cannot be saved."""
        for seat in self._seats.values():
            try:
                seat.close()
            except StoreError as error:
                logger.warning("%s", error)
        self._seats.clear()

    def abandon(self) -> None:
        """Let go of all as they are."""
        for seat in self._seats.values():
            seat.abandon()
        self._seats.clear()
        self._looked = -LOOK_EVERY

    def _look(self) -> None:
        """Sit down wherever nobody sits: at new experiments, and where another process has died."""
        for fingerprint, text in self._store.experiments():
            if fingerprint in self._seats or fingerprint in self._set_aside:
                continue
            try:
                session = self._store.learning(fingerprint)
            except StoreError as error:
                if not self._seats:
                    raise
                # Each takes a connection, and there may be no more: those that sit go on.
                self._warn(f"experiment {fingerprint} has to wait for a learner: {error}")
                return
            if session is None:
                continue
            with self._others_go_on(fingerprint, let_go=session.close):
                self._seats[fingerprint] = Seat(session, Experiment.from_table(json.loads(text)))
                logger.info("learning %s", fingerprint)

    def _warn(self, text: str) -> None:
        if text != self._warned:  # once, however long it lasts
            self._warned = text
            logger.warning("%s", text)

    @contextmanager
    def _others_go_on(self, fingerprint: str, *, let_go: Callable[[], None]) -> Iterator[None]:
        """Set an experiment aside that cannot be learned.

        It keeps its releases, and its log grows, until somebody has looked and has started the
        server again. Trouble of the database itself is not one experiment's, and goes on up.
        """
        try:
            yield
        except Exception as error:
            let_go()
            self._seats.pop(fingerprint, None)
            if isinstance(error, StoreError) and not isinstance(error, StoreDamaged):
                raise
            is_foreseen = isinstance(error, SottovoceError)
            text = "experiment %s cannot be learned: %s"
            logger.error(text, fingerprint, error, exc_info=not is_foreseen)
            self._set_aside.add(fingerprint)


def learn_until(stopped: Callable[[], bool], store: Store) -> None:
    """Learn until told to stop. Whatever happens to the database, try again."""
    school = School(store)
    pause = SHORTEST_PAUSE
    is_set_up = False
    trouble = ""
    while not stopped():
        try:
            if not is_set_up:
                store.migrate()
                is_set_up = True
            counted = school.turn()
        except StoreError as error:
            # The session may be lost, and the lock with it: begin anew from what is stored.
            school.abandon()
            counted, pause = False, min(max(2 * pause, LONGEST_PAUSE), LONGEST_IN_TROUBLE)
            if str(error) != trouble:  # once, however long it lasts
                trouble = str(error)
                logger.warning("%s", trouble)
        else:
            trouble = ""
            pause = SHORTEST_PAUSE if counted else min(1.5 * pause, LONGEST_PAUSE)
        if not counted:
            time.sleep(pause)
    school.close()
