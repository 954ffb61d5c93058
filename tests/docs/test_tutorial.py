"""The tutorials about a service, done as they are printed."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.device.transport import Request, send
from support.paths import ROOT
from support.services import COMMAND, free_port, wait_until

FOLDER = ROOT / "docs" / "tutorials"


@dataclass
class Tutorial:
    """A tutorial's files and commands, in order. The first three set up, serve, and begin again."""

    text: str

    @classmethod
    def of(cls, name: str) -> "Tutorial":
        return cls((FOLDER / name).read_text())

    @property
    def files(self) -> dict[str, str]:
        pattern = r"[Ss]ave this as `([\w.]+)`.*?```\w+\n(.*?)```"
        return dict(re.findall(pattern, self.text, re.DOTALL))

    @property
    def commands(self) -> list[str]:
        return re.findall(r"```sh\n(.*?)```", self.text, re.DOTALL)

    @contextmanager
    def served(self, *, fewer: tuple[str, str]) -> Iterator[list[str]]:
        """Write the files, but with fewer people, and serve; give the commands that follow."""
        port = str(free_port())
        for name, text in self.files.items():
            Path(name).write_text(text.replace("8000", port).replace(*fewer))
        set_up, serve, again, *rest = self.commands
        assert "make setup" in set_up
        assert "activate" in again
        command = ["/bin/sh", "-ec", serve.strip().replace("sottovoce", "exec sottovoce")]
        command[-1] += f" --port {port}"
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                printed = [server.stdout.readline().decode() for _ in range(3)]
                key = re.search("Public key +([0-9a-f]{64})", "".join(printed))
                assert key is not None
                for name in self.files:
                    Path(name).write_text(Path(name).read_text().replace("PUBLIC KEY", key[1]))
                wait_until(lambda: is_ready(port), told="the server must start")
                yield [each.replace("127.0.0.1:8000", f"127.0.0.1:{port}") for each in rest]
            finally:
                server.terminate()


FIFTEEN = Tutorial.of("a-service-in-fifteen-minutes.md")
LIFE = Tutorial.of("the-life-of-an-experiment.md")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(COMMAND[0]).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SOTTOVOCE_ADMIN_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_service_in_fifteen_minutes_works_as_it_is_printed() -> None:
    assert list(FIFTEEN.files) == ["walking.toml", "person.py", "crowd.py"]
    with FIFTEEN.served(fewer=("range(1, 2001)", "range(1, 101)")) as commands:
        person, receipt, crowd, status, replay = map(run, commands)
    assert re.fullmatch(r"This person gets: (reminder|coach)\n.*: 1\n.*: 0\n", person)
    assert "spent            ε = 2 in 1 reports" in receipt
    assert crowd == ""  # it prints after 400 people
    assert '"stored":101' in status
    assert "101 reports" in replay
    assert "agrees" in replay


def test_the_life_of_an_experiment_works_as_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(LIFE.files) == ["walks.toml", "app.py", "crowd.py"]
    monkeypatch.setenv("SOTTOVOCE_ADMIN_TOKEN", "choose-a-long-one")
    with LIFE.served(fewer=("range(600)", "range(100)")) as commands:
        said = list(map(run, commands))
    visits, outcome, sync, _, added, _, retired, stopped, rules, receipt, left, replay = said
    arms = re.findall(r"arm (\w+), asked True", visits)
    assert len(arms) == 2
    assert len(set(arms)) == 1
    assert visits.endswith("2 open, 0 waiting\n")
    assert outcome == "noted\n1 open, 1 waiting\n"
    assert sync == "0 open, 0 waiting\n"
    assert "amendment 1, in release" in added
    assert "retire arm 'control'" in retired
    assert "extend horizon to 8,000" in retired
    assert re.search("arm (reminder|coach), asked False, id not asked", stopped)
    assert rules.startswith("# Which arm for whom: walks")
    assert "control" not in rules
    assert "spent            ε = 8 in 2 reports" in receipt
    assert left.startswith("left\n0 open, 0 waiting\narm control, asked False")
    assert "402 reports" in replay
    assert "agrees" in replay
    assert "amendment 4" in replay


def run(command: str) -> str:
    return subprocess.run(
        ["/bin/sh", "-ec", command], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def is_ready(port: str) -> bool:
    try:
        return send(Request("GET", f"http://127.0.0.1:{port}/ready")).status == 200
    except sv.TransportError:
        return False


@pytest.mark.parametrize("tutorial", [FIFTEEN, LIFE])
def test_a_tutorial_prints_the_fingerprint_of_its_experiment(tutorial: Tutorial) -> None:
    name, text = next(iter(tutorial.files.items()))
    Path(name).write_text(text)
    fingerprint = sv.Experiment.from_toml(name).fingerprint
    assert set(re.findall(r"experiments/([0-9a-f]{64})", tutorial.text)) == {fingerprint}
