"""Pictures of what was learned."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from sottovoce.lab.environments import Floats
from sottovoce.server.extents import extents_of
from sottovoce.server.formatting import Scale, scales
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.release import Release

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
    """Draw the partition of an experiment with two axes beside its learning curve, as a PNG.

    boundary: the true line between two arms, on [0, 1].
    """
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_partition(left, release)
    horizontal, vertical = _two_scales(release)
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
    """Draw the bins of an experiment with two axes: settled in their arm's colour, others grey.

    A set of levels that are no neighbours is drawn as several rectangles.
    """
    across, up = _two_scales(release)
    for policy in release.bins:
        colour = COLOURS[policy.arms[0] % len(COLOURS)] if policy.settled else CONTESTED
        pieces = (extent.pieces for extent in extents_of(release, policy.path))
        for (left, right), (low, high) in itertools.product(*pieces):
            corner = (_on_scale(across, left), _on_scale(up, low))
            width, height = _on_scale(across, right) - corner[0], _on_scale(up, high) - corner[1]
            axes.add_patch(Rectangle(corner, width, height, facecolor=colour, edgecolor="white"))
    axes.set(
        xlim=(_on_scale(across, 0), _on_scale(across, 1)),
        ylim=(_on_scale(up, 0), _on_scale(up, 1)),
        xlabel=across.name,
        ylabel=up.name,
        title=f"Release {release.version}: which arm suits whom",
    )
    for axis, scale in ((axes.xaxis, across), (axes.yaxis, up)):
        if count := len(scale.places):
            axis.set_ticks([(place + 0.5) / count for place in range(count)], scale.places)


def _two_scales(release: Release) -> tuple[Scale, Scale]:
    found = scales(release.experiment)
    if len(found) != 2:
        raise ExperimentError(must("an experiment that is drawn", "have two axes", len(found)))
    return found[0], found[1]


def _on_scale(scale: Scale, position: float) -> float:
    """Place a position of [0, 1] on a number's own scale; levels stay as they are."""
    if scale.number is not None:
        return scale.number.low + position * (scale.number.high - scale.number.low)
    return position


def _keys(release: Release) -> list[Patch]:
    """Say what the colours mean."""
    arms = enumerate(release.experiment.arms)
    keys = [Patch(color=COLOURS[k % len(COLOURS)], label=arm) for k, arm in arms]
    return [*keys, Patch(facecolor=CONTESTED, edgecolor="grey", label="not decided yet")]
