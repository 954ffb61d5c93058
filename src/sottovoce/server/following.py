"""A part of the log, and the amendments in it → the releases that follow.

The learner, its restart, a replay and a fold all count by these functions, so that each of them
comes to the same releases.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from sottovoce.estimate.learner import Learner
from sottovoce.server.amendments import document_of
from sottovoce.server.store.store import LoggedAmendment, LoggedRelease
from sottovoce.shared import wire
from sottovoce.shared.errors import ExperimentError, StoreDamaged

# The most reports and bytes that are read at once; at first, when their size is unknown, few.
READ_AT_ONCE, READ_FIRST = 20_000, 1000
MOST_BYTES = 32 * 1024 * 1024


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


def take(
    learner: Learner, amendment: LoggedAmendment, *, position: int
) -> tuple[LoggedAmendment, LoggedRelease]:
    """Let a learner take an amendment at a position; return both as the database is to have them.

    Every amendment brings a release at once.
    """
    try:
        learner.amend(document_of(amendment))
    except ExperimentError as error:
        raise StoreDamaged(
            f"amendment {amendment.number} must follow from those before it; {error}"
        ) from None
    release = learner.release()
    taken = replace(amendment, position=position, version=release.version)
    return taken, LoggedRelease(release.version, position, wire.release_to_json(release))


def stretches(
    taken: Sequence[LoggedAmendment], *, until: int
) -> Iterator[tuple[int, LoggedAmendment | None]]:
    """Yield up to where the log is to be read, and which amendment is to be taken there, if any."""
    for each in taken:
        if each.position is not None:
            yield each.position, each
    yield until, None


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
            longest = max(1, *map(len, reports))  # what was erased is empty
            most = max(1, min(READ_AT_ONCE, MOST_BYTES // longest))
        if len(reports) < asked:
            return
        after += asked
