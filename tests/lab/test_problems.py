import pickle

import numpy as np
import pytest

from sottovoce.lab.environments import Environment, draw_people
from sottovoce.lab.problems import TUNING

NAMED = [pytest.param(name, world, id=name) for name, world in TUNING.items()]


@pytest.mark.parametrize(("name", "world"), NAMED)
def test_people_of_every_problem_pass_the_checks(name: str, world: Environment) -> None:
    contexts, means, outcomes = draw_people(world, np.random.default_rng(0), 5000)
    assert contexts.shape == (5000, world.dimension)
    assert means.shape == (5000, world.arms)
    assert len(outcomes) == 0  # rewards are 0 or 1
    assert f" {world.arms} arms, {world.dimension} " in name


@pytest.mark.parametrize(("name", "world"), NAMED)
def test_a_problem_is_the_same_in_another_process(name: str, world: Environment) -> None:
    copy = pickle.loads(pickle.dumps(world))  # noqa: S301
    ours, theirs = (draw_people(each, np.random.default_rng(1), 100)[:2] for each in (world, copy))
    for mine, its in zip(ours, theirs, strict=True):
        assert (mine == its).all(), name


def test_the_problems_are_different_ones() -> None:
    x = np.full((1, 4), 0.37)
    fingerprints = {
        (world.arms, world.dimension, *world.means(x[:, : world.dimension])[0].round(9))
        for world in TUNING.values()
    }
    assert len(fingerprints) == len(TUNING)


def test_there_are_problems_from_2_to_8_arms_and_from_1_to_4_features() -> None:
    arms = {world.arms for world in TUNING.values()}
    assert arms >= {2, 3, 4, 5, 6, 8}
    assert {world.dimension for world in TUNING.values()} == {1, 2, 3, 4}


def test_the_draws_of_waves_stay_what_they_were() -> None:
    """Figures made with these problems can be compared only while these numbers stay."""
    waves = TUNING["waves, 5 arms, 2 features"].means(np.array([[0.25, 0.75]]))
    assert waves[0] == pytest.approx(WAVES)
    slow = TUNING["slow waves, 4 arms, 3 central features"].means(np.array([[0.25, 0.5, 0.75]]))
    assert slow[0] == pytest.approx(SLOW_WAVES)


WAVES = [0.559038035, 0.30446462, 0.419262261, 0.261565223, 0.499728182]
SLOW_WAVES = [0.093846508, 0.66207044, 0.235250817, 0.826111307]


def test_rewards_of_the_problem_with_rare_ones_are_rare() -> None:
    world = TUNING["rare rewards, 3 arms, 2 features"]
    _, means, _ = draw_people(world, np.random.default_rng(0), 5000)
    assert means.min() >= 0.02
    assert means.max() <= 0.08


def test_nobody_can_lose_anything_where_all_arms_are_alike() -> None:
    alike = [world for name, world in TUNING.items() if name.startswith("all alike")]
    assert len(alike) == 2
    for world in alike:
        _, means, _ = draw_people(world, np.random.default_rng(0), 1000)
        assert (means == means[:, :1]).all()


def test_people_on_heaps_are_on_heaps() -> None:
    world = TUNING["people on heaps, 3 arms, 3 features"]
    contexts = world.contexts(np.random.default_rng(0), 2000)
    # In boxes of 1/8 on a side, 512 of them, nearly everybody is in few.
    boxes = np.unique((contexts * 7.999).astype(int), axis=0, return_counts=True)[1]
    assert np.sort(boxes)[-40:].sum() > 0.9 * 2000
    best = world.means(contexts).argmax(axis=1)
    assert min((best == arm).mean() for arm in (0, 2)) > 0.3  # and not all want the same
