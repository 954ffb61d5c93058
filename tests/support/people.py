"""Simulated people, one by one, through real ``Device`` and ``Learner`` objects."""

import numpy as np

from sottovoce.device.device import Device
from sottovoce.estimate.learner import Learner
from sottovoce.lab.environments import Environment, Floats
from sottovoce.lab.people import features_of, with_outcomes


def meet(
    environment: Environment,
    learner: Learner,
    *,
    people: int,
    rng: np.random.Generator,
) -> Floats:
    """Let people come one after the other; return what each lost against their best arm.

    Everyone has a fresh device with the current release, and sends one report. ``rng`` draws the
    world only: choices and noise come from the operating system, as on any device.
    """
    experiment = learner.experiment
    contexts, means, outcomes = with_outcomes(environment, rng, people)
    regret = np.empty(people)
    for person in range(people):
        device = Device(learner.release(), public_arms=True)  # simulated people have no secrets
        arm = experiment.arms.index(device.choose(features_of(experiment, contexts[person])))
        learner.receive(device.report(reward=float(outcomes[person, arm])))
        regret[person] = means[person].max() - means[person, arm]
    return regret
