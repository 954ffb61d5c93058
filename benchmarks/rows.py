"""What auxiliary rows are worth to ``whisper`` on real tables: mean reward with and without them.

    python -m benchmarks.rows --data-dir DATA
    python -m benchmarks.rows --data-dir DATA --reps 20 --tables adult taxi/speed/borough
    python -m benchmarks.rows --list

Each run with rows has a run without them on the same people in the same order: differences are over
such pairs. Two things are flagged. LOSES: with rows the mean reward at n/4 or at n is more than
0.01 below that without. STUCK: with rows people get no more on average at n than at n/4, although
without rows the last three quarters of the people get more than that.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.row_tables import TABLES, Limits, limits
from rich.console import Console
from rich.table import Table

from sottovoce.lab.data.playing import play, reward_at
from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.environments import Floats
from sottovoce.lab.means import Mean, mean_of
from sottovoce.lab.regret.tables import new_table
from sottovoce.shared.errors import ExperimentError

EPSILONS = (1.0, 2.0, 4.0)
BUDGETS = (1.0, 4.0)
"""The ε of all auxiliary rows, ε_m."""

LOSS = 0.01
"""How much reward rows may cost before a table is flagged."""

QUARTER, ALL = 0, 1
TIMES = ("n/4", "n")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Mean rewards of the same people with and without rows.

    without, helped (R, 2)   of each run, at n/4 and at n
    """

    epsilon: float
    epsilon_aux: float
    without: Floats
    helped: Floats

    def difference(self, time: int) -> Mean:
        """Return how much more people got with rows than without."""
        return mean_of((self.helped[:, time] - self.without[:, time]).tolist())

    @property
    def loses(self) -> bool:
        """Whether rows cost more than they may."""
        return any(self.difference(time).mean < -LOSS for time in (QUARTER, ALL))

    @property
    def stuck(self) -> bool:
        """Whether nothing is learned with rows although there is something to learn."""
        quarter, final = self.helped.mean(axis=0)
        later = (4 * self.without[:, ALL] - self.without[:, QUARTER]) / 3
        lead = mean_of((later - self.helped[:, QUARTER]).tolist())
        return bool(final <= quarter and lead.mean > (lead.standard_error or 0.0))

    @property
    def flags(self) -> str:
        """The flags in words."""
        return " ".join(name for name in ("LOSES", "STUCK") if getattr(self, name.lower()))


@dataclass(frozen=True, slots=True)
class Played:
    """One table: what it is, and all pairs of runs."""

    table: str
    data: DataSet
    limits: Limits
    pairs: tuple[Pairs, ...]


def measure(
    table: str,
    data: DataSet,
    *,
    seeds: Sequence[int],
    epsilons: Sequence[float] = EPSILONS,
    heed: bool = False,
) -> Played:
    """Play a table with and without rows, at each pair of budgets.

    heed: let the runs with rows go on without them as soon as the diagnosis warns.
    """
    pairs = []
    for epsilon in epsilons:
        without = _rewards(data, epsilon, None, seeds)
        for budget in BUDGETS:
            helped = _rewards(data, epsilon, budget, seeds, heed=heed)
            pairs.append(Pairs(epsilon, budget, without, helped))
    return Played(table, data, limits(data), tuple(pairs))


def _rewards(
    data: DataSet,
    epsilon: float,
    budget: float | None,
    seeds: Sequence[int],
    *,
    heed: bool = False,
) -> Floats:
    people = len(data.target)
    rewards = []
    for seed in seeds:
        run = play(data, epsilon=epsilon, epsilon_aux=budget, seed=seed, heed=heed)
        rewards.append([reward_at(run, max(1.0, people / 4)), reward_at(run, people)])
    return np.array(rewards)


def as_json(played: Played, *, seeds: Sequence[int]) -> dict[str, Any]:
    """Write everything as JSON has it, with the rewards of each run."""
    data = played.data
    return {
        "table": played.table,
        "arms": len(data.arms),
        "axes": list(data.features),
        "people": len(data.target),
        "rows": {name: len(each) for name, each in data.auxiliary.items()},
        "limits": played.limits._asdict(),
        "seeds": list(seeds),
        "pairs": [
            {
                "epsilon": each.epsilon,
                "epsilon_aux": each.epsilon_aux,
                "without": each.without.tolist(),
                "with": each.helped.tolist(),
                "differences": {
                    name: {"mean": mean.mean, "standard_error": mean.standard_error}
                    for name, mean in zip(TIMES, map(each.difference, (QUARTER, ALL)), strict=True)
                },
                "loses": each.loses,
                "stuck": each.stuck,
            }
            for each in played.pairs
        ],
    }


def as_table(played: Played) -> Table:
    """Write the pairs of a table for readers."""
    heads = [f"{what}, {time}" for time in TIMES for what in ("without", "with", "difference")]
    table = new_table("ε, ε_m", *heads, "flags")
    for each in played.pairs:
        cells = []
        for time in (QUARTER, ALL):
            means = (each.without[:, time].mean(), each.helped[:, time].mean())
            cells += [*(f"{mean:.4f}" for mean in means), _signed(each.difference(time))]
        table.add_row(f"{each.epsilon:g}, {each.epsilon_aux:g}", *cells, each.flags)
    return table


def _signed(mean: Mean) -> str:
    error = mean.standard_error
    return f"{mean.mean:+.4f}" + ("" if error is None else f" ± {error:.4f}")


def heading(played: Played) -> str:
    """Say what a table is, and what could be had without privacy."""
    data, (one_arm, own, rows) = played.data, played.limits
    groups = sum(len(each) for each in data.auxiliary.values())
    return (
        f"{played.table}: {len(data.target):,} people, {groups:,} rows, {len(data.arms)} arms;"
        f" one arm {one_arm:.3f}, a grid of the people's own {own:.3f}, of the rows {rows:.3f}"
    )


def flagged(played: Sequence[Played]) -> Iterator[str]:
    """Say where something is flagged."""
    for table in played:
        for each in table.pairs:
            if each.flags:
                gain = ", ".join(
                    f"{_signed(each.difference(time))} at {TIMES[time]}" for time in (QUARTER, ALL)
                )
                where = f"ε = {each.epsilon:g}, ε_m = {each.epsilon_aux:g}"
                yield f"{each.flags}: {table.table}, {where}: {gain}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the tables, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="the folder of the data files")
    parser.add_argument("--reps", type=int, default=10, help="pairs of runs in each line")
    parser.add_argument("--first-seed", type=int, default=0, help="the seed of the first pair")
    parser.add_argument(
        "--tables", nargs="+", default=TABLES, choices=TABLES, metavar="TABLE", help="some of all"
    )
    parser.add_argument("--heed", action="store_true", help="heed the warnings of the diagnosis")
    parser.add_argument("--list", action="store_true", help="name the tables, and stop")
    parser.add_argument("--json", type=Path, help="a file for everything, the runs included")
    given = parser.parse_args(arguments)
    console = Console(width=140)
    if given.list:
        console.print("\n".join(TABLES), highlight=False)
        return
    seeds = range(given.first_seed, given.first_seed + given.reps)
    played = []
    try:
        for name in given.tables:
            data = TABLES[name](given.data_dir)
            played.append(measure(name, data, seeds=seeds, heed=given.heed))
            console.print(heading(played[-1]), highlight=False, soft_wrap=True)
            console.print(as_table(played[-1]))
            if given.json is not None:
                lines = [as_json(each, seeds=seeds) for each in played]
                given.json.write_text(json.dumps(lines, indent=1), encoding="utf-8")
    except ExperimentError as error:
        parser.error(str(error))
    for line in [*flagged(played)] or ["nothing is flagged"]:
        console.print(line, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
