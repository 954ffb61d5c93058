"""How a comparison on a log is printed."""

import math
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table

from sottovoce.cli.app import console, say

if TYPE_CHECKING:
    from sottovoce.lab.logs.comparison import LogComparison
    from sottovoce.lab.logs.values import Estimate


def show_log(found: "LogComparison") -> None:
    """Print the comparison: policies down, estimators across."""
    log = found.log
    say(
        f"{log.name}: {len(log):,} rows, {len(log.arms)} arms, ε = {found.epsilon:g};"
        f" propensities {log.source}"
    )
    say(f"features: {', '.join(feature.name for feature in log.schema)}")
    title = "mean reward, with 95 % intervals: while a method learned, and of its policy then"
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    table.add_column("policy", no_wrap=True)
    for name in ("learning", "people", "doubly robust", "inverse prop."):
        table.add_column(name, justify="right", no_wrap=True)
    for line in found.lines:
        values = line.values
        people = "" if line.people is None else f"{line.people:,}"
        cells = ["", ""]
        if values is not None:
            cells = [_interval(each) for each in (values.dr, values.ips)]
        name = f"{line.name}: {found.best}" if line.name.startswith("best") else line.name
        table.add_row(escape(name), _interval(line.learning), people, *cells)
    console.print(table)
    for warning in found.warnings:
        say(f"Note: {warning}")


def _interval(found: "Estimate | None") -> str:
    if found is None:
        return ""
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return "not known"
    digits = 3 if half == 0 else min(max(1 - math.floor(math.log10(half)), 0), 4)
    return f"{found.value:.{digits}f} ± {half:.{digits}f}"
