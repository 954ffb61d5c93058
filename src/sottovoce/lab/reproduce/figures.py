"""Pictures worth printing: panels of regret curves with 95 % confidence bands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sottovoce.lab.environments import Floats, Shifted, regret_at_random
from sottovoce.lab.means import Mean
from sottovoce.lab.pictures import COLOURS
from sottovoce.lab.reproduce.cases import LINES, MODELS, PUBLISHED, Case, Model
from sottovoce.lab.reproduce.table import Row, write_csv

STYLES: dict[str, dict[str, Any]] = {
    "published": {"linestyle": ":", "marker": "o", "markersize": 4},
    "leaking": {"linestyle": "--"},
    "honest": {"linestyle": "-"},
}
LINE_COLOURS = {"published": "black", "leaking": COLOURS[1], "honest": COLOURS[0]}
"""For panels with one curve of each kind, where colour is free to tell the kinds apart."""

RANDOM: dict[str, Any] = {"color": "#aaaaaa", "linewidth": 1, "linestyle": (0, (1, 1))}


@dataclass(frozen=True, slots=True)
class Plot:
    """An experiment of regret curves: its cases, and how they are laid out.

    x: what runs along the horizontal axis; row, column: the panel; colour: the curve.
    """

    cases: Callable[[Model], list[Case]]
    title: str
    x_label: str
    x: Callable[[Case], float]
    column: Callable[[Case], str]
    row: Callable[[Case], str] = "".format
    colour: Callable[[Case], str] = "".format


def draw(plot: Plot, rows: list[Row]) -> Figure:
    """Draw one experiment for one model."""
    row_names = list(dict.fromkeys(plot.row(row.case) for row in rows))
    column_names = list(dict.fromkeys(plot.column(row.case) for row in rows))
    colour_names = list(dict.fromkeys(plot.colour(row.case) for row in rows))
    figure = Figure(
        figsize=(max(9.0, 3.1 * len(column_names) + 0.6), 2.7 * len(row_names) + 1.6),
        layout="constrained",
    )
    panels = figure.subplots(len(row_names), len(column_names), squeeze=False, sharex=True)
    for i, row_name in enumerate(row_names):
        for j, column_name in enumerate(column_names):
            axes = panels[i][j]
            here = [
                row
                for row in rows
                if (plot.row(row.case), plot.column(row.case)) == (row_name, column_name)
            ]
            for k, colour_name in enumerate(colour_names):
                curve = [row for row in here if plot.colour(row.case) == colour_name]
                colour = COLOURS[k % len(COLOURS)] if len(colour_names) > 1 else None
                _draw_curves(axes, plot, curve, colour)
            # The curves set the scale; what arms at random lose may leave the panel.
            axes.set_ylim(0, axes.get_ylim()[1])
            _draw_random(axes, plot, here)
            axes.set_title(", ".join(filter(None, (row_name, column_name))), fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
            axes.xaxis.set_major_formatter(in_thousands)
            axes.yaxis.set_major_formatter(in_thousands)
            if i == len(row_names) - 1:
                axes.set_xlabel(plot.x_label)
            if j == 0:
                axes.set_ylabel("regret")
    _legend(figure, colour_names, rows)
    figure.suptitle(f"{plot.title}\n{rows[0].case.model} model")
    return figure


def in_thousands(value: float, _: object) -> str:
    """Write 20000 as 20k."""
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def _draw_curves(axes: Axes, plot: Plot, rows: list[Row], colour: str | None) -> None:
    for line in LINES:
        mine = sorted((r for r in rows if r.case.line == line), key=lambda r: plot.x(r.case))
        if mine:
            x = [plot.x(row.case) for row in mine]
            draw_means(axes, x, [row.regret for row in mine], line, colour)
    known = {plot.x(row.case): row.published for row in rows if row.published is not None}
    if known:
        x = sorted(known)
        draw_means(axes, x, [known[each] for each in x], "published", colour)


def draw_means(
    axes: Axes,
    x: Sequence[float],
    means: Sequence[Mean],
    style: str,
    colour: str | None = None,
    *,
    alpha: float = 0.15,
    label: str | None = None,
) -> None:
    """Draw means with their 95 % band; ``colour`` is that of the style if nobody says."""
    middle = np.array([mean.mean for mean in means])
    half = np.array([mean.half_width for mean in means])
    colour = colour or LINE_COLOURS[style]
    axes.plot(x, middle, color=colour, label=label, **STYLES[style])
    axes.fill_between(x, middle - half, middle + half, color=colour, alpha=alpha, linewidth=0)


def _draw_random(axes: Axes, plot: Plot, rows: list[Row]) -> None:
    """Draw what arms at random would lose."""
    lost = regret_at_random(MODELS[rows[0].case.model])
    people = {plot.x(row.case): row.case.n for row in rows}
    x = sorted(people)
    axes.plot(x, [lost * people[each] for each in x], **RANDOM)


def _legend(figure: Figure, colours: list[str], rows: list[Row]) -> None:
    keys = []
    if len(colours) > 1:
        keys += [
            Line2D([], [], color=COLOURS[k % len(COLOURS)], linewidth=4, label=name)
            for k, name in enumerate(colours)
        ]
    names: dict[str, str] = {str(line): name for line, name in LINES.items()}
    if any(row.published for row in rows):
        names["published"] = PUBLISHED
    for style, name in names.items():
        colour = "black" if len(colours) > 1 else LINE_COLOURS[style]
        keys.append(Line2D([], [], color=colour, label=name, **STYLES[style]))
    keys.append(Line2D([], [], label="arms at random", **RANDOM))
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def save(figure: Figure, path: Path) -> None:
    """Leave a PNG and an SVG, without dates or random names: the same figure is the same file."""
    figure.savefig(path.with_suffix(".png"), dpi=160)
    with rc_context({"svg.hashsalt": "sottovoce"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


@dataclass(frozen=True, slots=True)
class Surfaces:
    """Functions over the square: ``values`` maps (n, 2) points to one row for each title."""

    title: str
    titles: list[str]
    values: Callable[[Floats], Floats]


def rewards(model: Model) -> Surfaces:
    """Return f_k of each arm."""
    environment = MODELS[model]
    return Surfaces(
        f"Reward functions, {model} model",
        [f"arm {k + 1}" for k in range(environment.arms)],
        lambda points: environment.means(points).T,
    )


def densities() -> Surfaces:
    """Return the density of auxiliary contexts for three γ."""
    gammas = (0.2, 1.0, 2.0)
    worlds = [Shifted(MODELS["exponential"], gamma) for gamma in gammas]
    return Surfaces(
        r"Density of auxiliary contexts, $2^\gamma\frac{d+\gamma}{d}\|x-1/2\|_\infty^\gamma$",
        [f"γ = {gamma:g}" for gamma in gammas],
        lambda points: np.stack([world.density(points) for world in worlds]),
    )


def _square(size: int) -> Floats:
    grid = (np.arange(size) + 0.5) / size
    return np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)


def write_surfaces(shown: Surfaces, path: Path) -> None:
    """Write the values on a grid of 50 × 50 points."""
    points = _square(50)
    values = np.column_stack([points, shown.values(points).T]).round(6).tolist()
    write_csv(path, ["x1", "x2", *shown.titles], values)


def draw_surfaces(shown: Surfaces) -> Figure:
    """Draw the values as colours."""
    titles = shown.titles
    surfaces = shown.values(_square(200)).reshape(len(titles), 200, 200)
    figure = Figure(figsize=(3.4 * len(titles) + 0.8, 3.6), layout="constrained")
    panels = figure.subplots(1, len(titles), squeeze=False)[0]
    for axes, surface, name in zip(panels, surfaces, titles, strict=True):
        image = axes.imshow(
            surface,
            origin="lower",
            extent=(0, 1, 0, 1),
            cmap="viridis",
            vmin=0,
            vmax=surfaces.max(),
        )
        axes.set(title=name, xlabel="x¹", ylabel="x²")
    figure.colorbar(image, ax=panels.tolist())
    figure.suptitle(shown.title)
    return figure
