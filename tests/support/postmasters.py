"""Ways for a PostgreSQL server to die, and how it is brought back."""

import contextlib
import os
import signal
import subprocess
import time

from support.databases import cluster
from support.services import PATIENCE, alive, children, wait_until


def kill_postmaster() -> None:
    """Kill the first process only: the others notice, when they get to it, and end."""
    os.kill(_postmaster(), signal.SIGKILL)


def kill_all() -> None:
    """Kill every process at once, as the end of a machine would."""
    postmaster = _postmaster()
    for pid in (postmaster, *children(postmaster)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stop_at_once() -> None:
    """Do as ``pg_ctl stop -m immediate`` does."""
    cluster().stop()


def start_again() -> None:
    """Start it, as soon as nobody uses what the dead one has left in memory."""
    wait_until(lambda: not alive(_postmaster()), told="the postmaster must be dead")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            cluster().start()
        except subprocess.CalledProcessError:
            assert time.monotonic() < deadline, "PostgreSQL must start again"
            time.sleep(0.1)
        else:
            return


def _postmaster() -> int:
    return int(cluster()._server.get_pid())
