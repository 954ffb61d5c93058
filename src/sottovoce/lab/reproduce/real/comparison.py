"""Runs → cells: means, ratios, ranks, who is significantly best, and the paper's own values."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from sottovoce.lab.environments import Floats
from sottovoce.lab.means import Mean, mean_of
from sottovoce.lab.reproduce.real.cases import (
    FRACTIONS,
    PUBLISHED_ABSE,
    TUNED_ABSE,
    Case,
    Player,
    Rewards,
)
from sottovoce.shared.errors import ExperimentError

LEVEL = 0.05
LEAST_REPS = 5
"""With fewer pairs, even if all point one way, p is at least 2^-4, more than the level."""

TOO_FEW = f"With fewer than {LEAST_REPS} repetitions nothing can be significant at {LEVEL:g}."

JUDGED = Player("whisper", auxiliary=True)
RIVALS = (Player("linear", auxiliary=True), Player("nn", auxiliary=True))

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


@dataclass(frozen=True, slots=True)
class Entry:
    """One player in a cell.

    ratio: mean reward over that of ``abse``; None if that is 0.
    ratio_se: its standard error, from pairs with the same people; None for a single repetition.
    rank: 1 is best; equals share the mean of their ranks.
    significant: alone the best, and better than every other one by the Wilcoxon signed-rank test.
    """

    player: Player
    reward: Mean
    ratio: float | None
    ratio_se: float | None
    rank: float
    best: bool
    significant: bool


@dataclass(frozen=True, slots=True)
class TableCell:
    """All players on one data set, at one pair of budgets and one fraction of the people."""

    dataset: str
    epsilon: float
    epsilon_aux: float
    fraction: float
    entries: tuple[Entry, ...]

    def of(self, player: Player) -> Entry | None:
        """Return the entry of a player, if there is one."""
        return next((entry for entry in self.entries if entry.player == player), None)

    @property
    def ratios(self) -> dict[Player, float]:
        """The ratios that there are."""
        return {each.player: each.ratio for each in self.entries if each.ratio is not None}


@dataclass(frozen=True, slots=True)
class Context:
    """What stands beside the players of a data set; not ranked."""

    name: str
    dataset: str
    fraction: float
    reward: Mean
    ratio: float | None
    ratio_se: float | None


def make_cells(
    datasets: Iterable[str],
    ranked: Sequence[Player],
    budgets: Sequence[tuple[float, float]],
    rewards: Rewards,
) -> list[TableCell]:
    """Compare the players in every cell."""
    return [
        TableCell(
            dataset,
            *each,
            fraction,
            judge(
                {
                    player: rewards.rewards[Case.of(dataset, player, each), fraction]
                    for player in ranked
                },
                abse=rewards.rewards[Case(dataset, PUBLISHED_ABSE), fraction],
            ),
        )
        for each in budgets
        for dataset in datasets
        for fraction in FRACTIONS
    ]


def judge(rewards: Mapping[Player, Floats], *, abse: Floats) -> tuple[Entry, ...]:
    """Compare players by their rewards, repetition by repetition with the same people."""
    means = {player: mean_of(values.tolist()) for player, values in rewards.items()}
    ranks = ranks_of({player: mean.mean for player, mean in means.items()})
    first = min(ranks.values())
    # Ranks are shared by equals, so that the first is 1 only if nobody is as good.
    alone = first == 1 and len(rewards) > 1
    entries = []
    for player, values in rewards.items():
        best = ranks[player] == first
        others = [rewards[other] for other in rewards if other != player]
        significant = best and alone and all(is_better(values, each) for each in others)
        figures = (means[player], *relative(values, abse), ranks[player])
        entries.append(Entry(player, *figures, best, significant))
    return tuple(entries)


def relative(values: Floats, abse: Floats) -> tuple[float | None, float | None]:
    """Return the ratio of two means and its standard error.

    The error is that of the mean of values - ratio·abse over the mean of abse (delta method), in
    which luck with the people, who are the same in both, cancels.
    """
    below = float(abse.mean())
    if below == 0:
        return None, None
    ratio = float(values.mean()) / below
    if len(values) < 2:
        return ratio, None
    spread = float((values - ratio * abse).std(ddof=1))
    return ratio, spread / math.sqrt(len(values)) / below


def ranks_of(values: Mapping[Player, float]) -> dict[Player, float]:
    """Rank players, the largest value first; equals share the mean of their ranks."""
    # Sums of the same numbers in another order may differ in the last digit.
    ranks = stats.rankdata(-np.round(list(values.values()), 12))
    return dict(zip(values, ranks.tolist(), strict=True))


def is_better(values: Floats, others: Floats) -> bool:
    """Test on pairs, one-sided, whether values are larger (Wilcoxon's signed ranks)."""
    differences = np.round(values - others, 12)
    if np.count_nonzero(differences) < LEAST_REPS:
        return False
    return bool(stats.wilcoxon(differences, alternative="greater").pvalue < LEVEL)


def make_contexts(datasets: Iterable[str], rewards: Rewards) -> list[Context]:
    """Put ``abse`` with both sets of constants, and the best single arm, beside the players."""
    contexts = []
    for dataset in datasets:
        for fraction in FRACTIONS:
            abse = rewards.rewards[Case(dataset, PUBLISHED_ABSE), fraction]
            share = np.full(len(abse), rewards.best_arm[dataset])
            lines = {
                PUBLISHED_ABSE: abse,
                TUNED_ABSE: rewards.rewards[Case(dataset, TUNED_ABSE), fraction],
                "best single arm": share,
            }
            contexts += [
                Context(name, dataset, fraction, mean_of(values.tolist()), *relative(values, abse))
                for name, values in lines.items()
            ]
    return contexts


def rank_sums(ranks: Iterable[Mapping[Player, float]]) -> dict[Player, float]:
    """Add up the ranks of each player."""
    sums: dict[Player, float] = {}
    for each in ranks:
        for player, rank in each.items():
            sums[player] = sums.get(player, 0.0) + rank
    return sums


def rank_sums_at(cells: Iterable[TableCell], fraction: float) -> dict[Player, float]:
    """Add up the ranks of each player over all cells at a fraction."""
    return rank_sums(
        {entry.player: entry.rank for entry in cell.entries}
        for cell in cells
        if cell.fraction == fraction
    )


def mean_ratios(cells: Iterable[TableCell]) -> dict[Player, float]:
    """Average the ratio of each player over some cells."""
    listed: dict[Player, list[float]] = {}
    for cell in cells:
        for player, ratio in cell.ratios.items():
            listed.setdefault(player, []).append(ratio)
    return {player: float(np.mean(values)) for player, values in listed.items()}


def behind(cells: Iterable[TableCell]) -> list[str]:
    """Say in which cells ``whisper`` is below ``linear`` or ``nn``, all with auxiliary data."""
    sentences = []
    for cell in cells:
        mine = cell.of(JUDGED)
        for rival in filter(None, map(cell.of, RIVALS)):
            if mine is None or mine.reward.mean >= rival.reward.mean:
                continue
            where = f"{cell.dataset} ({cell.epsilon:g}, {cell.epsilon_aux:g})"
            if mine.ratio is None or rival.ratio is None:
                figures = f"{mine.reward.mean:.3f} against {rival.reward.mean:.3f} (mean reward)"
            else:
                figures = f"{mine.ratio:.3f} against {rival.ratio:.3f}"
            sentences.append(
                f"{mine.player} is below {rival.player} in {where}"
                f" at t = {FRACTIONS[cell.fraction]}: {figures}"
            )
    return sentences


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
