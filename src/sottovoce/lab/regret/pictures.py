"""What ``bench regret`` draws: each method's share of what arms at random lose, over n."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sottovoce.lab.pictures import COLOURS
from sottovoce.lab.regret.cells import PUBLISHED, RANDOM, RegretCell
from sottovoce.shared.errors import ExperimentError, must

_PRINTED = {
    PUBLISHED: "published (made with leaking noise)",
    "ldpmab": "ldpmab, honest noise",
    "whisper": "whisper, honest noise",
}


def draw_cells(cells: Sequence[RegretCell], path: Path) -> None:
    """Draw a panel for each model and ε: the cells without auxiliary data."""
    plain = [cell for cell in cells if cell.auxiliary == "no auxiliary data"]
    worlds = list(dict.fromkeys(cell.world for cell in plain))
    epsilons = sorted({cell.epsilon for cell in plain})
    figure = Figure(figsize=(3 * len(epsilons), 3 * len(worlds) + 0.6), layout="constrained")
    panels = figure.subplots(len(worlds), len(epsilons), squeeze=False, sharey=True, sharex=True)
    for row, world in enumerate(worlds):
        for column, epsilon in enumerate(epsilons):
            axes = panels[row, column]
            mine = [cell for cell in plain if (cell.world, cell.epsilon) == (world, epsilon)]
            _draw_panel(axes, sorted(mine, key=lambda cell: cell.n))
            axes.set_title(f"{world}, ε = {epsilon:g}", fontsize=10)
            if row == len(worlds) - 1:
                axes.set_xlabel("people, thousands")
        panels[row, 0].set_ylabel("lost, as a share of random")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise ExperimentError(must("a picture", "be a file that can be written", error)) from error


def _draw_panel(axes: Axes, cells: Sequence[RegretCell]) -> None:
    names = [name for name in dict.fromkeys(n for c in cells for n in c.lost) if name != RANDOM]
    for index, name in enumerate(names):
        mine = [cell for cell in cells if name in cell.lost]
        sizes = [cell.n / 1000 for cell in mine]
        means = [cell.lost[name].mean / cell.lost[RANDOM].mean for cell in mine]
        colour = "black" if name == PUBLISHED else COLOURS[index]
        style = ":" if name == PUBLISHED else "-"
        axes.plot(sizes, means, style, color=colour, marker=".", label=_PRINTED.get(name, name))
        if name != PUBLISHED:
            spread = [cell.lost[name].half_width / cell.lost[RANDOM].mean for cell in mine]
            low = [mean - half for mean, half in zip(means, spread, strict=True)]
            high = [mean + half for mean, half in zip(means, spread, strict=True)]
            axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.axhline(1, color="grey", linestyle="--", linewidth=1, label="arms at random")
    axes.set_xscale("log")
    axes.set_xticks([10, 40, 160], ["10", "40", "160"])
    axes.minorticks_off()
    axes.set_ylim(0, 1.3)
    axes.spines[["top", "right"]].set_visible(False)
