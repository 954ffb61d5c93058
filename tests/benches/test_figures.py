"""README and docs quote what commands have written, and nothing else between their marks."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.paths import ROOT


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of all texts, with their figures, that can be changed."""
    for name in ("benchmarks", "docs"):
        ignored = shutil.ignore_patterns("*.png", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def figures(root: Path, action: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.figures", action]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_every_figure_in_the_texts_is_what_the_results_say() -> None:
    done = figures(ROOT, "check")
    assert done.returncode == 0, done.stderr


def test_every_result_says_how_it_was_made() -> None:
    kept = json.loads((ROOT / "docs" / "figures" / "figures.json").read_text())
    assert {key.split(".")[0] for key in kept["figures"]} == set(kept["made"])
    for made in kept["made"].values():
        assert made["command"].startswith(("sottovoce ", "python -m benchmarks."))
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", made["date"])
        assert "left" in made or len(made["rules"]) == 64


def other_digit(text: str) -> str:
    """Change the first figure of a text: its first digit."""
    begin, figure, rest = re.split(r"(?<=-->)([^<]*\d[^<]*)(?=<!-- /figure)", text, maxsplit=1)
    return (
        begin + re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), figure, count=1) + rest
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (other_digit, "README.md: regret.shares is"),
        (lambda text: text.replace("figure: regret", "figure: regrets"), "no figure regrets"),
        (lambda text: text.replace("<!-- /figure -->", "", 1), "a mark has no end"),
    ],
    ids=["a digit", "a key", "an end"],
)
def test_a_text_that_says_something_else_is_found_and_set_right(
    elsewhere: Path, change: Callable[[str], str], found: str
) -> None:
    readme = elsewhere / "README.md"
    right = readme.read_text()
    readme.write_text(change(right))
    assert readme.read_text() != right
    done = figures(elsewhere, "check")
    assert done.returncode == 1
    assert found in done.stderr
    if change is other_digit:
        assert figures(elsewhere, "write").returncode == 0
        assert readme.read_text() == right


def test_a_result_that_has_changed_is_found(elsewhere: Path) -> None:
    result = elsewhere / "docs" / "figures" / "results" / "regret.json"
    changed = json.loads(result.read_text())
    for line in changed["result"]["summary"]:
        line["worst"] += 0.1
    result.write_text(json.dumps(changed))
    done = figures(elsewhere, "check")
    assert done.returncode == 1
    assert "figures.json is not what the results say" in done.stderr
