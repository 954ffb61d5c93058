"""What holds for all tests."""

import subprocess
import sys

import pytest
from hypothesis import settings

# A busy machine is no fault: how fast things are is measured in benchmarks/.
settings.register_profile("sottovoce", deadline=None)
settings.load_profile("sottovoce")

COMPILE = """
from sottovoce.lab import Auxiliary, Exponential, simulate

for method in ("whisper", "ldpmab", "abse", "linear", "nn"):
    simulate(Exponential(), method=method, epsilon=1, n=200, seed=0, auxiliary=[Auxiliary(50, 1.0)])
"""
COMPILED = ("lab", "cli", "recordings", "docs", "benches", "contracts")
"""Folders whose tests simulate: they come last, when the crowd has been compiled."""

_compiling = pytest.StashKey["subprocess.Popen[bytes]"]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the crowd once, beside the first tests, so that no two workers do the same."""
    if session.config.getoption("numprocesses", None):  # not in a worker, not for a single test
        run = [sys.executable, "-c", COMPILE]
        process = subprocess.Popen(run, stderr=subprocess.DEVNULL)
        session.config.stash[_compiling] = process


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave no process behind."""
    if process := session.config.stash.get(_compiling, None):
        process.kill()
        process.wait()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the tests that need nothing compiled come first."""
    tests = config.rootpath / "tests"

    def simulates(item: pytest.Item) -> bool:
        by_folder = item.path.relative_to(tests).parts[0] in COMPILED
        return by_folder or hasattr(getattr(item, "module", None), "simulate")

    items.sort(key=simulates)
