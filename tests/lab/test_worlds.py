"""Worlds beyond the paper's: each is what it says it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import sottovoce as sv
from sottovoce.lab.environments import Environment, Exponential, Symmetric, regret_at_random
from sottovoce.lab.simulation import simulate
from sottovoce.lab.worlds import (
    LevelsInTurns,
    Linear,
    LongTails,
    PartlyOther,
    Stripes,
    Widened,
    Xor,
)

WORLDS: list[Environment] = [
    Widened(Exponential(), 7),
    Widened(LevelsInTurns(5), 3),
    Linear(),
    Linear(dimension=20, relevant=3),
    LevelsInTurns(6),
    LevelsInTurns(7, effect=0.5, in_turns=False),
    LongTails(Exponential()),
    LongTails(Symmetric(), sigma=3.0, top=0.9),
    PartlyOther(Exponential(arms=4), 0.25),
    PartlyOther(LongTails(Exponential()), 0.5, axis=0),
    Stripes(8),
    Xor(),
]
each_world = pytest.mark.parametrize("world", WORLDS, ids=repr)


def people(world: Environment, n: int = 5000) -> Any:
    return world.contexts(np.random.default_rng(0), n)


@each_world
def test_contexts_and_means_have_their_shapes_and_lie_in_the_unit_interval(
    world: Environment,
) -> None:
    contexts = people(world)
    means = world.means(contexts)
    assert contexts.shape == (5000, world.dimension)
    assert means.shape == (5000, world.arms)
    for values in (contexts, means):
        assert values.min() >= 0
        assert values.max() <= 1


@each_world
def test_an_experiment_is_built_with_the_features_of_the_world(world: Environment) -> None:
    result = simulate(world, epsilon=1, n=200, seed=0)
    assert result.experiment.dimension == world.dimension
    assert result.experiment.context == tuple(getattr(world, "features", result.experiment.context))


def test_an_environment_without_features_of_its_own_has_numbers() -> None:
    context = simulate(Exponential(), epsilon=1, n=100, seed=0).experiment.context
    assert context == (sv.Numeric("x1", 0, 1), sv.Numeric("x2", 0, 1))


@pytest.mark.parametrize(
    ("world", "matter"),
    [
        (Widened(Exponential(), 6), {0}),
        (Widened(Symmetric(), 5), {0, 1}),
        (Linear(dimension=6, relevant=3), {0, 1, 2}),
        (Stripes(4, dimension=3), {0}),
        (Xor(), {0, 1}),
    ],
    ids=repr,
)
def test_features_that_are_irrelevant_do_not_change_the_means(
    world: Environment, matter: set[int]
) -> None:
    rng = np.random.default_rng(1)
    here = rng.random((500, world.dimension))
    felt = set()
    for axis in range(world.dimension):
        there = here.copy()
        there[:, axis] = rng.random(500)
        if (world.means(there) != world.means(here)).any():
            felt.add(axis)
    assert felt == matter


def test_what_is_added_to_a_widened_world_is_uniform() -> None:
    contexts = people(Widened(LongTails(Exponential()), 4), 20_000)
    # Each check fails for one of 10,000 seeds if all is right.
    for axis in (2, 3):
        assert stats.kstest(contexts[:, axis], "uniform").pvalue > 1e-4
    assert stats.kstest(contexts[:, 0], "uniform").pvalue < 1e-4


def test_the_linear_arms_differ_by_eight_tenths_in_the_corners_that_suit_them() -> None:
    world = Linear(dimension=4, relevant=2)
    means = world.means(np.array([[1, 0, 0.3, 0.9], [0, 1, 0.3, 0.9], [0.7, 0.7, 0, 1]]))
    assert means == pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]))


@pytest.mark.parametrize("levels", [2, 6, 12, 30, 31])
def test_levels_in_turns_favour_one_arm_and_then_the_other(levels: int) -> None:
    places = (np.arange(levels)[:, np.newaxis] + 0.5) / levels
    world = LevelsInTurns(levels)
    means = world.means(places)
    assert means.sum(axis=1) == pytest.approx(1)
    assert means[:, 0] - means[:, 1] == pytest.approx(np.resize([0.4, -0.4], levels))
    (feature,) = world.features
    assert isinstance(feature, sv.Categorical)
    assert len(feature.levels) == levels
    found, counts = np.unique(people(world, 60_000), return_counts=True)
    assert found == pytest.approx(places[:, 0])
    assert stats.chisquare(counts).pvalue > 1e-4  # fails for one seed of 10,000


def test_sorted_levels_change_the_best_arm_once() -> None:
    places = (np.arange(6)[:, np.newaxis] + 0.5) / 6
    best = LevelsInTurns(6, in_turns=False).means(places).argmax(axis=1)
    assert best.tolist() == [0, 0, 0, 1, 1, 1]


def test_long_tails_are_log_normal_and_cut_off_at_the_top() -> None:
    world = LongTails(Exponential(), sigma=1.2, top=0.999)
    highest = float(stats.lognorm(1.2).ppf(0.999))
    (first, _) = world.features
    assert isinstance(first, sv.Numeric)
    assert first.low == 0
    assert first.high == pytest.approx(highest)
    positions = people(world, 100_000)[:, 0]
    assert (positions == 1).mean() == pytest.approx(0.001, abs=0.0005)
    for share in (0.1, 0.5, 0.9, 0.99):
        expected = stats.lognorm(1.2).ppf(share) / highest
        assert np.quantile(positions, share) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("environment", [Exponential(), Symmetric()])
def test_people_in_long_tails_have_the_rewards_of_their_quantiles(environment: Any) -> None:
    world = LongTails(environment)
    uniform = environment.contexts(np.random.default_rng(0), 5000)
    stretched = world.contexts(np.random.default_rng(0), 5000)
    assert world.quantiles(stretched) == pytest.approx(np.minimum(uniform, 0.999))
    below = (uniform < 0.999).all(axis=1)
    assert world.means(stretched)[below] == pytest.approx(environment.means(uniform)[below])
    assert world.means(np.zeros((1, 2))) == pytest.approx(environment.means(np.zeros((1, 2))))
    assert regret_at_random(world) == pytest.approx(regret_at_random(environment), rel=0.01)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("arms", [2, 3, 5])
def test_best_arms_differ_in_the_stated_share_of_the_space(share: float, arms: int) -> None:
    environment = Exponential(arms=arms)
    contexts = people(environment, 40_000)
    one, other = environment.means(contexts), PartlyOther(environment, share).means(contexts)
    differ = one.argmax(axis=1) != other.argmax(axis=1)
    assert (differ == (contexts[:, 1] < share)).all()
    assert differ.mean() == pytest.approx(share, abs=0.01)
    assert np.sort(one, axis=1) == pytest.approx(np.sort(other, axis=1))


def test_stripes_take_turns_as_often_as_they_say() -> None:
    along = np.stack([np.linspace(0.001, 0.999, 999), np.full(999, 0.5)], axis=1)
    for turns in (1, 4, 8):
        best = Stripes(turns).means(along).argmax(axis=1)
        assert np.count_nonzero(np.diff(best)) == turns - 1


def test_neither_feature_of_an_xor_says_anything_alone() -> None:
    contexts = people(Xor(), 100_000)
    first = Xor().means(contexts)[:, 0]
    for axis in range(6):
        low = contexts[:, axis] < 0.5
        assert first[low].mean() == pytest.approx(first[~low].mean(), abs=0.02)
    both = (contexts[:, 0] < 0.5) & (contexts[:, 1] < 0.5)
    assert set(first[both].round(9)) == {0.8}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Widened(Exponential(), 1), "dimension of a widened world must be a whole"),
        (lambda: Linear(dimension=2, relevant=3), "the dimension must be a whole number >= 3"),
        (lambda: LevelsInTurns(1), "levels must be a whole number >= 2"),
        (lambda: LevelsInTurns(6, effect=0.6), r"effect must lie in \[0, 1/2\]; got 0.6"),
        (lambda: Xor(effect=-0.1), r"effect must lie in \[0, 1/2\]"),
        (lambda: LongTails(Exponential(), sigma=0), "sigma must be > 0"),
        (lambda: LongTails(Exponential(), top=1.0), "top must lie between 0 and 1"),
        (lambda: PartlyOther(Exponential(), 1.5), r"share must lie in \[0, 1\]; got 1.5"),
        (lambda: PartlyOther(Exponential(), 0.5, axis=2), "axis must be one of the 2"),
    ],
)
def test_worlds_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        make()
