"""The TypeScript device, built for tests, where there is Node."""

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from support.paths import ROOT

JS = ROOT / "js"


def node() -> str:
    """Return the command that runs Node; skip where there is none."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        pytest.skip("there is no Node here: the TypeScript device needs node 20 or newer, and npm")
    return found


def built(folder: Path) -> str:
    """Build the TypeScript device once, whichever worker comes first; return the command of Node.

    folder: one that all workers share.
    """
    command, make = node(), shutil.which("make") or "make"
    with (folder / "js.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run([make, "-s", "js-build"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return command
