"""Every figure that README and docs quote, in one file, made from the results of commands.

    python -m benchmarks.figures run NAME …   run what a result comes from, and keep the result
    python -m benchmarks.figures write        results → docs/figures/figures.json → the texts
    python -m benchmarks.figures check        say where file, results and texts do not agree

A text has a figure between marks, ``<!-- figure: KEY -->0.14<!-- /figure -->``; around a whole
table there are empty lines between them. Results are kept in docs/figures/results, each with its
command, date, seeds and the digest of the rules that made it. Some commands leave a CSV instead,
which stands in docs/figures beside its picture.
"""

import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quoted import MAKERS, Figures, of_curves, of_look, of_table
from benchmarks.rules import made_by

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures" / "figures.json"
RESULTS = ROOT / "docs" / "figures" / "results"
LOOKS = ROOT / "docs" / "research" / "held-out-looks.jsonl"
MARK = re.compile(r"(<!-- figure: ([\w.-]+) -->)(.*?)(<!-- /figure -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """A command that prints JSON; needs: what has to be in the environment for it."""

    command: str
    seeds: str
    needs: str = ""


_OF_SWEEP = "made from each setting and repetition (lab/sweeps.py, seed_of)"

SOURCES = {
    "regret": Source("sottovoce bench regret --no-aux --reps 20", _OF_SWEEP, "SOTTOVOCE_PUBLISHED"),
    "auxiliary": Source(
        "sottovoce bench regret --methods whisper --reps 3", _OF_SWEEP, "SOTTOVOCE_PUBLISHED"
    ),
    "problems": Source("sottovoce bench regret --problems --reps 10", _OF_SWEEP),
    "presets": Source("python -m benchmarks.presets", "0 to 19; 0 to 9 for a million people"),
    "differences": Source("python -m benchmarks.differences", "0 to 19"),
    "expect": Source("python -m benchmarks.expect", _OF_SWEEP),
    "plan": Source("python -m benchmarks.plan", "0 to 119; 1,000,000 to 1,000,119 are held out"),
    "diagnosis": Source("python -m benchmarks.diagnosis", "300 to 319", "SOTTOVOCE_DATA"),
}

NEEDED = {
    "SOTTOVOCE_PUBLISHED": "the CSV of the authors' means",
    "SOTTOVOCE_DATA": "the folder with the data sets",
}

CURVES = ("n-target", "n-source", "kappa", "gamma", "order")
"""The experiments whose CSVs are in docs/figures, one for each model."""


def read_csvs(*names: str) -> list[dict[str, str]]:
    """Read the rows of some files in docs/figures."""
    rows = []
    for name in names:
        with (FIGURES.parent / name).open(newline="", encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    return rows


def left_by(command: str, *names: str) -> dict[str, Any]:
    """Say where figures come from that a command left in files: the day they were committed."""
    paths = [str(FIGURES.parent / name) for name in names]
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%cs", "--", *paths]
    day = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return {"command": f"{command} --published FILE", "date": day, "left": list(names)}


def build() -> dict[str, Any]:
    """Make all figures from the results that are there."""
    results = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in SOURCES
        if (path := RESULTS / f"{name}.json").exists()
    }
    made: dict[str, Any] = {name: each["made"] for name, each in results.items()}
    figures: dict[str, Figures] = {
        name: MAKERS[name](each["result"], results) for name, each in results.items()
    }
    for name in CURVES:
        files = [f"{name}-{model}.csv" for model in ("exponential", "symmetric")]
        made[name] = left_by(f"sottovoce reproduce {name}", *files)
        rows = read_csvs(*files)
        # Cells without auxiliary rows are those of n-target.
        figures[name] = of_curves(
            [row for row in rows if name == "n-target" or row["n_aux"].strip("0 ")]
        )
    made["table"] = left_by("sottovoce reproduce table", "table.csv")
    figures["table"] = of_table(read_csvs("table.csv"))
    looks = LOOKS.read_text(encoding="utf-8").splitlines() if LOOKS.exists() else []
    if looks:
        last = json.loads(looks[-1])
        made["held-out"] = {name: last[name] for name in ("command", "date", "version", "rules")}
        figures["held-out"] = of_look(last)
    return {
        "made": made,
        "figures": {
            f"{name}.{key}": text for name, mine in figures.items() for key, text in mine.items()
        },
    }


def texts() -> list[Path]:
    """List the texts that may quote figures."""
    return [
        ROOT / "README.md",
        ROOT / "benchmarks" / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def as_quoted(text: str) -> str:
    """Write a figure as it stands between its marks."""
    return f"\n\n{text}\n\n" if "\n" in text else text


def faults(figures: Mapping[str, str]) -> list[str]:
    """Say which texts do not quote the figures as they are."""
    found = []
    for path in texts():
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        marks = MARK.findall(text)
        if len(marks) != text.count("<!-- figure:") or len(marks) != text.count("<!-- /figure"):
            found.append(f"{name}: a mark has no end, or no beginning")
        for _, key, quoted, _ in marks:
            if key not in figures:
                found.append(f"{name}: there is no figure {key}")
            elif quoted != as_quoted(figures[key]):
                found.append(f"{name}: {key} is {figures[key]!r}, and not {quoted.strip()!r}")
    return found


def write() -> None:
    """Write the file, and the figures into the texts."""
    built = build()
    FIGURES.write_text(json.dumps(built, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    figures = built["figures"]

    def quote(mark: re.Match[str]) -> str:
        begin, key, quoted, end = mark.groups()
        return begin + (as_quoted(figures[key]) if key in figures else quoted) + end

    for path in texts():
        text = path.read_text(encoding="utf-8")
        if (new := MARK.sub(quote, text)) != text:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


def run(name: str) -> None:
    """Make a result anew. What the command says on the way is shown as it comes."""
    source = SOURCES[name]
    if source.needs and source.needs not in os.environ:
        raise SystemExit(f"{name} needs the variable {source.needs}: {NEEDED[source.needs]}")
    program, *arguments = shlex.split(source.command)
    command = [sys.executable, *arguments]
    if program == "sottovoce":  # what is kept of a sweep lets it go on after a stop
        kept = ROOT / "out" / "results" / f"{name}.jsonl"
        command = [sys.executable, "-m", "sottovoce", *arguments, "--out", str(kept), "--json"]
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    made = {**made_by(source.command), "seeds": source.seeds}
    made["seconds"] = f"{time.perf_counter() - begun:.0f}"
    RESULTS.mkdir(exist_ok=True)
    result = {"made": made, "result": json.loads(done.stdout)}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    runner = actions.add_parser("run", help="run what results come from, one after the other")
    runner.add_argument(
        "names", nargs="+", choices=list(SOURCES), metavar="NAME", help=", ".join(SOURCES)
    )
    actions.add_parser(
        "write", help="write docs/figures/figures.json, and the figures into the texts"
    )
    actions.add_parser("check", help="fail if results, file and texts do not agree")
    arguments = parser.parse_args()
    if arguments.action == "run":
        for name in arguments.names:
            run(name)
    if arguments.action == "write":
        write()
    built = build()
    if arguments.action != "run":
        found = faults(built["figures"])
        if json.loads(FIGURES.read_text(encoding="utf-8"))["figures"] != built["figures"]:
            found.append("docs/figures/figures.json is not what the results say: run write")
        if found:
            raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
