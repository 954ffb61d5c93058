"""The command ``sottovoce audit``."""

import json
from pathlib import Path

import pytest

from sottovoce.lab.audit import run as runs
from sottovoce.lab.audit.run import Length
from support.commands import run

TINY = Length((100, 200), (100, 200), (100, 200), (10, 20))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "QUICK", TINY)


def test_a_quick_audit_prints_a_table_and_draws_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    words = ("--quick", "--method", "linear", "--method", "abse", "--workers", "1")
    done = run("audit", *words, "--picture", str(picture))
    assert done.returncode == 0
    assert "linear" in done.stdout
    assert "no claim" in done.stdout
    assert "All 7 claims stand" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_figures_come_as_json() -> None:
    words = ("--quick", "--method", "linear", "--epsilon", "2", "--workers", "1", "--json")
    done = run("audit", *words)
    found = json.loads(done.stdout)
    assert found["broken"] == 0
    assert found["error_rate"] == 0.001
    assert {each["epsilon"] for each in found["findings"]} == {2.0}


def test_a_mechanism_that_leaks_ends_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain_rows.py").write_text(
        "def report(request):\n    return str(request['context']).encode()\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ("--callable", "plain_rows:report", "--epsilon", "1", "--quick", "--workers", "1")
    done = run("audit", *words)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout


@pytest.mark.slow
def test_all_faults_are_caught() -> None:
    done = run("audit", "--faults", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["broken"] == len(found["findings"]) == 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--method", "nobody"), "a method to audit must be one of"),
        (("--error-rate", "2"), "the error rate must lie in"),
        (("--epsilon", "-1"), "epsilon must be"),
        (("--faults", "--command", "x"), "at most one of"),
        (("--callable", "nowhere:nothing"), "a callable must be module:function"),
    ],
)
def test_what_cannot_be_audited_is_refused(words: tuple[str, ...], said: str) -> None:
    done = run("audit", *words)
    assert done.returncode == 2
    assert said in done.stderr
