"""Pictures of what was learned."""

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only: no window is ever opened

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
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
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    draw_partition(left, release)
    horizontal, vertical = release.experiment.context
    line = np.linspace(0, 1, 101)
    left.plot(
        [_raw(horizontal, position) for position in line],
        [_raw(vertical, position) for position in boundary(line)],
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
    plt.close(figure)


def draw_partition(axes: Axes, release: Release) -> None:
    """Draw the bins of a two-feature experiment: settled in their arm's colour, others grey."""
    experiment = release.experiment
    horizontal, vertical = experiment.context
    for policy in release.bins:
        (left, right), (low, high) = release.partition.box(policy.path)
        colour = COLOURS[policy.arms[0] % len(COLOURS)] if policy.settled else CONTESTED
        corner = (_raw(horizontal, left), _raw(vertical, low))
        width, height = _raw(horizontal, right) - corner[0], _raw(vertical, high) - corner[1]
        axes.add_patch(Rectangle(corner, width, height, facecolor=colour, edgecolor="white"))
    axes.set(
        xlim=(_raw(horizontal, 0), _raw(horizontal, 1)),
        ylim=(_raw(vertical, 0), _raw(vertical, 1)),
        xlabel=horizontal.name,
        ylabel=vertical.name,
        title=f"Release {release.version}: which arm suits whom",
    )


def _keys(release: Release) -> list[Patch]:
    """Say what the colours mean."""
    arms = enumerate(release.experiment.arms)
    keys = [Patch(color=COLOURS[k % len(COLOURS)], label=arm) for k, arm in arms]
    return [*keys, Patch(facecolor=CONTESTED, edgecolor="grey", label="not decided yet")]


def _raw(feature: Feature, position: float) -> float:
    """Place a number on its own scale, and levels on [0, 1]."""
    if isinstance(feature, Numeric):
        return feature.low + position * (feature.high - feature.low)
    return position
