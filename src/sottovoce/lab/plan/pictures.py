"""A plan as a picture: who gets an arm that suits them, and when the gain shows."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from sottovoce.lab.pictures import COLOURS
from sottovoce.lab.plan.plan import MOST_PEOPLE_SUITED, Curve


def draw_plan(curves: Mapping[float, Curve], *, own: float, unit: str, path: Path) -> None:
    """Draw the curves of several ε, with the spread over worlds for the file's own."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (epsilon, curve) in enumerate(curves.items()):
        colour, mine = COLOURS[number % len(COLOURS)], epsilon == own
        label = f"ε = {epsilon:g}{' (the file)' if mine else ''}"
        width = 2.4 if mine else 1.3
        left.plot(curve.people, curve.suited[1], color=colour, lw=width, label=label)
        if mine:
            left.fill_between(
                curve.people, curve.suited[0], curve.suited[2], color=colour, alpha=0.15, lw=0
            )
        right.plot(curve.people, curve.gain, color=colour, lw=width, label=label)
        if mine:
            dotted = f"half of its interval, ε = {epsilon:g}"
            right.plot(curve.people, curve.width, color=colour, ls=":", lw=width, label=dotted)
    gains = [
        float(gain) for curve in curves.values() for gain in (curve.gain.min(), curve.gain.max())
    ]
    top = max(2 * max(gains), 1e-9)
    right.set_ylim(bottom=min(-0.1 * top, *gains), top=top)
    right.legend(frameon=False, loc="upper left")
    left.axhline(MOST_PEOPLE_SUITED, color="grey", ls="--", lw=1)
    left.set(xscale="log", ylim=(0, 1), xlabel="people who have come")
    left.set_title("Share of people whose arm suits them")
    left.legend(frameon=False, loc="lower right")
    right.axhline(0, color="grey", lw=1)
    right.set(xscale="log", xlabel="people who have come", ylabel=unit)
    right.set_title("Gain over the baseline, each person so far")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
