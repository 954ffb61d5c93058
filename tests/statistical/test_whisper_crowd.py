"""The lab's ``whisper`` crowd is equal in law to real devices and a real learner.

Each check puts many two-sample tests together (Bonferroni), at a nominal false-alarm rate of 1e-9.
So far out in the tail most tests are approximate: what we vouch for is 1e-7 a check and, with less
than a hundred checks, 1e-5 for the file. Seeds are fixed for the crowd; devices draw from the
operating system.

What the same test must tell apart, the mutants, stands beside what it must not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sottovoce.estimate.whisper.board import Board, begin
from sottovoce.estimate.whisper.book import WhisperBook
from sottovoce.estimate.whisper.layouts import WhisperLayouts
from sottovoce.estimate.whisper.policy import partition_of, policies_of
from sottovoce.shared.questions import sheet
from sottovoce.shared.shares import SHARES

import sottovoce as sv
from sottovoce.device import ask
from sottovoce.estimate.history import Elimination, Split
from sottovoce.estimate.whisper import places, rules
from sottovoce.estimate.whisper.constants import constants
from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Exponential, Rows, Slope, behaviour, draw_people
from sottovoce.lab.people import meet
from sottovoce.lab.simulate import Auxiliary, simulate
from sottovoce.lab.whisper import policy as crowd_policy
from sottovoce.lab.whisper import tables
from sottovoce.lab.whisper.policy import WhisperPolicy
from sottovoce.shared import questions
from support.insides import board_of, copy_of

Floats = NDArray[np.float64]

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


# --- whole runs -----------------------------------------------------------------------------------

RUNS = 80
SUMMARY = ["regret", "bins", "settled", "eliminations", "cuts", "first out", "first cut", "release"]


def summary(regret: float, history: Any, release: sv.Release) -> list[float]:
    """What is compared: regret, and how the partition and the arms came out, and when."""
    when: dict[type, list[int]] = {Elimination: [], Split: []}
    for dated in history:
        when[type(dated.event)].append(dated.reports)
    dropped = sum(len(dated.event.arms) for dated in history if type(dated.event) is Elimination)
    return [
        regret,
        len(release.bins),
        sum(policy.settled for policy in release.bins),
        dropped,
        len(when[Split]),
        min(when[Elimination], default=0),
        min(when[Split], default=0),
        release.version,
    ]


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
            context=[sv.Numeric(f"x{j}", 0, 1) for j in range(self.environment.dimension)],
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
        arms, names = self.environment.arms, [each.name for each in learner.experiment.context]
        for m, log in enumerate(self.rows, start=1):
            contexts, means, outcomes = draw_people(self.environment, rng, log.users)
            if len(outcomes) == 0:
                outcomes = (rng.random(means.shape) < means).astype(float)
            logged = rng.choice(arms, size=log.users, p=behaviour(arms, log.kappa))
            for i, arm in enumerate(logged):
                row = dict(zip(names, contexts[i].tolist(), strict=True))
                device = sv.Device(learner.release(), population=f"log {m}", public_arms=True)
                reward = float(outcomes[i, arm])
                learner.receive(device.report_logged(row, arm=f"arm {arm}", reward=reward))
        return float(meet(self.environment, learner, people=self.people, rng=rng).sum())

    def in_the_crowd(self, seed: int) -> list[float]:
        result = simulate(
            self.environment,
            method=self.method,
            epsilon=self.epsilon,
            n=self.people,
            seed=10**6 + seed,
            release_every=25,
            auxiliary=self.rows,
        )
        return summary(float(result.regret[-1]), result.history, result.release)


KNOWN = Auxiliary(170, 2.0, kappa=0.4)
UNKNOWN = Auxiliary(115, 8.0, kappa=0.4, known=False)

SETTINGS = {
    "one bit a cell": Setting(WHISPER, 1.0, Slope()),
    "one bit a cell, three arms": Setting(WHISPER, 1.0, Exponential()),
    "sets": Setting(WHISPER, 2.0, Exponential(), people=600),
    "halves": Setting(WHISPER, 8.0, Exponential()),
    "certified": Setting(CERTIFIED, 2.0, Slope(), people=600),
    "public": Setting(PUBLIC, 1.0, Exponential()),
    "public halves": Setting(PUBLIC, 8.0, Exponential()),
    "a log of known behaviour": Setting(WHISPER, 1.0, Exponential(), people=300, rows=(KNOWN,)),
    "a log of unknown behaviour": Setting(WHISPER, 4.0, Exponential(), people=300, rows=(UNKNOWN,)),
    "two logs": Setting(WHISPER, 2.0, Exponential(), people=300, rows=(KNOWN, UNKNOWN)),
}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_runs_of_the_crowd_and_of_real_devices_have_the_same_law(setting: Setting) -> None:
    runs = []
    for seed in range(RUNS):
        learner = sv.Learner(setting.experiment())
        regret = setting.with_devices(learner, np.random.default_rng(seed))
        runs.append(summary(regret, learner.history(), learner.release()))
    devices = np.array(runs, dtype=np.float64)
    crowd = np.array([setting.in_the_crowd(seed) for seed in range(5 * RUNS)])
    # Arms are dropped and bins cut: there is something to see.
    assert devices[:, SUMMARY.index("eliminations")].mean() > 0.1
    assert devices[:, SUMMARY.index("cuts")].mean() > 0.1
    assert faults(devices, crowd, SUMMARY) == []
    # The test can tell laws apart: with a sixth of ε they differ.
    rows = tuple(replace(each, epsilon=each.epsilon / 6) for each in setting.rows)
    louder = replace(setting, epsilon=setting.epsilon / 6, rows=rows)
    mutant = np.array([louder.in_the_crowd(seed) for seed in range(5 * RUNS)])
    assert faults(devices, mutant, SUMMARY) != []


# --- sums of one batch, before anything is decided ------------------------------------------------


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


def root(experiment: sv.Experiment) -> Board:
    return begin(constants(experiment))


def tree(experiment: sv.Experiment) -> Board:
    """Eight bins: two are settled, arms are gone in some, and pairs stand in any order."""
    settings = constants(experiment)
    board = begin(settings)
    groups, d, arms = board.mass.shape[1], settings.dimension, settings.arms
    for node in range(7):
        rules.cut(
            board,
            settings,
            node,
            int(board.depth[node]) % d,
            np.zeros(arms),
            np.eye(arms) / 100,
            np.zeros((d, arms)),
            np.tile(np.eye(arms) / 100, (d, 1, 1)),
            board.mass[node].copy(),
            np.full((groups, d), 0.45),
        )
    pairs = [(1, 0), (0, 2), (1, 1), (2, 1), (0, 1), (2, 2), (2, 0), (1, 2)]
    if arms == 2:
        pairs = [(1, 0), (0, 1), (1, 1), (1, 0), (0, 1), (0, 0), (0, 1), (1, 0)]
    for leaf, pair in enumerate(pairs, start=7):
        board.pair[leaf] = pair
        if leaf % 2 == 1 or leaf == 12:
            board.live[leaf] = False
            board.live[leaf, board.pair[leaf]] = True
    standing = [14, 8, 11, 7, 13, 10]
    board.contested[:6] = standing
    board.totals[:4] = [15, 6, 0, 5]
    board.outlook[:15] = [0.0, 0.2, -0.1]
    board.outlook[:15, 0] = board.mass[:15, 0]
    return board


def settled(experiment: sv.Experiment) -> Board:
    """The same eight bins with one arm left in each: nothing is contested, and most are asked."""
    board = tree(experiment)
    board.totals[places.ASKED] = 144
    for leaf in range(7, 15):
        best = board.pair[leaf, 0]
        board.pair[leaf] = best
        board.live[leaf] = False
        board.live[leaf, best] = True
    board.totals[places.CONTESTED] = 0
    return board


SUMS = ["info", "lean", "mass_info", "mass_lean", "logged_info", "logged_lean"]
SUMS += ["count_info", "count_lean"]


@dataclass(frozen=True)
class Batch:
    """One batch of reports about one release; the step at its end comes after the sums."""

    setting: Setting
    start: Callable[[sv.Experiment], Board]
    runs: int = 80

    @property
    def experiment(self) -> sv.Experiment:
        logged = sum(each.users for each in self.setting.rows)
        return self.setting.experiment(logged + self.setting.people)

    def read(self, before: Board, after: Board) -> dict[str, Floats]:
        """The sums of the bins that were contested; ballots where somebody counts them."""
        nodes = before.contested[: before.totals[places.CONTESTED]]
        fields = [*SUMS, "ballots"] if self.setting.method == CERTIFIED else SUMS
        found = {name: getattr(after, name)[nodes].astype(np.float64).ravel() for name in fields}
        return {**found, "experience": after.experience.copy(), "audit": after.audit.copy()}

    def devices(self, seed: int) -> dict[str, Floats]:
        experiment = self.experiment
        learner = sv.Learner(experiment)
        before = self.start(experiment)
        learner._book = book_on(experiment, copy_of(before))
        self.setting.with_devices(learner, np.random.default_rng(seed))
        return self.read(before, board_of(learner))

    def crowd(self, seed: int) -> dict[str, Floats]:
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
        return self.read(before, policy.board)

    def differences(self, one: list[dict[str, Floats]], other: list[dict[str, Floats]]) -> set[str]:
        """Which kinds of sums differ in law, each with its share of the false alarms."""
        found = set()
        for kind in one[0]:
            a, b = (np.array([run[kind] for run in runs]) for runs in (one, other))
            used = (a != 0).any(axis=0) | (b != 0).any(axis=0)
            names = [f"{kind} {place}" for place in np.flatnonzero(used)]
            if names and faults(a[:, used], b[:, used], names):
                found.add(kind)
        return found


def book_on(experiment: sv.Experiment, board: Board) -> WhisperBook:
    """A learner's book that has come as far as a board."""
    version = int(board.totals[places.RELEASE])
    bins = policies_of(board, constants(experiment))
    asked = int(board.totals[places.ASKED])
    release = sv.Release(experiment, version, partition_of(board), bins, asked)
    layouts = WhisperLayouts(experiment)
    layouts.record(release)
    return WhisperBook(release, board, layouts, {})


def mechanism_of(batch: Batch, *, population: int, by_arm: bool) -> tuple[int, int, bool]:
    experiment = batch.experiment
    release = book_on(experiment, batch.start(experiment)).release
    cells = sheet(release, population=population, by_arm=by_arm)
    assert cells is not None
    return cells.law.mechanism.size, cells.law.mechanism.cells, cells.law.halves


LOGS = (Auxiliary(200, 1.0, kappa=0.4), Auxiliary(200, 2.0, kappa=0.4, known=False))
LOUD = (Auxiliary(200, 8.0, kappa=0.4), Auxiliary(200, 8.0, kappa=0.4, known=False))

BATCHES = {
    "one cell": Batch(Setting(WHISPER, 1.0, Lopsided(), people=1000), root),
    "one cell, large ε": Batch(Setting(WHISPER, 8.0, Lopsided(), people=1000), root),
    "one bit a cell": Batch(Setting(WHISPER, 1.0, Lopsided(), people=300), tree),
    "sets": Batch(Setting(WHISPER, 2.0, Lopsided(), people=300), tree),
    "halves": Batch(Setting(WHISPER, 8.0, Lopsided(), people=300), tree),
    "certified": Batch(Setting(CERTIFIED, 2.0, Lopsided(), people=300), tree),
    "certified, large ε": Batch(Setting(CERTIFIED, 8.0, Lopsided(), people=300), tree),
    "public": Batch(Setting(PUBLIC, 2.0, Lopsided(), people=300), tree),
    "public halves": Batch(Setting(PUBLIC, 8.0, Lopsided(), people=300), tree),
    "logs": Batch(Setting(WHISPER, 2.0, Lopsided(), people=30, rows=LOGS), tree),
    "logs, halves": Batch(Setting(WHISPER, 8.0, Lopsided(), people=30, rows=LOUD), tree),
    "logs of two arms": Batch(Setting(WHISPER, 2.0, TwoArms(), people=30, rows=LOGS), tree),
    "two arms, halves": Batch(Setting(WHISPER, 8.0, TwoArms(), people=30, rows=LOUD), tree),
}


def test_the_batches_are_of_every_kind() -> None:
    """One bit a cell, true sets, and halves as cells; with and without "elsewhere"."""
    kinds = {
        name: mechanism_of(batch, population=0, by_arm=False) for name, batch in BATCHES.items()
    }
    assert kinds["one cell"] == (1, 1, False)
    assert kinds["one cell, large ε"] == (1, 3, True)
    assert kinds["one bit a cell"] == (6, 6, False)
    for name in ("sets", "certified"):
        assert kinds[name] == (2, 7, False)
    assert kinds["halves"] == kinds["public halves"] == (1, 13, True)
    assert kinds["certified, large ε"] == (1, 7, False)
    size, cells, _ = mechanism_of(BATCHES["logs"], population=2, by_arm=True)
    assert 1 < size < cells


@lru_cache
def sums_of_devices(name: str) -> list[dict[str, Floats]]:
    return [BATCHES[name].devices(seed) for seed in range(BATCHES[name].runs)]


@pytest.mark.parametrize("name", BATCHES)
def test_the_sums_of_a_batch_have_the_same_law(name: str) -> None:
    batch, devices = BATCHES[name], sums_of_devices(name)
    crowd = [batch.crowd(seed) for seed in range(5 * batch.runs)]
    assert batch.differences(devices, crowd) == set()
    expected = {"info", "lean", "mass_info", "mass_lean", "experience"}
    if batch.setting.rows:
        expected |= {"logged_info", "logged_lean", "count_info", "count_lean", "audit"}
    if batch.setting.method == CERTIFIED:
        expected |= {"ballots"}
    assert {kind for run in devices for kind, sums in run.items() if sums.any()} == expected


@pytest.mark.parametrize(
    ("name", "column", "factor", "shows"),
    [
        ("one cell", tables.CONTAINS, 1.08, "lean"),
        ("one cell, large ε", tables.CONTAINS, 0.9, "lean"),
        ("one cell, large ε", tables.SIGNAL, 1.1, "lean"),
        ("one cell, large ε", tables.INSIDE, 1.05, "info"),
        ("sets", tables.NOISE, 1.12, "info"),
        ("sets", tables.SIZE, 1.5, "lean"),
        ("certified, large ε", tables.ELSEWHERE, 0.0, "ballots"),
    ],
    ids=["says yes", "says no", "signal", "inside", "noise", "size", "nobody elsewhere"],
)
def test_a_crowd_with_a_slightly_different_mechanism_is_told_apart(
    name: str, column: int, factor: float, shows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = tables.laws

    def altered(*args: Any, **named: Any) -> Floats:
        table = honest(*args, **named).copy()
        table[:, column] *= factor
        return table

    monkeypatch.setattr(crowd_policy, "laws", altered)
    batch = BATCHES[name]
    crowd = [batch.crowd(seed) for seed in range(5 * batch.runs)]
    assert shows in batch.differences(sums_of_devices(name), crowd)


SERVED = Batch(Setting(WHISPER, 2.0, Lopsided(), people=1000), root)
MANY = (Auxiliary(500, 1.0), Auxiliary(500, 2.0, known=False))
LOGGED = Batch(Setting(WHISPER, 2.0, Lopsided(), people=1, rows=MANY), root)
OF_TWO = Batch(Setting(WHISPER, 2.0, TwoArms(), people=1, rows=MANY), root)


@pytest.mark.parametrize(
    ("batch", "where", "share", "more", "shows"),
    [
        (SERVED, questions, "FEATURE_SHARE", 10, "info"),
        (LOGGED, questions, "LOGGED_FEATURE_SHARE", 24, "logged_info"),
        (SERVED, ask, "MASS_SHARE", 6, "mass_info"),
        (SERVED, ask, "LEVEL_SHARE", 12, "info"),
        (LOGGED, ask, "COUNT_SHARE", 16, "count_info"),
        (LOGGED, ask, "COUNT_SHARE_UNKNOWN", 20, "count_info"),
        (OF_TWO, ask, "TONE_SHARE", 16, "logged_info"),
    ],
    ids=["feature", "feature of logs", "mass", "level", "count", "behaviour unknown", "tone"],
)
def test_devices_that_ask_in_slightly_different_shares_are_told_apart(
    batch: Batch,
    where: ModuleType,
    share: str,
    more: int,
    shows: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = [batch.crowd(seed) for seed in range(200)]
    monkeypatch.setattr(where, share, getattr(where, share) + more)
    devices = [batch.devices(seed) for seed in range(20)]
    assert shows in batch.differences(devices, crowd)


# --- people who are asked how it went -------------------------------------------------------------


@dataclass(frozen=True)
class Generous(Lopsided):
    """Rewards between 0.75 and 0.95, whatever the arm: what is told is mostly "yes"."""

    def means(self, contexts: Floats) -> Floats:
        return 0.75 + 0.2 * super().means(contexts)

    def rewards(self, rng: np.random.Generator, contexts: Floats, arm: int) -> Floats:
        return np.asarray(self.means(contexts)[:, arm])


def audited(method: sv.Whisper, epsilon: float, start: Callable[[sv.Experiment], Board]) -> Batch:
    return Batch(Setting(method, epsilon, Generous(), people=600, rows=(Auxiliary(1, 1.0),)), start)


AUDITED = {
    "contested": audited(WHISPER, 1.0, tree),
    "contested, large ε": audited(WHISPER, 8.0, tree),
    "certified": audited(CERTIFIED, 2.0, tree),
    "public": audited(PUBLIC, 2.0, tree),
    "nothing contested": audited(WHISPER, 1.0, settled),
}


@lru_cache
def audits_of_devices(name: str) -> list[dict[str, Floats]]:
    return [AUDITED[name].devices(seed) for seed in range(AUDITED[name].runs)]


@pytest.mark.parametrize("name", AUDITED)
def test_what_people_tell_of_their_rewards_has_the_same_law(name: str) -> None:
    batch, devices = AUDITED[name], audits_of_devices(name)
    crowd = [batch.crowd(seed) for seed in range(5 * batch.runs)]
    assert batch.differences(devices, crowd) == set()
    if batch.start is settled:
        assert {kind for run in devices for kind in run if run[kind].any()} == {
            "audit",
            "experience",
        }
    for runs in (devices, crowd):
        told, delivered, promised, chance = np.sum([run["audit"] for run in runs], axis=0)
        # Of 48,000 people or more the release's share is asked, within 6 standard deviations: a
        # false alarm in 10^8 tests. All bins have the same outlook.
        people = len(runs) * batch.setting.people
        share = batch.start(batch.experiment).totals[places.ASKED] / SHARES
        assert share == (0.9 if batch.start is settled else 0.15)
        assert abs(told - people * share) < 6 * np.sqrt(people * share * (1 - share))
        assert [promised, chance] == pytest.approx([0.2 * told, -0.1 * told])
        # The error of the mean of 7,200 answers at ε = 1 is 0.013: this is wide of the truth.
        assert 0.2 < delivered / told < 0.5


@pytest.mark.parametrize(
    ("name", "column", "factor"),
    [
        ("contested", tables.CONTAINS, 1.2),
        ("contested, large ε", tables.CONTAINS, 0.9),
        ("contested, large ε", tables.SIGNAL, 1.2),
        ("nothing contested", tables.CONTAINS, 1.2),
    ],
)
def test_a_crowd_that_tells_of_rewards_with_other_noise_is_told_apart(
    name: str, column: int, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = tables.reward_law

    def altered(experiment: sv.Experiment) -> Floats:
        row = honest(experiment).copy()
        row[column] *= factor
        return row

    monkeypatch.setattr(crowd_policy, "reward_law", altered)
    batch = AUDITED[name]
    crowd = [batch.crowd(seed) for seed in range(5 * batch.runs)]
    assert batch.differences(audits_of_devices(name), crowd) == {"audit"}


def test_devices_that_ask_slightly_fewer_people_how_it_went_are_told_apart() -> None:
    batch = AUDITED["nothing contested"]

    def slightly_fewer(experiment: sv.Experiment) -> Board:
        board = settled(experiment)
        board.totals[places.ASKED] -= 8
        return board

    crowd = [batch.crowd(seed) for seed in range(200)]
    devices = [replace(batch, start=slightly_fewer).devices(seed) for seed in range(40)]
    assert batch.differences(devices, crowd) == {"audit"}
