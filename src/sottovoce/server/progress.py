"""For how many people it is decided which arm they get."""

from sottovoce.server.formatting import bins_of
from sottovoce.server.status import ExperimentStatus


def decided_share(status: ExperimentStatus) -> float:
    """Return the share of people who get one arm only."""
    shares, bins = _shares_of_people(status), status.release.bins
    undecided = sum(shares[policy.path] for policy in bins if not policy.settled)
    return min(max(1 - undecided, 0.0), 1.0)


def _shares_of_people(status: ExperimentStatus) -> dict[str, float]:
    """Return the share of people in each bin; of all possible contexts, if nobody knows yet."""
    bins = bins_of(status.release)
    known = {each.path: max(each.share, 0.0) for each in status.snapshot.bins}
    if not all(each.policy.path in known for each in bins):
        return {each.policy.path: each.size for each in bins}
    total = sum(known[each.policy.path] for each in bins) or 1.0
    return {each.policy.path: known[each.policy.path] / total for each in bins}
