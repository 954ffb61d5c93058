"""What only tests look at: the states inside of learners and crowds."""

from typing import TYPE_CHECKING, Any, TypeVar

import sottovoce as sv
from sottovoce.estimate.whisper.estimator import WhisperEstimator
from sottovoce.estimate.whisper.state import State

if TYPE_CHECKING:
    from sottovoce.lab.simulation import Result

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def state_of(learner: sv.Learner) -> Any:
    """The sums of an ``ldpmab`` learner."""
    estimator: Any = learner._estimator
    assert learner.experiment.settings.name == "ldpmab"
    return estimator.state


def crowd_of(result: "Result") -> Any:
    """The sums of an ``ldpmab`` learner in a crowd."""
    policy: Any = result.policy
    assert policy.experiment.settings.name == "ldpmab"
    return policy.state


def whisper_state_of(whose: "sv.Learner | Result") -> State:
    """The state of a ``whisper`` learner, or of the learner in a crowd."""
    if isinstance(whose, sv.Learner):
        assert isinstance(whose._estimator, WhisperEstimator)
        return whose._estimator.state
    policy: Any = whose.policy
    state = policy.learner
    assert isinstance(state, State)
    return state


def copy_of(state: Arrays) -> Arrays:
    """A state that can go on without the other: arrays, in tuples within tuples."""
    parts = (copy_of(part) if isinstance(part, tuple) else part.copy() for part in state)
    return type(state)(*parts)
