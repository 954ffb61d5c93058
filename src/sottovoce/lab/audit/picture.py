"""A picture of an audit: what is claimed, and what was found."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sottovoce.lab.audit.tasks import Finding
from sottovoce.lab.pictures import COLOURS

_SHAPES = {"exact": ("D", COLOURS[2]), "attack": ("o", COLOURS[0]), "protocol": ("s", COLOURS[1])}
_BROKEN = COLOURS[5]


def draw_audit(findings: Sequence[Finding], path: Path) -> None:
    """Draw each finding as a share of its claim; what lies right of the line breaks it."""
    shown = [each for each in findings if each.epsilon and each.bound is not None]
    # What is infinite stands at the edge.
    widest = 1.25 * max([1.0, *(_share(each) for each in shown if each.bound != float("inf"))])
    labels = list(dict.fromkeys(_label(each) for each in shown))
    figure = Figure(figsize=(10, 1.5 + 0.22 * len(labels)), layout="constrained")
    axes = figure.subplots()
    for each in shown:
        shape, colour = _SHAPES.get(each.kind, ("X", COLOURS[3]))
        axes.plot(
            min(_share(each), widest),
            labels.index(_label(each)),
            marker=shape,
            color=colour if each.kept else _BROKEN,
            markerfacecolor="none" if each.kind == "exact" else None,
            markersize=9 if each.kind == "exact" else 6,
        )
    axes.axvline(1.0, color="black")
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.set(xlim=(0, 1.02 * widest), ylim=(len(labels) - 0.5, -0.5))
    axes.set_xlabel("what was found, as a share of the claimed ε (the line)")
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        handles=_keys(),
        loc="upper center",
        bbox_to_anchor=(0.4, 1.0),
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    figure.savefig(path, dpi=150)


def _share(finding: Finding) -> float:
    return (finding.bound or 0.0) / (finding.epsilon or 1.0)


def _label(finding: Finding) -> str:
    return f"{finding.method}, ε = {finding.epsilon:g}: {finding.case}"


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
