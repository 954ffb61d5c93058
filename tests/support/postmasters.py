"""Ways for a PostgreSQL server to die, and how it is brought back."""

import os
import signal
from contextlib import suppress

from support.databases import cluster
from support.services import alive, children, wait_until


def kill_postmaster() -> None:
    """Kill the first process only: the others notice, when they get to it, and end."""
    postmaster, *others = processes()
    os.kill(postmaster, signal.SIGKILL)
    _clear_away([postmaster, *others])


def kill_all() -> None:
    """Kill every process at once, as the end of a machine would."""
    everyone = processes()
    for pid in everyone:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _clear_away(everyone)


def stop_at_once() -> None:
    """Do as ``pg_ctl stop -m immediate`` does."""
    cluster().stop()


def processes() -> list[int]:
    """Return the postmaster and all that it has started."""
    postmaster = int(cluster()._server.get_pid())
    return [postmaster, *children(postmaster)]


def _clear_away(dead: list[int]) -> None:
    """Wait for the last to end, and remove the lock files of the first.

    PostgreSQL would do so itself, but not where nobody buries processes without a parent: it
    takes those for alive.
    """
    wait_until(lambda: not any(map(alive, dead)), told="PostgreSQL must be dead")
    server = cluster()._server
    sockets = server.get_postmaster_info().socket_dir
    for lock in (server.pgdata / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
        lock.unlink(missing_ok=True)
