"""A wall is real only if the build breaks when it is crossed."""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.shared.methods import method_names
from support.paths import ROOT

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
    # The same of the folders of a method, and between methods.
    ("device/whisper/answer.py", "import sottovoce.estimate.gate"),
    ("device/whisper/__init__.py", "import numpy"),
    ("device/ldpmab/__init__.py", "import opendp"),  # laplace.py alone may
    ("shared/whisper/questions.py", "import numpy"),
    ("estimate/whisper/step.py", "import sottovoce.device.method"),
    ("estimate/ldpmab/constants.py", "import secrets"),
    ("estimate/whisper/step.py", "import sottovoce.estimate.ldpmab.constants"),
    ("device/ldpmab/__init__.py", "import sottovoce.shared.whisper.questions"),
    ("device/privatise.py", "import sottovoce.device.whisper.subset"),
    ("estimate/gate.py", "import sottovoce.estimate.ldpmab"),
    ("server/app.py", "import sottovoce.shared.whisper.questions"),
    ("lab/driver.py", "import sottovoce.lab.whisper"),
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


@pytest.mark.slow
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


BEHIND = """
    import sys

    class Wall:
        def find_spec(self, name, path=None, target=None):
            if {closed}:
                raise ImportError(f"{{name}} is behind a wall")

    sys.meta_path.insert(0, Wall())
    import sottovoce as sv
    {script}
"""


def run(script: str, *, closed: str, told: str) -> str:
    """Run a script behind a wall; return what it prints."""
    body = textwrap.indent(textwrap.dedent(script), "    ").strip()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BEHIND.format(closed=closed, script=body))],
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


NOT_STANDARD = "name.split('.')[0] not in {*sys.stdlib_module_names, 'sottovoce'}"


def test_a_device_reports_with_the_standard_library_only() -> None:
    learner = sv.Learner(experiment(method="whisper"))
    script = """
        device = sv.Device(sv.wire.release_from_json(sys.stdin.read()))
        device.choose({"age": 42, "bmi": 27.5})
        print(sv.wire.report_to_json(device.report(reward=1.0)))
    """
    told = run(script, closed=NOT_STANDARD, told=sv.wire.release_to_json(learner.release()))
    learner.receive(sv.wire.report_from_json(told))
    assert learner.status().reports == {"target": 1}


def test_a_device_of_the_other_method_says_what_it_lacks() -> None:
    learner = sv.Learner(experiment(method="ldpmab"))
    script = """
        device = sv.Device(sv.wire.release_from_json(sys.stdin.read()))
        device.choose({"age": 42, "bmi": 27.5})
        try:
            device.report(reward=1.0)
        except sv.DeviceError as error:
            print(error)
    """
    told = run(script, closed=NOT_STANDARD, told=sv.wire.release_to_json(learner.release()))
    assert "pip install 'sottovoce[laplace]'" in told


@pytest.mark.parametrize("method", method_names())
def test_a_learner_works_with_the_device_unimportable(method: str) -> None:
    """The parts of a method are loaded when they are asked for: the learner asks for its own."""
    learner = sv.Learner(experiment(method=method, release_every=2))
    reports = []
    for _ in range(4):
        device = sv.Device(learner.release())
        device.choose({"age": 42, "bmi": 27.5})
        report = device.report(reward=1.0)
        learner.receive(report)
        reports.append(sv.wire.report_to_json(report))
    script = """
        import json
        table, *reports = json.load(sys.stdin)
        learner = sv.Learner(sv.Experiment.from_table(table))
        for report in reports:
            learner.receive(sv.wire.report_from_json(report))
        learner = sv.Learner.from_json(learner.to_json())
        assert not [name for name in sys.modules if name.startswith("sottovoce.device")]
        print(learner.to_json())
    """
    closed = "name.startswith(('sottovoce.device', 'sottovoce.lab'))"
    told = run(script, closed=closed, told=json.dumps([learner.experiment.to_table(), *reports]))
    assert json.loads(told) == json.loads(learner.to_json())


def test_only_few_modules_load_others_by_name() -> None:
    # An import contract cannot see such imports.
    loads = re.compile(r"import_module\(|__import__\(|exec\(|runpy")
    source = ROOT / "src" / "sottovoce"
    found = {path for path in source.rglob("*.py") if loads.search(path.read_text())}
    # Packages load what is asked of them by name, through extras.py: ``sv.Learner``, ``sv.Device``.
    # The audit loads a function that a user names, which is not of this package.
    few = ("shared/extras.py", "shared/methods.py", "lab/audit/external.py")
    assert found == {source / each for each in few}


def names_in(path: Path) -> set[str]:
    """Every name and every text in a module's code, but for its docstrings."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        found |= {getattr(node, each) for each in ("id", "attr", "name") if hasattr(node, each)}
    return found


def test_nothing_outside_of_its_folders_asks_which_method_it_is() -> None:
    methods = {name for each in method_names() for name in (each, each.title())}
    source, found = ROOT / "src" / "sottovoce", {}
    for room in ("shared", "device", "estimate", "server"):
        for path in (source / room).rglob("*.py"):
            own = path.relative_to(source / room).parts[0] in methods
            if not own and (named := names_in(path) & methods):
                found[str(path.relative_to(source))] = named
    # The registry, and the method of an experiment that says none.
    assert found == {
        "shared/methods.py": {"whisper", "ldpmab"},
        "shared/experiment.py": {"whisper"},
    }
