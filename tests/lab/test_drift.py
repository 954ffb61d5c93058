"""Worlds that change while people come: when, how far, and what is counted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.drift import SlowDrift, SuddenDrift
from sottovoce.lab.environments import Environment, Exponential, Floats, People, draw_people
from sottovoce.lab.simulation import Auxiliary, simulate


def share_of_others(world: Environment, now: Environment) -> float:
    """Return the share of the space in which the best arm is another than it was at first."""
    contexts = np.random.default_rng(0).random((100_000, world.dimension))
    best = [each.means(contexts).argmax(axis=1) for each in (world, now)]
    return float((best[0] != best[1]).mean())


class Watching:
    """Always the first arm; keeps who came, and what they would have got."""

    def __init__(self, experiment: sv.Experiment) -> None:
        self.contexts: list[Floats] = []
        self.means: list[Floats] = []
        self.rows: list[Floats] = []

    def serve(self, people: People, rng: np.random.Generator) -> Any:
        self.contexts.append(people.contexts)
        self.means.append(people.means)
        return np.zeros(len(people.means), dtype=np.int64)

    def contribute(self, rows: Any, population: int, rng: np.random.Generator) -> None:
        self.rows.append(rows.means - Exponential().means(rows.contexts))

    def probabilities(self, points: Floats) -> Floats:
        return np.tile([1.0, 0.0, 0.0], (len(points), 1))


def watched(world: Environment, n: int, **options: Any) -> tuple[Any, Floats, Floats]:
    result = simulate(world, method=Watching, epsilon=1, n=n, seed=0, **options)
    policy: Any = result.policy
    return result, np.concatenate(policy.contexts), np.concatenate(policy.means)


@pytest.mark.parametrize("swap_at", [1, 150, 16_384, 20_001])
def test_a_sudden_drift_changes_at_the_stated_person_and_not_before(swap_at: int) -> None:
    environment = Exponential()
    _, contexts, means = watched(SuddenDrift(environment, swap_at, 0.5), 25_000)
    other = np.roll(environment.means(contexts), -1, axis=1)
    late = (np.arange(25_000) >= swap_at) & (contexts[:, 1] < 0.5)
    expected = np.where(late[:, np.newaxis], other, environment.means(contexts))
    assert (means == expected).all()


def test_best_arms_change_in_the_stated_share_of_the_space() -> None:
    world = SuddenDrift(Exponential(), 1000, 0.3)
    assert share_of_others(world, world.at(999)) == 0
    assert share_of_others(world, world.at(1000)) == pytest.approx(0.3, abs=0.01)
    slow = SlowDrift(Exponential(), 5000, 0.6)
    for people, share in ((0, 0), (99, 0), (100, 0.012), (2500, 0.3), (4999, 0.588), (9000, 0.6)):
        assert share_of_others(slow, slow.at(people)) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("over", [7, 120, 5000, 80_001])
def test_a_slow_drift_changes_where_it_says_and_nowhere_else(over: int) -> None:
    world = SlowDrift(Exponential(), over, 0.5)
    at = [world.at(people) for people in range(over + 10)]
    changed = tuple(n for n in range(1, over + 10) if at[n] != at[n - 1])
    assert world.changes == changed
    assert len(changed) == min(over, 50)


def test_a_block_ends_where_the_world_changes_and_people_are_the_same_without() -> None:
    result, contexts, _ = watched(SlowDrift(Exponential(), 3000, 1.0), 3000)
    assert len(contexts) == 3000
    assert result.people[-1] == 3000
    rng = np.random.default_rng(0).spawn(2)[0]
    same = np.concatenate([draw_people(Exponential(), rng, 60).contexts for _ in range(50)])
    assert (contexts == same).all()


def test_regret_counts_against_the_best_arm_of_the_moment() -> None:
    points = [(0.25, 0.1), (0.25, 0.9)]
    world = SuddenDrift(Exponential(), 2000, 0.5)
    result, _, means = watched(world, 4000, points=points)
    lost = np.cumsum(means.max(axis=1) - means[:, 0])
    assert result.regret == pytest.approx(lost[result.people - 1])
    assert result.regret_since(2000) == pytest.approx(lost[-1] - lost[1999])
    assert result.regret_since(2050) == result.regret_since(2000)
    assert result.regret_since(10) == result.regret[-1]
    # The first arm is best at both points until the world changes at one of them.
    gap = float(np.ptp(Exponential().means(np.array(points))[0, :2]))
    assert result.local_regret[19].tolist() == [0, 0]
    assert result.local_regret[-1] == pytest.approx([2000 * gap, 0])


def test_rows_are_of_the_beginning() -> None:
    world = SuddenDrift(Exponential(), 10, 1.0)
    result, _, _ = watched(world, 200, auxiliary=[Auxiliary(500, 1.0)])
    assert (np.concatenate(result.policy.rows) == 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SuddenDrift(Exponential(), 0, 0.5), "swap_at must be a whole number >= 1"),
        (lambda: SuddenDrift(Exponential(), 5, -1), r"share must lie in \[0, 1\]"),
        (lambda: SlowDrift(Exponential(), 0, 0.5), "over must be a whole number >= 1"),
        (lambda: SlowDrift(Exponential(), 5, 0.5, axis=4), "axis must be one of the 2"),
    ],
)
def test_drifts_that_cannot_be_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        make()
