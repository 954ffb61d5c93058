"""The names of levels without order, and their places on the axis, mean nothing.

The same people, with their levels permuted, lose as much as before but for chance. Runs are paired
by seed: the people and the coins of the world are the same, and noise goes another way only because
levels are written down in another order. Over all seeds, each with a permutation of its own, the
mean difference of regret is within 6 of its own standard errors: by the t distribution with 29
degrees of freedom or more, a false alarm in 500,000 draws of seeds. Seeds are fixed, so that a test
that passes once always does.

Power: each test asserts how large the standard error may be, as a share of the regret. Measured:
8 % and 0.1 % in the fast tests, so that a difference of 50 % and 1 % would be seen; 0.3 % to 12 %
in the slow ones, where few levels at a small ε leave most to luck.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.environments import Floats
from sottovoce.lab.simulation import simulate


@dataclass(frozen=True)
class Permuted:
    """Two arms; which is better depends on the level, whatever its place on the axis is.

    order: the place of each level. People and their levels are the same for every order.
    """

    order: tuple[int, ...]
    effect: float = 0.3
    arms: int = 2
    dimension: int = 2

    @property
    def features(self) -> list[sv.Categorical | sv.Numeric]:
        names = tuple(f"level {level}" for level in np.argsort(self.order))
        return [sv.Categorical("group", names), sv.Numeric("x", 0, 1)]

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        shares = np.arange(1, len(self.order) + 1) / sum(range(1, len(self.order) + 1))
        level = rng.choice(len(self.order), n, p=shares)
        place = np.array(self.order)[level]
        return np.stack([(place + 0.5) / len(self.order), rng.random(n)], axis=1)

    def means(self, contexts: Floats) -> Floats:
        place = (contexts[:, 0] * len(self.order)).astype(int)
        level = np.argsort(self.order)[place]
        above = np.where(level % 2 == 1, -self.effect, self.effect)
        return np.stack([0.5 + above, 0.5 - above], axis=1)


def regret(order: tuple[int, ...], *, epsilon: float, people: int, seed: int) -> float:
    world = Permuted(order)
    result = simulate(world, epsilon=epsilon, n=people, seed=seed)
    return float(result.regret[-1])


def assert_alike(*, levels: int, epsilon: float, people: int, seeds: int, luck: float) -> None:
    """A paired test over seeds, each with a permutation of its own."""
    same = tuple(range(levels))
    rng = np.random.default_rng(levels)
    found = np.array(
        [
            [
                regret(order, epsilon=epsilon, people=people, seed=seed)
                for order in (same, tuple(map(int, rng.permutation(levels))))
            ]
            for seed in range(seeds)
        ]
    )
    differences = found[:, 1] - found[:, 0]
    error = differences.std(ddof=1) / len(differences) ** 0.5
    assert abs(differences.mean()) < 6 * error
    assert error < luck * found.mean()
    assert found.mean() < 0.8 * 0.3 * people  # less than by arms at random: something was learned


@pytest.mark.parametrize(
    ("epsilon", "people", "seeds", "luck"), [(1.0, 16_000, 60, 0.12), (8.0, 4000, 30, 0.01)]
)
def test_permuted_levels_lose_as_much(epsilon: float, people: int, seeds: int, luck: float) -> None:
    assert_alike(levels=5, epsilon=epsilon, people=people, seeds=seeds, luck=luck)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [3, 8, 16])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 8.0])
def test_permuted_levels_lose_as_much_at_length(levels: int, epsilon: float) -> None:
    assert_alike(levels=levels, epsilon=epsilon, people=40_000, seeds=100, luck=0.15)


def test_other_names_for_the_same_levels_change_nothing_at_all() -> None:
    """Names are no part of what is learned: not even by rounding."""

    @dataclass(frozen=True)
    class Renamed(Permuted):
        @property
        def features(self) -> list[sv.Categorical | sv.Numeric]:
            names = tuple(f"other name {level}" for level in self.order)
            return [sv.Categorical("group", names), sv.Numeric("x", 0, 1)]

    order = (0, 1, 2, 3, 4)
    one, other = (
        simulate(world(order), epsilon=4.0, n=3000, seed=3) for world in (Permuted, Renamed)
    )
    assert one.regret.tolist() == other.regret.tolist()
    assert one.release.partition == other.release.partition


def test_arms_that_take_turns_between_levels_are_told_apart() -> None:
    """Bins become sets of levels, and the people of each get the arm that is best for them."""
    result = simulate(Permuted((3, 0, 4, 1, 2)), epsilon=4.0, n=20_000, seed=0)
    partition = result.release.partition
    assert partition.sets
    places = np.array(Permuted((3, 0, 4, 1, 2)).order)
    for level in range(5):
        path = partition.find(((places[level] + 0.5) / 5, 0.5))
        policy = result.release.policies[path]
        assert policy.arms == (level % 2,)
