"""The service as its operator starts it: ``sottovoce serve`` in a process group of its own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from sottovoce.device.transport import Request, send
from sottovoce.shared.errors import TransportError
from sottovoce.shared.experiment import Experiment

COMMAND = [str(Path(sys.executable).with_name("sottovoce"))]
# The same with a mistake, whose name comes next. -P: beside it are modules named as others are.
FAULTY = [sys.executable, "-P", str(Path(__file__).with_name("faulty_service.py"))]
TOKEN = "the-token-of-the-administrator"  # noqa: S105
# Seconds after which something hangs.
PATIENCE = 60.0


def wait_until(what: Callable[[], bool], *, told: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not what():
        assert time.monotonic() < deadline, told
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be buried does not."""
    return _state(pid) not in ("", "Z")


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [each for each in numbers if _stat(each)[1:2] == [str(pid)]]


def _state(pid: int) -> str:
    return (_stat(pid) or [""])[0]


def _stat(pid: int) -> list[str]:
    """What the system says of a process, after its name: its state, its parent, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


class Service:
    """One server, killed and started again on the same port; nothing of it is left in the end.

    experiment: in TOML.
    command: what to run instead of sottovoce.
    """

    def __init__(
        self,
        folder: Path,
        experiment: str,
        *,
        database: str,
        workers: int = 1,
        command: list[str] = COMMAND,
    ) -> None:
        toml = folder / "experiment.toml"
        toml.write_text(experiment, encoding="utf-8")
        self._page = f"/experiments/{Experiment.from_toml(toml).fingerprint}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._output = folder / "service.log"
        self._command = [
            *command,
            *("serve", str(toml), "--database", database, "--port", str(self.port)),
            *("--workers", str(workers), "--key", str(folder / "key.pem")),
        ]
        self._groups: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Service":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for watcher in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(watcher.pid, signal.SIGKILL)
            watcher.wait()

    @property
    def output(self) -> str:
        """What all processes have said since the last start."""
        said = self._output.read_text(encoding="utf-8")
        return said[said.rfind("Serving at") :]

    @property
    def key(self) -> str:
        """The public key that it signs with."""
        return self.output.partition("Public key")[2].split()[0]

    @property
    def watcher(self) -> int:
        return self._groups[-1].pid

    def processes(self) -> dict[str, int]:
        """Return the process of each post, by its name."""
        told = re.findall(r"INFO the (learner|worker \d+) is process (\d+)", self.output)
        return {name: int(pid) for name, pid in told}

    def restarts(self) -> int:
        """Return how many processes were started once more, by the watcher or with it."""
        said = self._output.read_text(encoding="utf-8")
        return len(re.findall(r"INFO the .* is process", said)) - len(self.processes())

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._groups.append(
                subprocess.Popen(
                    self._command,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    # One that is killed leaves its temporary files: where the test's own are.
                    env={
                        **os.environ,
                        "TMPDIR": str(self._output.parent),
                        "SOTTOVOCE_ADMIN_TOKEN": TOKEN,
                    },
                )
            )

    def kill(self, name: str) -> None:
        """Kill one process; after the watcher, start all again, at once and on the same port."""
        if name == "watcher":
            children = self.processes().values()
            self._groups[-1].kill()
            self._groups[-1].wait()
            self.start()
            wait_until(lambda: not any(map(alive, children)), told="the killed left orphans")
        elif name in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.processes()[name], signal.SIGKILL)

    def wait_until_ready(self) -> None:
        def is_ready() -> bool:
            code = self._groups[-1].poll()
            assert code is None, f"it ended with {code}: {self.output}"
            try:
                return send(Request("GET", self.url + self._page)).status == 200
            except TransportError:
                return False

        wait_until(is_ready, told="the service must start")

    def stop(self) -> int:
        """Stop it as an operator does; return its exit code, when nothing of it is left."""
        children = self.processes().values()
        self._groups[-1].send_signal(signal.SIGTERM)
        code = self._groups[-1].wait(PATIENCE)
        assert not any(map(alive, children))
        return code
