"""Simulated people, one by one, through real ``Device`` and ``Learner`` objects."""

from collections.abc import Callable

import numpy as np

from sottovoce.device.device import Device
from sottovoce.estimate.learner import Learner
from sottovoce.lab.environments import Environment, Floats, People, draw_people
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.schema import Feature, Numeric


def meet(
    environment: Environment,
    learner: Learner,
    *,
    people: int,
    rng: np.random.Generator,
    each: Callable[[], None] = lambda: None,
) -> Floats:
    """Let people come one after the other; return what each lost against their best arm.

    Everyone has a fresh device with the current release, and sends one report. ``rng`` draws the
    world only: choices and noise come from the operating system, as on any device.

    each: called after every person, for a progress bar.
    """
    experiment = learner.experiment
    contexts, means, outcomes = with_outcomes(environment, rng, people)
    regret = np.empty(people)
    for person in range(people):
        device = Device(learner.release(), public_arms=True)  # simulated people have no secrets
        arm = experiment.arms.index(device.choose(features_of(experiment, contexts[person])))
        learner.receive(device.report(reward=float(outcomes[person, arm])))
        regret[person] = means[person].max() - means[person, arm]
        each()
    return regret


def with_outcomes(environment: Environment, rng: np.random.Generator, n: int) -> People:
    """Draw people, and what each arm would bring each of them."""
    people = draw_people(environment, rng, n)
    if len(people.outcomes):
        return people
    drawn = rng.random(n)[:, np.newaxis] < people.means
    return people._replace(outcomes=drawn.astype(np.float64))


def features_of(experiment: Experiment, context: Floats) -> dict[str, float]:
    """Turn a point of [0, 1]^d back into raw features of a schema of numbers."""
    return {
        feature.name: raw(feature, position)
        for feature, position in zip(experiment.context, context.tolist(), strict=True)
    }


def raw(feature: Feature, position: float) -> float:
    """Place a position of [0, 1] on a number's own scale; levels stay as they are."""
    if isinstance(feature, Numeric):
        return feature.low + position * (feature.high - feature.low)
    return position
