"""The last check: problems that are drawn from the rules themselves, and a record of each look.

    python -m benchmarks.held_out

It measures whisper beside baselines on problems that nobody can have tuned to. The seed of the draw
is the digest of all rules and constants (``rules.py``): whoever changes a rule gets other problems,
and nobody can fit a rule to those that judge it. So fix the rules first, then look, once. A second
look at the same problems has to be asked for, and all looks are kept in a file of the repository,
which is to be committed. A look at the draws by any other way, for instance from Python, belongs
there too.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.generated import draw_problem
from benchmarks.rules import made_by
from rich.console import Console, Group
from rich.text import Text

from sottovoce.lab.baselines.abse import TUNED
from sottovoce.lab.regret.cells import (
    RANDOM,
    Options,
    Place,
    RegretCell,
    measure,
    name_of,
    ratios_of,
)
from sottovoce.lab.regret.tables import SHARE, new_table, share_of_random
from sottovoce.lab.simulation import SimulateOptions, simulate
from sottovoce.lab.sweeps import Setting
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError

RECORD = Path("docs/research/held-out-looks.jsonl")

METHODS: dict[str, Any] = {
    "whisper": "whisper",
    "linear": "linear",
    "nn": "nn",
    "abse (not private)": {"name": "abse", **asdict(TUNED)},
}
"""The first is judged. ``abse`` has tuned constants: with its published ones it hardly learns."""

MOST_FEATURES = {"abse (not private)": 10}
"""Methods that are left out of problems with more features than this, which they refuse."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has shown, and the line that was added to the record for it."""

    cells: Sequence[RegretCell]
    line: dict[str, Any]


def look(options: Options, *, problems: int, record: Path, again: bool = False) -> Look:
    """Measure all methods on the problems that these rules draw, and write down that it was done.

    again: look at problems that the record has already.
    """
    check.whole_number(options.reps, what="reps", least=2)
    check.whole_number(problems, what="problems", least=1)
    wanted = f"--reps {options.reps} --problems {problems}{' --again' if again else ''}"
    made = made_by(f"python -m benchmarks.held_out {wanted}")
    looks = read_record(record)
    if not again and any(each["rules"] == made["rules"] for each in looks):
        raise ExperimentError(
            f"problems that were looked at already are no longer held out; {record} has a look at"
            f" these rules ({made['rules'][:16]}): give --again to repeat it, which is recorded too"
        )
    # Runs are not kept: nothing can be seen before the look is recorded.
    cells = measure(
        [place_of(made["rules"], number) for number in range(problems)],
        options,
        task=regret_of_draw,
        paired_by=("rules", "problem"),
    )
    line = {
        **made,
        "look": len(looks) + 1,
        "again": again,
        "problems": problems,
        "reps": options.reps,
        "share_of_random": shares(cells),
    }
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return Look(cells, line)


def shares(cells: Sequence[RegretCell]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return each method's geometric mean and worst share of random, in each group and in all."""
    groups = {"all": list(cells)}
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    return {
        group: {
            method: {
                "problems": each.cells,
                "mean": round(each.geometric_mean, 4),
                "worst": round(each.worst, 4),
                "worst_at": each.worst_at,
            }
            for method in METHODS
            for each in ratios_of([cell for cell in mine if method in cell.lost], method, RANDOM)
        }
        for group, mine in groups.items()
    }


def place_of(rules: str, number: int) -> Place:
    """Return where a problem is measured, and by which methods."""
    drawn = draw_problem(rules, number)
    where = (drawn.group, drawn.name, drawn.auxiliary_name, drawn.epsilon, drawn.n)
    settings = {
        name: {"rules": rules, "problem": number, "method": method}
        for name, method in METHODS.items()
        if drawn.environment.dimension <= MOST_FEATURES.get(name, drawn.environment.dimension)
    }
    return Place(RegretCell(*where, {}), drawn.environment, settings)


def regret_of_draw(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run of a sweep."""
    drawn = draw_problem(setting["rules"], setting["problem"])
    options: SimulateOptions = {"auxiliary": drawn.auxiliary}
    result = simulate(
        drawn.environment,
        method=setting["method"],
        epsilon=drawn.epsilon,
        n=drawn.n,
        seed=seed,
        **options,
    )
    return {"regret": float(result.regret[-1])}


def read_record(path: Path) -> list[dict[str, Any]]:
    """Read the looks so far; a file that is not there is made, if its folder is."""
    try:
        with path.open("a+", encoding="utf-8") as file:  # so that it can be written to later
            file.seek(0)
            looks = [json.loads(line) for line in file]
        if all(isinstance(each, dict) and "rules" in each for each in looks):
            return looks
        raise ValueError("a line has no rules")
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"{path} must be the record of all looks, one JSON object a line; {error}; run this"
            " from the root of the repository, or name the file with --record"
        ) from error


def tables(look: Look) -> Iterator[Group]:
    """Yield the problems one by one, then means and worst of each group: methods across."""
    methods = list(METHODS)
    for group, rows in groupby(sorted(look.cells, key=_group), key=_group):
        table = new_table("problem", *methods)
        for cell in rows:
            found = [share_of_random(cell, each) if each in cell.lost else "–" for each in methods]
            table.add_row(name_of(cell), *found)
            table.add_section()
        yield Group(Text(f"{group}: {SHARE}", style="bold"), table, "")
    table = new_table("geometric mean, worst", "problems", *methods)
    for group, shares in look.line["share_of_random"].items():
        figures = {
            name: f"{each['mean']:.2f}, {each['worst']:.2f}" for name, each in shares.items()
        }
        listed = [figures.get(method, "–") for method in methods]
        table.add_row(group, str(shares[methods[0]]["problems"]), *listed)
    yield Group(Text("In all", style="bold"), table, "")


def _group(cell: RegretCell) -> str:
    return cell.group


def main(arguments: Sequence[str] | None = None) -> None:
    """Look, and print what was seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reps", type=int, default=5, help="runs of each problem and method")
    parser.add_argument("--problems", type=int, default=48, help="how many problems are drawn")
    parser.add_argument(
        "--again", action="store_true", help="look again at problems that were looked at"
    )
    parser.add_argument(
        "--record", type=Path, default=RECORD, help=f"the record of all looks; {RECORD}"
    )
    parser.add_argument("--workers", type=int, default=-1, help="processes; -1 for all cores")
    parser.add_argument("--json", action="store_true", help="print the line of the record")
    given = parser.parse_args(arguments)
    options = Options(given.reps, workers=given.workers)
    try:
        looked = look(options, problems=given.problems, record=given.record, again=given.again)
    except ExperimentError as error:
        parser.error(str(error))
    console = Console()
    if given.json:
        console.print_json(json.dumps(looked.line))
        return
    for table in tables(looked):
        console.print(table)
    line = f"look {looked.line['look']} of all, recorded in {given.record}"
    console.print(line, highlight=False, soft_wrap=True, markup=False)


if __name__ == "__main__":
    main()
