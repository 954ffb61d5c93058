"""States for tests of the rules of whisper."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sottovoce as sv
from sottovoce.estimate.whisper.constants import Constants
from sottovoce.estimate.whisper.state import State, initial_state

Floats = NDArray[np.float64]

SEEDS = range(12)

TOTALS = [
    *("nodes", "contested", "events", "release", "reports", "served", "smoothed"),
    *("amended", "places", "reward_share"),
    "scale_share",
    *("paid", "target"),
    *("rows_paid", "checked", "misled", "verdict", "first_release"),
    *("audit_answers", "audit_delivered", "audit_promised", "audit_at_random"),
]
"""The totals in a saved learner, in order."""

EVENT = ["reports", "release", "node", "axis", "arm", "winner", "statistic", "boundary"]
"""The parts of an event in a saved learner, in order."""


def with_levels(
    *levels: int,
    arms: int = 2,
    behaviours: Sequence[tuple[float, ...] | None] = (),
    **settings: Any,
) -> sv.Experiment:
    """A feature for each entry: so many levels without order, or a number for 0."""
    features = [
        sv.Categorical(f"x{j}", tuple(f"level {level}" for level in range(count)))
        if count
        else sv.Numeric(f"x{j}", 0, 1)
        for j, count in enumerate(levels)
    ]
    defaults: dict[str, Any] = {
        "epsilon": 1.0,
        "horizon": 10_000,
        "auxiliary": [
            sv.Population(f"aux {m}", 2.0, 100, behaviour) for m, behaviour in enumerate(behaviours)
        ],
    }
    return sv.Experiment(
        arms=[f"arm {k}" for k in range(arms)], context=features, **{**defaults, **settings}
    )


def random_precisions(rng: np.random.Generator, shape: tuple[int, ...], *, scale: float) -> Floats:
    """Matrices that answers could have added up to: none of them has a negative eigenvalue."""
    roots = rng.normal(0, 1, shape)
    precisions: Floats = scale * roots @ np.swapaxes(roots, -1, -2)
    return precisions


def centred_square(effect: Floats, covariance: Floats) -> float:
    """The variance of effects between arms that is expected, from their mean and covariance.

    Of n arms, divided by n - 1; that of a single arm is its square.
    """
    arms = len(effect)
    second = np.outer(effect, effect) + covariance
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


def told_where_people_are(state: State) -> State:
    """The same state, in which people are uniform along every axis and nobody is asked that."""
    state.scaled[:] = True
    state.thresholds[:] = 0
    state.totals[0].scale_share = 0
    return state


def placed_state(known: Constants) -> State:
    """A first state in which it is known where people are."""
    return told_where_people_are(initial_state(known))


def believing(
    known: Constants,
    mean: list[float],
    *,
    deviation: float = 0.01,
    effect: Floats | None = None,
    effect_deviation: float = 0.001,
    served: int = 1,
    users: float = 5000.0,
) -> State:
    """A state that believes so of its one bin, and has just been smoothed.

    effect (Z, K): of each slot.
    """
    state = placed_state(known)
    identity = np.eye(known.arms)
    state.prior.precision[0, 0] = identity / deviation**2
    state.prior.vector[0, 0] = np.array(mean) / deviation**2
    state.prior.precision[0, 1:] = identity / effect_deviation**2
    if effect is not None:
        state.prior.vector[0, 1:] = effect / effect_deviation**2
    totals = state.totals[0]
    totals.reports, totals.served = int(users), served
    totals.smoothed = totals.reports
    totals.paid = totals.target = users
    return state
