"""The log and the amendments → the releases, once more, to see whether they were published so."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest

from sottovoce.estimate.learner import Learner
from sottovoce.server.amendments import document_of, experiment_after, text_of
from sottovoce.server.following import learn, pieces, stretches, take
from sottovoce.server.retention import checkpoint_of, last_hash
from sottovoce.server.store.chained import Chained, hash_after
from sottovoce.server.store.store import Fold, LoggedAmendment, LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.errors import StoreDamaged, StoreError, must
from sottovoce.shared.experiment import Experiment

# A running server may fold while the last fold is read: so often it is read again.
TRIES = 10


@dataclass(frozen=True, slots=True)
class Replay:
    """What the log of one experiment says.

    reports: how many there are in the log.
    releases: how many follow from it.
    amendments: those that were taken, with where and by whom, in sentences.
    folded, folded_hash: how many reports are erased, so that it begins at the checkpoint after
        them; their hash, with all folds so far.
    waiting: releases that follow from the log, and that the learner has yet to publish.
    troubles: where the database disagrees with its log, in sentences.
    """

    experiment: str
    name: str
    reports: int
    releases: int
    amendments: tuple[str, ...]
    folded: int
    folded_hash: str
    waiting: int
    troubles: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Say whether everything that was published follows from the log."""
        return not self.troubles


def replay(
    store: Store, fingerprint: str, *, each: Callable[[int], object] = lambda reports: None
) -> Replay:
    """Work out every release from the first report on that is kept, and compare.

    each: told how many reports have been counted, now and then.
    """
    experiment = _experiment(store, fingerprint)
    for _ in range(TRIES):
        folds = store.folds(fingerprint)
        try:
            found = _replay(store, experiment, folds, each=each)
        except StoreDamaged:
            if store.folds(fingerprint) == folds:
                raise
        else:
            if store.folds(fingerprint) == folds:
                return found
    raise StoreError("the server must not fold meanwhile; it does, all the time")


def _replay(
    store: Store, experiment: Experiment, folds: list[Fold], *, each: Callable[[int], object]
) -> Replay:
    fingerprint = experiment.fingerprint
    # The releases first: while a server runs, the log then goes at least as far as they do. And no
    # further than its length now: it may grow as fast as it is read.
    published = store.releases(fingerprint)
    amendments = store.amendments(fingerprint)
    learned = (store.snapshot(fingerprint) or (0,))[0]
    chained = store.chained(fingerprint)
    length = store.length(fingerprint)
    troubles = list(_check_amendments(experiment, amendments))
    # One that cannot be taken is told above; the releases without it are compared all the same.
    taken = [] if troubles else [one for one in amendments if not one.waits]
    learner, position, ids = begin_at(store, experiment, folds)
    folded, taken_before = position, len(learner.experiment.amendments)
    rebuilt: list[LoggedRelease] = []
    if folds:
        troubles += _check_folded(ids, position, published)
        if [one.text for one in taken[:taken_before]] != [
            text_of(one) for one in learner.experiment.amendments
        ]:
            troubles.append("the amendments must be those that were folded; they are not")
    else:
        rebuilt.append(LoggedRelease(1, 0, wire.release_to_json(learner.release())))
    known = learner.release().version if folds else 0
    before: list[bytes] = []
    checked = _Checked(chained, position)
    for end, amendment in stretches(taken[taken_before:], until=length):
        for reports in pieces(partial(store.read, fingerprint), after=position, until=end):
            checked.add(reports)
            if reports[0] in before:  # a gap in the positions repeats the end of the last piece
                troubles.append(f"a report before number {position + 1} of the log is missing")
            before = reports
            rebuilt += learn(learner, reports, position=position)
            position += len(reports)
            each(position)
        if amendment is not None:
            again, release = take(learner, amendment, position=position)
            rebuilt.append(release)
            if again != amendment:
                troubles.append(
                    f"amendment {again.number} led to release {again.version} after"
                    f" {again.position} reports, and is noted otherwise"
                )
    if position != length:
        troubles.append(f"the log goes up to {length}, and has {position} reports only")
    troubles += checked.troubles(learned, strangers=store.strangers(fingerprint))
    counted = sum(learner.status().reports.values())
    if counted != position:
        troubles.append(f"{position - counted} of {position} reports in the log cannot be counted")
    troubles += _compare(rebuilt, published[known:])
    snapshot, length = store.snapshot(fingerprint), store.length(fingerprint)
    if snapshot is not None and snapshot[0] > length:
        troubles.append(f"the learner has counted {snapshot[0]} reports, and the log has {length}")
    return Replay(
        experiment=fingerprint,
        name=experiment.name,
        reports=position,
        releases=known + len(rebuilt),
        amendments=tuple(map(_told, taken)),
        folded=folded,
        folded_hash=folds[-1].hash if folds else "",
        waiting=max(0, known + len(rebuilt) - len(published)),
        troubles=tuple(troubles),
    )


class _Checked:
    """The hash of the log as it is read, to compare with the one that was written with it.

    position: where the reading begins.
    """

    def __init__(self, chained: Chained, position: int) -> None:
        self._chained, self._begins, self._position = chained, position, position
        self._now = chained.before

    def add(self, reports: list[bytes]) -> None:
        """Add what was read next; a running server may have written more than is compared."""
        left = max(0, self._chained.position - self._position)
        # A damaged row may hold text.
        some = (each if isinstance(each, bytes) else str(each).encode() for each in reports[:left])
        self._now = hash_after(self._now, some)
        self._position += len(reports)

    def troubles(self, learned: int, *, strangers: int) -> Iterator[str]:
        """Say where the log is not what was stored. learned: how many were counted before."""
        named = self._chained
        if named.position < learned:
            yield f"{learned} reports were counted, and {named.position} are hashed"
        if self._position < named.position:
            yield f"the log was hashed up to {named.position}, and ends at {self._position}"
        elif self._begins != named.begins or self._now != named.hash:
            yield (
                f"the first {named.position} reports are not those that were stored: one was"
                " changed, is missing, or stands elsewhere"
            )
        if strangers:
            yield f"{strangers} rows of the log have a nonce that is not their report's"


def begin_at(
    store: Store, experiment: Experiment, folds: list[Fold]
) -> tuple[Learner, int, list[bytes]]:
    """Return the learner at the end of the last fold, and the ids of its releases."""
    last_hash(experiment.fingerprint, folds)
    if not folds:
        return Learner(experiment), 0, []
    stored = store.checkpoint(experiment.fingerprint) or (0, "")
    learner, position = checkpoint_of(folds[-1], stored)
    return learner, position, [bytes.fromhex(each) for each in json.loads(stored[1])["ids"]]


def _check_folded(ids: list[bytes], position: int, published: list[LoggedRelease]) -> Iterator[str]:
    """Say where what was published before a checkpoint is not what its learner has published."""
    for version, (ours, theirs) in enumerate(zip_longest(ids, published[: len(ids)]), start=1):
        if theirs is None or theirs.version != version:
            yield f"release {version} is missing"
            return
        if wire.release_hash(theirs.text)[: len(ours)] != ours or theirs.position > position:
            yield f"release {version} was published with another text or place than was folded"


def _check_amendments(experiment: Experiment, logged: list[LoggedAmendment]) -> Iterator[str]:
    """Say where amendments do not follow from each other, those that still wait included."""
    try:
        experiment_after(experiment, logged)
    except StoreDamaged as error:
        yield str(error)
    places = [(one.position, one.version) for one in logged if not one.waits]
    in_order = [(one.position, one.version) for one in logged[: len(places)]] == places
    if not in_order or None in chain.from_iterable(places) or places != sorted(places):
        yield "amendments must be taken in their order; by their places they were not"


def _told(amendment: LoggedAmendment) -> str:
    document = document_of(amendment)
    return (
        f"amendment {amendment.number}, after {amendment.position:,} reports, in release"
        f" {amendment.version:,}: {document}, by {document.by}"
    )


def _compare(rebuilt: list[LoggedRelease], published: list[LoggedRelease]) -> Iterator[str]:
    """Say where published releases differ from those that follow; some may not be published yet."""
    for ours, theirs in zip_longest(rebuilt, published):
        if theirs is None:
            return
        if ours is None:
            yield f"release {theirs.version} was published and does not follow from the log"
        elif theirs.version != ours.version:
            yield f"release {ours.version} is missing; release {theirs.version} stands in its place"
        elif theirs.position != ours.position:
            yield (
                f"release {ours.version} follows from {ours.position} reports,"
                f" and was published as if from {theirs.position}"
            )
        elif theirs.text != ours.text:
            yield f"release {ours.version} was published with another text than follows"


def _experiment(store: Store, fingerprint: str) -> Experiment:
    texts = dict(store.experiments())
    if fingerprint not in texts:
        known = ", ".join(texts) or "none"
        raise StoreError(must("the experiment", f"be in the database ({known})", fingerprint))
    experiment = Experiment.from_table(json.loads(texts[fingerprint]))
    if experiment.fingerprint != fingerprint:
        raise StoreDamaged(f"experiment {fingerprint} must be as it was stored; it is another one")
    return experiment
