"""An experiment → the numbers that the rules of ``whisper`` need."""

import math
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.experiment import Experiment
from sottovoce.shared.method import Whisper
from sottovoce.shared.questions import reward_mechanism


class Constants(NamedTuple):
    """What the rules need to know of an experiment; a plain tuple, so that it compiles."""

    arms: int
    dimension: int
    horizon: float
    jump_start: float  # with more auxiliary reports than these, people come before the next step
    behaviour: NDArray[np.float64]  # (M+1, K) π of logged rows; zeros where it is not known
    known: NDArray[np.bool_]  # (M+1,)
    certified: bool
    delta: float
    public_arms: bool
    audited: bool  # some people are asked how it went
    told_square: float  # (value/β)² of what such a person tells


@lru_cache(maxsize=64)
def constants(experiment: Experiment) -> Constants:
    """Work out the constants of an experiment."""
    settings = cast(Whisper, experiment.settings)
    populations = experiment.populations
    behaviour = np.zeros((len(populations), len(experiment.arms)))
    for m, population in enumerate(populations):
        if population.behaviour is not None:
            behaviour[m] = population.behaviour
    return Constants(
        arms=len(experiment.arms),
        dimension=experiment.dimension,
        horizon=float(experiment.horizon),
        jump_start=_jump_start(experiment),
        behaviour=behaviour,
        known=np.array([population.behaviour is not None for population in populations]),
        certified=settings.guarantee == "certified",
        delta=settings.delta,
        public_arms=settings.public_arms,
        audited=experiment.audited,
        told_square=reward_mechanism(experiment).inside,
    )


def _jump_start(experiment: Experiment) -> float:
    """Return how many auxiliary reports leave a whole step of them to come; ∞ if none will come."""
    announced = sum(population.users for population in experiment.auxiliary)
    return float(max(announced - experiment.release_every, 0)) if announced else math.inf
