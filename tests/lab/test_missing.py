"""Worlds in which a value may be missing: how often, and what is lost by it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.environments import Exponential, Slope, draw_people
from sottovoce.lab.missing import Missing
from sottovoce.lab.worlds import LevelsInTurns, LongTails


def people(world: Missing, n: int = 40_000) -> Any:
    return draw_people(world, np.random.default_rng(0), n)


@pytest.mark.parametrize("matters", [False, True])
@pytest.mark.parametrize("environment", [Exponential(), Slope(), LongTails(Exponential())])
def test_a_missing_value_lies_at_0_and_an_axis_says_that_it_is_missing(
    environment: Any, matters: bool
) -> None:
    world = Missing(environment, 0.3, matters)
    contexts = people(world).contexts
    assert world.dimension == contexts.shape[1] == 3
    assert set(contexts[:, 1]) == {0.25, 0.75}
    assert (contexts[contexts[:, 1] == 0.75, 0] == 0).all()
    assert (contexts[contexts[:, 1] == 0.25, 0] > 0).all()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("matters", [False, True])
def test_as_many_values_are_missing_as_is_said(share: float, matters: bool) -> None:
    contexts = people(Missing(Exponential(), share, matters)).contexts
    assert (contexts[:, 1] > 0.5).mean() == pytest.approx(share, abs=0.01)
    # Of those that are there the mean is 1/2, or E[x(1 - 2·share·x)]/(1 - share).
    there = contexts[contexts[:, 1] < 0.5, 0].mean()
    expected = (1 / 2 - 2 * share / 3) / (1 - share) if matters else 0.5
    assert there == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("matters", [False, True])
def test_those_whose_value_is_there_have_the_rewards_of_the_environment(matters: bool) -> None:
    found = people(Missing(Slope(), 0.4, matters))
    there = found.contexts[:, 1] < 0.5
    assert (found.means[there] == Slope().means(found.contexts[there][:, [0, 2]])).all()


def test_those_whose_value_is_missing_at_random_have_average_rewards() -> None:
    world = Missing(Slope(), 0.4)
    for second in (0.1, 0.5, 0.8):
        many = np.column_stack([np.linspace(0, 1, 20_001), np.full(20_001, second)])
        average = Slope().means(many).mean(axis=0)
        means = world.means(np.array([[0.0, 0.75, second]]))
        assert means[0] == pytest.approx(average, abs=0.001)


def test_those_whose_value_is_missing_have_rewards_of_their_own_if_that_matters() -> None:
    found = people(Missing(Exponential(), 0.4, matters=True))
    missing = found.contexts[:, 1] > 0.5
    assert found.means[missing] == pytest.approx(np.tile([0.3, 0.3, 0.7], (missing.sum(), 1)))
    # Where a small value would be, another arm is best.
    assert Exponential().means(np.zeros((1, 2))).argmax() == 0


def test_the_contexts_that_are_asked_about_stay_as_they_are() -> None:
    contexts = people(Missing(Exponential(), 0.4), 500).contexts
    before = contexts.copy()
    Missing(Exponential(), 0.4).means(contexts)
    assert (contexts == before).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Missing(Exponential(), 1.1), r"share must lie in \[0, 1\]; got 1.1"),
        (lambda: Missing(Exponential(), 0.6, matters=True), r"share must lie in \[0, 0.5\]"),
        (lambda: Missing(LevelsInTurns(4), 0.5), "the first feature must be a number; got Categ"),
    ],
)
def test_worlds_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        make()
