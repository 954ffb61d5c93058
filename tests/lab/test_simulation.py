import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.estimate.history import Elimination, Split
from sottovoce.lab.environments import Exponential, Floats, Shifted, Slope
from sottovoce.lab.simulation import Auxiliary, simulate
from sottovoce.shared import wire
from support.insides import crowd_of, state_of
from support.people import meet


@dataclass
class Own:
    """An environment of a user's own: nothing registered, nothing inherited."""

    arms: int = 3
    dimension: int = 2
    bad: str = ""

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        values = rng.random((n, self.dimension))
        return {"contexts shape": values[:, :1], "contexts range": values + 1}.get(self.bad, values)

    def means(self, contexts: Floats) -> Floats:
        values = np.tile([0.2, 0.5, 0.9], (len(contexts), 1))
        if self.bad == "means shape":
            return values[:, :2]
        if self.bad == "means NaN":
            return values * np.nan
        return values * 2 if self.bad == "means range" else values


class Paying(Own):
    """Rewards that are not 0 or 1."""

    def rewards(self, rng: np.random.Generator, contexts: Floats, arm: int) -> Floats:
        if self.bad == "rewards shape":
            return np.zeros((len(contexts), 2))
        if self.bad == "rewards range":
            return np.full(len(contexts), -1.0)
        return np.full(len(contexts), [0.2, 0.5, 0.9][arm])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("contexts shape", r"contexts\(rng, n\) must have shape \(1000, 2\); got \(1000, 1\)"),
        ("contexts range", r"contexts\(rng, n\) must lie in \[0, 1\]; got 1"),
        ("means shape", r"means\(contexts\) must have shape .*; got"),
        ("means NaN", r"means\(contexts\) must lie in \[0, 1\]; got NaN"),
        ("means range", r"means\(contexts\) must lie in \[0, 1\]; got 0.4 to 1.8"),
        ("rewards shape", r"rewards\(rng, contexts, arm\) must have shape \(1000,\); got"),
        ("rewards range", r"rewards\(rng, contexts, arm\) must lie in \[0, 1\]; got -1 to -1"),
    ],
)
def test_an_environment_that_returns_nonsense_is_refused(bad: str, message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        simulate(Paying(bad=bad), epsilon=1, n=1000, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "n must be a whole number >= 1; got 0"),
        ({"n": 10.5}, "n must be a whole number >= 1; got 10.5"),
        ({"release_every": 0}, "release_every must be a whole number >= 1"),
        ({"epsilon": -1}, "epsilon must be finite and > 0"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"method": "guess"}, "the method's name must be one of"),
        ({"auxiliary": [Auxiliary(-5, 1.0)]}, "users of population 'auxiliary 1' must be"),
        ({"auxiliary": [Auxiliary(5, 1.0, kappa=2)]}, "kappa must lie in"),
        (
            {"auxiliary": [Auxiliary(5, 1.0, Exponential(dimension=3))]},
            "must have 3 arms and d = 2",
        ),
        ({"points": [(0.5, 1.5)]}, "points must be places of"),
        ({"points": [(0.5,)]}, "points must be places of"),
    ],
)
def test_a_bad_setting_is_refused_before_any_work(settings: Any, message: str) -> None:
    defaults = {"epsilon": 1, "n": 100, "seed": 0}
    with pytest.raises(sv.ExperimentError, match=message):
        simulate(Exponential(), **{**defaults, **settings})


def test_a_world_with_one_best_arm_everywhere_is_learned_without_much_privacy() -> None:
    for world in (Own(), Paying()):
        result = simulate(world, epsilon=1024, n=20_000, seed=0, points=[(0.3, 0.3)])
        lost_at_random = 20_000 * (0.9 - (0.2 + 0.5 + 0.9) / 3)
        assert result.regret[-1] < 0.3 * lost_at_random
        assert sv.Device(result.release).choose({"x1": 0.3, "x2": 0.3}) == "arm 2"
        assert result.arm_ratios[-1, 0, 2] > 0.5


def test_rewards_of_one_s_own_are_used_everywhere() -> None:
    """By the crowd, by real devices, and through a covariate shift."""

    class Always(Own):
        def rewards(self, rng: np.random.Generator, contexts: Floats, arm: int) -> Floats:
            return np.full(len(contexts), 0.5)

    never = sv.Ldpmab("paper", c=1e6)
    shifted = Auxiliary(400, 1e6, Shifted(Always(), 1.0))
    result = simulate(
        Always(), method=never, epsilon=1e6, n=400, seed=0, release_every=800, auxiliary=[shifted]
    )
    crowd = crowd_of(result)
    assert crowd.rewards[0] == pytest.approx(crowd.pulls[0] / 2, abs=0.01)
    experiment = sv.Experiment(
        arms=["a", "b", "c"],
        context=[sv.Numeric("x", 0, 1), sv.Numeric("y", 0, 1)],
        epsilon=1e6,
        method=never,
    )
    learner = sv.Learner(experiment)
    meet(Always(), learner, people=60, rng=np.random.default_rng(0))
    sums = state_of(learner)
    assert sums.rewards[0] == pytest.approx(sums.pulls[0] / 2, abs=0.01)


@pytest.mark.parametrize(
    ("method", "offered"),
    [("ldpmab", 3), ("whisper", 2), (sv.Whisper(public_arms=True), 3)],
)
def test_the_result_hangs_together(method: Any, offered: int) -> None:
    points = [(0.1, 0.5), (0.9, 0.5)]
    result = simulate(Exponential(), method=method, epsilon=64, n=5050, seed=3, points=points)
    assert result.people.tolist() == [*range(100, 5001, 100), 5050]
    assert len(result.regret) == 51
    assert (np.diff(result.regret) >= 0).all()
    assert result.local_regret.shape == (51, 2)
    assert (np.diff(result.local_regret, axis=0) >= -1e-9).all()
    assert result.arm_ratios.sum(axis=2) == pytest.approx(1)
    # Until the first release every arm on offer has the same chance everywhere.
    means = Exponential().means(np.array(points))
    lost = means.max(axis=1) - means[:, :offered].mean(axis=1)
    assert result.local_regret[0] == pytest.approx(100 * lost)
    # The history tells how the release came about.
    cuts = {d.event.path: d.event.axis for d in result.history if isinstance(d.event, Split)}
    assert cuts == dict(result.release.partition.cuts)
    dropped = sum(len(d.event.arms) for d in result.history if isinstance(d.event, Elimination))
    assert dropped > 0
    text = wire.release_to_json(result.release)
    assert wire.release_from_json(text) == result.release


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    runs = [simulate(Slope(), epsilon=8, n=3000, seed=seed).regret for seed in (1, 1, 2)]
    assert runs[0].tolist() == runs[1].tolist()
    assert runs[0][-1] != runs[2][-1]


@pytest.mark.parametrize("method", ["ldpmab", "whisper"])
def test_a_run_does_not_care_how_much_room_it_began_with(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Growing in the middle of a run changes nothing."""
    from sottovoce.estimate.ldpmab import state as ldpmab_state
    from sottovoce.estimate.whisper import state as whisper_state

    settings: dict[str, Any] = {"epsilon": 1024, "n": 20_000, "seed": 5, "method": method}
    settings["auxiliary"] = [Auxiliary(400_000, 1024)] if method == "whisper" else []
    expected = simulate(Exponential(), **settings)
    assert len(expected.release.bins) > 32  # 64 nodes were not enough
    for module in (whisper_state, ldpmab_state):
        allocate: Any = module._allocate
        monkeypatch.setattr(
            module, "_allocate", lambda n, *a, _of=allocate, **k: _of(max(n, 4096), *a, **k)
        )
    roomy = simulate(Exponential(), **settings)
    assert roomy.regret.tolist() == expected.regret.tolist()
    assert roomy.history == expected.history


@pytest.mark.slow
def test_ten_million_people_fit_in_two_gigabytes() -> None:
    script = (
        "import resource; from sottovoce.lab.simulation import simulate\n"
        "from sottovoce.lab.environments import Exponential\n"
        "simulate(Exponential(), epsilon=1, n=10_000_000, seed=0, release_every=100)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) * 1024 < 2e9
