"""The tutorial "A service in fifteen minutes", done as it is printed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.device.transport import Request, send
from support.paths import ROOT
from support.services import COMMAND, free_port, wait_until

TUTORIAL = (ROOT / "docs" / "tutorials" / "a-service-in-fifteen-minutes.md").read_text()
FILES = re.findall(r"[Ss]ave this as `([\w.]+)`.*?```\w+\n(.*?)```", TUTORIAL, re.DOTALL)
COMMANDS = re.findall(r"```sh\n(.*?)```", TUTORIAL, re.DOTALL)

# As printed, but for a port of the test's own, the server's new key, and fewer people.
PEOPLE = ("range(1, 2001)", "range(1, 101)")


def test_the_tutorial_works_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    monkeypatch.setenv("PATH", f"{Path(COMMAND[0]).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    assert [name for name, _ in FILES] == ["walking.toml", "person.py", "crowd.py"]
    for name, text in FILES:
        Path(name).write_text(text.replace("8000", port).replace(*PEOPLE))
    set_up, serve, again, *rest = COMMANDS
    assert "make setup" in set_up
    assert "activate" in again

    with subprocess.Popen([*serve.split(), "--port", port], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            printed = [server.stdout.readline().decode() for _ in range(4)]
            key = re.search("Public key +([0-9a-f]{64})", "".join(printed))
            assert key is not None
            for name in ("person.py", "crowd.py"):
                Path(name).write_text(Path(name).read_text().replace("PUBLIC KEY", key[1]))
            wait_until(lambda: is_ready(port), told="the server must start")
            outputs = [run(command.replace("8000", port)) for command in rest]
        finally:
            server.terminate()

    person, receipt, crowd, status, replay = outputs
    assert re.fullmatch(r"This person gets: (reminder|coach)\n.*: 1\n.*: 0\n", person)
    assert "spent            ε = 2 in 1 reports" in receipt
    assert crowd == ""  # it prints after 400 people
    assert '"stored":101' in status
    assert "101 reports" in replay
    assert "agrees" in replay


def run(command: str) -> str:
    return subprocess.run(
        ["/bin/sh", "-ec", command], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def is_ready(port: str) -> bool:
    try:
        return send(Request("GET", f"http://127.0.0.1:{port}/ready")).status == 200
    except sv.TransportError:
        return False


def test_the_tutorial_prints_the_fingerprint_of_its_experiment(tmp_path: Path) -> None:
    path = tmp_path / "walking.toml"
    path.write_text(dict(FILES)["walking.toml"])
    fingerprint = sv.Experiment.from_toml(path).fingerprint
    assert set(re.findall(r"experiments/([0-9a-f]{64})", TUTORIAL)) == {fingerprint}
