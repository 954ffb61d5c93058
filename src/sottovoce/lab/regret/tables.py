"""What ``bench regret`` prints, in 80 columns."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sottovoce.lab.means import Mean
from sottovoce.lab.regret.cells import PUBLISHED, RANDOM, RegretCell, name_of, summarise
from sottovoce.lab.regret.worlds import Shared

SHARE = "regret as a share of what arms at random lose"


def paper_tables(cells: Sequence[RegretCell]) -> Iterator[Group]:
    """Yield a table for each model and auxiliary setting: ε and lines down, n across."""
    for (world, auxiliary), group in groupby(cells, key=lambda cell: (cell.world, cell.auxiliary)):
        mine = list(group)
        sizes = sorted({cell.n for cell in mine})
        judged, yardstick = next(iter(mine[0].lost)), _yardstick(mine[0])
        title = f"{world}, {auxiliary}: regret; ratio of {judged} to {yardstick}"
        table = new_table("ε", "n")
        for n in sizes:
            table.add_column(f"{n / 1000:g}k", justify="right", no_wrap=True)
        for epsilon, row in groupby(mine, key=lambda cell: cell.epsilon):
            by_size = {cell.n: cell for cell in row}
            lines = _lines([by_size.get(n) for n in sizes])
            for number, (name, *figures) in enumerate(lines):
                table.add_row("" if number else f"{epsilon:g}", name, *figures)
            table.add_section()
        yield Group(Text(title, style="bold"), table, "")


def _lines(cells: list[RegretCell | None]) -> Iterator[list[str]]:
    """Yield the lines of one ε: each method with its standard error, the others, the ratio."""
    names = dict.fromkeys(name for cell in cells if cell for name in cell.lost)
    for name in names:
        means = [cell.lost.get(name) if cell else None for cell in cells]
        yield [name, *("" if mean is None else f"{mean.mean:,.0f}" for mean in means)]
        if name not in (RANDOM, PUBLISHED):
            yield ["  ±", *(_error(mean) for mean in means)]
    yield ["ratio", *(_ratio(cell) for cell in cells)]


def _yardstick(cell: RegretCell) -> str:
    return PUBLISHED if PUBLISHED in cell.lost else RANDOM


def _error(mean: Mean | None) -> str:
    error = None if mean is None else mean.standard_error
    return "" if error is None else f"{error:,.0f}"


def _ratio(cell: RegretCell | None) -> str:
    ratio = None if cell is None else cell.ratio(_yardstick(cell))
    return "" if ratio is None else f"{ratio:.2f}"


def problem_tables(cells: Sequence[RegretCell]) -> Iterator[Group]:
    """Yield one table: problems and ε down, n and methods across."""
    methods = cells[0].methods
    table = new_table("problem", "ε")
    for n in sorted({cell.n for cell in cells}):
        for method in methods:
            table.add_column(f"{method}\nn = {n:,}", justify="right", no_wrap=True)
    for world, rows in groupby(cells, key=lambda cell: cell.world):
        for number, (epsilon, row) in enumerate(groupby(rows, key=lambda cell: cell.epsilon)):
            shares = [share_of_random(cell, method) for cell in row for method in methods]
            table.add_row("" if number else world, f"{epsilon:g}", *shares)
        table.add_section()
    yield Group(Text(f"{cells[0].group}: {SHARE}", style="bold"), table, "")


def share_of_random(cell: RegretCell, method: str) -> str:
    """Write a share of random with its standard error; marked where the method is worse."""
    mean, error = cell.lost[method].mean, cell.lost[method].standard_error or 0.0
    if cell.nothing_to_lose:
        return f"{mean:,.0f} in all"
    mark = " !" if cell.lost[method] is cell.judged and cell.worse_than() else ""
    at_random = cell.lost[RANDOM].mean
    return f"{mean / at_random:.2f} ±{error / at_random:.2f}{mark}"


def summary_lines(cells: Sequence[RegretCell]) -> Iterator[str]:
    """Yield a line for each group and yardstick."""
    judged = next(iter(cells[0].lost))
    for each in summarise(cells):
        yield (
            f"{each.group}, {judged} / {each.against}: geometric mean {each.geometric_mean:.3f}"
            f" over {each.cells} cells, worst {each.worst:.2f} ({each.worst_at})"
        )


def warnings(cells: Sequence[RegretCell]) -> Iterator[str]:
    """Yield a line for each cell in which the first method is worse than another line."""
    judged = next(iter(cells[0].lost))
    found = False
    for cell in cells:
        for other in cell.worse_than():
            found = True
            yield (
                f"! {judged} is worse than {other}: {name_of(cell)} ({cell.group}),"
                f" {_plus_minus(cell.judged)} against {_plus_minus(cell.lost[other])}"
            )
    if not found:
        yield f"{judged} is nowhere worse by more than the standard error of the difference."


def _plus_minus(mean: Mean) -> str:
    return f"{mean.mean:,.0f} ± {mean.standard_error or 0:,.0f}"


def world_tables(found: Sequence[Shared]) -> Iterator[Group]:
    """Yield one table: worlds and ε down; the share of random, its limit and whether it holds."""
    methods = list(dict.fromkeys(each.method for each in found))
    several = len(methods) > 1
    table = new_table("world", "ε", *(("method",) if several else ()), "share", "limit", "holds")
    for world, rows in groupby(found, key=lambda each: each.world):
        for number, each in enumerate(sorted(rows, key=lambda each: each.epsilon)):
            where = ["" if number else world, f"{each.epsilon:g}"]
            holds = {True: "yes", False: "NO", None: ""}[each.holds]
            method = [each.method] if several else []
            table.add_row(*where, *method, _share(each), _allowed(each), holds)
        table.add_section()
    yield Group(Text(f"{', '.join(methods)}: {SHARE}", style="bold"), table, "")


def limit_lines(found: Sequence[Shared]) -> Iterator[str]:
    """Yield a line for each limit that does not hold, and how many do."""
    for each in found:
        if each.limit is not None and not each.holds:
            of = "" if each.limit.of is None else f" = {each.limit.most:g} × {each.limit.of}"
            yield (
                f"! {each.method} loses more than its limit: {each.world}, ε = {each.epsilon:g},"
                f" {_share(each)} against {each.allowed:.3f}{of}"
            )
    with_limit = [each for each in found if each.limit is not None]
    yield f"{sum(each.holds is True for each in with_limit)} of {len(with_limit)} limits hold."


def _share(each: Shared) -> str:
    return f"{each.share.mean:.3f} ±{each.share.standard_error or 0:.3f}"


def _allowed(each: Shared) -> str:
    if each.limit is None:
        return ""
    factor = "" if each.limit.of is None else f" ({each.limit.most:g} ×)"
    return f"≤ {each.allowed:.3f}{factor}"


def new_table(*columns: str) -> Table:
    """Start a table whose figures fit in 80 columns; only the first column may wrap."""
    table = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns[1:]:
        column.no_wrap = True
    return table
