"""A picture of an audit: what is claimed, and what was found."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sottovoce.lab.audit.tasks import Finding
from sottovoce.lab.pictures import COLOURS

_SHAPES = {"exact": ("D", COLOURS[2]), "attack": ("o", COLOURS[0]), "protocol": ("s", COLOURS[1])}
_BROKEN = COLOURS[5]


def draw_audit(findings: Sequence[Finding], path: Path) -> None:
    """Draw each finding as a share of its claim; what lies right of the line breaks it.

    There is a panel for each method, with a line for each case. The figure beside a point is ε.
    """
    shown = [each for each in findings if each.epsilon and each.bound is not None]
    methods: dict[str, list[Finding]] = {}
    for each in shown:
        methods.setdefault(each.method, []).append(each)
    lines = [len({each.case for each in found}) for found in methods.values()]
    figure = Figure(figsize=(9, 1.2 + 0.45 * len(lines) + 0.17 * sum(lines)), layout="constrained")
    # What is infinite stands at the edge.
    widest = 1.2 * max([1.0, *(_share(each) for each in shown if each.bound != math.inf)])
    panels = figure.subplots(
        max(1, len(methods)), 1, sharex=True, squeeze=False, height_ratios=lines or None
    )
    for axes, (method, found) in zip(panels[:, 0], methods.items(), strict=False):
        axes.set_title(method, fontsize=9, loc="left")
        _draw_method(axes, found, widest)
    panels[-1, 0].set_xlabel("what was found, as a share of the claimed ε (the line)")
    figure.legend(handles=_keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def _draw_method(axes: Axes, findings: Sequence[Finding], widest: float) -> None:
    cases = list(dict.fromkeys(each.case for each in findings))
    for each in findings:
        shape, colour = _SHAPES.get(each.kind, ("X", COLOURS[3]))
        place = (min(_share(each), widest), cases.index(each.case))
        axes.plot(
            *place,
            marker=shape,
            color=colour if each.kept else _BROKEN,
            markerfacecolor="none" if each.kind == "exact" else None,
            markersize=7 if each.kind == "exact" else 5,
        )
        axes.annotate(
            f"{each.epsilon:g}",
            place,
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=5,
            color="#666666",
        )
    axes.axvline(1.0, color="black")
    axes.set_yticks(range(len(cases)), cases, fontsize=7)
    axes.set(xlim=(-0.02, 1.02 * widest), ylim=(len(cases) - 0.5, -0.5))
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _share(finding: Finding) -> float:
    return (finding.bound or 0.0) / (finding.epsilon or 1.0)


def _keys() -> list[Line2D]:
    names = {
        "exact": "exact worst ratio",
        "attack": "attack on reports, lower bound",
        "protocol": "attack on the protocol, lower bound",
    }
    keys = [
        Line2D(
            [],
            [],
            marker=shape,
            color=colour,
            linestyle="none",
            label=names[kind],
            markerfacecolor="none" if kind == "exact" else None,
        )
        for kind, (shape, colour) in _SHAPES.items()
    ]
    return [*keys, Line2D([], [], marker="o", color=_BROKEN, linestyle="none", label="broken")]
