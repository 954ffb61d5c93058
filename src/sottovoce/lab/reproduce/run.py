"""Run an experiment of the paper, and leave a CSV, a PNG and an SVG for each model."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from sottovoce.lab.means import Mean
from sottovoce.lab.reproduce import cases as paper
from sottovoce.lab.reproduce import figures, process
from sottovoce.lab.reproduce.cases import MODELS, Case, Model, total_regret
from sottovoce.lab.reproduce.table import (
    COLUMNS,
    Key,
    as_line,
    make_table,
    read_published,
    write_csv,
)
from sottovoce.lab.sweeps import Engine, sweep
from sottovoce.shared.errors import ExperimentError, must


@dataclass(frozen=True, slots=True)
class Options:
    """How an experiment is run."""

    reps: int
    out: Path
    published: Path | None
    workers: int
    engine: Engine


BUDGET = "ε_m = {0.epsilon_aux[0]:g}".format
SETS = "n_Q = 2 × {0.n_aux[0]:,}".format
EPSILON = "ε = {0.epsilon:g}".format


def _n_aux(case: Case) -> float:
    return float(case.n_aux[0])


CURVES: dict[str, figures.Plot] = {
    "n-target": figures.Plot(
        paper.target_sizes,
        "Regret over the number of target users",
        *("n_P", lambda case: float(case.n)),
        row=lambda case: "5000 rows at ε = 8" if any(case.n_aux) else "no auxiliary data",
        column=EPSILON,
    ),
    "n-source": figures.Plot(
        paper.source_sizes,
        "Regret over the number of auxiliary users (each of 2 sets), n_P = 80,000",
        *("n_Q", _n_aux),
        row=EPSILON,
        column="γ = {0.gamma:g}".format,
        colour=BUDGET,
    ),
    "kappa": figures.Plot(
        paper.exploration,
        "Regret over the exploration coefficient, n_P = 40,000, ε = 2, γ = 0.2",
        *("κ", lambda case: case.kappa),
        column=BUDGET,
        colour=SETS,
    ),
    "gamma": figures.Plot(
        paper.shift,
        "Regret over the covariate shift, n_P = 40,000, ε = 2",
        *("γ", lambda case: case.gamma),
        column=BUDGET,
        colour=SETS,
    ),
    "order": figures.Plot(
        paper.order,
        "Regret with the better auxiliary set first or last",
        *("n_Q", _n_aux),
        row="n_P = {0.n:,}".format,
        column=EPSILON,
        colour="ε_m = {0.epsilon_aux[0]:g} first".format,
    ),
}

NAMES = ["process", *CURVES, "rewards", "densities"]


def reproduce(name: str, options: Options) -> list[Path]:
    """Reproduce one experiment; return the pictures it left."""
    if name not in NAMES:
        raise ExperimentError(
            must("the experiment", f"be one of {NAMES}, table or all", repr(name))
        )
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"{options.out} must be a folder to write to; {error}") from error
    if name == "densities":
        _show_surfaces(figures.densities(), options.out / name)
        return [options.out / f"{name}.png"]
    # Read before any work, so that a wrong file costs nothing.
    published = {} if options.published is None else read_published(options.published)
    left = []
    for model in MODELS:
        path = options.out / f"{name}-{model}"
        _reproduce_model(name, model, path, options, published)
        left.append(path.with_name(f"{path.name}.png"))
    return left


def _show_surfaces(shown: figures.Surfaces, path: Path) -> None:
    figures.write_surfaces(shown, path.with_suffix(".csv"))
    figures.save(figures.draw_surfaces(shown), path)


def _reproduce_model(
    name: str, model: Model, path: Path, options: Options, published: Mapping[Key, Mean]
) -> None:
    if name == "rewards":
        _show_surfaces(figures.rewards(model), path)
        return
    if name == "process":
        cases, task = process.cases(model), process.average_regrets
    else:
        cases, task = CURVES[name].cases(model), total_regret
    runs = sweep(
        task,
        [asdict(case) for case in cases],
        reps=options.reps,
        path=path.with_suffix(".jsonl"),
        workers=options.workers,
        engine=options.engine,
    )
    if name == "process":
        figures.save(process.draw_process(model, runs, path), path)
        return
    rows = make_table(cases, runs, published)
    write_csv(path.with_suffix(".csv"), COLUMNS, map(as_line, rows))
    figures.save(figures.draw(CURVES[name], rows), path)
