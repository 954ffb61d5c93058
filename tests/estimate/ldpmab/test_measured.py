"""``ldpmab`` says of arms that it has dropped what it last measured."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import ARMS, experiment
from support.histories import World

Known = dict[tuple[str, int], tuple[float, float]]


@cache
def grown_one_by_one() -> tuple[str, Known]:
    """A learner that has dropped arms, and what its steps saw last of each contested cell.

    The same as ``factories.grown``, looked at after each report.
    """
    rng, last = np.random.default_rng(0), {}
    settings = {"method": sv.Ldpmab("paper", c=0.1), "epsilon": 64.0, "release_every": 10}
    world = World(experiment(horizon=400, **settings), rng.beta(0.3, 0.3, (4, 3)))
    learner = sv.Learner(world.experiment)
    estimator: Any = learner._estimator
    step = estimator.step

    def watched() -> Any:
        last.update({cell: known for cell, known in estimator._contested().items() if known})
        return step()

    estimator.step = watched
    for _ in range(400):
        learner.receive(world.message(rng, learner.release(), 0).report)
    return learner.to_json(), last


def settled() -> sv.Learner:
    return sv.Learner.from_json(grown_one_by_one()[0])


def test_an_arm_that_was_dropped_keeps_its_last_estimate() -> None:
    learner, last = settled(), grown_one_by_one()[1]
    found, release = learner.estimates(), learner.release()
    assert len(found) == len(release.bins) * len(ARMS)
    assert all(each.level is None for each in found)  # the paper's radius names none
    dropped = [each for each in found if not each.live]
    assert dropped
    for each in dropped:
        arm = ARMS.index(each.arm)
        within = [each.path[:depth] for depth in range(len(each.path), -1, -1)]
        expected = next(last[path, arm] for path in within if (path, arm) in last)
        assert (each.estimate, each.radius) == expected


def test_what_was_measured_is_saved() -> None:
    learner = settled()
    again = sv.Learner.from_json(learner.to_json())
    assert again.estimates() == learner.estimates()
    text = learner.to_json().replace('"measured": [[', '"measured": [["", 9, 0.5, 0.1], [')
    with pytest.raises(sv.StateError, match="estimates of arms that were dropped cannot be"):
        sv.Learner.from_json(text)


def test_the_value_of_a_policy_cannot_be_told() -> None:
    learner = settled()
    assert (learner.people(), learner.arms()) == ([], [])
    with pytest.raises(sv.ExperimentError, match=r"must be of method whisper.*got ldpmab"):
        learner.value("always:coach")
