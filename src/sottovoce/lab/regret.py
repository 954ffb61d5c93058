"""How much people lose: a method against published means, other methods, and arms at random.

Two benches: the cells of the paper's experiment over the number of target users
(``against_paper``), and the problems of ``problems.py`` (``on_problems``). The first method is the
one that is judged, by its ratio to everything else; all runs are independent.
"""

import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from sottovoce.lab.environments import Environment, losses_at_random
from sottovoce.lab.problems import HELD_OUT, PROBLEMS, TUNED
from sottovoce.lab.reproduce.cases import EPSILONS, MODELS, SIZES, Case, Model
from sottovoce.lab.reproduce.table import Key, Mean, key_of, mean_of, read_published
from sottovoce.lab.simulation import simulate
from sottovoce.lab.sweeps import Engine, Run, Setting, sweep
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import settings_from

METHODS = ("whisper", "ldpmab")
"""What is run; the first is judged."""

RANDOM = "random"
PUBLISHED = "published"
"""The lines besides the methods; where there is a published mean, it is that of leaking noise."""

NO_ROWS = ((1024.0, 1024.0), (0, 0))
"""No auxiliary data, as the authors' logs have it: two empty sets."""

ROWS = tuple(
    ((epsilon,) * sets, (users,) * sets)
    for epsilon in (4.0, 8.0)
    for users, sets in ((5000, 1), (5000, 2), (30_000, 2))
)
"""The auxiliary data of the authors' logs: ε and users of each set."""

PROBLEM_EPSILONS = (1.0, 4.0)
PROBLEM_SIZES = (20_000, 100_000)

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
class Place:
    """Where to measure.

    group: the cells that are summed up together.
    world: the name of the environment.
    settings: those of the sweep, by method.
    """

    group: str
    world: str
    auxiliary: str
    epsilon: float
    n: int
    environment: Environment
    settings: Mapping[str, Setting]
    published: Mean | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What was lost in one place: by each method, at random, and in print if there is a mean."""

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
    def nothing_to_lose(self) -> bool:
        """Say whether all arms are alike, so that there is no share of random."""
        return self.lost[RANDOM].mean <= NOTHING * self.n

    def ratio(self, other: str) -> float | None:
        """Divide what the first method lost by what another did; None for nothing by nothing."""
        if other not in self.lost or self.lost[other].mean <= NOTHING * self.n:
            return None
        return self.judged.mean / self.lost[other].mean

    def worse_than(self) -> list[str]:
        """Name what the first method loses to, by more than the standard error of the difference.

        All runs are independent. With one run there is no standard error, and nothing to say.
        """
        return [
            name
            for name in self.others
            if self.judged.mean - self.lost[name].mean
            > math.hypot(*(_error(mean) for mean in (self.judged, self.lost[name])))
        ]


@dataclass(frozen=True, slots=True)
class Summary:
    """The ratios of the first method to one other line, over the cells of a group."""

    group: str
    against: str
    cells: int
    geometric_mean: float
    worst: float
    worst_at: str


def against_paper(
    options: Options,
    *,
    models: Sequence[str] = tuple(MODELS),
    auxiliary: bool = True,
    all_methods: bool = False,
    published: Path | None = None,
) -> list[Cell]:
    """Measure on the paper's cells: those in the published table or, without one, all of them.

    all_methods: run every method with auxiliary data too, not just the first.
    """
    _check_methods(options.methods)
    for model in models:
        if model not in get_args(Model):
            raise ExperimentError(must("models", f"be of {[*MODELS]}", repr(model)))
    known = None if published is None else read_published(published)
    places = [
        _paper_place(case, options.methods, all_methods, known)
        for case in paper_cases(models, auxiliary=auxiliary)
        if known is None or key_of(case) in known
    ]
    if not places:
        raise ExperimentError(
            f"{published} must have some of the cells that were asked for; got none of experiment"
            f" sample_size_target with the models {', '.join(models)}"
        )
    return _measure(places, options)


def on_problems(options: Options) -> list[Cell]:
    """Measure on the simulated problems, both halves."""
    _check_methods(options.methods)
    check.whole_number(options.reps, what="reps on the problems", least=2)
    places = []
    for half, problems in (("tuned", TUNED), ("held out", HELD_OUT)):
        for name, environment in problems.items():
            for epsilon in PROBLEM_EPSILONS:
                for n in PROBLEM_SIZES:
                    setting = {"problem": name, "epsilon": epsilon, "n": n}
                    settings = {each: {"method": each, **setting} for each in options.methods}
                    places.append(Place(half, name, "", epsilon, n, environment, settings))
    return _measure(places, options)


def paper_cases(models: Sequence[str], *, auxiliary: bool) -> Iterator[Case]:
    """Yield the cells of the experiment over n_P, without and with auxiliary data."""
    for model in (each for each in MODELS if each in models):
        for epsilon_aux, n_aux in (NO_ROWS, *ROWS) if auxiliary else (NO_ROWS,):
            for epsilon in EPSILONS:
                for n in SIZES:
                    case = Case("sample_size_target", model, "honest", epsilon, n)
                    yield replace(case, epsilon_aux=epsilon_aux, n_aux=n_aux)


def _paper_place(
    case: Case, methods: tuple[str, ...], all_methods: bool, known: Mapping[Key, Mean] | None
) -> Place:
    rows = any(case.n_aux)
    sets = f"{len(case.n_aux)} × {case.n_aux[0]:,} rows at ε = {case.epsilon_aux[0]:g}"
    group = "auxiliary data" if rows else "no auxiliary data"
    return Place(
        f"{group}, {'ε ≤ 8' if case.epsilon <= 8 else f'ε = {case.epsilon:g}'}",
        case.model,
        sets if rows else "no auxiliary data",
        *(case.epsilon, case.n, MODELS[case.model]),
        {
            method: {"method": method, "case": asdict(_as_run(case, method))}
            for method in (methods if all_methods or not rows else methods[:1])
        },
        None if known is None else known[key_of(case)],
    )


def _as_run(case: Case, method: str) -> Case:
    """Leave empty sets out, but for the paper's method, whose depth cap counts them."""
    if any(case.n_aux) or method == "ldpmab":
        return case
    return replace(case, epsilon_aux=(), n_aux=())


def total_regret(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run of a sweep."""
    if "case" in setting:
        result = Case.of(setting["case"]).run(seed, method=setting["method"])
    else:
        result = simulate(
            PROBLEMS[setting["problem"]],
            method=setting["method"],
            epsilon=setting["epsilon"],
            n=setting["n"],
            seed=seed,
        )
    return {"regret": float(result.regret[-1])}


def _measure(places: list[Place], options: Options) -> list[Cell]:
    settings = [setting for place in places for setting in place.settings.values()]
    with tempfile.TemporaryDirectory() as folder:
        runs = sweep(
            total_regret,
            settings,
            reps=options.reps,
            path=options.out or Path(folder) / "runs.jsonl",
            workers=options.workers,
            engine=options.engine,
        )
    means = iter(_means(runs))
    worlds = {place.world: place.environment for place in places}
    at_random = {name: mean_of(losses_at_random(world).tolist()) for name, world in worlds.items()}
    cells = []
    for place in places:
        lost = {method: next(means) for method in place.settings}
        each = at_random[place.world]
        lost[RANDOM] = Mean(place.n * each.mean, place.n * each.sd, each.reps)
        if place.published is not None:
            lost[PUBLISHED] = place.published
        where = (place.group, place.world, place.auxiliary, place.epsilon, place.n)
        cells.append(Cell(*where, lost))
    return cells


def _means(runs: list[Run]) -> list[Mean]:
    """Average the runs of each setting, in the order of the settings."""
    values: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        values[run.setting].append(run.figures["regret"])
    return [mean_of(values[setting]) for setting in sorted(values)]


def summarise(cells: Sequence[Cell]) -> list[Summary]:
    """Sum up each group of cells against each other line; published means come first."""
    summaries = []
    for group in dict.fromkeys(cell.group for cell in cells):
        mine = [cell for cell in cells if cell.group == group]
        others = dict.fromkeys(name for cell in mine for name in cell.others)
        for other in sorted(others, key=lambda name: name != PUBLISHED):
            ratios = [(ratio, cell) for cell in mine if (ratio := cell.ratio(other)) is not None]
            if ratios:
                logs = [math.log(max(ratio, LEAST_RATIO)) for ratio, _ in ratios]
                geometric_mean = math.exp(math.fsum(logs) / len(logs))
                worst, cell = max(ratios, key=lambda pair: pair[0])
                summaries.append(
                    Summary(group, other, len(ratios), geometric_mean, worst, name_of(cell))
                )
    return summaries


def name_of(cell: Cell) -> str:
    """Name a cell on one line."""
    where = cell.world if not cell.auxiliary else f"{cell.world}, {cell.auxiliary}"
    return f"{where}, ε = {cell.epsilon:g}, n = {cell.n:,}"


def as_json(cells: Sequence[Cell]) -> dict[str, Any]:
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
    return {"mean": mean.mean, "standard_error": standard_error(mean), "reps": mean.reps}


def standard_error(mean: Mean) -> float | None:
    """Return the standard error of a mean; there is none for one run."""
    return None if mean.reps == 1 else mean.sd / math.sqrt(mean.reps)


def _error(mean: Mean) -> float:
    error = standard_error(mean)
    return math.nan if error is None else error


def _check_methods(methods: Sequence[str]) -> None:
    for method in methods:
        settings_from(method)
    if not methods or len(set(methods)) < len(methods):
        raise ExperimentError(must("methods", "be different names", ", ".join(methods) or "none"))
