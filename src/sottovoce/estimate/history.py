"""What the learner decided, and when."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sottovoce.estimate.tree import node_paths
from sottovoce.shared.amendment import Amendment


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


@dataclass(frozen=True, slots=True)
class BeganAnew:
    """All bins became one again, with all arms: what had been learned misled the target's people.

    Paths of later events are those of the new tree.
    """

    path: str = ""
    anew: bool = True


@dataclass(frozen=True, slots=True)
class Amended:
    """The operator amended the experiment.

    release: the first one with the amendment.
    """

    release: int
    amendment: Amendment
    path: str = ""


Event = Elimination | Split | BeganAnew | Amended


@dataclass(frozen=True, slots=True)
class Retirement:
    """Why an arm is no longer on offer anywhere: the operator retired it.

    release: the first one without the arm. by, made: who retired it, and when, as the amendment
        says.
    """

    release: int
    arm: str
    by: str
    made: str


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


def history_of(state: Any, *, start: int = 0) -> tuple[DatedEvent, ...]:
    """Return the eliminations and splits that a state has noted, from one on.

    Its records say (reports, node, axis, arm); an axis of -1 says that the arm was dropped. Arms
    that were dropped from a bin at once are one event.
    """
    dated, paths = [], node_paths(state)
    for (reports, node, axis), group in groupby(
        state.events[start : state.totals[0].events],
        key=lambda record: (int(record.reports), int(record.node), int(record.axis)),
    ):
        arms = tuple(sorted(int(record.arm) for record in group))
        event = Split(paths[node], axis) if axis >= 0 else Elimination(paths[node], arms)
        dated.append(DatedEvent(reports, event))
    return tuple(dated)
