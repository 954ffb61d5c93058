"""What people lose by n, ε, features, arms and levels: JSON for benchmarks/figures.py.

    python -m benchmarks.expect [--reps N] [--out FILE.json]   measure; without --out, print
    python -m benchmarks.expect --fit                          fit the rule to docs/figures/results

Each world changes one thing: how many features there are (two matter), how many arms, or how many
levels without an order. Shares are of what arms at random lose. The rule that warns operators
(src/sottovoce/shared/whisper/outlook.py) is fitted to these figures.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from sottovoce.lab.environments import Environment, Exponential, regret_at_random, schema_of
from sottovoce.lab.means import mean_regrets
from sottovoce.lab.simulation import Auxiliary, simulate
from sottovoce.lab.sweeps import Setting, sweep
from sottovoce.lab.worlds import LevelsInTurns, Linear
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.outlook import Powers, people_for_half, share_of_random
from sottovoce.shared.whisper.subset import signed_subset
from sottovoce.shared.whisper.tuning import OUTLOOK_BINS

KEPT = Path(__file__).parents[1] / "docs" / "figures" / "results" / "expect.json"

REPS = 12
"""How many runs of each cell, unless another number is given."""

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
PEOPLE = (5_000, 20_000, 80_000, 320_000)
SIZES = {"features": (2, 5, 10, 20, 40), "arms": (2, 3, 5, 8), "levels": (3, 6, 12, 30)}
"""What is changed, and to what."""

ROWS = (5_000, 20_000)
ROWS_EPSILONS = (1.0, 4.0)
ROWS_PEOPLE = 20_000
"""Logged rows of an auxiliary population, before so many people, with three arms."""


def linear(size: int) -> Environment:
    """Two arms, and two features of so many that matter."""
    return Linear(dimension=size)


def exponential(size: int) -> Environment:
    """So many arms, and one feature of two that matters."""
    return Exponential(arms=size)


WORLDS: Mapping[str, Callable[[int], Environment]] = {
    "features": linear,
    "arms": exponential,
    "levels": LevelsInTurns,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting: what is changed and to what, ε, people, and rows of others."""

    varied: str
    size: int
    epsilon: float
    n: int
    rows: int = 0
    rows_epsilon: float = 0.0

    @property
    def environment(self) -> Environment:
        """The world."""
        return WORLDS[self.varied](self.size)

    @property
    def auxiliary(self) -> Sequence[Auxiliary]:
        """The rows, if there are any."""
        return [Auxiliary(self.rows, self.rows_epsilon)] if self.rows else []

    @property
    def experiment(self) -> Experiment:
        """The experiment that an operator would write."""
        world = self.environment
        arms = [f"arm {number + 1}" for number in range(world.arms)]
        even = [1 / world.arms] * world.arms
        others = [Population("rows", self.rows_epsilon, self.rows, even)] if self.rows else []
        return Experiment(
            arms=arms,
            context=schema_of(world),
            epsilon=self.epsilon,
            horizon=self.n,
            auxiliary=others,
        )

    def to_table(self) -> dict[str, Any]:
        """Write the cell as JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}


def grid() -> Iterator[Cell]:
    """Yield all cells."""
    for varied, sizes in SIZES.items():
        for size in sizes:
            for epsilon in EPSILONS:
                yield from (Cell(varied, size, epsilon, n) for n in PEOPLE)
    for epsilon in EPSILONS:
        for rows in ROWS:
            for rows_epsilon in ROWS_EPSILONS:
                yield Cell("arms", 3, epsilon, ROWS_PEOPLE, rows, rows_epsilon)


def one_run(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run of a sweep."""
    cell = Cell(**setting)
    result = simulate(
        cell.environment,
        method="whisper",
        epsilon=cell.epsilon,
        n=cell.n,
        seed=seed,
        auxiliary=cell.auxiliary,
    )
    return {"regret": float(result.regret[-1])}


def measured(cells: Sequence[Cell], *, reps: int, workers: int) -> list[dict[str, Any]]:
    """Run each cell so many times; return the shares of random."""
    settings = [cell.to_table() for cell in cells]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "expect.jsonl"
        lost = mean_regrets(sweep(one_run, settings, reps=reps, path=path, workers=workers))
    # What arms at random lose depends on the world alone.
    worlds = dict.fromkeys((cell.varied, cell.size) for cell in cells)
    at_random = {key: regret_at_random(WORLDS[key[0]](key[1])) for key in worlds}
    found = []
    for cell, mean in zip(cells, lost, strict=True):
        all_lose = cell.n * at_random[cell.varied, cell.size]
        error = mean.standard_error
        shares = {
            "share": round(mean.mean / all_lose, 4),
            "standard_error": None if error is None else round(error / all_lose, 4),
            "reps": mean.reps,
        }
        found.append({**cell.to_table(), **shares})
    return found


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Read a cell of the results."""
    return Cell(**{name: row[name] for name in Cell.__slots__})


def fit(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Fit the rule's constants to shares without rows of others, by least squares."""
    alone = [row for row in rows if not row["rows"]]
    experiments = [cell_of(row).experiment for row in alone]
    shares = np.array([min(row["share"], 1.0) for row in alone])
    sizes: list[dict[str, Any]] = [
        {
            "variance": signed_subset(each.epsilon, OUTLOOK_BINS).variance,
            "arms": len(each.arms),
            "axes": each.dimension,
            "levels": sum(slots_of(each).levels),
        }
        for each in experiments
    ]

    def errors(values: Any) -> Any:
        people, arms, axes, levels, fall = values.tolist()
        powers = {"people": math.exp(people), "arms": arms, "axes": axes, "levels": levels}
        halves = [people_for_half(**size, powers=Powers(**powers)) for size in sizes]
        told = [
            share_of_random(each.horizon, half=half, fall=fall)
            for each, half in zip(experiments, halves, strict=True)
        ]
        return np.array(told) - shares

    found = least_squares(errors, [3.0, 3.0, 1.5, 1.5, 0.7])
    people, arms, axes, levels, fall = found.x.tolist()
    return {
        "OUTLOOK_PEOPLE": math.exp(people),
        "OUTLOOK_ARMS": arms,
        "OUTLOOK_AXES": axes,
        "OUTLOOK_LEVELS": levels,
        "OUTLOOK_FALL": fall,
        "root mean square error": math.sqrt(2 * found.cost / len(shares)),
    }


def main() -> None:
    """Measure, and print or write what was found; or fit the rule."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reps", type=int, default=REPS, help=f"runs of each cell; {REPS}")
    parser.add_argument("--out", type=Path, help="a file for the JSON; without, it is printed")
    parser.add_argument("--workers", type=int, default=2, help="processes; 2")
    parser.add_argument("--fit", action="store_true", help="measure nothing; fit the rule")
    arguments = parser.parse_args()
    if arguments.fit:
        for name, value in fit(json.loads(KEPT.read_text(encoding="utf-8"))["result"]).items():
            print(f"{name} = {value:.2g}")
        return
    found = measured(list(grid()), reps=arguments.reps, workers=arguments.workers)
    text = json.dumps(found, indent=1)
    if arguments.out is None:
        print(text)
    else:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
