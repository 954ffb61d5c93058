"""Is this code slower than an earlier one? Both run in turns, and ratios are printed.

    python -m benchmarks.side_by_side REVISION            bench speed
    python -m benchmarks.side_by_side REVISION --service  bench service

Every line is a figure of the bench, and the ratio of new to old: above 1 the new code is faster.
It is the ratio of the medians over all rounds. Beside it stands the ratio of the best rounds, which
says what the code can do when nothing else runs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SPEED = ("bench", "speed", "--json", "--seconds")
SERVICE = ("bench", "service", "--json", "--rounds", "2", "--reports", "200000", "--seconds")

Figures = dict[str, float]


def run(source: Path, command: tuple[str, ...], cache: Path) -> Any:
    """Run a command of one of the two, and read its JSON."""
    given = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    start = "from sottovoce.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, *command],
        env={**os.environ, **given},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def speeds(found: Any) -> Figures:
    """Name the figures of bench speed: users, and reports of a device, a second."""
    lab = {
        f"{each['method']}, release every {each['release_every']}, ε = {each['epsilon']:g},"
        f" n = {each['n']:,}": each["median"]
        for each in found["lab"]
    }
    device = {f"device, ε = {each['epsilon']:g}": 1e6 / each["median"] for each in found["device"]}
    return lab | device


def rates(found: Any) -> Figures:
    """Name the figures of bench service that are rates."""
    names = ("single", "ratio", "batch", "learned")
    return {f"{each['database']}, {name}": each[name] for each in found for name in names}


def main() -> None:
    """Check the earlier code out beside this one, and let them take turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("revision", help="the earlier code, for instance a commit")
    parser.add_argument("--service", action="store_true", help="bench service, not bench speed")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each; 10 if not given")
    parser.add_argument("--seconds", default="0.3", help="for each line of a turn")
    given = parser.parse_args()
    command, name = (SERVICE, rates) if given.service else (SPEED, speeds)
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(old), given.revision], check=True)
        try:
            sources = {"old": old / "src", "new": ROOT / "src"}
            turns: dict[str, list[Figures]] = {"old": [], "new": []}
            for number in range(given.rounds + 1):
                for which, source in sources.items():
                    cache = Path(folder) / f"compiled-{which}"
                    found = name(run(source, (*command, given.seconds), cache))
                    if number:  # the first turn compiles
                        turns[which].append(found)
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    for line in turns["new"][0]:
        before, after = ([each[line] for each in turns[which]] for which in ("old", "new"))
        median, best = (
            statistics.median(after) / statistics.median(before),
            max(after) / max(before),
        )
        print(f"{line:52}  median {median:.2f}  best {best:.2f}")


if __name__ == "__main__":
    main()
