"""The lab's driver: people in blocks, steps, regret, and policies of anybody's own."""

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab import Table, driver, play
from sottovoce.lab.comparison import Effort, compare
from sottovoce.lab.environments import Exponential, Floats, People, Rows, Slope, regret_at_random
from sottovoce.lab.simulation import Auxiliary, simulate
from support.tables import pupils, write


class AtRandom:
    """The shortest policy there is, as one would write it in a notebook."""

    def __init__(self, experiment: sv.Experiment) -> None:
        self.arms = len(experiment.arms)

    def serve(self, people: People, rng: np.random.Generator) -> Any:
        return rng.integers(self.arms, size=len(people.means))

    def probabilities(self, points: Floats) -> Floats:
        return np.full((len(points), self.arms), 1 / self.arms)


class Leader:
    """Explores by halves, and follows the arm with the best mean; learns from rows, too."""

    def __init__(self, experiment: sv.Experiment) -> None:
        self.count, self.total = np.ones(len(experiment.arms)), np.zeros(len(experiment.arms))
        self.calls: list[tuple[str, int]] = []
        self.best = 0

    def serve(self, people: People, rng: np.random.Generator) -> Any:
        n = len(people.contexts)
        self.calls.append(("serve", n))
        explore = rng.random(n) < 0.5
        arms = np.where(explore, rng.integers(len(self.count), size=n), self.best)
        self.learn(arms, people.rewards(arms, rng))
        return arms

    def contribute(self, rows: Rows, population: int, rng: np.random.Generator) -> None:
        self.calls.append((f"rows of {population}", len(rows.arms)))
        self.learn(rows.arms, rows.rewards(rng))

    def step(self) -> None:
        self.calls.append(("step", 0))
        self.best = int(np.argmax(self.total / self.count))

    def probabilities(self, points: Floats) -> Floats:
        chances = np.full((len(points), len(self.count)), 0.5 / len(self.count))
        chances[:, self.best] += 0.5
        return chances

    def learn(self, arms: Any, rewards: Floats) -> None:
        np.add.at(self.count, arms, 1)
        np.add.at(self.total, arms, rewards)


def test_the_example_of_the_documentation_runs() -> None:
    tried = doctest.testmod(driver)
    assert tried.attempted > 3
    assert tried.failed == 0


def test_arms_at_random_lose_what_arms_at_random_lose() -> None:
    result = simulate(Exponential(), method=AtRandom, epsilon=1, n=20_000, seed=0)
    assert result.regret[-1] == pytest.approx(20_000 * regret_at_random(Exponential()), rel=0.02)
    assert result.method == "AtRandom"
    assert isinstance(result.policy, AtRandom)
    assert result.history == ()
    assert result.diagnosis is None
    with pytest.raises(sv.ExperimentError, match=r"a release must come from .*; AtRandom is a"):
        _ = result.release


def test_people_and_rows_come_between_steps_and_the_policy_is_asked_before_each() -> None:
    rows = [Auxiliary(70, 1.0), Auxiliary(20, 1.0)]
    points = [(0.5, 0.5)]
    settings: dict[str, Any] = {"epsilon": 1, "n": 55, "seed": 0, "release_every": 40}
    result = simulate(Slope(), method=Leader, auxiliary=rows, points=points, **settings)
    assert isinstance(result.policy, Leader)
    # 70 rows, 20 rows and 55 people, with a step after every 40 of them.
    assert result.policy.calls == [
        ("rows of 1", 40),
        ("step", 0),
        ("rows of 1", 30),
        ("rows of 2", 10),
        ("step", 0),
        ("rows of 2", 10),
        ("serve", 30),
        ("step", 0),
        ("serve", 25),
    ]
    assert result.people.tolist() == [30, 55]
    assert result.reports == (55, 70, 20)
    assert result.arm_ratios.shape == (2, 1, 2)
    assert result.arm_ratios.sum(axis=2) == pytest.approx(1)


def test_a_policy_without_rows_is_stepped_as_if_there_were_none() -> None:
    settings: dict[str, Any] = {"method": AtRandom, "epsilon": 1, "n": 250, "seed": 0}
    helped = simulate(Slope(), auxiliary=[Auxiliary(70, 1.0)], **settings)
    assert helped.people.tolist() == [100, 200, 250]
    assert helped.reports == (250, 70)


def test_what_was_lost_is_what_the_arms_lost() -> None:
    """Whatever the blocks: the driver adds up, one person after the other."""

    class Worst(AtRandom):
        def serve(self, people: People, rng: np.random.Generator) -> Any:
            self.seen = np.append(getattr(self, "seen", []), np.ptp(people.means, axis=1))
            return people.means.argmin(axis=1)

    result = simulate(Exponential(), method=Worst, epsilon=1, n=40_000, seed=0)
    assert isinstance(result.policy, Worst)
    lost = np.cumsum(result.policy.seen)
    assert result.regret.tolist() == lost[result.people - 1].tolist()


def test_with_the_same_seed_everybody_meets_the_same_people() -> None:
    """So that methods can be compared, whatever they draw themselves."""

    class Seen(AtRandom):
        def serve(self, people: People, rng: np.random.Generator) -> Any:
            self.first = getattr(self, "first", people.contexts[0])
            rng.random(int(people.contexts[0, 0] * 100))
            return super().serve(people, rng)

    runs = [simulate(Slope(), method=Seen, epsilon=1, n=500, seed=seed) for seed in (4, 4, 5)]
    first = [run.policy.first.tolist() for run in runs]  # type: ignore[union-attr]
    assert first[0] == first[1] != first[2]


@pytest.mark.parametrize(
    ("served", "message"),
    [
        (lambda n: np.zeros(n - 1, dtype=int), "must return an arm for each of 100 people"),
        (lambda n: np.zeros(n), "must return an arm for each of 100 people, as whole numbers"),
        (lambda n: np.full(n, 2), "a policy's arms must lie between 0 and 1; got 2 to 2"),
        (lambda n: np.full(n, -1), "a policy's arms must lie between 0 and 1; got -1 to -1"),
        (lambda n: None, "must return an arm for each of 100 people"),
    ],
)
def test_arms_that_are_none_are_refused(served: Any, message: str) -> None:
    class Wrong(AtRandom):
        def serve(self, people: People, rng: np.random.Generator) -> Any:
            return served(len(people.means))

    with pytest.raises(sv.ExperimentError, match=message):
        simulate(Slope(), method=Wrong, epsilon=1, n=100, seed=0)


@pytest.mark.parametrize(
    "chances", [np.zeros((1, 2)), np.ones((2, 1)), np.array([[1.5, -0.5]]), np.full((1, 2), np.nan)]
)
def test_chances_that_are_none_are_refused(chances: Any) -> None:
    class Wrong(AtRandom):
        def probabilities(self, points: Floats) -> Any:
            return chances

    with pytest.raises(sv.ExperimentError, match="a policy's probabilities must return chances"):
        simulate(Slope(), method=Wrong, epsilon=1, n=100, seed=0, points=[(0.5, 0.5)])


def test_what_makes_no_policy_is_refused() -> None:
    def makes_nothing(experiment: sv.Experiment) -> Any:
        return None

    with pytest.raises(sv.ExperimentError, match="a policy must have serve and probabilities"):
        simulate(Slope(), method=makes_nothing, epsilon=1, n=100, seed=0)
    for asked in ("heed", "not_private_leaking_noise"):
        with pytest.raises(sv.ExperimentError, match="alone; got AtRandom"):
            simulate(Slope(), method=AtRandom, epsilon=1, n=100, seed=0, **{asked: True})  # type: ignore[arg-type]


# --- beside other methods -------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Table:
    path = write(tmp_path / "pupils.csv", pupils(rows=400, classes=4))
    return Table(path, label="grade", group="school", target="north")


def test_a_policy_of_one_s_own_stands_in_one_table_with_the_others(table: Table) -> None:
    compared = compare(
        table,
        methods=["whisper", "linear", AtRandom, Leader],
        epsilon=8.0,
        effort=Effort(2, workers=1),
    )
    for cell in compared.comparison.cells:
        found = {(each.player.method, each.player.auxiliary): each for each in cell.entries}
        assert set(found) == {
            (method, auxiliary)
            for method in ("whisper", "linear", "AtRandom", "Leader")
            for auxiliary in (True, False)
        }
        assert sum(each.rank for each in found.values()) == 36  # 1 to 8, those that are equal share
        # Rows that nobody looks at change nothing, and one arm in four is right at random.
        assert found["AtRandom", True].reward == found["AtRandom", False].reward
        assert found["AtRandom", True].reward.mean == pytest.approx(0.25, abs=0.1)
        assert found["Leader", True].reward != found["Leader", False].reward


def test_a_policy_that_was_edited_is_not_taken_for_the_same(table: Table, tmp_path: Path) -> None:
    def compared(method: Any) -> Any:
        return compare(table, methods=[method], effort=Effort(1, 1, tmp_path / "out"))

    first = compared(AtRandom)
    assert compared(AtRandom).comparison == first.comparison
    renamed = type("AtRandom", (Leader,), {})
    with pytest.raises(sv.ExperimentError, match="must be a file of this sweep"):
        compared(renamed)


@pytest.mark.parametrize("methods", [["whisper", "guess"], [AtRandom, AtRandom], ["nn", "nn"]])
def test_methods_that_are_unknown_or_the_same_are_refused(table: Table, methods: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="the methods must be different"):
        compare(table, methods=methods, effort=Effort(1, workers=1))


def test_a_data_set_is_played_with_a_policy_of_one_s_own(table: Table) -> None:
    result = play(table.load(), method=Leader, epsilon=1.0, epsilon_aux=4.0, seed=0)
    assert isinstance(result.policy, Leader)
    assert result.people[-1] == len(table.load().target)
