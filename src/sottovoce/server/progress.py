"""For how many people it is decided which arm they get, and about how many more the rest takes.

The learner's history says when each arm was dropped. From the share that was still undecided at
half the time, and the share that is now, follows a pace: the undecided share falls by the same
factor whenever the number of people doubles. That is how it falls in simulations, and no promise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.server.formatting import bins_of
from sottovoce.server.status import Event, ExperimentStatus

REST = 0.05
"""So few are left undecided when "the rest" is said to be decided."""

SLOWEST = 0.05
"""No pace is told where the undecided share has fallen by less than this, of 1, since half time."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment has come.

    decided: the share of people who get one arm only. more: about how many more people it takes
        until at most REST are undecided, or half of them if they are that few already; None if
        nobody can tell yet.
    """

    decided: float
    more: int | None

    @property
    def then(self) -> float:
        """The share that is decided after so many more people."""
        left = 1 - self.decided
        return 1 - (REST if left > REST else left / 2)


def progress_of(status: ExperimentStatus) -> Progress:
    """Work out how far an experiment has come."""
    release = status.release
    shares = _shares_of_people(status)
    undecided = sum(shares[policy.path] for policy in release.bins if not policy.settled)
    decided = min(max(1 - undecided, 0.0), 1.0)
    return Progress(decided, _more(status, shares, 1 - decided))


def _shares_of_people(status: ExperimentStatus) -> dict[str, float]:
    """Return the share of people in each bin; of all possible contexts, if nobody knows yet."""
    bins = bins_of(status.release)
    known = {each.path: max(each.share, 0.0) for each in status.snapshot.bins}
    if not all(each.policy.path in known for each in bins):
        return {each.policy.path: each.size for each in bins}
    total = sum(known[each.policy.path] for each in bins) or 1.0
    return {each.policy.path: known[each.policy.path] / total for each in bins}


def _more(status: ExperimentStatus, shares: dict[str, float], left: float) -> int | None:
    history = status.snapshot.history
    others = sum(status.counts.reports.values()) - status.people
    changed = any(event.anew or event.words for event in history)
    if left == 0 or changed or others or not status.people:
        return None
    before = _undecided_at(status, shares, status.people / 2)
    if left >= (1 - SLOWEST) * before:
        return None
    aim = REST if left > REST else left / 2
    doublings = math.log2(left / aim) / math.log2(before / left)
    if doublings > math.log2(1 + status.release.experiment.horizon / status.people) + 3:
        return None  # eight times as many as are expected
    more = float(status.people * (2.0**doublings - 1))
    step = float(10 ** max(0, math.floor(math.log10(max(more, 1.0))) - 1))
    return round(more / step) * int(step)


def _undecided_at(status: ExperimentStatus, shares: dict[str, float], people: float) -> float:
    """Return the share of people who had more than one arm when so many had come."""
    arms = len(status.release.experiment.arms)
    dropped = [event for event in status.snapshot.history if event.reports <= people]
    return sum(share for path, share in shares.items() if _dropped(dropped, path) < arms - 1)


def _dropped(history: Sequence[Event], path: str) -> int:
    """Return how many arms had been dropped in a bin, or in those that it was split from."""
    return len({arm for event in history if path.startswith(event.path) for arm in event.arms})
