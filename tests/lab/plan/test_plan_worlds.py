"""Plausible worlds have the effect that was asked for, and people that fit the schema."""

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.environments import draw_people
from sottovoce.lab.people import value_at
from sottovoce.lab.plan.people import draw_law
from sottovoce.lab.plan.worlds import PlausibleWorld, draw_world, suits

MIXED = (
    sv.Numeric("age", 18, 90, optional=True),
    sv.Ordinal("activity", ("low", "middling", "high")),
    sv.Categorical("city", ("a", "b", "c", "d"), other=True),
    sv.Boolean("new"),
    sv.Numeric("bmi", 15, 45),
    sv.Ordinal("mood", ("low", "high"), optional=True),
)


def world(seed: int, *, arms: int = 3, effect: float = 0.1) -> PlausibleWorld:
    return draw_world(MIXED, arms=arms, effect=effect, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("arms", [2, 3, 7])
@pytest.mark.parametrize("effect", [0.02, 0.1, 0.6, 1.0])
def test_the_best_arm_brings_the_effect_more_than_the_next_best(arms: int, effect: float) -> None:
    """On average over 4,000 people; it is known to a few hundredths of itself."""
    for seed in range(40):
        one = world(seed, arms=arms, effect=effect)
        means = draw_people(one, np.random.default_rng(seed), 4000).means
        ordered = np.sort(means, axis=1)
        assert np.mean(ordered[:, -1] - ordered[:, -2]) == pytest.approx(effect, rel=0.1)


def test_no_arm_suits_nearly_everybody() -> None:
    """But where levels leave no choice."""
    most = [
        np.bincount(draw_people(world(seed), np.random.default_rng(0), 3000).means.argmax(1)).max()
        for seed in range(100)
    ]
    assert np.median(most) < 0.7 * 3000
    assert max(most) < 0.95 * 3000


def test_people_fit_the_schema() -> None:
    """Each place is one that a device could find: turned into a raw value and back it is kept."""
    for seed in range(20):
        contexts = world(seed).contexts(np.random.default_rng(seed), 50)
        at = 0
        for feature in MIXED:
            own = contexts[:, at : at + len(feature.axes)]
            at += len(feature.axes)
            for row in own:
                assert feature.positions(value_at(feature, row.tolist())) == pytest.approx(row)
        assert at == contexts.shape[1]


def test_standings_are_ranks_whatever_the_spread() -> None:
    rng = np.random.default_rng(0)
    for feature in MIXED:
        for _ in range(20):
            law = draw_law(feature, rng)
            stands = law.stand(law.draw(rng, 20_000))
            assert stands.min() >= 0
            assert stands.max() <= 1
            if law.missing is None:
                assert stands.mean() == pytest.approx(0.5, abs=0.02)


def test_worlds_differ_and_a_seed_repeats_one() -> None:
    assert world(1) == world(1)
    several = [world(seed) for seed in range(60)]
    assert len({each.relevant for each in several}) > 10
    assert {len(each.relevant) for each in several} == {1, 2}
    assert {each.slope is None for each in several} == {True, False}
    assert {len(each.best) for each in several} == {2, 3}
    assert len({each.best[0] for each in several}) == 3


def test_an_arm_suits_whoever_loses_at_most_a_quarter_of_the_effect_by_it() -> None:
    means = np.array([[0.5, 0.48, 0.47], [0.2, 0.9, 0.1]])
    assert suits(means, 0.1).tolist() == [[1, 1, 0], [0, 1, 0]]
