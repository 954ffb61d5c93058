"""Small things that many tests need."""

from typing import Any

import sottovoce as sv

CONTEXT = {"age": 42, "bmi": 27.5}


def experiment(**settings: Any) -> sv.Experiment:
    defaults: dict[str, Any] = {
        "arms": ["control", "reminder", "coach"],
        "context": [sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)],
        "epsilon": 1.0,
        "horizon": 1000,
        "method": "ldpmab",
    }
    return sv.Experiment(**{**defaults, **settings})


def grown(*, reports: int = 400, seed: int = 0, **settings: Any) -> sv.Learner:
    """A learner that has dropped arms and cut bins."""
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
