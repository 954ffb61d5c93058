"""Methods learn on a log by replay: row for row, as if its people came to them.

Rows come in a random order. The method chooses an arm for the row's context. If the log has the
same arm, the row counts: its person gets the logged reward, and reports as a device would.
Otherwise the row is passed over, and nobody learns of it. With fair draws in the log, people who
count are a fair sample of all, and so what they get is what the method would have brought (Li, Chu,
Langford and Wang, WSDM 2011). Where the draws were not fair, a row with propensity p counts with
probability p_min/p only, p_min the smallest of all. So in the mean p_min·n rows of n count, however
good the method is.

Each report is ε-LDP, and made by the device's own code: noise comes from the operating system, so
that no seed repeats a run. The arms of the rows that count are those which the method drew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sottovoce.device.ledger import OneReport
from sottovoce.device.method import Secret
from sottovoce.device.privatise import privatise
from sottovoce.estimate.learner import Learner
from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Floats, Rows
from sottovoce.lab.logs.log import Log
from sottovoce.lab.methods import BASELINES, baseline_from
from sottovoce.shared import wire
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.methods import method_names, settings_from
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.walk import walk_of

LEAST_RELEASES = 50
"""So many releases at least, where few rows are expected to count; a release for 100 otherwise."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A method after a replay.

    rewards (m,): what the people who counted got, in [0, 1], one after the other.
    chances: contexts (n, d) → the chance of each arm (n, K) under the policy at the end.
    """

    rewards: Floats
    chances: Callable[[Floats], Floats]


def learn(log: Log, *, method: str, epsilon: float, floor: float, seed: int) -> Learned:
    """Let a method learn on a log. floor: p_min; smaller propensities count as this."""
    rng = np.random.default_rng(seed)
    log = log.take(rng.permutation(len(log)))
    # Which rows count is half decided here: the other half is whether the method draws their arm.
    passes = rng.random(len(log)) < floor / np.maximum(log.propensities, floor)
    expected = max(1, round(floor * len(log)))
    settings: dict[str, Any] = {
        "arms": log.arms,
        "context": log.schema,
        "epsilon": epsilon,
        "horizon": expected,
        "release_every": max(1, min(100, expected // LEAST_RELEASES)),
        "seed": seed,
    }
    if method in method_names():
        kind = settings_from(method)
        return _with_devices(
            Experiment(**settings, method=kind), log.take(np.flatnonzero(passes)), rng
        )
    if method in BASELINES and method != "abse":
        rows = [Population("log", epsilon, expected)]
        return _with_descent(
            method, Experiment(**settings, auxiliary=rows), log.take(np.flatnonzero(passes)), rng
        )
    known = [*method_names(), *(name for name in BASELINES if name != "abse")]
    raise ExperimentError(must("a method that learns on a log", f"be one of {known}", repr(method)))


def _with_devices(experiment: Experiment, log: Log, rng: np.random.Generator) -> Learned:
    """Let a learner and devices see the rows one by one."""
    learner, rewards = Learner(experiment), []
    draws = rng.random(len(log))
    contexts, chosen = log.contexts.tolist(), log.chosen.tolist()
    for point, arm, reward, draw in zip(
        contexts, chosen, log.rewards.tolist(), draws.tolist(), strict=True
    ):
        release = learner.release()
        policy = walk_of(release).find(point)
        chances = dict(zip(policy.arms, policy.propensities, strict=True))
        if draw >= chances.get(arm, 0.0):
            continue
        rewards.append(reward)
        secret = Secret(tuple(point), policy.path, arm)
        answer = privatise(release, secret, population=0, reward=reward, ledger=OneReport())
        learner.receive(
            Report(
                release=wire.release_id(release),
                population=0,
                nonce=rng.bytes(16),
                payload=answer.payload,
                question=answer.question,
            )
        )
    final = learner.release()
    return Learned(np.array(rewards), lambda points: chances_of(final, points))


def chances_of(release: Release, points: Floats) -> Floats:
    """Return the chance of each arm at each point under a release, (n, K)."""
    walk, chances = walk_of(release), np.zeros((len(points), len(release.experiment.arms)))
    for row, point in zip(chances, points.tolist(), strict=True):
        policy = walk.find(point)
        row[list(policy.arms)] = policy.propensities
    return chances


def _with_descent(
    method: str, experiment: Experiment, log: Log, rng: np.random.Generator
) -> Learned:
    """Let a baseline see the rows, as many at a time as come between two releases."""
    from sottovoce.lab.baselines.descent import BEGUN, REPORTS

    policy: Any = baseline_from(method)(experiment)
    driver = Driver(policy, experiment, np.empty((0, experiment.dimension)))

    def chances(points: Floats) -> Floats:
        totals = policy.state.totals
        totals[BEGUN] = totals[REPORTS]
        out = np.empty((len(points), len(experiment.arms)))
        driver.look(np.ascontiguousarray(points), out)
        return out

    rewards, done, every = [np.empty(0)], 0, experiment.release_every
    while done < len(log):
        ahead = log.take(np.arange(done, min(done + 20 * every, len(log))))
        offered = chances(ahead.contexts)[np.arange(len(ahead)), ahead.chosen]
        counting = np.flatnonzero(rng.random(len(ahead)) < offered)[:every]
        rows = ahead.take(counting)
        done += int(counting[-1]) + 1 if len(counting) == every else len(ahead)
        outcomes = np.zeros((len(rows), len(experiment.arms)))
        outcomes[np.arange(len(rows)), rows.chosen] = rows.rewards
        if len(rows):
            driver.contribute_rows(Rows(rows.contexts, outcomes, outcomes, rows.chosen), 1)
        rewards.append(rows.rewards)
    return Learned(np.concatenate(rewards), chances)
