"""What the learner decided, and when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elimination:
    """Arms that were dropped in a bin."""

    path: str
    arms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A bin that was split in two along an axis."""

    path: str
    axis: int


Event = Elimination | Split


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why ``whisper`` dropped an arm; with the reports, anyone can work it out again.

    release: the first one without the arm.
    statistic, boundary: the arm went because the first had reached the second. By the guarantee
        ``regret``, the users so far times the gap between the two arms, and the users to come times
        what each would lose in expectation. By ``certified``, the logarithm of an e-value, and of
        1/delta.
    delta: the chance of error that this certificate may use up; None by ``regret``.
    """

    release: int
    path: str
    dropped: str
    winner: str
    statistic: float
    boundary: float
    delta: float | None


@dataclass(frozen=True, slots=True)
class DatedEvent:
    """An event, with the number of reports that the learner had by then."""

    reports: int
    event: Event
