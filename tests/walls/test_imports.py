"""A wall is real only if the build breaks when it is crossed."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sottovoce as sv
from support.examples import experiment

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).parent / "lint-imports"

CROSSINGS = [
    ("device/encode.py", "import sottovoce.estimate.learner"),
    ("device/encode.py", "import numpy"),
    ("device/encode.py", "import opendp"),
    ("device/ledger.py", "import sottovoce.server.ingest"),
    ("server/ingest.py", "import sottovoce.device.device"),
    ("server/ingest.py", "import sottovoce.lab.people"),
    ("estimate/learner.py", "import sottovoce.device.encode"),
    ("estimate/learner.py", "import random"),
    ("estimate/learner.py", "import os"),
    ("shared/wire.py", "import sottovoce.device.encode"),
    ("shared/wire.py", "import numpy"),
]


def lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [LINTER, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_are_kept(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("module", "line"), CROSSINGS)
def test_a_crossed_wall_breaks_the_build(copy: Path, module: str, line: str) -> None:
    path = copy / "src" / "sottovoce" / module
    path.write_text(path.read_text() + "\n" + line + "\n")
    done = lint(copy)
    assert done.returncode != 0
    assert "BROKEN" in done.stdout, done.stdout


def test_the_estimator_draws_no_random_number() -> None:
    # An import contract cannot see inside NumPy.
    for path in (ROOT / "src" / "sottovoce" / "estimate").rglob("*.py"):
        assert not re.search(r"np\.random|default_rng|shuffle", path.read_text()), path


IMPORT_ALL = """
    import importlib, pkgutil, sys

    class Wall:
        def find_spec(self, name, path=None, target=None):
            if {closed}:
                raise ImportError(f"{{name}} is behind a wall")

    sys.meta_path.insert(0, Wall())
    count = 0
    for room in {rooms}:
        package = importlib.import_module(f"sottovoce.{{room}}")
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
            count += 1
    print(count)
"""


def import_all(*, rooms: list[str], closed: str) -> "subprocess.CompletedProcess[str]":
    script = textwrap.dedent(IMPORT_ALL).format(rooms=rooms, closed=closed)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_the_server_works_with_the_device_unimportable() -> None:
    closed = "name.startswith(('sottovoce.device', 'sottovoce.lab'))"
    done = import_all(rooms=["shared", "estimate", "server"], closed=closed)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    # The wall itself works: the device cannot be had behind it.
    assert import_all(rooms=["device"], closed=closed).returncode != 0


def test_the_device_needs_the_standard_library_only() -> None:
    closed = "name.split('.')[0] not in {*sys.stdlib_module_names, 'sottovoce'}"
    done = import_all(rooms=["shared", "device"], closed=closed)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    assert import_all(rooms=["estimate"], closed=closed).returncode != 0


def test_a_device_reports_with_the_standard_library_only() -> None:
    script = """
        import sys

        class Wall:
            def find_spec(self, name, path=None, target=None):
                if name.split('.')[0] not in {*sys.stdlib_module_names, 'sottovoce'}:
                    raise ImportError(f"{name} is behind a wall")

        sys.meta_path.insert(0, Wall())
        import sottovoce as sv
        device = sv.Device(sv.wire.release_from_json(sys.stdin.read()))
        device.choose({"age": 42, "bmi": 27.5})
        print(sv.wire.report_to_json(device.report(reward=1.0)))
    """
    learner = sv.Learner(experiment(method="whisper"))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input=sv.wire.release_to_json(learner.release()),
        capture_output=True,
        text=True,
        check=True,
    )
    learner.receive(sv.wire.report_from_json(done.stdout))
    assert learner.status().reports == {"target": 1}
