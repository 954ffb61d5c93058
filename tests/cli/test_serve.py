"""What ``sottovoce serve`` says when it starts."""

import logging
from pathlib import Path
from unittest.mock import patch

import pytest

from sottovoce.server.serve import Listening
from sottovoce.server.settings import ServerSettings
from support.commands import run

EXPERIMENT = """
name = "{name}"
arms = ["control", "reminder", "coach"]
epsilon = 1.0
horizon = {horizon}
{method}

[[context]]
name = "age"
numeric = [18, 90]
"""


def begin(folder: Path, name: str, horizon: int, method: str = "") -> str:
    path = folder / f"{name}.toml"
    path.write_text(EXPERIMENT.format(name=name, horizon=horizon, method=method))
    return str(path)


def stop_at_once(settings: ServerSettings, listening: Listening, *, workers: int) -> None:
    listening.close()


def test_an_experiment_with_too_few_people_is_warned_of_once_when_it_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = [
        begin(tmp_path, "small", 100),
        begin(tmp_path, "large", 100_000),
        begin(tmp_path, "other", 100, 'method = "ldpmab"'),
    ]
    here = ("--database", f"sqlite:///{tmp_path}/reports.db", "--key", str(tmp_path / "key"))
    with (
        patch("sottovoce.server.serve.serve", side_effect=stop_at_once) as served,
        caplog.at_level(logging.WARNING),
    ):
        done = run("serve", *files, *here, "--port", "0")
    assert done.returncode == 0, done.stderr
    assert served.called
    assert all(f"Experiment   {name}: " in done.stdout for name in ("small", "large", "other"))
    (told,) = caplog.messages
    assert told.startswith("small: after 100 people at ε = 1, they will have lost about ")
    assert "\n" not in told
