"""On logs with a known truth: what learned policies are worth, and what learning brings."""

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.data.catalogue import load
from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Floats
from sottovoce.lab.logs.learning import learn
from sottovoce.lab.logs.log import Log
from sottovoce.lab.logs.values import RewardModel, mean_reward, value_of
from sottovoce.lab.methods import method_of
from support.tables import data_dir
from support.trials import SCHEMA, Trial


@pytest.mark.slow
def test_intervals_of_learned_policies_hold_their_level() -> None:
    """300 logs; whisper learns on one half of each.

    95 % of 300 is 285 ± 3.8: fewer than 269 or more than 298 come less than once in 10,000 times
    for each of the three.
    """
    trial, held = Trial(least=0.25), dict.fromkeys(("ips", "snips", "dr"), 0)
    points = np.random.default_rng(99).random((20_000, 2))
    for seed in range(300):
        rng = np.random.default_rng(seed)
        first, second = trial.log(rng, 3000).halves(rng)
        learned = learn(first, method="whisper", epsilon=8.0, floor=0.25, seed=seed)
        truth = (learned.chances(points) * trial.means(points)).sum(axis=1).mean()
        model = RewardModel.fit(first).predict(second)
        found = value_of(learned.chances(second.contexts), second, model)
        for kind in held:
            each = getattr(found, kind)
            held[kind] += each.low <= truth <= each.high
    assert {kind: count for kind, count in held.items() if not 269 <= count <= 298} == {}


class World(Trial):
    """The people of a trial, as they come to a crowd."""

    arms, dimension = 3, 2

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, 2))


@pytest.mark.slow
def test_a_replay_brings_what_the_method_would_have_brought() -> None:
    """Mean rewards of 60 replays and of 400 simulations of as many people; they agree within five
    standard errors of the difference, which is wrong once in a million times."""
    trial, replayed, people = Trial(), [], []
    for seed in range(60):
        log = trial.log(np.random.default_rng(seed), 6000)
        rewards = learn(log, method="whisper", epsilon=8.0, floor=0.15, seed=seed).rewards
        replayed.append(rewards[:800].mean())
        people.append(len(rewards))
    assert min(people) >= 800
    simulated, world = [], World()
    best = world.means(np.random.default_rng(0).random((200_000, 2))).max(axis=1).mean()
    for seed in range(400):
        experiment = sv.Experiment(
            arms=["a", "b", "c"],
            context=SCHEMA,
            epsilon=8.0,
            horizon=900,
            release_every=18,
            seed=seed,
        )
        policy = method_of(experiment.settings).begin(experiment)
        driver = Driver(policy, experiment, np.empty((0, 2)))
        driver.serve(world, 800)
        simulated.append(best - np.concatenate(driver.regret)[-1] / 800)
    error = np.hypot(
        np.std(replayed) / np.sqrt(len(replayed)), np.std(simulated) / np.sqrt(len(simulated))
    )
    assert abs(np.mean(replayed) - np.mean(simulated)) < 5 * error
    assert error < 0.01


def test_intervals_hold_their_level_on_people_of_a_real_table() -> None:
    """Real contexts and classes; who got which arm was drawn with chances that depend on them.

    300 logs of 1,500 people: 285 ± 3.8, as above. The truth is that of the whole table.
    """
    data = load("adult", data_dir=data_dir())
    contexts, labels = data.target.contexts, data.target.labels
    schema = data.schema or tuple(sv.Numeric(f"x{axis}", 0, 1) for axis in range(contexts.shape[1]))
    often = 0.2 + 0.6 * contexts[:, 0]
    middle = np.median(contexts[:, 1])

    def policy(points: Floats) -> Floats:
        return np.asarray(np.eye(2)[(points[:, 1] > middle).astype(int)])

    truth = policy(contexts)[np.arange(len(labels)), labels].mean()
    held = dict.fromkeys(("ips", "snips", "dr", "log"), 0)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows = rng.integers(len(labels), size=3000)
        chosen = (rng.random(3000) < often[rows]).astype(int)
        given = np.where(chosen == 1, often[rows], 1 - often[rows])
        rewards = (chosen == labels[rows]).astype(np.float64)
        whole = Log("adult", data.arms, schema, contexts[rows], chosen, rewards, given)
        first, second = whole.halves(rng)
        model = RewardModel.fit(first).predict(second)
        found = value_of(policy(second.contexts), second, model)
        for kind in ("ips", "snips", "dr"):
            each = getattr(found, kind)
            held[kind] += each.low <= truth <= each.high
        own = mean_reward(second)
        mean = np.where(labels == 1, often, 1 - often).mean()
        held["log"] += own.low <= mean <= own.high
    assert {kind: count for kind, count in held.items() if not 269 <= count <= 298} == {}
