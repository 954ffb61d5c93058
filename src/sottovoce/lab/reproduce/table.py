"""Runs → a table of means with 95 % confidence, and the published means beside them."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sottovoce.lab.means import Mean, mean_regrets
from sottovoce.lab.reproduce.cases import EXPERIMENTS, Case
from sottovoce.lab.sweeps import Run
from sottovoce.shared.errors import ExperimentError

COLUMNS = [
    *("experiment", "model", "line", "epsilon", "epsilon_aux", "gamma", "kappa"),
    *("n_target", "n_aux", "reps", "regret_mean", "regret_sd", "regret_low", "regret_high"),
    *("published_mean", "published_sd", "published_reps"),
]


@dataclass(frozen=True, slots=True)
class Row:
    """One case: our mean, and the published one where there is one."""

    case: Case
    regret: Mean
    published: Mean | None


def make_table(cases: list[Case], runs: list[Run], published: Mapping["Key", Mean]) -> list[Row]:
    """Average the runs of each case."""
    return [
        Row(case, mean, published.get(key_of(case)))
        for case, mean in zip(cases, mean_regrets(runs), strict=True)
    ]


Key = tuple[str, str, float, tuple[float, ...], float, float, int, tuple[int, ...]]


def key_of(case: Case) -> Key:
    """Identify a case in the authors' logs; empty sets have no ε worth comparing."""
    budgets = case.epsilon_aux if any(case.n_aux) else (0.0,) * len(case.n_aux)
    return (
        *(case.experiment, case.model, float(case.epsilon), budgets),
        *(case.gamma, case.kappa, case.n, case.n_aux),
    )


def read_published(path: Path) -> dict[Key, Mean]:
    """Read the means of the authors' logs (a CSV with a line for each of their settings)."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        known: dict[Key, Mean] = {}
        for row in rows:
            if row["experiment"] in EXPERIMENTS:
                key, reps = _published_key(row), int(row["reps"])
                mean = Mean(float(row["regret_mean"]), float(row["regret_sd"]), reps)
                if known.setdefault(key, mean) != mean:
                    raise ValueError(f"two different means for {key}")
        return known
    except (OSError, KeyError, ValueError) as error:
        raise ExperimentError(
            f"{path} must be a CSV of published means, with columns experiment, model, epsilon, …; "
            f"{error!r}; leave --published out to draw without them"
        ) from error


def _published_key(row: dict[str, str]) -> Key:
    sets, users = int(row["M"]), int(row["n_aux"])
    if row["order"]:
        budgets: tuple[float, ...] = (8.0, 2.0) if row["order"] == "first_sup" else (2.0, 8.0)
    else:
        budgets = (float(row["epsilon_aux"]),) * sets
    if users == 0:
        budgets = (0.0,) * sets
    return (
        *(row["experiment"], row["model"], float(row["epsilon"]), budgets),
        *(float(row["gamma"]), float(row["kappa"]), int(row["n_target"]), (users,) * sets),
    )


def _spread(regret: Mean) -> tuple[str, str, str]:
    """Write the spread and the 95 % interval; of a single run there is none to tell."""
    if regret.reps == 1:
        return ("", "", "")
    low, high = regret.mean - regret.half_width, regret.mean + regret.half_width
    return (f"{regret.sd:.1f}", f"{low:.1f}", f"{high:.1f}")


def as_line(row: Row) -> list[object]:
    """Write a row as ``COLUMNS`` says."""
    case, regret, published = row.case, row.regret, row.published
    return [
        *(case.experiment, case.model, case.line, case.epsilon),
        *(" ".join(f"{e:g}" for e in case.epsilon_aux), case.gamma, case.kappa),
        *(case.n, " ".join(map(str, case.n_aux)), regret.reps),
        f"{regret.mean:.1f}",
        *_spread(regret),
        *(("", "", "") if published is None else (published.mean, published.sd, published.reps)),
    ]


def write_csv(path: Path, head: Iterable[str], lines: Iterable[Iterable[object]]) -> None:
    """Write a table for people and spreadsheets."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(lines)
