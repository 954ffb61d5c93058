import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.transport import Request, send
from sottovoce.lab.environments import Floats
from sottovoce.lab.local_server import running
from sottovoce.lab.people import visit, with_outcomes
from support.commands import run
from support.tables import pupils, write

COMMAND = Path(sys.executable).parent / "sottovoce"


def test_the_demo_leaves_a_picture_and_says_what_was_learned(tmp_path: Path) -> None:
    done = run("demo", "--users", "300", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert re.match(r"Status page: http://127\.0\.0\.1:\d+/experiments/[0-9a-f]{64}\b", said)
    assert "300 people took part; each sent one report and spent ε = 1." in said
    assert "arms at random bring 0.500, the best arm for everyone 0.831" in said
    assert "Replaying the log of 300 reports gives the same releases." in said
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_demo_prints_nothing_but_json_when_asked(tmp_path: Path) -> None:
    done = run("demo", "--users", "100", "--out", str(tmp_path), "--json")
    figures = json.loads(done.stdout)
    assert (figures["users"], figures["stored"], figures["agrees"]) == (100, 100, True)
    assert figures["picture"] == str(tmp_path / "demo.png")


def test_the_demo_goes_on_for_ever_until_it_is_interrupted(tmp_path: Path) -> None:
    arguments = [str(COMMAND), "demo", "--users", "100", "--forever", "--out", str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            page = process.stdout.readline().split()[-1]
            status = Request("GET", f"{page}/status")
            for _ in range(600):
                if json.loads(send(status).body)["stored"] > 250:
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    people = int(said.split()[0])
    assert people >= 200
    assert "the same releases" in " ".join(said.split())


def test_a_key_is_made_once_and_shown_again(tmp_path: Path) -> None:
    made = run("key", str(tmp_path / "my.key"))
    assert re.fullmatch("[0-9a-f]{64}\n", made.stdout)
    assert run("key", str(tmp_path / "my.key")).stdout == made.stdout
    assert (tmp_path / "my.key").stat().st_mode & 0o777 == 0o600


def test_a_replay_says_where_a_database_disagrees_with_its_log(tmp_path: Path) -> None:
    experiment = sv.Experiment(
        arms=["a", "b"], context=[sv.Numeric("x", 0, 1)], epsilon=8.0, release_every=50, horizon=500
    )
    url = f"sqlite:///{tmp_path}/reports.db"
    with running([experiment], database=url) as server:
        rng = np.random.default_rng(0)
        visit(server, experiment, with_outcomes(OneCut(), rng, 300))
        server.wait_until_learned(experiment)
    good = run("replay", "--database", url)
    assert good.returncode == 0
    assert f"{experiment.short} (experiment): 300 reports" in good.stdout
    assert "agrees" in good.stdout
    with closing(sqlite3.connect(tmp_path / "reports.db")) as database, database:
        database.execute("UPDATE release SET position = position + 1 WHERE version = 2")
    bad = run("replay", "--database", url, "--json")
    assert bad.returncode == 1
    (found,) = json.loads(bad.stdout)
    assert "release 2 follows from" in found["troubles"][0]


class OneCut:
    """Arm 0 is better below the middle, and arm 1 above."""

    arms = 2
    dimension = 1

    def contexts(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.random((n, 1))

    def means(self, contexts: Floats) -> Floats:
        above = (contexts[:, 0] > 0.5).astype(float)
        return np.stack([1 - above, above], axis=1)


@pytest.mark.slow
def test_the_speed_of_a_service_is_told(tmp_path: Path) -> None:
    short = ["--seconds", "0.2", "--rounds", "1", "--reports", "50000", "--json"]
    done = run("bench", "service", *short)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert [each["database"] for each in figures] == ["SQLite", "PostgreSQL"]
    assert all(each["single"] > 0 and each["batch"] > 0 for each in figures)


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
        (
            ["simulate", "--method", "ldpmab", "--guarantee", "certified"],
            "error: method ldpmab must have only the keys ['c', 'preset']; got ['guarantee']",
        ),
        (
            ["simulate", "--method", "abse", "--c", "2"],
            "error: method abse must have only the keys",
        ),
        (["simulate", "--method", "guess"], "error: the method's name must be one of ['whisper', "),
        (["receipt", "no-such-file"], "error: a ledger must be an existing file"),
        (["serve", "no-such.toml"], "error: no-such.toml must be a readable TOML file"),
        (["serve", "--database", "mysql://x"], "begin with sqlite:/// or postgresql://"),
        (["replay", "--database", "sqlite:////no/where.db"], "must be a file that exists"),
        (["key", "/dev/null/x"], "error: /dev/null/x must be a file that can be written"),
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


HELPS = ["demo", "serve", "replay", "key", "contribute", "simulate", "reproduce", "receipt"]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], *([name, "--help"] for name in HELPS), ["bench", "service", "--help"]],
)
def test_every_command_explains_itself(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert re.search("Usage: .*sottovoce", done.stdout)


def test_a_custodian_is_told_what_a_lost_journal_costs() -> None:
    assert "2ε" in run("contribute", "--help").stdout


def test_simulate_prints_the_mean_regret() -> None:
    here = ("simulate", "--n", "1000", "--reps", "2")
    figures = json.loads(run(*here, "--epsilon", "1024", "--json").stdout)
    assert 0 < figures["regret_mean"] < figures["regret_at_random"]
    assert "regret" in run(*here).stdout
    assert "Weaker privacy" in run(*here, "--public-arms").stdout
    other = run(*here, "--method", "ldpmab", "--json")
    assert json.loads(other.stdout)["regret_mean"] > 0
    refused = run("simulate", "--guarantee", "certified", "--delta", "2")
    assert refused.returncode == 2
    assert "delta of whisper must lie in (0, 1)" in refused.stderr


@pytest.mark.slow
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


def test_the_installed_command_says_and_ends_as_it_does_here() -> None:
    for arguments in (["--version"], ["receipt", "no-such-file"]):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == run(*arguments)


@pytest.mark.slow
def test_a_comparison_prints_nothing_but_json_when_asked(tmp_path: Path) -> None:
    table = write(tmp_path / "pupils.csv", pupils(rows=300))
    options = ("--label", "grade", "--group", "school", "--target", "north", "--methods", "whisper")
    done = run("compare", str(table), *options, "--reps", "1", "--workers", "1", "--heed", "--json")
    figures = json.loads(done.stdout)
    assert [each["population"] for each in figures["diagnosis"]["sources"]] == ["others"]
    assert len(figures["heeded"]) == 1
    assert {each["name"] for each in figures["beside"]} >= {"whisper w, heeded"}
