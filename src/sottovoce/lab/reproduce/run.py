"""Run an experiment of the paper, and leave a CSV, a PNG and an SVG for each model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sottovoce.lab.reproduce import cases as paper
from sottovoce.lab.reproduce import figures, process
from sottovoce.lab.reproduce.cases import MODELS, Case, Model, as_settings, total_regret
from sottovoce.lab.reproduce.table import Key, Mean, make_table, read_published, write_csv
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


@dataclass(frozen=True, slots=True)
class Curves:
    """An experiment of regret curves: its cases, and how they are laid out."""

    cases: Callable[[Model], list[Case]]
    plot: figures.Plot


def _n_aux(case: Case) -> float:
    return float(case.n_aux[0])


def _budget(case: Case) -> str:
    return f"ε_m = {case.epsilon_aux[0]:g}"


def _auxiliary_size(case: Case) -> str:
    return f"n_Q = 2 × {case.n_aux[0]:,}"


CURVES: dict[str, Curves] = {
    "n-target": Curves(
        paper.target_sizes,
        figures.Plot(
            title="Regret over the number of target users",
            x_label="n_P",
            x=lambda case: float(case.n),
            row=lambda case: "5000 rows at ε = 8" if any(case.n_aux) else "no auxiliary data",
            column=lambda case: f"ε = {case.epsilon:g}",
            colour=lambda case: "",
        ),
    ),
    "n-source": Curves(
        paper.source_sizes,
        figures.Plot(
            title="Regret over the number of auxiliary users (each of 2 sets), n_P = 80,000",
            x_label="n_Q",
            x=_n_aux,
            row=lambda case: f"ε = {case.epsilon:g}",
            column=lambda case: f"γ = {case.gamma:g}",
            colour=_budget,
        ),
    ),
    "kappa": Curves(
        paper.exploration,
        figures.Plot(
            title="Regret over the exploration coefficient, n_P = 40,000, ε = 2, γ = 0.2",
            x_label="κ",
            x=lambda case: case.kappa,
            row=lambda case: "",
            column=_budget,
            colour=_auxiliary_size,
        ),
    ),
    "gamma": Curves(
        paper.shift,
        figures.Plot(
            title="Regret over the covariate shift, n_P = 40,000, ε = 2",
            x_label="γ",
            x=lambda case: case.gamma,
            row=lambda case: "",
            column=_budget,
            colour=_auxiliary_size,
        ),
    ),
    "order": Curves(
        paper.order,
        figures.Plot(
            title="Regret with the better auxiliary set first or last",
            x_label="n_Q",
            x=_n_aux,
            row=lambda case: f"n_P = {case.n:,}",
            column=lambda case: f"ε = {case.epsilon:g}",
            colour=lambda case: "ε_m = 8 first" if case.epsilon_aux[0] == 8 else "ε_m = 2 first",
        ),
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
        as_settings(cases),
        reps=options.reps,
        path=path.with_suffix(".jsonl"),
        workers=options.workers,
        engine=options.engine,
    )
    if name == "process":
        figures.save(process.draw_process(model, runs, path), path)
        return
    rows = make_table(cases, runs, published)
    write_csv(rows, path.with_suffix(".csv"))
    figures.save(figures.draw(CURVES[name].plot, rows), path)
