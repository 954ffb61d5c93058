"""How often intervals hold the truth, in simulated worlds where it is known.

    python -m benchmarks.coverage [--reps 500] [--only TEXT] [--json]

For each world and ε: of all arms in all bins of the last release; of arms in bins where they had
been dropped; of what each arm would bring everybody; of what the last release and an earlier one
bring. An interval says 95 %. The error of a share comes from the runs, since the bins of one run
err together.
"""

import argparse
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.estimate.figures import DEVIATIONS
from sottovoce.estimate.tree import node_paths
from sottovoce.estimate.whisper.known import cell_estimates, known_of
from sottovoce.estimate.whisper.worth import choice_of, worth_of
from sottovoce.lab.driver import Driver
from sottovoce.lab.environments import Environment, Exponential, Floats, Symmetric, schema_of
from sottovoce.lab.regret.worlds import WORLDS
from sottovoce.lab.sweeps import Run, Setting, sweep
from sottovoce.lab.whisper.policy import WhisperPolicy
from sottovoce.lab.worlds import Stripes
from sottovoce.shared.allocation import Allocation, allocation_of
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.partition import Partition

REPS = 500
PEOPLE = 40_000
EPSILONS = (1.0, 4.0)
EARLIER = 16
"""The earlier release is that after the first of so many parts of the people."""

TRUTH = 200_000
"""How many people are drawn to work out the truth."""

LEAST = 0.001
"""Bins with a smaller share of the people are left out: too few are drawn to know the truth."""


@dataclass(frozen=True, slots=True)
class Crowded:
    """The same rewards at each place, and most people near 0: their positions are u³."""

    environment: Environment
    power: float = 3.0

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return self.environment.arms

    @property
    def dimension(self) -> int:
        """The d of [0, 1]^d."""
        return self.environment.dimension

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw from the environment, and crowd."""
        return np.asarray(self.environment.contexts(rng, n) ** self.power)

    def means(self, contexts: Floats) -> Floats:
        """Return what the environment says."""
        return self.environment.means(contexts)


CASES: Mapping[str, Environment] = {
    "exponential": Exponential(),
    "symmetric": Symmetric(),
    "6 levels in turns": WORLDS["6 levels in turns"].environment,
    "long tails": WORLDS["exponential, long tails"].environment,
    "1 of 10 features": Exponential(dimension=10),
    "crowded near 0": Crowded(Exponential()),
    "rows of others": Exponential(),
    "4 stripes": Stripes(4),
}
ROWS, ROWS_EPSILON = 20_000, 4.0
"""Rows of others, with arms at random, in the world of that name."""


def one_run(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run; return how many intervals there were of each kind, and how many held."""
    name, n = setting["world"], setting["n"]
    world, rows = CASES[name], ROWS if name == "rows of others" else 0
    even = [1 / world.arms] * world.arms
    experiment = Experiment(
        arms=[f"arm {k}" for k in range(world.arms)],
        context=schema_of(world),
        epsilon=setting["epsilon"],
        horizon=n,
        auxiliary=[Population("rows", ROWS_EPSILON, rows, even)] if rows else [],
        seed=seed,
    )
    policy = WhisperPolicy(experiment)
    driver = Driver(policy, experiment, np.empty((0, world.dimension)))
    if rows:
        driver.contribute(world, rows, behaviour=np.array(even), population=1)
    driver.serve(world, n // EARLIER)
    middle = policy.release()
    driver.serve(world, n - n // EARLIER)
    found: dict[str, list[bool]] = defaultdict(list)
    state, constants, release = policy.learner, policy.constants, policy.release()
    known = known_of(state, constants)
    truth = _bins(release.partition, name)
    for each in cell_estimates(known, release, node_paths(state)):
        share, means = truth[each.path]
        if share < LEAST or each.estimate is None or each.radius is None:
            continue
        arm = list(experiment.arms).index(each.arm)
        held = abs(each.estimate - float(means[arm])) <= each.radius
        found["bins"].append(held)
        found["settled" if release.policies[each.path].settled else "contested"].append(held)
        found["in use" if each.live else "dropped"].append(held)
    asked: list[tuple[str, Any]] = [("everybody", f"always:{arm}") for arm in experiment.arms]
    for kind, each in (*asked, ("release", release), ("earlier release", middle)):
        allocation = allocation_of(each, experiment)
        mean = worth_of(state, known, choice_of(state, constants, release, allocation)).mean
        error = abs(mean.mean - _value(allocation, name))
        found[kind].append(error <= DEVIATIONS * mean.error)
    return {
        f"{kind}/{what}": float(count)
        for kind, held in found.items()
        for what, count in (("held", sum(held)), ("all", len(held)))
    }


@cache
def _people(name: str) -> tuple[Floats, Floats]:
    """Return the contexts of many people, and what each arm brings them."""
    contexts = CASES[name].contexts(np.random.default_rng(0), TRUTH)
    return contexts, CASES[name].means(contexts)


def _bins(partition: Partition, name: str) -> dict[str, tuple[float, Floats]]:
    """Return the share and the means of all bins."""
    contexts, means = _people(name)
    found: dict[str, tuple[float, Floats]] = {}
    pending = [("", np.arange(len(contexts)))]
    while pending:
        path, people = pending.pop()
        axis = partition.cuts.get(path)
        if axis is None:
            mean = means[people].mean(axis=0) if len(people) else np.zeros(means.shape[1])
            found[path] = len(people) / len(contexts), mean
            continue
        positions = contexts[people, axis]
        if path in partition.sets:
            count = partition.levels[axis]
            levels = np.minimum((positions * count).astype(int), count - 1)
            above = np.isin(levels, list(partition.sets[path]))
        else:
            low, high = partition.edges(path)[axis]
            above = positions >= partition.position(axis, (low + high) / 2)
        pending += [(path + "0", people[~above]), (path + "1", people[above])]
    return found


def _value(allocation: Allocation, name: str) -> float:
    """Return what a policy brings."""
    bins = _bins(allocation.partition, name)
    return sum(share * float(means @ allocation.chances[at]) for at, (share, means) in bins.items())


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often the intervals of one kind held the truth. error: the standard error of share."""

    world: str
    epsilon: float
    kind: str
    share: float
    error: float
    intervals: int
    runs: int


def coverages(settings: Sequence[Setting], runs: Sequence[Run]) -> list[Coverage]:
    """Add up the runs of each setting."""
    counts: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for run in runs:
        for name, count in run.figures.items():
            kind, what = name.split("/")
            if what == "all" and count > 0:
                counts[run.setting, kind].append((run.figures[f"{kind}/held"], count))
    found = []
    for (index, kind), pairs in sorted(counts.items()):
        held, every = np.array(pairs).T
        share = float(held.sum() / every.sum())
        # Of a ratio of sums over runs.
        error = math.sqrt(float(((held - share * every) ** 2).sum())) / float(every.sum())
        world, epsilon = settings[index]["world"], settings[index]["epsilon"]
        found.append(Coverage(world, epsilon, kind, share, error, int(every.sum()), len(pairs)))
    return found


def measured(
    *, reps: int, only: str = "", people: int = PEOPLE, workers: int = 1
) -> list[Coverage]:
    """Run each world with a text in its name so many times."""
    settings = [
        {"world": name, "epsilon": epsilon, "n": people}
        for name in CASES
        for epsilon in EPSILONS
        if only.casefold() in name.casefold()
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.jsonl"
        runs = sweep(one_run, settings, reps=reps, path=path, workers=workers)
    return coverages(settings, runs)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reps", type=int, default=REPS, help=f"runs of each; {REPS}")
    parser.add_argument("--only", default="", help="worlds with this in their name")
    parser.add_argument("--workers", type=int, default=2, help="processes; 2")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    found = measured(reps=arguments.reps, only=arguments.only, workers=arguments.workers)
    if arguments.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
        return
    print("| world | ε | intervals of | held the truth | of |\n|---|---|---|---|---|")
    for each in found:
        share = f"{each.share:.1%} ± {each.error:.1%}"
        print(f"| {each.world} | {each.epsilon:g} | {each.kind} | {share} | {each.intervals:,} |")


if __name__ == "__main__":
    main()
