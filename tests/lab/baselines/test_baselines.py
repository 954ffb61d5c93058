import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli.commands import app
from sottovoce.estimate.history import Elimination, Split
from sottovoce.lab.baselines import Abse, Linear, Neural
from sottovoce.lab.baselines.descent import REPORTS, SERVED, DescentPolicy, receive, step
from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Exponential, Floats, People, Slope, regret_at_random
from sottovoce.lab.methods import baseline_to_table, method_of
from sottovoce.lab.simulation import Auxiliary, simulate
from sottovoce.lab.sweeps import sweep

NAMES = ["abse", "linear", "nn"]


@dataclass(frozen=True)
class Logistic:
    """Each arm a logistic model of its own: what ``linear`` is made for."""

    arms: int = 3
    dimension: int = 3

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, self.dimension))

    def means(self, contexts: Floats) -> Floats:
        slopes = np.random.default_rng(1).normal(0, 1.5, (self.dimension, self.arms))
        return np.asarray(1 / (1 + np.exp(-(2 * contexts - 1) @ slopes)))


@pytest.mark.parametrize("method", NAMES)
def test_the_result_hangs_together(method: str) -> None:
    points = [(0.1, 0.5), (0.9, 0.5)]
    result = simulate(Exponential(), method=method, epsilon=64, n=5050, seed=3, points=points)
    assert result.people.tolist() == [*range(100, 5001, 100), 5050]
    assert (np.diff(result.regret) >= 0).all()
    assert (np.diff(result.local_regret, axis=0) >= -1e-9).all()
    assert result.arm_ratios.sum(axis=2) == pytest.approx(1)
    means = Exponential().means(np.array(points))
    lost = means.max(axis=1) - means.mean(axis=1)
    assert result.local_regret[0] == pytest.approx(100 * lost)  # arms in turn
    with pytest.raises(
        sv.ExperimentError, match=f"a release must come from .*; {method} is a base"
    ):
        _ = result.release


@pytest.mark.parametrize("method", NAMES)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(method: str) -> None:
    runs = [
        simulate(Slope(), method=method, epsilon=8, n=3000, seed=seed).regret for seed in (1, 1, 2)
    ]
    assert runs[0].tolist() == runs[1].tolist()
    assert runs[0][-1] != runs[2][-1]


@pytest.mark.parametrize(
    ("method", "world", "share"),
    [
        (Abse(constant=0.5, lipschitz=0.05), Logistic(), 0.35),
        (Abse(constant=0.5, lipschitz=0.05), Exponential(), 0.25),
        (Linear(), Logistic(), 0.5),
        (Linear(), Logistic(arms=7), 0.7),
        (Linear(), Slope(), 0.2),
        (Neural(), Logistic(), 0.5),
        (Neural(), Slope(), 0.2),
    ],
)
def test_it_learns_where_it_can(method: Any, world: Any, share: float) -> None:
    result = simulate(world, method=method, epsilon=8, n=40_000, seed=0)
    assert result.regret[-1] < share * 40_000 * regret_at_random(world)


# --- the settings ---------------------------------------------------------------------------------


def test_a_baseline_goes_by_its_name_and_by_its_table() -> None:
    baselines: list[Abse | Linear | Neural] = [Abse(), Linear(), Neural()]
    for name, baseline in zip(NAMES, baselines, strict=True):
        played = (baseline, name, {"name": name}, baseline_to_table(baseline))
        assert [method_of(each).begin for each in played] == [baseline] * 4
        assert [method_of(each).name for each in played] == [name] * 4
        assert pickle.loads(pickle.dumps(baseline)) == baseline  # noqa: S301 - our own
        assert hash(baseline) == hash(method_of(name).begin)
    assert method_of({"name": "nn", "width": 3}).begin == Neural(width=3)
    for other in ("whisper", "ldpmab", sv.Whisper(), {"name": "ldpmab", "preset": "paper"}):
        assert method_of(other).name in ("whisper", "ldpmab")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Abse(constant=0), "constant of abse must be finite and > 0; got 0"),
        (lambda: Abse(lipschitz=float("nan")), "lipschitz of abse must be finite and > 0"),
        (lambda: Abse(smoothness=2), r"smoothness of abse must lie in \(0, 1\]; got 2"),
        (lambda: Linear(step=-1), "step of linear must be finite and > 0; got -1"),
        (lambda: Linear(ridge=-1), "ridge of linear must be finite and >= 0"),
        (lambda: Linear(power=2), r"power of linear must lie in \(0, 1\]"),
        (lambda: Linear(warm_up=1.5), "warm_up of linear must be a whole number >= 0"),  # type: ignore[arg-type]
        (lambda: Neural(width=0), "width of nn must be a whole number >= 1"),
        (lambda: Neural(clip=0), "clip of nn must be finite and > 0"),
        (lambda: Neural(delay="x"), "delay of nn must be finite and >= 0"),  # type: ignore[arg-type]
        (lambda: method_of("guess"), "the method's name must be one of .*'nn'"),
        (lambda: method_of(Abse), r"a method must be an object; got the class Abse: add \(\)"),
        (lambda: method_of({"name": "nn", "hight": 2}), "method nn .*hight"),
    ],
)
def test_a_bad_setting_is_refused(make: Any, message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        make()


def test_the_command_line_knows_them() -> None:
    for name in NAMES:
        asked = ["simulate", "--method", name, "--n", "500", "--reps", "2", "--json"]
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["regret_mean"] > 0


def test_leaking_noise_is_refused() -> None:
    with pytest.raises(sv.ExperimentError, match="leaking noise must be asked of ldpmab alone"):
        simulate(Slope(), method="linear", epsilon=1, n=10, seed=0, not_private_leaking_noise=True)


def lost(setting: Any, seed: int) -> dict[str, float]:
    result = simulate(Slope(), method=setting["method"], epsilon=4, n=500, seed=seed)
    return {"regret": float(result.regret[-1])}


def test_a_sweep_takes_names_and_tables(tmp_path: Path) -> None:
    tables = [baseline_to_table(each) for each in (Abse(), Linear(step=1), Neural(width=2))]
    settings = [{"method": method} for method in (*NAMES, *tables)]
    first = sweep(lost, settings, reps=2, path=tmp_path / "runs.jsonl", workers=1)
    again = sweep(lost, settings, reps=2, path=tmp_path / "runs.jsonl", workers=1)
    assert first == again
    assert len(first) == 12


# --- abse -----------------------------------------------------------------------------------------


def test_the_numbers_of_abse() -> None:
    abse = Abse()
    assert abse.radius(8, 8) == pytest.approx(1)  # 2√2·√(1/8)
    assert abse.radius(2, 2 * np.exp(9)) == pytest.approx(6)  # 2√2·√(9/2)
    # (2·ln 2/1000)^(1/3) = 0.1115 lies between 1/16 and 1/8.
    assert abse.deepest(arms=2, dimension=1, people=1000) == 4
    assert abse.deepest(arms=2, dimension=3, people=40_000) == 3
    assert abse.deepest(arms=7, dimension=3, people=10) == 0
    for depth, dimension, lipschitz in ((0, 3, 1.0), (2, 2, 0.05), (1, 1, 0.01)):
        settings = Abse(lipschitz=lipschitz)
        rounds = settings.rounds(depth, dimension=dimension, people=5000)
        here = 5000 * 2.0 ** (-depth * dimension)
        bound = 2 * 2 * lipschitz * dimension**0.5 * 2.0**-depth
        assert settings.radius(rounds, here) <= bound
        assert rounds == 1 or settings.radius(rounds - 1, here) > bound


@dataclass
class Cell:
    """A bin of the slow ABSE below."""

    arms: list[int]
    rounds: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        self.sums = dict.fromkeys(self.arms, 0.0)


def slow_abse(settings: Abse, contexts: Floats, outcomes: Floats) -> tuple[list[int], Any]:
    """Policy 3, once more and plainly: cells by depth and whole coordinates."""
    n, d = contexts.shape
    deepest = settings.deepest(arms=outcomes.shape[1], dimension=d, people=n)
    cells = {(0, (0,) * d): Cell(list(range(outcomes.shape[1])))}
    pulled = []
    for x, y in zip(contexts, outcomes, strict=True):
        for depth in range(deepest + 1):
            key = (depth, tuple(min(int(v * 2**depth), 2**depth - 1) for v in x))
            if key in cells:
                break
        cell = cells[key]
        arm = cell.arms[cell.turn]
        pulled.append(arm)
        cell.sums[arm] += y[arm]
        cell.turn += 1
        if cell.turn < len(cell.arms):
            continue
        cell.turn, cell.rounds = 0, cell.rounds + 1
        means = {k: cell.sums[k] / cell.rounds for k in cell.arms}
        radius = 2 * settings.radius(cell.rounds, n * 2.0 ** (-depth * d))
        best = max(means.values())
        cell.arms = [k for k in cell.arms if means[k] >= best - radius]
        due = cell.rounds >= settings.rounds(depth, dimension=d, people=n)
        if due and len(cell.arms) > 1 and depth < deepest:
            del cells[key]
            for place in np.ndindex(*(2,) * d):
                child = tuple(2 * c + p for c, p in zip(key[1], place, strict=True))
                cells[depth + 1, child] = Cell(list(cell.arms))
    return pulled, cells


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_abse_pulls_the_arms_that_the_plain_algorithm_pulls(dimension: int) -> None:
    settings = Abse(constant=0.4, lipschitz=0.1)
    rng = np.random.default_rng(dimension)
    contexts = rng.random((6000, dimension))
    contexts[:50] = np.round(2 * contexts[:50]) / 2  # boundaries and corners
    outcomes = np.asarray(rng.random((6000, 3)) < Exponential().means(contexts)).astype(float)
    pulled, cells = slow_abse(settings, contexts, outcomes)
    assert len(cells) > 2**dimension
    experiment = sv.Experiment(
        arms=["a", "b", "c"],
        context=[sv.Numeric(f"x{axis}", 0, 1) for axis in range(dimension)],
        epsilon=1,
        horizon=6000,
        release_every=1,
    )
    driver = Driver(settings(experiment), experiment, contexts[:50])
    means = np.tile([0.0, 0.25, 1.0], (6000, 1))  # which arm was pulled, from what was lost
    driver.serve_people(People(contexts, means, outcomes))
    costs = np.diff(driver.regret[0], prepend=0.0)
    assert [(1.0, 0.75, 0.0).index(round(cost, 9)) for cost in costs] == pulled
    policy = np.empty((6000, 3))
    driver.look(contexts, policy)
    for x, chances in zip(contexts, policy, strict=True):
        (cell,) = (
            cell
            for (depth, place), cell in cells.items()
            if place == tuple(min(int(v * 2**depth), 2**depth - 1) for v in x)
        )
        assert np.flatnonzero(chances).tolist() == cell.arms


def test_abse_knows_neither_epsilon_nor_auxiliary_data() -> None:
    runs = [
        simulate(Slope(), method="abse", epsilon=epsilon, n=3000, seed=1, release_every=every)
        for epsilon, every in ((0.1, 100), (1000.0, 100), (1.0, 1))
    ]
    assert runs[0].regret.tolist() == runs[1].regret.tolist()
    assert runs[0].regret[-1] == runs[2].regret[-1]  # and learns from each person at once
    rows = [Auxiliary(500, 1000.0)]
    helped = simulate(Slope(), method="abse", epsilon=1, n=3000, seed=1, auxiliary=rows)
    assert helped.people.tolist() == runs[0].people.tolist()


def test_the_history_of_abse_tells_its_partition() -> None:
    method = Abse(constant=0.3, lipschitz=0.1)
    result = simulate(Exponential(dimension=3), method=method, epsilon=1, n=30_000, seed=0)
    cuts = {d.event.path: d.event.axis for d in result.history if isinstance(d.event, Split)}
    assert all(axis == len(path) % 3 for path, axis in cuts.items())
    assert len(cuts) % 7 == 0  # each split is 1 + 2 + 4 cuts
    assert len(cuts) > 7
    assert any(isinstance(dated.event, Elimination) for dated in result.history)
    times = [dated.reports for dated in result.history]
    assert times == sorted(times)


def test_abse_does_not_care_how_much_room_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    from sottovoce.lab.baselines import abse_bins

    settings: dict[str, Any] = {"epsilon": 1, "n": 20_000, "seed": 5, "method": "abse"}
    expected = simulate(Exponential(), **settings)
    assert len({d.event.path for d in expected.history}) > 64
    allocate: Any = abse_bins._allocate
    monkeypatch.setattr(abse_bins, "_allocate", lambda n, **k: allocate(max(n, 4096), **k))
    assert simulate(Exponential(), **settings).regret.tolist() == expected.regret.tolist()


def test_abse_refuses_a_cube_with_too_many_corners() -> None:
    with pytest.raises(sv.ExperimentError, match="d must be at most 10 for abse"):
        simulate(Exponential(dimension=11), method="abse", epsilon=1, n=10, seed=0)


# --- private gradients ----------------------------------------------------------------------------


def descent_of(policy: Any) -> Any:
    assert isinstance(policy, DescentPolicy)
    return policy.state


@pytest.mark.parametrize("method", ["linear", "nn"])
def test_everybody_sends_one_report(method: str) -> None:
    rows = [Auxiliary(700, 4.0), Auxiliary(350, 2.0)]
    result = simulate(Slope(), method=method, epsilon=1, n=1234, seed=0, auxiliary=rows)
    totals = descent_of(result.policy).totals
    assert (totals[REPORTS], totals[SERVED]) == (1234 + 1050, 1234)
    assert result.people.tolist() == [*range(50, 1234, 100), 1234]


def test_the_learner_s_step() -> None:
    experiment = sv.Experiment(
        arms=["a", "b"], context=[sv.Numeric("x", 0, 1)], epsilon=1, release_every=2
    )
    linear = Linear(step=3, delay=4, power=0.5, ridge=0.1)
    descent = descent_of(linear(experiment))
    descent.theta[:] = [[1, 2], [3, 4]]
    descent.report[:] = [1, 0, 0, -1]
    receive(descent)
    assert descent.theta.tolist() == [[1, 2], [3, 4]]  # until the next step
    descent.report[:] = [0, 0, 2, 0]
    receive(descent)
    step(descent, None, np.random.default_rng(0))
    one, two = 3 * 2 / 5**0.5, 3 * 2 / 6**0.5
    left = 1 - 0.1 * (one + two)
    expected = np.array([[left - one, 2 * left], [3 * left - 2 * two, 4 * left + one]])
    assert descent.theta == pytest.approx(expected)
    assert descent.change.tolist() == [0] * 4


def test_the_warm_up_takes_arms_in_turn_and_rows_count_towards_it() -> None:
    point = [(0.2, 0.2)]
    settings: dict[str, Any] = {"method": "linear", "epsilon": 8, "n": 2000, "seed": 0}
    alone = simulate(Exponential(), **settings, points=point)
    assert alone.arm_ratios[1, 0] == pytest.approx(1 / 3)  # 200 of 2000 users
    pulled = np.diff(alone.arm_ratios[:, 0] * alone.people[:, np.newaxis], axis=0)
    assert pulled[0] == pytest.approx(100 / 3)
    assert pulled[1:].max(axis=1) == pytest.approx(100)  # and then the best one alone
    rows = [Auxiliary(200, 8.0)]
    helped = simulate(Exponential(), **settings, points=point, auxiliary=rows)
    assert max(helped.arm_ratios[0, 0]) == 1
    longer = simulate(Exponential(), **{**settings, "method": Linear(warm_up=2000)}, points=point)
    assert longer.arm_ratios[-1, 0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("method", ["linear", "nn"])
def test_auxiliary_rows_help(method: str) -> None:
    settings: dict[str, Any] = {"method": method, "epsilon": 1, "n": 5000}
    rows = [Auxiliary(50_000, 8.0)]
    alone = [simulate(Slope(), **settings, seed=seed).regret[-1] for seed in range(4)]
    helped = [
        simulate(Slope(), **settings, seed=seed, auxiliary=rows).regret[-1] for seed in range(4)
    ]
    assert np.mean(helped) < 0.5 * np.mean(alone)
