"""Methods compared on a table of anybody's, as ``reproduce table`` compares them on known ones."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.lab.data.playing import play, reward_at
from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.data.table import Table
from sottovoce.lab.means import mean_of
from sottovoce.lab.methods import Begin, name_of
from sottovoce.lab.reproduce.real.cases import (
    FRACTIONS,
    METHODS,
    PAIRED_BY,
    PUBLISHED_ABSE,
    Case,
    Rewards,
    as_setting,
    gather,
    make_cases,
    mean_rewards,
    players,
)
from sottovoce.lab.reproduce.real.comparison import (
    JUDGED,
    Context,
    make_cells,
    make_contexts,
    relative,
)
from sottovoce.lab.reproduce.real.tables import COLUMNS, Comparison, as_lines
from sottovoce.lab.reproduce.table import write_csv
from sottovoce.lab.simulation import Result
from sottovoce.lab.sweeps import seed_of, sweep
from sottovoce.server.diagnosis import diagnosis_to_table
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must

HEEDED = f"{JUDGED}, heeded"
"""``whisper`` that goes on without auxiliary data when its diagnosis warns; not ranked."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What was played, and what came of it.

    diagnosis: what the auxiliary rows brought in the first repetition of ``whisper``.
    heeded: of each repetition, how many people had come when its warning was heeded; None in place
        of those without a warning, or of all where nobody asked to heed any.
    """

    data: DataSet
    epsilon: float
    epsilon_aux: float | None
    comparison: Comparison
    diagnosis: Diagnosis | None = None
    heeded: tuple[int | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """How many runs are made, and where.

    reps: runs of each method, on the same people.
    workers: processes; -1 for all cores.
    out: a folder for ``compare.csv``, and for ``compare.jsonl``, which keeps the runs, so that
        a comparison goes on after a stop; None to keep nothing.
    """

    reps: int = 5
    workers: int = -1
    out: str | PathLike[str] | None = None


def compare(
    table: Table,
    *,
    methods: Sequence[str | Begin] = METHODS,
    epsilon: float = 1.0,
    epsilon_aux: float = 4.0,
    heed: bool = False,
    effort: Effort | None = None,
) -> Compared:
    """Play every method on the table, with and without its auxiliary rows if it has any.

    methods: their names, or policies of your own (see ``lab.driver``), each with a name of its own.
    epsilon_aux: the ε of every auxiliary population.
    heed: play ``whisper`` once more, so that it heeds the warnings of its diagnosis.
    """
    effort = effort or Effort()
    check.epsilon(epsilon)
    check.epsilon(epsilon_aux, what="epsilon_aux")
    # Loaded before any run, so that a wrong table costs nothing.
    data = table.load()
    own = {name_of(method): method for method in methods if not isinstance(method, str)}
    names = [method if isinstance(method, str) else name_of(method) for method in methods]
    ranked = players(names, auxiliary=bool(data.auxiliary), own=own)
    if heed and JUDGED not in ranked:
        rule = "be asked of whisper where there are auxiliary rows"
        raise ExperimentError(must("heed", rule, [str(player) for player in ranked]))
    budgets = [(float(epsilon), float(epsilon_aux))]
    cases = make_cases([data.name], ranked, budgets)
    table, source = _elsewhere(table)
    settings = [as_setting(case, source, own=own) for case in cases]
    with TemporaryDirectory() as folder:
        path = Path(folder if effort.out is None else effort.out) / "compare.jsonl"
        runs = sweep(
            partial(mean_rewards, table=table, own=own),
            settings,
            reps=effort.reps,
            path=path,
            workers=effort.workers,
            paired_by=PAIRED_BY,
        )
        rewards = gather(cases, runs)
        again = range(effort.reps if heed else 0)
        heeding = [_play(data, budgets[0], rep, heed=True) for rep in again]
        contexts = make_contexts([data.name], rewards)
        comparison = Comparison(
            cells=make_cells([data.name], ranked, budgets, rewards),
            contexts=contexts + (_beside(data, heeding, rewards) if heed else []),
            people=rewards.people,
            paper={},
        )
        if effort.out is not None:
            write_csv(path.with_suffix(".csv"), COLUMNS, as_lines(comparison))
    return Compared(
        data,
        budgets[0][0],
        budgets[0][1] if data.auxiliary else None,
        comparison,
        _play(data, budgets[0], 0).diagnosis if JUDGED in ranked else None,
        tuple(result.heeded for result in heeding) if heed else None,
    )


def _play(
    data: DataSet, budgets: tuple[float, float], repetition: int, *, heed: bool = False
) -> Result:
    """Play ``whisper`` with auxiliary rows, on the people of one repetition of the sweep."""
    epsilon, epsilon_aux = budgets
    seed = seed_of(dict.fromkeys(PAIRED_BY, data.name), repetition)
    return play(data, epsilon=epsilon, epsilon_aux=epsilon_aux, seed=seed, heed=heed)


def _beside(data: DataSet, results: Sequence[Result], rewards: Rewards) -> list[Context]:
    """Put the runs that heed warnings beside the others, at each fraction of the people."""
    contexts = []
    for fraction in FRACTIONS:
        t = max(1, fraction * len(data.target))
        values = np.array([reward_at(result, t) for result in results])
        abse = rewards.rewards[Case(data.name, PUBLISHED_ABSE), fraction]
        mean, ratio = mean_of(values.tolist()), relative(values, abse)
        contexts.append(Context(HEEDED, data.name, fraction, mean, *ratio))
    return contexts


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
                "reward_se": each.reward.standard_error,
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
                "reward_se": each.reward.standard_error,
                "ratio": each.ratio,
            }
            for each in comparison.contexts
        ],
        "diagnosis": None if compared.diagnosis is None else diagnosis_to_table(compared.diagnosis),
        "heeded": None if compared.heeded is None else list(compared.heeded),
    }


def _elsewhere(table: Table) -> tuple[Table, dict[str, Any]]:
    """Return a table for processes that start elsewhere, and what tells it from others.

    The digests are nobody's to read: with them, runs of a file that has changed since are not taken
    for runs of this one.
    """
    paths = [Path(table.path).resolve()]
    public = table.public
    if public is not None and not isinstance(public, int | float):
        paths.append(Path(public).resolve())
        public = str(paths[-1])
    table = replace(table, path=str(paths[0]), public=public)
    return table, {"table": repr(table), "digests": [_digest(path) for path in paths]}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
