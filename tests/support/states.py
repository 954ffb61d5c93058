"""States for tests of the rules of whisper."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.state import State, initial_state

Floats = NDArray[np.float64]

SEEDS = range(12)

TOTALS = [
    *("nodes", "contested", "events", "release", "reports", "served", "smoothed", "reward_share"),
    *("paid", "target"),
    *("audit_answers", "audit_delivered", "audit_promised", "audit_at_random"),
]
"""The totals in a saved learner, in order."""

EVENT = ["reports", "release", "node", "axis", "arm", "winner", "statistic", "boundary"]
"""The parts of an event in a saved learner, in order."""


def random_precisions(rng: np.random.Generator, shape: tuple[int, ...], *, scale: float) -> Floats:
    """Matrices that answers could have added up to: none of them has a negative eigenvalue."""
    roots = rng.normal(0, 1, shape)
    precisions: Floats = scale * roots @ np.swapaxes(roots, -1, -2)
    return precisions


def centred_square(slope: Floats, covariance: Floats) -> float:
    """The variance of slopes between arms that is expected, from their mean and covariance.

    Of n arms, divided by n - 1; that of a single arm is its square.
    """
    arms = len(slope)
    second = np.outer(slope, slope) + covariance
    if arms == 1:
        return float(second[0, 0])
    centring = np.eye(arms) - 1 / arms  # takes the mean of all from each
    return float(np.trace(centring @ second @ centring.T)) / (arms - 1)


def audit_of(state: State) -> list[float]:
    """The sums of the audit: answers, and what was delivered, promised, and expected at random."""
    totals = state.totals[0]
    return [float(totals[name]) for name in TOTALS if name.startswith("audit_")]


def set_audit(state: State, *sums: float) -> None:
    """Write the sums of the audit, in the same order."""
    names = [name for name in TOTALS if name.startswith("audit_")]
    for name, value in zip(names, sums, strict=True):
        state.totals[0][name] = value


def events_of(state: State) -> list[Any]:
    """What was decided so far, in order."""
    return list(state.events[: state.totals[0].events])


def believing(
    known: Constants,
    mean: list[float],
    *,
    deviation: float = 0.01,
    slope: Floats | None = None,
    slope_deviation: float = 0.001,
    served: int = 1,
    users: float = 5000.0,
) -> State:
    """A state that believes so of its one bin."""
    state = initial_state(known)
    identity = np.eye(known.arms)
    state.prior.precision[0, 0] = identity / deviation**2
    state.prior.vector[0, 0] = np.array(mean) / deviation**2
    state.prior.precision[0, 1:] = identity / slope_deviation**2
    if slope is not None:
        state.prior.vector[0, 1:] = slope / slope_deviation**2
    totals = state.totals[0]
    totals.reports, totals.served = int(users), served
    totals.paid = totals.target = users
    return state
