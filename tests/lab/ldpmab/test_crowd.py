"""The lab's crowd is equal in law to real devices and a real learner.

Two-sample tests on what a run leaves behind, at a false-alarm rate below 1e-6 for the file: 69
tests at 1.4e-8 each, with fixed seeds for the crowd (devices draw from the operating system).
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import sottovoce as sv
from sottovoce.estimate.history import Elimination, Split, history_of
from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.ldpmab.publish import release_of
from sottovoce.estimate.ldpmab.state import State, initial_state
from sottovoce.estimate.ldpmab.step import Coins, new_scratch, split, step
from sottovoce.estimate.tree import node_paths
from sottovoce.lab.environments import Exponential, Slope, behaviour, draw_people
from sottovoce.lab.ldpmab import noise
from sottovoce.lab.simulation import Auxiliary, simulate
from support.insides import copy_of, crowd_of, state_of
from support.people import meet

EACH = 1.4e-8
PEOPLE = 500
RUNS = 100

SETTINGS: list[dict[str, Any]] = [
    {"method": sv.Ldpmab("paper", c=0.3), "epsilon": 16.0, "release_every": 1},
    {"method": sv.Ldpmab("paper", c=0.3), "epsilon": 16.0, "release_every": 40},
    {"method": sv.Ldpmab("authors", c=0.3), "epsilon": 32.0, "release_every": 25},
]


def summary(regret: float, history: Any, release: sv.Release) -> list[float]:
    """What is compared: regret, and how the partition and the arms came out."""
    events = [dated.event for dated in history]
    return [
        regret,
        sum(len(event.arms) for event in events if isinstance(event, Elimination)),
        sum(isinstance(event, Split) for event in events),
        next((dated.reports for dated in history if isinstance(dated.event, Elimination)), 0),
        sum(len(policy.arms) for policy in release.bins if not policy.settled),
        max(len(policy.path) for policy in release.bins),
        release.version,
        max(
            p for policy in release.bins for p in policy.propensities if not policy.settled or p < 1
        )
        if release.cells
        else 1.0,
    ]


def with_devices(settings: dict[str, Any], seed: int) -> list[float]:
    environment = Slope()
    experiment = sv.Experiment(
        arms=["a", "b"],
        context=[sv.Numeric("x", 0, 1), sv.Numeric("y", 0, 1)],
        horizon=PEOPLE,
        seed=seed,
        **settings,
    )
    learner = sv.Learner(experiment)
    regret = meet(environment, learner, people=PEOPLE, rng=np.random.default_rng(seed))
    return summary(float(regret.sum()), learner.history(), learner.release())


def with_crowd(settings: dict[str, Any], seed: int) -> list[float]:
    result = simulate(Slope(), n=PEOPLE, seed=10**6 + seed, **settings)
    return summary(float(result.regret[-1]), result.history, result.release)


def differences(one: NDArray[np.float64], other: NDArray[np.float64]) -> list[float]:
    return [float(stats.ks_2samp(a, b).pvalue) for a, b in zip(one.T, other.T, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=["paper-1", "paper-40", "authors-25"])
def test_runs_of_the_crowd_and_of_real_devices_have_the_same_law(settings: dict[str, Any]) -> None:
    devices = np.array([with_devices(settings, seed) for seed in range(RUNS)])
    crowd = np.array([with_crowd(settings, seed) for seed in range(4 * RUNS)])
    assert devices[:, 1].mean() > 0.5  # arms are dropped and bins cut: there is something to see
    assert devices[:, 2].mean() > 0.5
    assert min(differences(devices, crowd)) > EACH
    # The test can tell laws apart: with three times the noise they differ.
    louder = {**settings, "epsilon": settings["epsilon"] / 3}
    assert min(differences(np.array([with_crowd(louder, s) for s in range(RUNS)]), crowd)) < EACH


ROWS = [(170, 48.0), (115, 8.0)]
"""Two auxiliary populations, of sizes that do not fit the batches, with an ε each."""


def with_custodians(settings: dict[str, Any], seed: int) -> list[float]:
    """Real devices: the rows of two logs with a κ of 0.4, then the target's users."""
    environment, rng = Exponential(), np.random.default_rng(seed)
    experiment = sv.Experiment(
        arms=["a", "b", "c"],
        context=[sv.Numeric("x", 0, 1), sv.Numeric("y", 0, 1)],
        horizon=200,
        seed=seed,
        auxiliary=[sv.Population(f"rows {m}", e, users) for m, (users, e) in enumerate(ROWS)],
        **settings,
    )
    learner = sv.Learner(experiment)
    for m, (users, _) in enumerate(ROWS):
        contexts, means, _ = draw_people(environment, rng, users)
        arms = rng.choice(3, size=users, p=behaviour(3, 0.4))
        rewards = (rng.random(users) < means[np.arange(users), arms]).astype(float)
        for (x, y), arm, reward in zip(contexts.tolist(), arms, rewards, strict=True):
            device = sv.Device(learner.release(), population=f"rows {m}")
            row = {"x": x, "y": y}
            learner.receive(device.report_logged(row, arm="abc"[arm], reward=float(reward)))
    regret = meet(environment, learner, people=200, rng=rng)
    return summary(float(regret.sum()), learner.history(), learner.release())


def with_custodians_in_the_crowd(settings: dict[str, Any], seed: int) -> list[float]:
    rows = [Auxiliary(users, epsilon, kappa=0.4) for users, epsilon in ROWS]
    result = simulate(Exponential(), n=200, seed=10**6 + seed, auxiliary=rows, **settings)
    return summary(float(result.regret[-1]), result.history, result.release)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"method": sv.Ldpmab("paper", c=0.1), "epsilon": 16.0, "release_every": 30},
        {"method": sv.Ldpmab("authors", c=0.3), "epsilon": 64.0, "release_every": 30},
    ],
    ids=["paper", "authors"],
)
def test_with_auxiliary_populations_the_law_is_the_same_too(settings: dict[str, Any]) -> None:
    devices = np.array([with_custodians(settings, seed) for seed in range(RUNS)])
    crowd = np.array([with_custodians_in_the_crowd(settings, seed) for seed in range(4 * RUNS)])
    assert devices[:, 2].mean() > 0.5
    assert min(differences(devices, crowd)) > EACH


def test_every_population_has_the_noise_of_its_own_epsilon_and_the_arms_of_its_log() -> None:
    """Sums of the root, per population and arm, where nothing is ever decided."""
    settings: dict[str, Any] = {"epsilon": 16.0, "release_every": 485}
    never = sv.Ldpmab("paper", c=1e6)
    noisy = [(170, 2.0), (115, 0.5)]  # so that noise outweighs chance, and a wrong ε shows
    rows = [Auxiliary(users, epsilon, kappa=0.4) for users, epsilon in noisy]

    def crowd_sums(seed: int) -> NDArray[np.float64]:
        crowd = crowd_of(
            simulate(Exponential(), method=never, n=200, seed=seed, auxiliary=rows, **settings)
        )
        return np.concatenate([crowd.pulls[0].ravel(), crowd.rewards[0].ravel()])

    def one_by_one(seed: int) -> NDArray[np.float64]:
        """The definition: each person's U and V, and Laplace(4/ε_m) noise in every cell."""
        rng = np.random.default_rng(10**6 + seed)
        sums = np.zeros((2, 3, 3))
        policies = [behaviour(3, 1.0), behaviour(3, 0.4), behaviour(3, 0.4)]
        for m, (users, epsilon) in enumerate([(200, 16.0), *noisy]):
            _, means, _ = draw_people(Exponential(), rng, users)
            arms = rng.choice(3, size=users, p=policies[m])
            rewards = rng.random(users) < means[np.arange(users), arms]
            for k in range(3):
                noise = rng.laplace(scale=4 / epsilon, size=(2, users)).sum(axis=1)
                sums[0, m, k] = (arms == k).sum() + noise[0]
                sums[1, m, k] = rewards[arms == k].sum() + noise[1]
        return sums.ravel()

    crowd = np.array([crowd_sums(seed) for seed in range(600)])
    defined = np.array([one_by_one(seed) for seed in range(600)])
    assert min(differences(crowd, defined)) > EACH


@pytest.mark.slow
def test_the_sums_of_a_bin_have_the_same_law() -> None:
    """ΣṼ and ΣŨ of the root, one by one from devices and all at once from the crowd."""
    people, runs = 200, 150
    settings: dict[str, Any] = {"epsilon": 8.0, "release_every": people}
    method_ = sv.Ldpmab("paper", c=1e6)  # never decides anything

    def sums_of_devices(seed: int) -> list[float]:
        experiment = sv.Experiment(
            arms=["a", "b", "c"],
            context=[sv.Numeric("x", 0, 1), sv.Numeric("y", 0, 1)],
            horizon=people,
            method=method_,
            **settings,
        )
        learner = sv.Learner(experiment)
        meet(Exponential(), learner, people=people, rng=np.random.default_rng(seed))
        state = state_of(learner)
        return [*state.rewards[0, 0].tolist(), *state.pulls[0, 0].tolist()]

    def sums_of_crowd(seed: int) -> list[float]:
        result = simulate(Exponential(), method=method_, n=people, seed=seed, **settings)
        crowd = crowd_of(result)
        return [*crowd.rewards[0, 0].tolist(), *crowd.pulls[0, 0].tolist()]

    devices = np.array([sums_of_devices(seed) for seed in range(runs)])
    crowd = np.array([sums_of_crowd(seed) for seed in range(4 * runs)])
    assert min(differences(devices, crowd)) > EACH


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100])
def test_a_sum_of_noises_drawn_at_once_is_a_sum_of_noises(count: int) -> None:
    rng = np.random.default_rng(7)
    shift = count - 1 / 3
    at_once = [noise.laplace_sum(rng, count, shift, (9 * shift) ** -0.5) for _ in range(20_000)]
    one_by_one = rng.laplace(size=(20_000, count)).sum(axis=1)
    assert stats.ks_2samp(at_once, one_by_one).pvalue > EACH


def test_the_leaking_noise_is_not_the_honest_one() -> None:
    """NOT PRIVATE: only the people inside a bin add noise to it, so its sums are far too exact."""
    settings: dict[str, Any] = {"epsilon": 8.0, "n": 20_000, "method": "ldpmab"}
    honest = [simulate(Exponential(), seed=s, **settings).regret[-1] for s in range(30)]
    leaking = [
        simulate(Exponential(), seed=s, not_private_leaking_noise=True, **settings).regret[-1]
        for s in range(30)
    ]
    assert np.mean(leaking) < 0.7 * np.mean(honest)


# --- step by step, where the randomness can be shared ---------------------------------------------


def random_state(rng: np.random.Generator, experiment: sv.Experiment) -> State:
    """A learner in the middle of things: some bins, some arms gone, sums of any size."""
    settings = constants(experiment)
    state = initial_state(settings)
    totals = state.totals[0]
    for _ in range(int(rng.integers(0, 7))):
        leaves = [n for n in range(totals.nodes) if state.tree.child[n] == n]
        shallow = [n for n in leaves if state.tree.depth[n] < settings.deepest]
        if shallow:
            node = int(rng.choice(shallow))
            lengths = np.diff(state.tree.edges[node])[:, 0]
            split(state, node, int(rng.choice(np.flatnonzero(lengths == lengths.max()))))
    totals.events = totals.contested = 0
    for node in range(totals.nodes):
        if state.tree.child[node] != node:
            continue
        live = int(rng.integers(1, settings.arms + 1))
        state.live[node] = live
        state.arms[node, :live] = np.sort(rng.choice(settings.arms, live, replace=False))
        state.propensities[node, :live] = 1 / live
        if live > 1:
            state.contested[totals.contested] = node
            totals.contested += 1
            state.users[node] = rng.integers(0, 400, size=state.users.shape[1])
            state.pulls[node] = rng.normal(40, 40, size=state.pulls.shape[1:])
            state.rewards[node] = state.pulls[node] * rng.beta(0.5, 0.5, size=settings.arms)
            if settings.running_sums and state.users[node].max() >= settings.warm_up:
                state.running[node] = rng.normal(300, 200, size=(3, settings.arms)) ** 2
    return state


@pytest.mark.parametrize("preset", ["paper", "authors"])
def test_from_the_same_sums_the_crowd_and_the_learner_decide_the_same(preset: Any) -> None:
    """No noise is owed, so a step of the crowd is a step of the learner, bin by bin."""
    outcomes: Counter[str] = Counter()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        experiment = sv.Experiment(
            arms=[f"{k}" for k in range(rng.integers(2, 5))],
            context=[sv.Numeric(f"x{axis}", 0, 1) for axis in range(rng.integers(1, 4))],
            epsilon=float(rng.choice([1.0, 8.0, 1024.0])),
            horizon=2000,
            auxiliary=[sv.Population(f"{m}", 8.0, 1000) for m in range(rng.integers(0, 3))],
            method=sv.Ldpmab(preset, c=float(rng.choice([0.01, 0.1, 1]))),
        )
        learner = random_state(rng, experiment)
        # The authors' sums grow by the populations that reported: let it be any of them.
        learner.fresh[:] = rng.random(len(experiment.populations)) < 0.6
        in_crowd = copy_of(learner)
        learner.users[learner.contested[: learner.totals[0].contested]] += learner.fresh
        owed = np.zeros_like(learner.users) - learner.fresh  # cancels the noise of these reports
        source = noise.Source(owed, np.zeros_like(owed), False, rng)
        settings = constants(experiment)
        noise.learner_step(in_crowd, settings, new_scratch(settings), source)
        step(learner, settings, new_scratch(settings), Coins(0, node_paths(learner)))
        ours = {policy.path: policy for policy in release_of(experiment, in_crowd).bins}
        theirs = {policy.path: policy for policy in release_of(experiment, learner).bins}
        assert ours.keys() == theirs.keys()
        for path, policy in ours.items():
            assert policy.arms == theirs[path].arms
            assert policy.propensities == pytest.approx(theirs[path].propensities, abs=1e-12)
        events = [dated.event for dated in history_of(learner)]
        outcomes.update(type(event).__name__ for event in events)
        for name in ("live", "users", "contested", "fresh"):
            assert getattr(in_crowd, name).tolist() == getattr(learner, name).tolist()
        for name in ("rewards", "pulls", "running"):
            assert getattr(in_crowd, name) == pytest.approx(getattr(learner, name))
        assert in_crowd.totals[0].tolist() == learner.totals[0].tolist()
    assert outcomes["Elimination"] > 50
    assert outcomes["Split"] > 50


def test_auxiliary_people_are_counted_under_their_own_population() -> None:
    result = simulate(
        Slope(),
        epsilon=1.0,
        n=300,
        seed=1,
        auxiliary=[Auxiliary(200, 4.0), Auxiliary(100, 2.0)],
        method=sv.Ldpmab("paper", c=1e6),
    )
    assert crowd_of(result).users[0].tolist() == [300, 200, 100]
    assert [population.epsilon for population in result.experiment.populations] == [1.0, 4.0, 2.0]
