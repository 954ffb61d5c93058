"""The paper's own values, read from a CSV of its table."""

import csv
from collections.abc import Mapping
from pathlib import Path

from sottovoce.lab.reproduce.real.cases import FRACTIONS, Player
from sottovoce.lab.reproduce.real.comparison import TableCell, rank_sums, ranks_of
from sottovoce.shared.errors import ExperimentError

NAMES: Mapping[str, str] = {
    "adult": "adult",
    "green-taxi": "taxi",
    "jobs-hr": "jobs",
    "jobs": "jobs",
}
"""Which of the paper's data sets stands beside ours: the same, or the nearest that it has."""

PLAYERS = {
    f"{method}_{'w' if auxiliary else 'wo'}": Player(method, auxiliary)
    for method in ("ldpmab", "linear", "nn")
    for auxiliary in (True, False)
}
COLUMNS = ("epsilon", "epsilon_aux", "dataset", "fraction", *PLAYERS)

Key = tuple[str, float, float, float]
Paper = Mapping[Key, Mapping[Player, float]]
"""The six ratios of each data set of the paper, budgets and fraction."""


def read_paper(path: Path) -> Paper:
    """Read the paper's table."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise ValueError(f"it has no column {', '.join(absent)}")
            return {
                (
                    row["dataset"],
                    float(row["epsilon"]),
                    float(row["epsilon_aux"]),
                    float(row["fraction"]),
                ): {player: float(row[name]) for name, player in PLAYERS.items()}
                for row in reader
            }
    except (OSError, ValueError, TypeError) as error:
        raise ExperimentError(
            f"{path} must be a CSV of the paper's real-data table, with columns"
            f" {', '.join(COLUMNS)}; {error}; leave --published out (and the variable"
            " SOTTOVOCE_PUBLISHED) to do without"
        ) from error


def paper_values(paper: Paper, cell: TableCell) -> Mapping[Player, float]:
    """Return the paper's values of a cell, if it has any."""
    name = NAMES.get(cell.dataset, "")
    return paper.get((name, cell.epsilon, cell.epsilon_aux, cell.fraction), {})


def paper_rank_sums(paper: Paper) -> dict[float, dict[Player, float]]:
    """Rank the paper's six in each of its rows, and add up, at each fraction."""
    return {
        fraction: rank_sums(ranks_of(row) for key, row in paper.items() if key[3] == fraction)
        for fraction in FRACTIONS
    }
