"""The tutorial "Check our privacy claim yourself", done as it is printed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT
from support.services import COMMAND

TUTORIAL = (ROOT / "docs" / "tutorials" / "check-our-privacy-claim.md").read_text()
FILES = dict(re.findall(r"[Ss]ave this as\s+`([\w.]+)`.*?```\w+\n(.*?)```", TUTORIAL, re.DOTALL))
COMMANDS = re.findall(r"```sh\n(.*?)\n```", TUTORIAL, re.DOTALL)[1:]

BROKEN = "sottovoce audit --callable broken:report --epsilon 1 --quick"
SAID = {
    "sottovoce audit --quick --method whisper --epsilon 1": (0, "claims stand"),
    "sottovoce audit --faults": (0, "10 of 10 faults were caught."),
    BROKEN: (1, "BROKEN"),
    "sottovoce audit --callable coin:report --epsilon 1 --quick": (0, "claims stand"),
    "python -m pytest test_coin.py": (0, "1 passed"),
}


def test_every_command_is_known() -> None:
    assert list(SAID) == COMMANDS
    assert list(FILES) == ["broken.py", "coin.py", "test_coin.py"]


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files, and a shell in which the package's own commands come first."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(COMMAND[0]).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("_folder")
@pytest.mark.slow
@pytest.mark.parametrize("command", SAID)
def test_every_command_does_what_is_printed(command: str) -> None:
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    status, said = SAID[command]
    assert done.returncode == status, done.stderr
    assert said in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("_folder")
def test_without_the_mistake_nothing_is_flagged(tmp_path: Path) -> None:
    lines = FILES["broken.py"].splitlines()
    at = next(number for number, line in enumerate(lines) if "the mistake" in line)
    (tmp_path / "broken.py").write_text("\n".join(lines[: at - 1] + lines[at + 1 :]))
    done = subprocess.run(["/bin/sh", "-c", BROKEN], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
