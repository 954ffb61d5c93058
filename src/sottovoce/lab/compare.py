"""Methods compared on a table of anybody's, as ``reproduce table`` compares them on known ones."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.data.table import Table
from sottovoce.lab.reproduce.real.cases import (
    METHODS,
    PAIRED_BY,
    as_setting,
    gather,
    make_cases,
    mean_rewards,
    players,
)
from sottovoce.lab.reproduce.real.comparison import make_cells, make_contexts
from sottovoce.lab.reproduce.real.tables import Comparison, standard_error, write_csv
from sottovoce.lab.sweep import sweep
from sottovoce.shared import check
from sottovoce.shared.schema import feature_to_table


@dataclass(frozen=True, slots=True)
class Compared:
    """What was played, and what came of it."""

    data: DataSet
    epsilon: float
    epsilon_aux: float | None
    comparison: Comparison


def compare(
    table: Table,
    *,
    methods: Sequence[str] = METHODS,
    epsilon: float = 1.0,
    epsilon_aux: float = 4.0,
    reps: int = 5,
    out: str | PathLike[str] | None = None,
    workers: int = -1,
) -> Compared:
    """Play every method on the table, with and without its auxiliary rows if it has any.

    epsilon_aux: the ε of every auxiliary population.
    out: a folder for ``compare.csv``, and for ``compare.jsonl``, which keeps the runs, so that
        a comparison goes on after a stop.
    """
    check.epsilon(epsilon)
    check.epsilon(epsilon_aux, what="epsilon_aux")
    # Loaded before any run, so that a wrong table costs nothing.
    data = table.load()
    ranked = players(methods, auxiliary=bool(data.auxiliary))
    budgets = [(float(epsilon), float(epsilon_aux))]
    cases = make_cases([data.name], ranked, budgets)
    settings = [as_setting(case, _source(table)) for case in cases]
    with TemporaryDirectory() as folder:
        path = Path(folder if out is None else out) / "compare.jsonl"
        runs = sweep(
            mean_rewards,
            settings,
            reps=reps,
            path=path,
            workers=workers,
            title=data.name,
            paired_by=PAIRED_BY,
        )
        rewards = gather(cases, runs)
        comparison = Comparison(
            cells=make_cells([data.name], ranked, budgets, rewards),
            contexts=make_contexts([data.name], rewards),
            people=rewards.people,
            paper={},
        )
        if out is not None:
            write_csv(comparison, path.with_suffix(".csv"))
    return Compared(data, budgets[0][0], budgets[0][1] if data.auxiliary else None, comparison)


def as_json(compared: Compared) -> dict[str, Any]:
    """Write everything as JSON has it."""
    data, comparison = compared.data, compared.comparison
    return {
        "dataset": data.name,
        "people": len(data.target),
        "auxiliary": {name: len(sample) for name, sample in data.auxiliary.items()},
        "dropped": data.dropped,
        "arms": list(data.arms),
        "features": list(data.features),
        "epsilon": compared.epsilon,
        "epsilon_aux": compared.epsilon_aux,
        "reps": comparison.reps,
        "methods": [
            {
                "method": each.player.method,
                "auxiliary": each.player.auxiliary,
                "fraction": cell.fraction,
                "reward_mean": each.reward.mean,
                "reward_se": standard_error(each.reward),
                "ratio": each.ratio,
                "ratio_se": each.ratio_se,
                "rank": each.rank,
                "best": each.best,
                "significant": each.significant,
            }
            for cell in comparison.cells
            for each in cell.entries
        ],
        "beside": [
            {
                "name": each.name,
                "fraction": each.fraction,
                "reward_mean": each.reward.mean,
                "reward_se": standard_error(each.reward),
                "ratio": each.ratio,
            }
            for each in comparison.contexts
        ],
    }


def _source(table: Table) -> dict[str, Any]:
    """Write a table as JSON has it, for processes that start elsewhere.

    The digests are nobody's to read: with them, runs of a file that has changed since are not taken
    for runs of this one.
    """
    values: dict[str, Any] = {field.name: getattr(table, field.name) for field in fields(table)}
    if values["features"] is not None:
        values["features"] = [
            each if isinstance(each, str) else feature_to_table(each) for each in values["features"]
        ]
    paths = [values["path"]]
    if values["public"] is not None and not isinstance(values["public"], int | float):
        paths.append(values["public"])
        values["public"] = str(Path(values["public"]).resolve())
    values["path"] = str(Path(values["path"]).resolve())
    return {
        "table": {name: _plain(value) for name, value in values.items()},
        "digests": [_digest(Path(path)) for path in paths],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
