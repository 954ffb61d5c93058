"""Worlds, experiments and batches in which a whisper crowd and real devices are compared.

``faults`` is the one test of all of them: it puts many two-sample tests together (Bonferroni), at a
nominal false-alarm rate of 1e-9. So far out in the tail most of them are approximate: what we vouch
for is 1e-7 a comparison and, with less than a hundred comparisons, 1e-5 for a file. Seeds are fixed
for the crowd; devices draw from the operating system.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import sottovoce as sv
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.estimator import WhisperEstimator
from sottovoce.estimate.whisper.measurement import BinEstimate, BinShares
from sottovoce.estimate.whisper.past_releases import WhisperReleases
from sottovoce.estimate.whisper.publish import release_of
from sottovoce.estimate.whisper.split import split
from sottovoce.estimate.whisper.state import State, arrays_of, initial_state
from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Rows, behaviour, draw_people, schema_of
from sottovoce.lab.people import features_of
from sottovoce.lab.simulation import Auxiliary
from sottovoce.lab.whisper.policy import WhisperPolicy
from sottovoce.shared.schema import Feature
from sottovoce.shared.wire import release_id
from support.insides import copy_of, whisper_state_of
from support.people import meet
from support.states import audit_of

Floats = NDArray[np.float64]
Run = dict[str, Floats]

EACH = 1e-9

WHISPER = sv.Whisper()
CERTIFIED = sv.Whisper("certified")
PUBLIC = sv.Whisper(public_arms=True)


def faults(one: Floats, other: Floats, names: list[str]) -> list[str]:
    """Say which columns (runs, numbers) differ in law: by their means, or anywhere.

    One column is added: how far a run is off the mean in all columns together.
    """
    both = np.concatenate([one, other])
    # Sums of the same numbers in another order are the same number: rounding must not count.
    spread = np.maximum(both.std(axis=0), 1e-6 * np.abs(both).max(axis=0))
    scaled = np.round((both - both.mean(axis=0)) / spread, 6)
    columns = [*scaled.T, np.round((scaled**2).mean(axis=1), 6)]
    p_values = {}
    for name, column in zip([*names, "all together"], columns, strict=True):
        a, b = column[: len(one)], column[len(one) :]
        p_values[f"the law of {name}"] = stats.ks_2samp(a, b, method="asymp").pvalue
        deviation, third = column.std(), ((column - column.mean()) ** 3).mean()
        # A normal tail is wrong by less than e^5 six deviations out, if skewness is this small.
        if abs(third) < 0.1 * np.sqrt(min(len(a), len(b))) * deviation**3:
            z = (a.mean() - b.mean()) / (deviation * np.sqrt(1 / len(a) + 1 / len(b)))
            p_values[f"the mean of {name}"] = 2 * stats.norm.sf(abs(z))
    return [f"{what}: p = {p:.1e}" for what, p in p_values.items() if p * len(p_values) < EACH]


@dataclass(frozen=True)
class Setting:
    """One world and one experiment."""

    method: sv.Whisper
    epsilon: float
    environment: Any
    people: int = 400
    rows: tuple[Auxiliary, ...] = ()

    def experiment(self, release_every: int = 25) -> sv.Experiment:
        arms = self.environment.arms
        return sv.Experiment(
            arms=[f"arm {k}" for k in range(arms)],
            context=schema_of(self.environment),
            epsilon=self.epsilon,
            horizon=self.people,
            method=self.method,
            auxiliary=[
                sv.Population(
                    f"log {m}",
                    each.epsilon,
                    each.users,
                    behaviour(arms, each.kappa).tolist() if each.known else None,
                )
                for m, each in enumerate(self.rows, start=1)
            ],
            release_every=release_every,
        )

    def with_devices(self, learner: sv.Learner, rng: np.random.Generator) -> float:
        """The rows of all logs, then the target's users, one device each; return the regret."""
        arms = self.environment.arms
        for m, log in enumerate(self.rows, start=1):
            contexts, means, outcomes = draw_people(self.environment, rng, log.users)
            if len(outcomes) == 0:
                outcomes = (rng.random(means.shape) < means).astype(float)
            logged = rng.choice(arms, size=log.users, p=behaviour(arms, log.kappa))
            for i, arm in enumerate(logged):
                row = features_of(learner.experiment, contexts[i])
                device = sv.Device(learner.release(), population=f"log {m}", public_arms=True)
                reward = float(outcomes[i, arm])
                learner.receive(device.report_logged(row, arm=f"arm {arm}", reward=reward))
        return float(meet(self.environment, learner, people=self.people, rng=rng).sum())


# --- worlds and states to begin with --------------------------------------------------------------


@dataclass(frozen=True)
class Lopsided:
    """Unequal bins, large gaps, and rewards between 0 and 1."""

    arms: int = 3
    dimension: int = 2

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, 2)) ** [1.4, 0.8]

    def means(self, contexts: Floats) -> Floats:
        x, y = contexts.T
        return np.stack([0.9 - 0.3 * x * y, 0.1 + 0.2 * x, 0.3 + 0.4 * y], axis=1)

    def rewards(self, rng: np.random.Generator, contexts: Floats, arm: int) -> Floats:
        return np.asarray(self.means(contexts)[:, arm] + 0.2 * (rng.random(len(contexts)) - 0.5))


@dataclass(frozen=True)
class TwoArms(Lopsided):
    """The first two arms of the same world."""

    arms: int = 2

    def means(self, contexts: Floats) -> Floats:
        return super().means(contexts)[:, :2]


@dataclass(frozen=True)
class EveryKind(Lopsided):
    """The same, with a number that may be missing, and four cities with unequally many people."""

    dimension: int = 3
    features: tuple[Feature, ...] = (
        sv.Numeric("x", 0, 1, optional=True),
        sv.Categorical("city", ("Bern", "Rome", "Oslo", "Lima")),
    )

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        missing = rng.random(n) < 0.3
        x = np.where(missing, 0.0, rng.random(n) ** 1.4)
        city = rng.choice(4, n, p=[0.4, 0.1, 0.3, 0.2])
        return np.stack([x, np.where(missing, 0.75, 0.25), (city + 0.5) / 4], axis=1)

    def means(self, contexts: Floats) -> Floats:
        x, _, city = contexts.T
        odd = (city * 4).astype(int) % 2
        return np.stack([0.9 - 0.5 * odd, 0.1 + 0.2 * x + 0.4 * odd, 0.3 + 0.2 * x], axis=1)


def root(experiment: sv.Experiment) -> State:
    return initial_state(constants(experiment))


def tree(experiment: sv.Experiment) -> State:
    """Eight bins: two are settled, arms are gone in some, and pairs stand in any order.

    Axes take turns; where levels have no order, every other one goes up.
    """
    known = constants(experiment)
    state = initial_state(known)
    groups, arms, slots = state.mass.shape[1], known.arms, state.holds.shape[1]
    for node in range(7):
        axis = int(state.tree.depth[node]) % known.dimension
        part = np.full((groups, slots), 0.45)
        for each, levels in enumerate(known.axes.levels):
            first = known.axes.slots[each]
            part[:, first : first + levels] = 1 / max(levels, 1)
        first, levels = known.axes.slots[axis], known.axes.levels[axis]
        state.upper[node, first : first + levels] = np.arange(levels) % 2 == 1
        people = BinShares(state.mass[node].copy(), part, np.zeros((groups, arms)))
        nothing, effects = np.zeros((slots, arms)), np.tile(np.eye(arms) / 100, (slots, 1, 1))
        believed = BinEstimate(np.zeros(arms), np.eye(arms) / 100, nothing, effects, people)
        split(state, known, node, axis, believed)
    pairs = [(1, 0), (0, 2), (1, 1), (2, 1), (0, 1), (2, 2), (2, 0), (1, 2)]
    if arms == 2:
        pairs = [(1, 0), (0, 1), (1, 1), (1, 0), (0, 1), (0, 0), (0, 1), (1, 0)]
    for leaf, pair in enumerate(pairs, start=7):
        state.pair[leaf] = pair
        if leaf % 2 == 1 or leaf == 12:
            state.live[leaf] = False
            state.live[leaf, state.pair[leaf]] = True
    state.contested[:6] = [14, 8, 11, 7, 13, 10]
    totals = state.totals[0]
    totals.nodes, totals.contested, totals.events, totals.release = 15, 6, 0, 5
    state.forecast.share[:15] = state.mass[:15, 0]
    state.forecast.policy[:15], state.forecast.at_random[:15] = 0.2, -0.1
    return state


def settled(experiment: sv.Experiment) -> State:
    """The same eight bins with one arm left in each: nothing is contested, and most are asked."""
    state = tree(experiment)
    state.totals[0].reward_share = 144
    for leaf in range(7, 15):
        best = state.pair[leaf, 0]
        state.pair[leaf] = best
        state.live[leaf] = False
        state.live[leaf, best] = True
    state.totals[0].contested = 0
    return state


def estimator_on(experiment: sv.Experiment, state: State) -> WhisperEstimator:
    """A learner's estimator that has come as far as a state."""
    release = release_of(experiment, state)
    past = WhisperReleases(experiment)
    past.record(release)
    earlier = [version.to_bytes(12, "big") for version in range(1, release.version)]
    return WhisperEstimator(release, state, past, [*earlier, release_id(release)])


# --- one batch of reports -------------------------------------------------------------------------

SUMS = [
    f"{told}.{part}"
    for told in ("served", "logged", "mass_told", "rows_told")
    for part in ("precision", "vector")
]


@dataclass(frozen=True)
class Batch:
    """One batch of reports about one release; the step at its end comes after the sums."""

    setting: Setting
    start: Callable[[sv.Experiment], State]
    runs: int = 80

    @property
    def experiment(self) -> sv.Experiment:
        logged = sum(each.users for each in self.setting.rows)
        return self.setting.experiment(logged + self.setting.people)

    def read(self, before: State, after: State) -> Run:
        """The sums of all bins, settled ones too; votes where somebody counts them."""
        used = np.arange(before.totals[0].nodes)
        nodes = used[before.tree.child[used] == used]
        names = [*SUMS, "votes"] if self.setting.method == CERTIFIED else SUMS
        arrays, totals = dict(arrays_of(after)), after.totals[0]
        found = {name: arrays[name][nodes].astype(np.float64).ravel() for name in names}
        paid = np.array([totals.paid, totals.target])
        return {**found, "paid": paid, "audit": np.array(audit_of(after))}

    def devices(self, seed: int) -> Run:
        experiment = self.experiment
        learner = sv.Learner(experiment)
        before = self.start(experiment)
        learner._estimator = estimator_on(experiment, copy_of(before))
        self.setting.with_devices(learner, np.random.default_rng(seed))
        return self.read(before, whisper_state_of(learner))

    def crowd(self, seed: int) -> Run:
        experiment, world = self.experiment, self.setting.environment
        rng = np.random.default_rng(10**6 + seed)
        policy = WhisperPolicy(experiment)
        before = self.start(experiment)
        policy.go_on_with(copy_of(before))
        driver = Driver(policy, experiment, np.empty((0, world.dimension)))
        driver.chance = rng
        for m, log in enumerate(self.setting.rows, start=1):
            people = draw_people(world, rng, log.users)
            logged = rng.choice(world.arms, size=log.users, p=behaviour(world.arms, log.kappa))
            driver.contribute_rows(Rows(*people, logged), m)
        driver.serve_people(draw_people(world, rng, self.setting.people))
        return self.read(before, policy.learner)

    def many_devices(self) -> list[Run]:
        return [self.devices(seed) for seed in range(self.runs)]

    def many_crowds(self) -> list[Run]:
        return [self.crowd(seed) for seed in range(5 * self.runs)]

    def differences(self, one: list[Run], other: list[Run]) -> set[str]:
        """Which kinds of sums differ in law, each with its share of the false alarms."""
        found = set()
        for kind in one[0]:
            a, b = (np.array([run[kind] for run in runs]) for runs in (one, other))
            used = (a != 0).any(axis=0) | (b != 0).any(axis=0)
            names = [f"{kind} {index}" for index in np.flatnonzero(used)]
            if names and faults(a[:, used], b[:, used], names):
                found.add(kind)
        return found
