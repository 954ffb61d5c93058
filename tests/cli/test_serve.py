"""What ``sottovoce serve`` says when it starts."""

import logging
from datetime import timedelta
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
    assert told.startswith("small looks hopeless: if the right arm brings 0.1 more, 100 people at ")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("given", "kept"), [((), None), (("--keep-reports", "90d"), timedelta(days=90))]
)
def test_reports_are_kept_for_as_long_as_is_asked(
    tmp_path: Path, given: tuple[str, ...], kept: timedelta | None
) -> None:
    here = ("--database", f"sqlite:///{tmp_path}/reports.db", "--key", str(tmp_path / "key"))
    with patch("sottovoce.server.serve.serve", side_effect=stop_at_once) as served:
        done = run("serve", *here, *given, "--port", "0")
    assert done.returncode == 0, done.stderr
    assert served.call_args.args[0].keep_reports == kept


@pytest.mark.parametrize("wrong", ["12 hours", "0d", "36 hours", "90", "some time"])
def test_reports_are_kept_for_whole_days(tmp_path: Path, wrong: str) -> None:
    with patch("sottovoce.server.serve.serve", side_effect=stop_at_once) as served:
        done = run(
            "serve", "--database", f"sqlite:///{tmp_path}/reports.db", "--keep-reports", wrong
        )
    assert done.returncode != 0
    assert "keep-reports must be " in done.stderr
    assert not served.called
