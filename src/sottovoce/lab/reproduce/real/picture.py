"""The comparison as a picture: the paper's own table, with bold and grey."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sottovoce.lab.reproduce.real.cases import FRACTIONS, Player
from sottovoce.lab.reproduce.real.comparison import NAMES, TableCell, mean_ratios, paper_values
from sottovoce.lab.reproduce.real.tables import Comparison, context_figure, explanation

# In inches.
MARGIN = 0.2
FIRST = 1.25
COLUMN = 0.62
GAP = 0.2
LINE = 0.36
BLOCK = 0.34

SIZE, SMALL = 9.5, 7.0
FAINT = "#6b6b6b"
GREY = "#cfcfcf"
BAND = "#eef2f7"


def draw_table(comparison: Comparison) -> Figure:
    """Draw the table."""
    return _Page(comparison).figure


class _Slot(NamedTuple):
    """A column of numbers."""

    fraction: float
    player: Player
    x: float


class _Page:
    """A page that is filled from the top."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        players = comparison.players
        left = MARGIN + FIRST
        self.slots = [
            _Slot(fraction, player, left + j * GAP + COLUMN * (j * len(players) + i + 0.5))
            for j, fraction in enumerate(FRACTIONS)
            for i, player in enumerate(players)
        ]
        self.width = self.slots[-1].x + COLUMN / 2 + MARGIN
        self.figure = Figure()
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.axis("off")
        self.y = MARGIN
        self._fill()
        # How high the page has to be is known only now.
        height = self.y + MARGIN
        self.figure.set_size_inches(self.width, height)
        self.axes.set(xlim=(0, self.width), ylim=(height, 0))

    def _fill(self) -> None:
        """Draw from top to bottom."""
        self._head()
        for (epsilon, epsilon_aux), cells in self.comparison.blocks():
            self._band(rf"$(\varepsilon, \varepsilon_m) = ({epsilon:g}, {epsilon_aux:g})$")
            datasets = list(dict.fromkeys(cell.dataset for cell in cells))
            for dataset in datasets:
                self._cells(dataset, [cell for cell in cells if cell.dataset == dataset])
            if len(datasets) > 1:
                self._means(cells)
        self._sums()
        self._contexts()
        self._legend()

    def _text(self, x: float, y: float, text: str, **style: Any) -> None:
        self.axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": SIZE, **style})

    def _box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, linewidth=0))

    def _rule(self, *, heavy: bool = False) -> None:
        ends = [MARGIN, self.width - MARGIN]
        self.axes.plot(ends, [self.y] * 2, color="black", linewidth=1.2 if heavy else 0.5)

    def _head(self) -> None:
        self._rule(heavy=True)
        for fraction, name in FRACTIONS.items():
            mine = [slot.x for slot in self.slots if slot.fraction == fraction]
            self._text((mine[0] + mine[-1]) / 2, self.y + 0.2, f"t = {name}", fontsize=SIZE + 1)
            methods = dict.fromkeys(slot.player.method for slot in self.slots)
            for method in methods:
                mine = [x for at, by, x in self.slots if (at, by.method) == (fraction, method)]
                middle = (mine[0] + mine[-1]) / 2
                self._text(middle, self.y + 0.46, method, family="monospace")
        for slot in self.slots:
            self._text(slot.x, self.y + 0.68, slot.player.how, color=FAINT)
        self.y += 0.84
        self._rule()

    def _band(self, title: str) -> None:
        self._box(MARGIN, self.y, self.width - 2 * MARGIN, BLOCK, BAND)
        self._text(self.width / 2, self.y + BLOCK / 2, title)
        self.y += BLOCK

    def _name(self, name: str, below: str = "", **style: Any) -> None:
        middle = self.y + LINE / 2
        settings = {"ha": "left", **style}
        self._text(MARGIN + 0.08, middle - (0.06 if below else 0), name, **settings)
        if below:
            self._text(MARGIN + 0.08, middle + 0.09, below, ha="left", fontsize=SMALL, color=FAINT)

    def _cells(self, dataset: str, cells: Sequence[TableCell]) -> None:
        by_fraction = {cell.fraction: cell for cell in cells}
        papers = {
            fraction: paper_values(self.comparison.paper, cell)
            for fraction, cell in by_fraction.items()
        }
        raised = any(papers.values())
        self._name(dataset, f"paper: {NAMES[dataset]}" if raised else "")
        for slot in self.slots:
            entry = by_fraction[slot.fraction].of(slot.player)
            if entry is None or entry.ratio is None:
                continue
            if entry.significant:
                self._box(
                    slot.x - COLUMN / 2 + 0.03, self.y + 0.02, COLUMN - 0.06, LINE - 0.04, GREY
                )
            # In one line with those that have a value of the paper below them.
            middle = self.y + LINE / 2
            weight = "bold" if entry.best else "normal"
            height = middle - 0.06 if raised else middle
            self._text(slot.x, height, f"{entry.ratio:.3f}", weight=weight)
            paper = papers[slot.fraction].get(slot.player)
            if paper is not None:
                self._text(slot.x, middle + 0.09, f"{paper:.3f}", fontsize=SMALL, color=FAINT)
        self.y += LINE

    def _means(self, cells: Sequence[TableCell]) -> None:
        self._name("mean", style="italic")
        for slot in self.slots:
            means = mean_ratios(cell for cell in cells if cell.fraction == slot.fraction)
            if slot.player in means:
                self._text(slot.x, self.y + LINE / 2, f"{means[slot.player]:.3f}", style="italic")
        self.y += LINE

    def _sums(self) -> None:
        sums = self.comparison.rank_sums()
        for title, prefix in (("rank sum", ""), ("rank sum, paper", "paper, ")):
            rows: dict[float, Mapping[Player, float]] = {
                fraction: sums.get(f"{prefix}t = {name}", {})
                for fraction, name in FRACTIONS.items()
            }
            if not any(rows.values()):
                continue
            if not prefix:
                self._rule()
            style: dict[str, Any] = {"color": FAINT, "fontsize": SIZE - 1} if prefix else {}
            self._name(title, **style)
            for slot in self.slots:
                row = rows[slot.fraction]
                if slot.player in row:
                    best = not prefix and row[slot.player] == min(row.values())
                    weight = "bold" if best else "normal"
                    text = f"{row[slot.player]:g}"
                    self._text(slot.x, self.y + LINE / 2, text, weight=weight, **style)
            self.y += LINE
        self._rule(heavy=True)

    def _contexts(self) -> None:
        """Write what stands beside in a small table of its own."""
        contexts = self.comparison.contexts
        names = list(dict.fromkeys(each.name for each in contexts))
        self.y += 0.12
        width = (self.width - 2 * MARGIN - FIRST) / (2 * len(names))
        columns = {
            (name, fraction): MARGIN + FIRST + width * (len(FRACTIONS) * i + j + 0.5)
            for i, name in enumerate(names)
            for j, fraction in enumerate(FRACTIONS)
        }
        self._text(MARGIN + 0.08, self.y + 0.12, "beside them:", ha="left", fontsize=SIZE - 1)
        for name in names:
            middle = sum(columns[name, fraction] for fraction in FRACTIONS) / len(FRACTIONS)
            self._text(middle, self.y + 0.12, name, fontsize=SIZE - 1)
            for fraction, at in FRACTIONS.items():
                style: dict[str, Any] = {"fontsize": SMALL, "color": FAINT}
                self._text(columns[name, fraction], self.y + 0.32, f"t = {at}", **style)
        self.y += 0.42
        for dataset, people in self.comparison.people.items():
            self._name(dataset, f"n = {people:,}", fontsize=SIZE - 1)
            for each in contexts:
                if each.dataset == dataset:
                    x = columns[each.name, each.fraction]
                    self._text(x, self.y + LINE / 2, context_figure(each), fontsize=SIZE - 1)
            self.y += LINE
        self._rule()

    def _legend(self) -> None:
        self.y += 0.14
        notes = explanation(self.comparison, sign="Grey")
        for note in [*notes, "Beside them: mean reward, and in brackets relative to abse."]:
            self._text(MARGIN + 0.08, self.y + 0.08, note, ha="left", fontsize=SIZE - 1.5)
            self.y += 0.18
