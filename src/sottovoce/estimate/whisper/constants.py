"""An experiment → the numbers that the rules of ``whisper`` need."""

import math
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.estimate.gain import GainConstants, gain_constants
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.caps import caps_of
from sottovoce.shared.whisper.cells import one_cell_mechanism
from sottovoce.shared.whisper.questions import questions_of

QUESTION = np.dtype(
    [
        ("kind", "i8"),
        ("logged", "?"),
        ("cells", "i8"),
        ("value", "i8"),
        ("measures", "i8"),
        ("first", "f8"),
        ("second", "f8"),
        ("ranked", "?"),
        ("by_arm", "?"),
        ("thinned", "?"),
    ],
    align=True,
)
"""An entry of the table of questions (``shared/whisper/questions.py``), so that it compiles."""


class Axes(NamedTuple):
    """The axes of the contexts; see ``shared/whisper/axes.py``."""

    levels: NDArray[np.int64]  # (d,) levels without order; 0 where there is an order
    places: NDArray[np.int64]  # (d,) places with or without order; 0 for a number
    slots: NDArray[np.int64]  # (d+1,) the first slot of each
    patterns: NDArray[np.int64]  # (d+1,) its first pattern


class Constants(NamedTuple):
    """What the rules need to know of an experiment; a plain tuple, so that it compiles."""

    arms: int
    dimension: int
    axes: Axes
    scalable: NDArray[np.bool_]  # (d,) axes of numbers that everybody has: they may get a scale
    horizon: float
    # With more auxiliary reports than these, less than a step of them is to come, and people come
    # before the next step; ∞ if none will come.
    jump_start: float
    behaviour: NDArray[np.float64]  # (M+1, K) π of logged rows; zeros where it is not known
    known: NDArray[np.bool_]  # (M+1,)
    questions: Any  # (kinds,) of QUESTION; those that the experiment does not ask stay 0
    certified: bool
    delta: float
    public_arms: bool
    audited: bool  # some people are asked for their reward
    half_life: float  # people after whom half of what was learned has faded; ∞ for never
    reward_variance: float  # of what such a person tells, (value/β)²
    retired: NDArray[np.bool_]  # (K,) arms that nobody gets any more
    caps: NDArray[np.float64]  # (K,) how many of a bin's people may get an arm; 1/2 for no cap
    capped: bool  # whether some arm has a cap
    running: bool  # whether the learner decides anything
    gain: GainConstants


def constants(experiment: Experiment) -> Constants:
    """Return the constants of an experiment."""
    known: Constants | None = experiment.derived.get(Constants)
    if known is not None:
        return known
    settings = cast(Whisper, experiment.settings)
    populations = experiment.populations
    announced = sum(population.users for population in experiment.auxiliary)
    behaviour = np.zeros((len(populations), len(experiment.arms)))
    for m, population in enumerate(populations):
        if population.behaviour is not None:
            behaviour[m] = population.behaviour
    experiment.derived[Constants] = found = Constants(
        arms=len(experiment.arms),
        dimension=experiment.dimension,
        axes=Axes(*(np.array(each, dtype=np.int64) for each in slots_of(experiment))),
        scalable=np.array(_scalable(experiment)),
        horizon=float(experiment.horizon),
        jump_start=float(max(announced - experiment.release_every, 0)) if announced else math.inf,
        behaviour=behaviour,
        known=np.array([population.behaviour is not None for population in populations]),
        questions=_questions(experiment),
        certified=settings.guarantee == "certified",
        delta=settings.delta,
        public_arms=settings.public_arms,
        audited=experiment.audited,
        half_life=float(settings.half_life or math.inf),
        reward_variance=one_cell_mechanism(experiment, 0).inside,
        retired=np.isin(np.arange(len(experiment.arms)), list(experiment.retired)),
        caps=np.array(caps_of(experiment)),
        capped=bool(experiment.caps),
        running=experiment.state == RUNNING,
        gain=gain_constants(experiment, signal=one_cell_mechanism(experiment, 0).signal),
    )
    return found


def _scalable(experiment: Experiment) -> list[bool]:
    """Say which axes may get a scale.

    Whoever lacks an optional number is at 0 on its axis, where no shape expects so many people.
    """
    return [
        axis.levels == 0 and not feature.optional
        for feature in experiment.context
        for axis in feature.axes
    ]


def _questions(experiment: Experiment) -> Any:
    asked = questions_of(experiment)
    table = np.zeros(max(asked) + 1, dtype=QUESTION)
    for kind, entry in asked.items():
        table[kind] = tuple(getattr(entry, field) for field in QUESTION.names or ())
    return table.view(np.recarray)
