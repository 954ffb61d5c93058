"""Methods to run the suite on, and people and learners that use them."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

import sottovoce as sv
from factories import Purse
from support.slow import SLOW

Make = Callable[..., sv.Experiment]
"""Makes experiments with one method."""

ONE_BIT = "contracts.one_bit.{room}"

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "whisper": [{}, {"guarantee": "certified", "delta": 0.1}, {"public_arms": True}],
    "ldpmab": [{}, {"preset": "paper", "c": 0.1}],
    "one_bit": [{}, {"clear": 2.0}],
}
"""Settings of each method that the suite runs with: its own each day, others in ``test-all``."""

ADDS_FLOATS = {"ldpmab"}
"""Methods whose sums depend on the order of the reports in their last digits."""

CASES = [
    pytest.param((name, settings), marks=SLOW if other else ())
    for name, listed in SETTINGS.items()
    for other, settings in enumerate(listed)
]
AUXILIARY = [
    sv.Population("clinic-b", 8.0, 100, (0.2, 0.3, 0.5)),
    sv.Population("clinic-c", 0.5, 100),
]
PLACES = [
    {"age": age, "bmi": bmi} for age, bmi in itertools.product((20, 50, 80), (16, 29.5, 30, 44))
]


def device_of(release: sv.Release, purse: Any = None, *, population: int = 0) -> sv.Device:
    name = release.experiment.populations[population].name
    ledger = Purse() if purse is None else purse
    return sv.Device(release, population=name, ledger=ledger, public_arms=True)


def report_of(
    rng: random.Random, release: sv.Release, *, population: int = 0, logged: bool = False
) -> sv.Report:
    """The report of somebody. Most like the second arm, and some the third."""
    device, context = device_of(release, population=population), rng.choice(PLACES)
    arms = release.experiment.arms
    arm = rng.choice(arms) if logged else device.choose(context)
    reward = [0.1, 0.9, 0.9 if context["age"] > 60 else 0.2][arms.index(arm)]
    if logged:
        return device.report_logged(context, arm=arm, reward=reward)
    return device.report(reward=reward)


def anybody(rng: random.Random, release: sv.Release) -> sv.Report:
    """The report of somebody of any population, served or logged."""
    population = rng.choice([0, 0, 0, 1, 2])
    return report_of(rng, release, population=population, logged=rng.random() < 0.3)


MOST = 20_000
"""Reports after which something ought to have happened, by any method."""


def grown(make: Make, **settings: Any) -> sv.Learner:
    """A learner that has heard people of all populations, and has published a second release."""
    rng, learner = random.Random(0), sv.Learner(make(**{"epsilon": 8.0, **settings}))
    for count in range(MOST):
        if count >= 150 and learner.release().version > 1:
            return learner
        learner.receive(anybody(rng, learner.release()))
    raise AssertionError("people who like different arms must lead to another release")


def settled(make: Make, **settings: Any) -> sv.Learner:
    """A learner of people everywhere who like the second arm alone, until nothing is left."""
    rng = random.Random(0)
    learner = sv.Learner(make(epsilon=64.0, release_every=100, horizon=100_000, **settings))
    for _ in range(MOST):
        if not learner.release().contested:
            return learner
        device = device_of(learner.release())
        arm = device.choose({"age": rng.uniform(18, 90), "bmi": rng.uniform(15, 45)})
        learner.receive(device.report(reward=float(arm == learner.experiment.arms[1])))
    raise AssertionError("people who all like one arm must settle an experiment")
