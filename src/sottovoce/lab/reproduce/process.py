"""The learning process: one point and the whole square, with and without auxiliary data."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sottovoce.estimate.history import Elimination
from sottovoce.lab.means import mean_of
from sottovoce.lab.pictures import COLOURS
from sottovoce.lab.reproduce.cases import LINES, MODELS, Case, Model
from sottovoce.lab.reproduce.figures import draw_means, in_thousands
from sottovoce.lab.reproduce.table import write_csv
from sottovoce.lab.simulation import Result
from sottovoce.lab.sweeps import Run, seed_of

POINT = (1 / 3, 1 / 3)
PEOPLE, ROWS = 10_000, 500

KINDS: dict[str, dict[str, Any]] = {
    "without auxiliary data": {},
    "effective auxiliary data": {"epsilon_aux": (8.0,), "n_aux": (ROWS,), "gamma": 0.0},
    "weak auxiliary data": {"epsilon_aux": (0.5,), "n_aux": (ROWS,), "gamma": 5.0},
}


def cases(model: Model) -> list[Case]:
    """ε = 1, releases every 10 people: the paper's illustrative example.

    Its caption says n_P = 1000; the authors' logs have 10,000 people in 1000 batches of 10.
    """
    return [
        replace(Case("process", model, line, 1.0, PEOPLE, release_every=10), **kind)
        for line in LINES
        for kind in KINDS.values()
    ]


def average_regrets(setting: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Make one run; the figures are the average regrets at each release."""
    result = Case.of(setting).run(seed, points=[POINT])
    figures = {}
    for people, lost, local in zip(
        result.people, result.regret, result.local_regret[:, 0], strict=True
    ):
        figures[f"global {people}"] = lost / people
        figures[f"local {people}"] = local / people
    return figures


def draw_process(model: Model, runs: list[Run], path: Path) -> Figure:
    """Global and local average regret over all runs; arms and eliminations of the first one."""
    every = cases(model)
    figure = Figure(figsize=(11, 11), layout="constrained")
    panels = figure.subplots(4, len(KINDS), sharex=True)
    table = []
    for index, case in enumerate(every):
        column = index % len(KINDS)
        mine = [run.figures for run in runs if run.setting == index]
        for row, name in enumerate(("global", "local")):
            keys = sorted(
                (key for key in mine[0] if key.startswith(name)), key=lambda k: int(k.split()[1])
            )
            people = [int(key.split()[1]) for key in keys]
            averages = [mean_of([figures[key] for figures in mine]) for key in keys]
            axes, label = panels[row][column], LINES[case.line]
            draw_means(axes, people, averages, case.line, alpha=0.2, label=label)
            axes.spines[["top", "right"]].set_visible(False)
            for count, average in zip(people, averages, strict=True):
                kind = list(KINDS)[column]
                low, high = average.mean - average.half_width, average.mean + average.half_width
                numbers = [f"{number:.4f}" for number in (average.mean, low, high)]
                table.append([case.line, kind, name, count, average.reps, *numbers])
        result = case.run(seed_of(asdict(case), 0), points=[POINT])
        _draw_arms(panels[2 + index // len(KINDS)][column], result)
    for row in range(2):
        top = max(axes.get_ylim()[1] for axes in panels[row])
        for axes in panels[row]:
            axes.set_ylim(0, top)
    for column, name in enumerate(KINDS):
        panels[0][column].set_title(name)
        panels[3][column].set_xlabel("people")
        panels[3][column].xaxis.set_major_formatter(in_thousands)
    labels = (
        "average regret",
        "average regret at (1/3, 1/3)",
        *(f"arms at (1/3, 1/3)\n{line} noise" for line in LINES),
    )
    for row, label in enumerate(labels):
        panels[row][0].set_ylabel(label)
    panels[0][0].legend(frameon=False, fontsize=8)
    best = int(MODELS[model].means(np.array([POINT]))[0].argmax())
    panels[2][0].legend(loc="lower left", fontsize=8, title=f"best: {result.experiment.arms[best]}")
    figure.suptitle(
        f"Learning process, {model} model, ε = 1: means with 95 % bands; arms of a single run,\n"
        "with a line where one of them was eliminated at the point"
    )
    head = ["line", "auxiliary", "regret", "people", "reps", "average", "low", "high"]
    write_csv(path.with_suffix(".csv"), head, table)
    return figure


def _draw_arms(axes: Axes, result: Result) -> None:
    """How often each arm was pulled at the point, and when one was eliminated there."""
    ratios = result.arm_ratios[:, 0]
    axes.stackplot(
        result.people, ratios.T, colors=COLOURS[: ratios.shape[1]], labels=result.experiment.arms
    )
    before = sum(population.users for population in result.experiment.auxiliary)
    home = result.release.partition.find(POINT)
    for dated in result.history:
        if isinstance(dated.event, Elimination) and home.startswith(dated.event.path):
            axes.axvline(max(0, dated.reports - before), color="black", linestyle="--", linewidth=1)
    axes.set(ylim=(0, 1), xlim=(0, result.people[-1]))
