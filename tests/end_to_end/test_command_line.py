import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import sottovoce as sv

COMMAND = Path(sys.executable).parent / "sottovoce"


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_the_demo_leaves_a_picture_and_says_what_was_learned(tmp_path: Path) -> None:
    done = run("demo", "--people", "300", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "300 people took part; each sent one report with ε = 1." in done.stdout
    assert "at random 0.33" in done.stdout
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_prints_nothing_but_json_when_asked(tmp_path: Path) -> None:
    done = run("demo", "--people", "100", "--out", str(tmp_path), "--json")
    figures = json.loads(done.stdout)
    assert figures["status"]["reports"] == {"target": 100}
    assert figures["picture"] == str(tmp_path / "demo.png")


def test_the_receipt_of_a_ledger(tmp_path: Path) -> None:
    ledger = sv.Ledger(tmp_path / "ledger", budget=4)
    ledger.spend(1.5, experiment="0123456789abcdef", name="walking", release=2)
    done = run("receipt", str(tmp_path / "ledger"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ledger.receipt().strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--epsilon", "-1"], "error: epsilon must be finite and > 0; got -1.0"),
        (["receipt", "no-such-file"], "error: a ledger must be an existing file"),
        (
            ["demo", "--out", "/dev/null/x"],
            "error: /dev/null/x must be a folder that can be written",
        ),
    ],
)
def test_a_mistake_gets_one_clear_line(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["receipt", "--help"]])
def test_every_command_explains_itself(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert "Usage: sottovoce" in done.stdout


def test_simulate_prints_the_mean_regret() -> None:
    done = run("simulate", "--n", "2000", "--epsilon", "1024", "--reps", "3", "--json")
    figures = json.loads(done.stdout)
    assert 0 < figures["regret_mean"] < figures["regret_at_random"]
    assert "regret" in run("simulate", "--n", "1000", "--reps", "2").stdout
    weaker = run("simulate", "--n", "1000", "--reps", "2", "--public-arms")
    assert "Weaker privacy" in weaker.stdout
    other = run("simulate", "--n", "1000", "--reps", "2", "--method", "ldpmab", "--json")
    assert json.loads(other.stdout)["regret_mean"] > 0
    refused = run("simulate", "--guarantee", "certified", "--delta", "2")
    assert refused.returncode == 2
    assert "delta of whisper must lie in (0, 1)" in refused.stderr


def test_bench_speed_has_a_line_for_each_size() -> None:
    done = run("bench", "speed", "--seconds", "0", "--json")
    figures = json.loads(done.stdout)
    for method in ("whisper", "ldpmab"):
        lines = [line for line in figures["lab"] if line["method"] == method]
        sizes = {(line["release_every"], line["epsilon"], line["n"]) for line in lines}
        assert sizes == {(e, ε, n) for e in (1, 100) for ε in (1, 1024) for n in (20_000, 160_000)}
        assert all(line["median"] > 0 for line in lines)
    assert [line["epsilon"] for line in figures["device"]] == [0.5, 1, 2, 4, 8]
    assert all(line["bins"] == 200 and line["bytes"] < 80 for line in figures["device"])


def test_the_version_can_be_asked_for() -> None:
    assert run("--version").stdout.strip() == version("sottovoce")
