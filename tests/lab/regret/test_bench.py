import csv
import json
import math
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

import pytest
from typer.testing import CliRunner

from sottovoce.cli.commands import app
from sottovoce.lab.regret import benches
from support import commands

METHODS = ("whisper", "ldpmab")
REPS = 3

COLUMNS = "experiment,model,epsilon,epsilon_aux,order,gamma,kappa,n_target,n_aux,M,reps"
PUBLISHED = f"""{COLUMNS},regret_mean,regret_sd
sample_size_target,exponential,8,1024.0,,0.0,1.0,10000,0,2,30,2000.0,300.0
sample_size_target,symmetric,1024,4.0,,0.0,1.0,20000,5000,2,30,500.0,60.0
kappa,exponential,2,1.0,,0.2,0.4,40000,10000,2,30,9000.0,700.0
"""


def run(*arguments: str) -> commands.Done:
    fixed = ("--methods", ",".join(METHODS), "--workers", "1")
    return commands.run("bench", "regret", *fixed, *arguments)


@pytest.fixture(autouse=True)
def _no_table_but_the_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOTTOVOCE_PUBLISHED", raising=False)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "published.csv"
    path.write_text(PUBLISHED)
    return path


def test_the_cells_of_a_published_table_are_measured_and_compared(
    published: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs.jsonl"
    arguments = ("--reps", str(REPS), "--published", str(published), "--out", str(out))
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    first, second = figures["cells"]
    assert (first["world"], first["epsilon"], first["n"]) == ("exponential", 8, 10_000)
    assert (second["world"], second["epsilon"], second["n"]) == ("symmetric", 1024, 20_000)
    assert second["auxiliary"] == "2 × 5,000 rows at ε = 4"
    # Each method without auxiliary data, and only the first with it.
    assert list(first["regret"]) == [*METHODS, "random", "published"]
    assert list(second["regret"]) == [METHODS[0], "random", "published"]

    regrets = defaultdict(list)
    for line in out.read_text().splitlines()[1:]:
        entry = json.loads(line)
        regrets[entry["setting"]].append(entry["figures"]["regret"])
    runs = [regrets[0], regrets[len(METHODS)]]
    rows = list(csv.DictReader(PUBLISHED.splitlines()))
    for cell, values, row in zip((first, second), runs, rows, strict=False):
        assert len(values) == REPS
        ours, theirs = cell["regret"][METHODS[0]], cell["regret"]["published"]
        assert ours["mean"] == pytest.approx(mean(values))
        assert ours["standard_error"] == pytest.approx(stdev(values) / math.sqrt(REPS))
        assert theirs["mean"] == float(row["regret_mean"])
        assert theirs["standard_error"] == pytest.approx(float(row["regret_sd"]) / math.sqrt(30))
        ratio = mean(values) / float(row["regret_mean"])
        assert cell["ratio"]["published"] == pytest.approx(ratio)
    assert first["regret"]["random"]["mean"] == pytest.approx(4139, rel=0.01)
    assert second["regret"]["random"]["mean"] == pytest.approx(20_000 / 6, rel=0.01)
    by_group = {
        each["group"]: each for each in figures["summary"] if each["against"] == "published"
    }
    for group, cell in (
        ("no auxiliary data, ε ≤ 8", first),
        ("auxiliary data, ε = 1024", second),
    ):
        assert by_group[group]["cells"] == 1
        # Of nothing lost there is no logarithm: it counts as a hundredth.
        ratio = max(cell["ratio"]["published"], 0.01)
        assert by_group[group]["geometric_mean"] == pytest.approx(ratio)

    kept = out.read_bytes()
    table = run(*arguments)
    assert table.returncode == 0, table.stderr
    assert out.read_bytes() == kept  # no run was made again
    ratio = first["ratio"]["published"]
    title = f"exponential, no auxiliary data: regret; ratio of {METHODS[0]} to published"
    assert title in table.stdout
    assert f"{first['regret'][METHODS[0]]['mean']:,.0f}" in table.stdout
    assert f"{ratio:.2f}" in table.stdout
    assert f"/ published: geometric mean {ratio:.3f} over 1 cells" in table.stdout


@pytest.mark.slow
def test_without_a_published_table_regret_is_compared_with_arms_at_random() -> None:
    done = run("--reps", "1", "--no-aux", "--models", "symmetric", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert len(figures["cells"]) == 5 * 8
    ratios = defaultdict(list)
    for cell in figures["cells"]:
        assert "published" not in cell["regret"]
        regret = {name: each["mean"] for name, each in cell["regret"].items()}
        ratio = regret[METHODS[0]] / regret["random"]
        assert cell["ratio"]["random"] == pytest.approx(ratio)
        ratios[cell["group"]].append(ratio)
    summaries = {each["group"]: each for each in figures["summary"] if each["against"] == "random"}
    assert {group: len(values) for group, values in ratios.items()} == {
        "no auxiliary data, ε ≤ 8": 32,
        "no auxiliary data, ε = 1024": 8,
    }
    for group, values in ratios.items():
        together = math.prod(max(value, 0.01) for value in values) ** (1 / len(values))
        assert summaries[group]["geometric_mean"] == pytest.approx(together)
        assert summaries[group]["worst"] == pytest.approx(max(values))


@pytest.mark.slow
def test_all_problems_are_called_what_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benches, "PROBLEM_SIZES", (500, 1000))
    arguments = ["--methods", ",".join(METHODS), "--problems", "--reps", "2", "--workers", "1"]
    table = CliRunner().invoke(app, ["bench", "regret", *arguments])
    assert table.exit_code == 0, table.output
    assert "tuning problems: regret as a share of what arms at random lose" in table.stdout
    assert "held out" not in table.stdout
    done = CliRunner().invoke(app, ["bench", "regret", *arguments, "--json"])
    cells = json.loads(done.stdout)["cells"]
    assert {cell["group"] for cell in cells} == {"tuning problems"}
    assert len(cells) == 16 * 2 * 2
    for cell in cells:
        ours, random = cell["regret"][METHODS[0]], cell["regret"]["random"]
        if cell["world"].startswith("all alike"):
            assert ours["mean"] == pytest.approx(0, abs=1e-9)
            assert cell["ratio"]["random"] is None
        else:
            assert cell["ratio"]["random"] == pytest.approx(ours["mean"] / random["mean"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--published", "no-such.csv"), "no-such.csv must be a CSV of published means"),
        (("--models", "cubic"), "models must be of ['exponential', 'symmetric']; got 'cubic'"),
        (("--methods", "guess"), "the method's name must be"),
        (("--reps", "0", "--no-aux"), "reps must be a whole number >= 1; got 0"),
        (("--out", "/dev/null/x"), "/dev/null/x must be a file that can be written"),
    ],
)
def test_a_mistake_gets_one_clear_line(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_published_table_without_the_cells_is_refused(published: Path) -> None:
    done = run("--published", str(published), "--models", "symmetric", "--no-aux")
    assert done.returncode == 2
    assert "must have some of the cells that were asked for" in " ".join(done.stderr.split())
