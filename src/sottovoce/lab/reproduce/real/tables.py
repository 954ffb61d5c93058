"""The comparison as files to read: a CSV in long form, and Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from sottovoce.lab.reproduce.real.cases import FRACTIONS, PUBLISHED_ABSE, Player
from sottovoce.lab.reproduce.real.comparison import (
    LEAST_REPS,
    LEVEL,
    NAMES,
    TOO_FEW,
    Context,
    Entry,
    Paper,
    TableCell,
    behind,
    mean_ratios,
    paper_rank_sums,
    paper_values,
    rank_sums_at,
)

COLUMNS = [
    *("dataset", "epsilon", "epsilon_aux", "fraction", "method", "auxiliary"),
    *("reward_mean", "reward_se", "ratio", "ratio_se", "rank", "best", "significant", "paper"),
]
SIGN = "▲"
"""Stands for the paper's grey."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is told of the runs."""

    cells: Sequence[TableCell]
    contexts: Sequence[Context]
    people: Mapping[str, int]
    paper: Paper

    @property
    def reps(self) -> int:
        """How many repetitions."""
        return self.cells[0].entries[0].reward.reps

    @property
    def players(self) -> list[Player]:
        """Those who are ranked."""
        return [entry.player for entry in self.cells[0].entries]

    def blocks(self) -> Iterator[tuple[tuple[float, float], list[TableCell]]]:
        """Yield the cells of each pair of budgets."""
        for budgets, cells in groupby(
            self.cells, key=lambda cell: (cell.epsilon, cell.epsilon_aux)
        ):
            yield budgets, list(cells)

    def rank_sums(self) -> dict[str, dict[Player, float]]:
        """Return the rank sums at each fraction, ours and the paper's."""
        sums = {
            f"t = {name}": rank_sums_at(self.cells, fraction)
            for fraction, name in FRACTIONS.items()
        }
        if self.paper:
            paper = paper_rank_sums(self.paper)
            sums |= {f"paper, t = {name}": paper[each] for each, name in FRACTIONS.items()}
        return sums


def _digits(value: float | None, digits: int = 6) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def as_lines(comparison: Comparison) -> Iterator[list[object]]:
    """Yield a line of ``COLUMNS`` for each player in each cell, and for what stands beside."""
    for cell in comparison.cells:
        paper = paper_values(comparison.paper, cell)
        played = any(each.player.auxiliary for each in cell.entries)
        auxiliary = f"{cell.epsilon_aux:g}" if played else ""
        for each in cell.entries:
            yield [
                *(cell.dataset, f"{cell.epsilon:g}", auxiliary),
                *(f"{cell.fraction:g}", each.player.method, each.player.how),
                *_figures(each),
                *(f"{each.rank:g}", int(each.best), int(each.significant)),
                _digits(paper.get(each.player), 3),
            ]
    for beside in comparison.contexts:
        where = (beside.dataset, "", "", f"{beside.fraction:g}", beside.name, "")
        yield [*where, *_figures(beside), *("",) * 4]


def _figures(of: Entry | Context) -> list[str]:
    return [_digits(x) for x in (of.reward.mean, of.reward.standard_error, of.ratio, of.ratio_se)]


def write_markdown(comparison: Comparison, path: Path) -> None:
    """Write the table for readers."""
    path.write_text("\n".join(_markdown(comparison)) + "\n", encoding="utf-8")


def explanation(comparison: Comparison, *, sign: str = SIGN) -> list[str]:
    """Say what the numbers are.

    sign: how those are marked that are significantly best.
    """
    lines = [
        f"Mean reward relative to {PUBLISHED_ABSE} with its published constants, over"
        f" {comparison.reps} repetitions; w: with auxiliary data, wo: without.",
        f"Bold: the best of the {len(comparison.players)} on a data set at t.",
    ]
    if comparison.reps < LEAST_REPS:
        lines.append(TOO_FEW)
    else:
        lines.append(
            f"{sign}: better than every other one by the one-sided Wilcoxon signed-rank test at"
            f" {LEVEL:g}, on the same people."
        )
    beside = [name for name in comparison.people if name in NAMES]
    if comparison.paper and beside:
        names = ", ".join(f"{NAMES[name]} beside {name}" for name in beside)
        lines.append(f"In small type the paper's values: {names}. It ranks six, not whisper.")
    return lines


def _markdown(comparison: Comparison) -> Iterator[str]:
    players = comparison.players
    yield "# Real data\n"
    for line in explanation(comparison):
        yield f"{line}  "
    for (epsilon, epsilon_aux), cells in comparison.blocks():
        yield f"\n## (ε, ε_m) = ({epsilon:g}, {epsilon_aux:g})\n"
        yield from _head("data set", "t", *map(str, players))
        for cell in cells:
            paper = paper_values(comparison.paper, cell)
            entries = [_entry(each, paper.get(each.player)) for each in cell.entries]
            yield _row(cell.dataset, FRACTIONS[cell.fraction], *entries)
        for fraction, name in FRACTIONS.items():
            means = mean_ratios(cell for cell in cells if cell.fraction == fraction)
            yield _row("*mean*", name, *(_digits(means.get(player), 3) for player in players))
    yield "\n## Rank sums\n"
    yield "Over all cells; the smallest is best.\n"
    yield from _head("", *map(str, players))
    for title, sums in comparison.rank_sums().items():
        yield _row(title, *(f"{sums[each]:g}" if each in sums else "" for each in players))
    yield "\n## Beside them\n"
    yield "Not ranked: mean reward, and in brackets relative to abse.\n"
    yield from _context_rows(comparison)
    sentences = behind(comparison.cells)
    yield "\n## Where whisper is behind\n"
    yield from (f"- {sentence}" for sentence in sentences or ["Nowhere."])


def _context_rows(comparison: Comparison) -> Iterator[str]:
    """Write what stands beside, a line for each data set."""
    names = list(dict.fromkeys(each.name for each in comparison.contexts))
    heads = [f"{name}, t = {t}" for name in names for t in FRACTIONS.values()]
    yield from _head("data set", "people", *heads)
    for dataset, people in comparison.people.items():
        mine = {
            (each.name, each.fraction): each
            for each in comparison.contexts
            if each.dataset == dataset
        }
        figures = [context_figure(mine[name, fraction]) for name in names for fraction in FRACTIONS]
        yield _row(dataset, f"{people}", *figures)


def context_figure(context: Context) -> str:
    """Write a mean reward, and its ratio."""
    ratio = "" if context.ratio is None else f" ({context.ratio:.3f})"
    return f"{context.reward.mean:.3f}{ratio}"


def _entry(entry: Entry, paper: float | None) -> str:
    text = _digits(entry.ratio, 3)
    if entry.best:
        text = f"**{text}**"
    if entry.significant:
        text += f" {SIGN}"
    return text if paper is None else f"{text} <sub>{paper:.3f}</sub>"


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield _row(*("---" if name in ("", "data set", "t") else "---:" for name in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
