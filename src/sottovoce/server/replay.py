"""The log and the amendments → the releases, once more, to see whether they were published so."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest

from sottovoce.estimate.learner import Learner
from sottovoce.server.amendments import document_of, experiment_after
from sottovoce.server.learning import learn, pieces, stretches, take
from sottovoce.server.store.store import LoggedAmendment, LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.errors import StoreDamaged, StoreError, must
from sottovoce.shared.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Replay:
    """What the log of one experiment says.

    reports: how many there are in the log.
    releases: how many follow from it.
    amendments: those that were taken, with where and by whom, in sentences.
    waiting: releases that follow from the log, and that the learner has yet to publish.
    troubles: where the database disagrees with its log, in sentences.
    """

    experiment: str
    name: str
    reports: int
    releases: int
    amendments: tuple[str, ...]
    waiting: int
    troubles: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Say whether everything that was published follows from the log."""
        return not self.troubles


def replay(
    store: Store, fingerprint: str, *, each: Callable[[int], object] = lambda reports: None
) -> Replay:
    """Work out every release from the first report on, and compare.

    each: told how many reports have been counted, now and then.
    """
    experiment = _experiment(store, fingerprint)
    # The releases first: while a server runs, the log then goes at least as far as they do. And no
    # further than its length now: it may grow as fast as it is read.
    published = store.releases(fingerprint)
    amendments = store.amendments(fingerprint)
    length = store.length(fingerprint)
    learner = Learner(experiment)
    rebuilt = [LoggedRelease(1, 0, wire.release_to_json(learner.release()))]
    troubles = list(_check_amendments(experiment, amendments))
    # One that cannot be taken is told above; the releases without it are compared all the same.
    taken = [] if troubles else [one for one in amendments if not one.waits]
    position = 0
    before: list[bytes] = []
    for end, amendment in stretches(taken, until=length):
        for reports in pieces(partial(store.read, fingerprint), after=position, until=end):
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
    counted = sum(learner.status().reports.values())
    if counted != position:
        troubles.append(f"{position - counted} of {position} reports in the log cannot be counted")
    troubles += _compare(rebuilt, published)
    snapshot, length = store.snapshot(fingerprint), store.length(fingerprint)
    if snapshot is not None and snapshot[0] > length:
        troubles.append(f"the learner has counted {snapshot[0]} reports, and the log has {length}")
    waiting = max(0, len(rebuilt) - len(published))
    told = tuple(map(_told, taken))
    counts = position, len(rebuilt), told, waiting
    return Replay(fingerprint, experiment.name, *counts, tuple(troubles))


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
    return Experiment.from_table(json.loads(texts[fingerprint]))
