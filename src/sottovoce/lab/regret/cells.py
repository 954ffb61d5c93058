"""Runs → cells: what each method lost in one place, beside what arms at random lose there.

The first method is the one that is judged, by its ratio to everything else.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sottovoce.lab.environments import Environment, losses_at_random
from sottovoce.lab.means import Mean, mean_of, mean_regrets
from sottovoce.lab.sweeps import Engine, Setting, Task, sweep

METHODS = ("whisper", "ldpmab")
"""What is run unless other methods are asked for; the first is judged."""

RANDOM = "random"
PUBLISHED = "published"
"""The lines besides the methods; where there is a published mean, it is that of leaking noise."""

LEAST_RATIO = 0.01
"""Ratios below it count as it in a geometric mean, so that no single cell can carry the mean."""

NOTHING = 1e-9
"""What a person loses at random, at most, where there is nothing to lose."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a bench is run; without ``out`` the runs are not kept."""

    reps: int
    methods: tuple[str, ...] = METHODS
    workers: int = -1
    engine: Engine = "joblib"
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class RegretCell:
    """What was lost in one place: by each method, at random, and in print if there is a mean.

    group: the cells that are summed up together.
    world: the name of the environment.
    """

    group: str
    world: str
    auxiliary: str
    epsilon: float
    n: int
    lost: Mapping[str, Mean]

    @property
    def judged(self) -> Mean:
        """What the first method lost."""
        return next(iter(self.lost.values()))

    @property
    def others(self) -> list[str]:
        """All that the first method is compared with."""
        return list(self.lost)[1:]

    @property
    def methods(self) -> list[str]:
        """What was run."""
        return [name for name in self.lost if name not in (RANDOM, PUBLISHED)]

    @property
    def nothing_to_lose(self) -> bool:
        """Say whether all arms are alike, so that there is no share of random."""
        return self.lost[RANDOM].mean <= NOTHING * self.n

    def ratio(self, other: str, *, of: str | None = None) -> float | None:
        """Divide what a method lost by what another did; None for nothing by nothing.

        of: the first method unless another is named.
        """
        if other not in self.lost or self.lost[other].mean <= NOTHING * self.n:
            return None
        return (self.judged if of is None else self.lost[of]).mean / self.lost[other].mean

    def worse_than(self) -> list[str]:
        """Name what the first method loses to, by more than the standard error of the difference.

        The error is that of independent runs, which is too large for those with the same people.
        With one run there is no standard error, and nothing to say.
        """
        return [
            name
            for name in self.others
            if self.judged.mean - self.lost[name].mean
            > math.hypot(*(_error(mean) for mean in (self.judged, self.lost[name])))
        ]


@dataclass(frozen=True, slots=True)
class Place:
    """Where to measure: a cell without its means (but a published one), and the sweep's settings.

    settings: by method.
    """

    cell: RegretCell
    environment: Environment
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Summary:
    """The ratios of a method to another line, over the cells of a group."""

    group: str
    method: str
    against: str
    cells: int
    geometric_mean: float
    worst: float
    worst_at: str


def measure(
    places: Sequence[Place],
    options: Options,
    *,
    task: Task,
    paired_by: Sequence[str] | None = None,
) -> list[RegretCell]:
    """Make all runs, and fill in the means."""
    settings = [setting for place in places for setting in place.settings.values()]
    with tempfile.TemporaryDirectory() as folder:
        runs = sweep(
            task,
            settings,
            reps=options.reps,
            path=options.out or Path(folder) / "runs.jsonl",
            workers=options.workers,
            engine=options.engine,
            paired_by=paired_by,
        )
    means = iter(mean_regrets(runs))
    worlds = {place.cell.world: place.environment for place in places}
    at_random = {name: mean_of(losses_at_random(world).tolist()) for name, world in worlds.items()}
    cells = []
    for place in places:
        cell, each = place.cell, at_random[place.cell.world]
        lost = {method: next(means) for method in place.settings}
        lost[RANDOM] = Mean(cell.n * each.mean, cell.n * each.sd, each.reps)
        cells.append(replace(cell, lost={**lost, **cell.lost}))
    return cells


def summarise(cells: Sequence[RegretCell]) -> list[Summary]:
    """Sum up the first method in each group against each other line, published means first."""
    summaries = []
    for group in dict.fromkeys(cell.group for cell in cells):
        mine = [cell for cell in cells if cell.group == group]
        others = dict.fromkeys(name for cell in mine for name in cell.others)
        judged = next(iter(mine[0].lost))
        for other in sorted(others, key=lambda name: name != PUBLISHED):
            summaries += ratios_of(mine, judged, other)
    return summaries


def ratios_of(cells: Sequence[RegretCell], method: str, other: str) -> list[Summary]:
    """Sum up the ratios of one line to another; nothing where there are none."""
    ratios = [
        (ratio, cell) for cell in cells if (ratio := cell.ratio(other, of=method)) is not None
    ]
    if not ratios:
        return []
    logs = [math.log(max(ratio, LEAST_RATIO)) for ratio, _ in ratios]
    geometric_mean = math.exp(math.fsum(logs) / len(logs))
    worst, cell = max(ratios, key=lambda pair: pair[0])
    where = (cells[0].group, method, other, len(ratios))
    return [Summary(*where, geometric_mean, worst, name_of(cell))]


def name_of(cell: RegretCell) -> str:
    """Name a cell on one line."""
    where = cell.world if not cell.auxiliary else f"{cell.world}, {cell.auxiliary}"
    return f"{where}, ε = {cell.epsilon:g}, n = {cell.n:,}"


def as_json(cells: Sequence[RegretCell]) -> dict[str, Any]:
    """Write all figures as one JSON object."""
    return {
        "cells": [
            {
                "group": cell.group,
                "world": cell.world,
                "auxiliary": cell.auxiliary or None,
                "epsilon": cell.epsilon,
                "n": cell.n,
                "regret": {name: _mean_json(mean) for name, mean in cell.lost.items()},
                "ratio": {name: cell.ratio(name) for name in cell.others},
                "worse_than": cell.worse_than(),
            }
            for cell in cells
        ],
        "summary": [asdict(summary) for summary in summarise(cells)],
    }


def _mean_json(mean: Mean) -> dict[str, Any]:
    return {"mean": mean.mean, "standard_error": mean.standard_error, "reps": mean.reps}


def _error(mean: Mean) -> float:
    return math.nan if mean.standard_error is None else mean.standard_error
