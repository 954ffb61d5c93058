"""The package without any extra: what works, and what the rest says in one line."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from flit_core import buildapi

import sottovoce as sv
from support.paths import ROOT

DEVICE = """
import sys
import sottovoce as sv
device = sv.Device(sv.wire.release_from_json(sys.stdin.read()))
device.choose({"x": 0.5})
print(sv.wire.report_to_json(device.report(reward=1.0)))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, unpacked where nothing else is."""
    folder = tmp_path_factory.mktemp("bare")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        wheel = folder / buildapi.build_wheel(str(folder))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(
    installed: Path, *arguments: str, given: str | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-S", *arguments],  # -S: without site-packages
        env={"PYTHONPATH": str(installed)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_ten_lines_of_the_readme_say_what_to_install(installed: Path) -> None:
    found = re.search(
        r"## Ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    assert found
    done = run(installed, "-c", found[1])
    last = done.stderr.splitlines()[-1]
    assert last.endswith("MissingExtra: Learner needs numpy: pip install 'sottovoce[learner]'")
    assert "No module named" not in done.stderr


@pytest.mark.parametrize("name", ["Learner", "Status"])
def test_an_import_says_so_too_and_is_an_import_error(installed: Path, name: str) -> None:
    done = run(
        installed, "-c", f"try:\n from sottovoce import {name}\nexcept ImportError as e: print(e)"
    )
    assert done.stdout == f"{name} needs numpy: pip install 'sottovoce[learner]'\n", done.stderr


def test_the_lab_says_what_to_install(installed: Path) -> None:
    done = run(installed, "-c", "from sottovoce.lab import simulate")
    last = done.stderr.splitlines()[-1]
    assert re.search(r"MissingExtra: simulate needs \w+: pip install 'sottovoce\[lab\]'$", last)


@pytest.mark.parametrize("arguments", [["--help"], ["simulate"], []])
def test_the_command_says_what_to_install(installed: Path, arguments: list[str]) -> None:
    done = run(installed, "-m", "sottovoce", *arguments)
    assert done.returncode == 2
    assert re.fullmatch(
        r"error: the command line needs \w+: pip install 'sottovoce\[cli\]'\n", done.stderr
    )


def test_a_device_works_without_anything_else(installed: Path) -> None:
    experiment = sv.Experiment(arms=["a", "b"], context=[sv.Numeric("x", 0, 1)], epsilon=1.0)
    learner = sv.Learner(experiment)
    done = run(installed, "-c", DEVICE, given=sv.wire.release_to_json(learner.release()))
    learner.receive(sv.wire.report_from_json(done.stdout))
    assert learner.status().reports == {"target": 1}


def test_help_shows_a_device_without_anything_else(installed: Path) -> None:
    done = run(installed, "-c", "import pydoc, sottovoce; pydoc.help(sottovoce)")
    assert "class Device" in done.stdout
    assert "class Ledger" in done.stdout
    assert not done.stderr


def test_the_wheel_has_the_version_and_the_command(installed: Path) -> None:
    (about,) = installed.glob("sottovoce-*.dist-info")
    assert f"\nVersion: {sv.__version__}\n" in (about / "METADATA").read_text()
    assert "sottovoce=sottovoce.cli:main" in (about / "entry_points.txt").read_text()
    assert (installed / "sottovoce" / "py.typed").exists()


SOME = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {closed}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Wall())
sys.argv = ["sottovoce", *{arguments}]
from sottovoce.cli import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "closed", "said"),
    [
        (["simulate"], ["numba"], "sottovoce simulate needs numba: pip install 'sottovoce[lab]'"),
        (["bench", "speed"], ["numpy"], "needs numpy: pip install 'sottovoce[lab]'"),
        (["key", "x"], ["cryptography"], "needs cryptography: pip install 'sottovoce[server]'"),
        (["demo"], ["sqlalchemy"], "needs sqlalchemy: pip install 'sottovoce[lab,server]'"),
    ],
)
def test_a_command_says_which_extra_it_lacks(
    arguments: list[str], closed: list[str], said: str
) -> None:
    script = SOME.format(closed=closed, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith(said + "\n")
    assert len(done.stderr.splitlines()) == 1
