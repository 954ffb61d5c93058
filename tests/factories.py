"""Experiments, releases and learners for tests. Each has defaults that fit; name what matters."""

import random
from functools import lru_cache
from typing import Any

import sottovoce as sv
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy

CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED, REWARD, LOGGED_LEVEL = range(8)
SCALE, LOGGED_SCALE, BIN_REWARD, BIN_MASS = range(8, 12)
"""The kinds of questions of ``whisper`` as they are on the wire."""

REWARD_SHARE = 24
"""Of 160 people who are served, how many are asked for their reward at first."""

ASK = (704, 160, 160)
"""Of 1024 people, how many are asked about no axis and about each of two."""

ARMS = ("control", "reminder", "coach")
CONTEXT = {"age": 42, "bmi": 27.5}
LEVELS = ("low", "middling", "high")


# --- experiments ----------------------------------------------------------------------------------


def experiment(**settings: Any) -> sv.Experiment:
    """Three arms and two features, with ``ldpmab``."""
    defaults: dict[str, Any] = {
        "arms": ARMS,
        "context": [sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)],
        "epsilon": 1.0,
        "horizon": 1000,
        "method": "ldpmab",
    }
    return sv.Experiment(**{**defaults, **settings})


def walking(*, epsilon: float = 1.0, arms: int = 3, **settings: Any) -> sv.Experiment:
    """The same with ``whisper``, its settings, and two clinics with rows: one knows its policy."""
    return experiment(
        arms=ARMS[:arms],
        epsilon=epsilon,
        method=sv.Whisper(**settings),
        auxiliary=[
            sv.Population("clinic-b", 8.0, 100, (0.2, 0.3, 0.5) if arms == 3 else (0.3, 0.7)),
            sv.Population("clinic-c", 0.5, 100),
        ],
        name="walking",
    )


def whispering(*, arms: int = 3, **settings: Any) -> sv.Experiment:
    """One in which a few hundred reports at ε = 8 drop arms and split bins."""
    method = {
        key: settings.pop(key) for key in ("guarantee", "delta", "public_arms") & settings.keys()
    }
    defaults: dict[str, Any] = {
        "arms": ARMS[:arms],
        "epsilon": 8.0,
        "release_every": 20,
        "horizon": 4000,
        "auxiliary": [
            sv.Population("clinic-b", 6.0, 100, (0.2, 0.3, 0.5) if arms == 3 else (0.4, 0.6)),
            sv.Population("clinic-c", 1.0, 100),
        ],
    }
    return experiment(**{**defaults, **settings, "method": sv.Whisper(**method)})


def unit_cube(
    *,
    arms: int = 2,
    d: int = 2,
    horizon: int = 10_000,
    behaviours: tuple[tuple[float, ...] | None, ...] = (),
    **settings: Any,
) -> sv.Experiment:
    """So many arms and features in [0, 1], with ``whisper`` and its settings."""
    return sv.Experiment(
        arms=[f"arm {k}" for k in range(arms)],
        context=[sv.Numeric(f"x{j}", 0, 1) for j in range(d)],
        epsilon=1.0,
        horizon=horizon,
        auxiliary=[
            sv.Population(f"aux {m}", 2.0, 100, behaviour) for m, behaviour in enumerate(behaviours)
        ],
        method=sv.Whisper(**settings),
    )


def clinic(**settings: Any) -> sv.Experiment:
    """One with a numeric and an ordinal feature, to which a clinic contributes rows."""
    defaults: dict[str, Any] = {
        "arms": ARMS,
        "context": [sv.Numeric("age", 18, 90), sv.Ordinal("activity", LEVELS)],
        "epsilon": 1.0,
        "auxiliary": [sv.Population("clinic-b", epsilon=4.0, users=5000)],
    }
    return sv.Experiment(**{**defaults, **settings})


# --- releases -------------------------------------------------------------------------------------


def uniform(path: str, *arms: int, waiting: tuple[int, ...] = ()) -> BinPolicy:
    """A bin that offers these arms, each as likely as the others."""
    return BinPolicy(path, arms, (1 / len(arms),) * len(arms), waiting)


def four_bins(
    *,
    epsilon: float = 1.0,
    arms: int = 3,
    reward_share: int = REWARD_SHARE,
    ask: tuple[int, ...] = ASK,
    **settings: Any,
) -> sv.Release:
    """Two bins for the young, contested; one for the old and light, settled; one for the rest."""
    public = settings.get("public_arms", False)
    young = (
        uniform("00", 0, 2),
        uniform("01", 0, 1, 2) if public else uniform("01", 1, 2, waiting=(0,)),
    )
    if arms == 2:
        young = (uniform("00", 0, 1), uniform("01", 0, 1))
    bins = (*young, uniform("10", 1), uniform("11", 0, 1))
    partition = Partition(2, {"": 0, "0": 1, "1": 1})
    return sv.Release(
        walking(epsilon=epsilon, arms=arms, **settings), 7, partition, bins, reward_share, ask
    )


def settled_release(**settings: Any) -> sv.Release:
    """One bin in which one arm is left."""
    bins = (uniform("", 1),)
    return sv.Release(walking(**settings), 3, Partition(2, {}), bins, REWARD_SHARE, ASK)


# --- learners -------------------------------------------------------------------------------------


def grown(*, reports: int = 400, seed: int = 0, **settings: Any) -> sv.Learner:
    """A learner with ``ldpmab`` that has dropped arms and split bins."""
    import numpy as np

    from support.histories import World

    rng = np.random.default_rng(seed)
    settings = {
        "epsilon": 64.0,
        "horizon": reports,
        "release_every": 10,
        "method": sv.Ldpmab("paper", c=0.1),
        "auxiliary": [sv.Population("clinic-b", 16.0, 100)],
        **settings,
    }
    world = World(experiment(**settings), rng.beta(0.3, 0.3, (4, 3)))
    learner = sv.Learner(world.experiment)
    for _ in range(reports):
        population = int(rng.integers(len(world.experiment.populations)))
        learner.receive(world.message(rng, learner.release(), population).report)
    return learner


def grown_whisper(*, reports: int = 267, **settings: Any) -> sv.Learner:
    """The same with ``whisper``, in the middle of a batch."""
    return sv.Learner.from_json(_grown_once(reports, *settings.items()))


@lru_cache
def _grown_once(reports: int, *settings: tuple[str, Any]) -> str:
    from support.whispers import send, tell_places

    learner = sv.Learner(whispering(**dict(settings)))
    tell_places(learner, random.Random(19))
    send(learner, random.Random(20), reports, target_only="guarantee" in dict(settings))
    return learner.to_json()


# --- ledgers --------------------------------------------------------------------------------------


class Purse:
    """A ledger that only counts."""

    def __init__(self) -> None:
        self.spent: list[tuple[float, str, str, int]] = []

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Write down what is spent."""
        self.spent.append((epsilon, experiment, name, release))
