"""What the learner decided, and when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elimination:
    """Arms that were dropped in a bin."""

    path: str
    arms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A bin that was cut in two along an axis."""

    path: str
    axis: int


Event = Elimination | Cut


@dataclass(frozen=True, slots=True)
class Dated:
    """An event, with the number of reports that the learner had by then."""

    reports: int
    event: Event
