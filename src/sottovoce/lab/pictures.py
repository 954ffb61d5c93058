"""Pictures of what was learned."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from sottovoce.lab.environments import Floats
from sottovoce.shared.release import Release
from sottovoce.shared.schema import Feature, Numeric

# Okabe and Ito's palette: told apart by colour-blind readers and in grey print.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"]
CONTESTED = "#f2f2f2"


def draw_learning(
    release: Release,
    *,
    regret: Floats,
    random_regret: float,
    boundary: Callable[[Floats], Floats],
    path: Path,
) -> None:
    """Draw the partition of a two-feature experiment beside its learning curve, as a PNG.

    boundary: the true line between two arms, on [0, 1].
    """
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_partition(left, release)
    horizontal, vertical = release.experiment.context
    line = np.linspace(0, 1, 101)
    left.plot(
        [_on_scale(horizontal, position) for position in line],
        [_on_scale(vertical, position) for position in boundary(line)],
        color="black",
        linestyle="--",
        label="the truth",
    )
    left.legend(
        handles=[*_keys(release), left.lines[0]],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        ncols=4,
        frameon=False,
    )
    people = np.arange(1, len(regret) + 1)
    right.plot(people, np.cumsum(regret), color="black", label="Sottovoce")
    right.plot(people, random_regret * people, color="grey", linestyle="--", label="at random")
    right.set(xlabel="people", ylabel="reward lost so far against the best arm")
    right.set_title("Learning curve")
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def draw_partition(axes: Axes, release: Release) -> None:
    """Draw the bins of a two-feature experiment: settled in their arm's colour, others grey."""
    experiment = release.experiment
    horizontal, vertical = experiment.context
    for policy in release.bins:
        (left, right), (low, high) = release.partition.box(policy.path)
        colour = COLOURS[policy.arms[0] % len(COLOURS)] if policy.settled else CONTESTED
        corner = (_on_scale(horizontal, left), _on_scale(vertical, low))
        width, height = (
            _on_scale(horizontal, right) - corner[0],
            _on_scale(vertical, high) - corner[1],
        )
        axes.add_patch(Rectangle(corner, width, height, facecolor=colour, edgecolor="white"))
    axes.set(
        xlim=(_on_scale(horizontal, 0), _on_scale(horizontal, 1)),
        ylim=(_on_scale(vertical, 0), _on_scale(vertical, 1)),
        xlabel=horizontal.name,
        ylabel=vertical.name,
        title=f"Release {release.version}: which arm suits whom",
    )


def _on_scale(feature: Feature, position: float) -> float:
    """Place a position of [0, 1] on a number's own scale; levels stay as they are."""
    if isinstance(feature, Numeric):
        return feature.low + position * (feature.high - feature.low)
    return position


def _keys(release: Release) -> list[Patch]:
    """Say what the colours mean."""
    arms = enumerate(release.experiment.arms)
    keys = [Patch(color=COLOURS[k % len(COLOURS)], label=arm) for k, arm in arms]
    return [*keys, Patch(facecolor=CONTESTED, edgecolor="grey", label="not decided yet")]
