"""Make the table: all runs, then a CSV, Markdown, a PNG and an SVG."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sottovoce.lab.data.catalogue import DATA_SETS
from sottovoce.lab.data.files import VARIABLE
from sottovoce.lab.reproduce.figures import save
from sottovoce.lab.reproduce.real.cases import (
    METHODS,
    PAIRED_BY,
    as_setting,
    gather,
    make_cases,
    mean_rewards,
    players,
)
from sottovoce.lab.reproduce.real.comparison import (
    LEAST_REPS,
    TOO_FEW,
    behind,
    make_cells,
    make_contexts,
    read_paper,
)
from sottovoce.lab.reproduce.real.picture import draw_table
from sottovoce.lab.reproduce.real.tables import COLUMNS, Comparison, as_lines, write_markdown
from sottovoce.lab.reproduce.run import Options
from sottovoce.lab.reproduce.table import write_csv
from sottovoce.lab.sweeps import sweep
from sottovoce.shared.errors import ExperimentError, must

DEFAULT = ("adult", "green-taxi", "jobs-hr", "flights")
BUDGETS = ((1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (2.0, 4.0))
"""(ε, ε_m), as in the paper."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a run left: files, and what is worth saying."""

    paths: list[Path]
    lines: list[str]


def reproduce_table(
    options: Options,
    *,
    datasets: Sequence[str] = DEFAULT,
    data_dir: str | os.PathLike[str] | None = None,
) -> Made:
    """Run everything, and leave ``table`` with all its endings in the folder."""
    names = list(dict.fromkeys(datasets))
    folder = find_data(names, data_dir)
    # Read before any work, so that a wrong file costs nothing.
    paper = {} if options.published is None else read_paper(options.published)
    ranked = players(METHODS, auxiliary=True)
    cases = make_cases(names, ranked, BUDGETS)
    path = options.out / "table.jsonl"
    runs = sweep(
        mean_rewards,
        [as_setting(case, {"data_dir": str(folder)}) for case in cases],
        reps=options.reps,
        path=path,
        workers=options.workers,
        engine=options.engine,
        paired_by=PAIRED_BY,
    )
    rewards = gather(cases, runs)
    comparison = Comparison(
        cells=make_cells(names, ranked, BUDGETS, rewards),
        contexts=make_contexts(names, rewards),
        people=rewards.people,
        paper=paper,
    )
    write_csv(path.with_suffix(".csv"), COLUMNS, as_lines(comparison))
    write_markdown(comparison, path.with_suffix(".md"))
    save(draw_table(comparison), path)
    endings = (".csv", ".md", ".png", ".svg")
    return Made([path.with_suffix(ending) for ending in endings], list(summary(comparison)))


def find_data(datasets: Sequence[str], data_dir: str | os.PathLike[str] | None) -> Path:
    """Check that all files are there; return their folder, for processes that start elsewhere."""
    unknown = [name for name in datasets if name not in DATA_SETS]
    if unknown or not datasets:
        raise ExperimentError(must("datasets", f"be some of {list(DATA_SETS)}", unknown))
    for name in datasets:
        DATA_SETS[name].file.find(data_dir)
    return Path(data_dir or os.environ[VARIABLE]).resolve()


def summary(comparison: Comparison) -> Iterator[str]:
    """Say who is best on the whole, and where ``whisper`` is not."""
    for title, sums in comparison.rank_sums().items():
        listed = ", ".join(
            f"{player} {value:g}"
            for player, value in sorted(sums.items(), key=lambda each: each[1])
        )
        yield f"rank sums, {title}: {listed}"
    if comparison.reps < LEAST_REPS:
        yield TOO_FEW
    yield from behind(comparison.cells) or ["whisper w is nowhere below linear w or nn w"]
