"""The processes of a server: workers that talk to the network, one learner, and their supervisor.

They share nothing but the database and the port they listen on: no lock, no event, no queue, for
one that is killed would take any of those with it. The supervisor starts one that dies again; when
the supervisor itself dies, by whatever means, the others notice and end.
"""

import errno
import gc
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from sottovoce.server.health import HANGS_AFTER, Pulse, silence
from sottovoce.server.settings import ServerSettings
from sottovoce.shared.errors import SottovoceError

logger = logging.getLogger(__name__)

# Seconds until a process that was killed is started again.
RESTART_AFTER = 0.2
# Seconds, at most, until one that ended by itself is started again. The pause doubles each time:
# a process that cannot start would otherwise keep a core busy.
LONGEST_PAUSE = 10.0
# Seconds for a process to finish what it is doing.
GRACE = 10.0
# Seconds to wait for a port that is in use: the workers of a killed server free it in a moment.
PATIENCE = 10.0

# How the folder of a run is called; the number of the process that serves follows.
FOLDER = "sottovoce-run-"

_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens."""

    host: str
    port: int
    bound: socket.socket

    @classmethod
    def on(cls, host: str, port: int, *, patience: float = PATIENCE) -> "Listening":
        """Bind; port 0 is any that is free. patience: seconds to wait for one that is not."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family)
        # A server that was killed can be started again at once.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadline = time.monotonic() + patience
        while True:
            try:
                bound.bind((host, port))
                bound.listen(2048)
                return cls(host, bound.getsockname()[1], bound)
            except (OSError, OverflowError) as trouble:
                is_taken = isinstance(trouble, OSError) and trouble.errno == errno.EADDRINUSE
                if not is_taken or time.monotonic() > deadline:
                    bound.close()
                    text = f"{host}:{port} must be free to listen on; {trouble}"
                    raise SottovoceError(text) from None
            time.sleep(0.05)

    def close(self) -> None:
        """Listen no more."""
        self.bound.close()

    @property
    def url(self) -> str:
        """The address for people and devices."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def serve(
    settings: ServerSettings,
    listening: Listening,
    *,
    workers: int = 1,
    stopped: threading.Event | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until ``stopped``."""
    stopped = stopped or threading.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
    clean_up()
    with tempfile.TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-") as metrics:
        settings = replace(settings, folder=Path(metrics))
        processes = [_Supervised("learner", _learn, (settings,), signs=Path(metrics))]
        processes += [
            _Supervised(f"worker {n + 1}", _work, (settings, listening, metrics))
            for n in range(workers)
        ]
        try:
            while not stopped.is_set():
                for each in processes:
                    each.check()
                wait([each.process.sentinel for each in processes if each.process], timeout=0.1)
        finally:
            _end(processes)
            listening.close()


def clean_up() -> None:
    """Remove the folders of servers that were killed: nobody has their number any more."""
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER}*-*"):
        number = path.name.removeprefix(FOLDER).partition("-")[0]
        if number.isdigit() and not _runs(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


class _Supervised:
    """A process that is started again whenever it ends.

    signs: the folder where it gives signs of life; one that does not is killed.
    """

    def __init__(
        self,
        name: str,
        target: Callable[..., None],
        arguments: tuple[object, ...],
        *,
        signs: Path | None = None,
        hangs_after: float = HANGS_AFTER,
    ) -> None:
        self._signs, self._hangs_after = signs, hangs_after
        self.process: BaseProcess | None = None
        self._name = name
        self._target = target
        self._arguments = arguments
        self._begun = self._due = time.monotonic()
        self._pause = RESTART_AFTER

    def check(self) -> None:
        """Start it when it is due; notice when it has ended."""
        if self.process is not None and self._hangs():
            logger.warning("the %s gives no sign of life, and is replaced", self._name)
            self.process.kill()
            self.process.join()
        if self.process is not None and not self.process.is_alive():
            self._ended(self.process.exitcode)
        if self.process is None and time.monotonic() >= self._due:
            try:
                self._start()
            except OSError as error:  # no more processes, or no memory: there may be some later
                self._later(f"cannot be started ({error})", pause=LONGEST_PAUSE)

    def _hangs(self) -> bool:
        """Say whether it has given no sign of life for long, by its last one and by its start."""
        if self._signs is None or time.monotonic() - self._begun <= self._hangs_after:
            return False
        return silence(self._signs) > self._hangs_after

    def _start(self) -> None:
        # A daemon: a supervisor that fails ends without waiting for it.
        process = _spawn.Process(
            target=self._target, args=self._arguments, name=self._name, daemon=True
        )
        process.start()
        self.process, self._begun = process, time.monotonic()
        logger.info("the %s is process %s", self._name, process.pid)

    def _ended(self, code: int | None) -> None:
        self.process = None
        was_killed = code is not None and code < 0
        if was_killed or time.monotonic() - self._begun > LONGEST_PAUSE:
            self._pause = RESTART_AFTER
        self._later(f"ended ({code})", pause=self._pause)
        if not was_killed:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _later(self, what: str, *, pause: float) -> None:
        self._due = time.monotonic() + pause
        logger.warning("the %s %s; starting it again in %g s", self._name, what, pause)


def _end(supervised: Sequence[_Supervised]) -> None:
    processes = [each.process for each in supervised if each.process]
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


def _work(settings: ServerSettings, listening: Listening, metrics: str) -> None:
    """Be a worker, until SIGTERM."""
    _begin()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics  # before the metrics are imported
    import uvicorn

    from sottovoce.server.app import create_app

    # Threads hand over the interpreter sooner, so that the one that commits does not wait.
    sys.setswitchinterval(0.001)
    # The garbage collector leaves out what was imported: to go through it takes some 30 ms, and
    # nothing else happens meanwhile.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        create_app(settings),
        proxy_headers=False,
        access_log=False,  # it would hold the addresses of people
        log_config=None,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(GRACE) - 2,
    )
    uvicorn.Server(config).run(sockets=[listening.bound])


def _learn(settings: ServerSettings) -> None:
    """Be the learner, until SIGTERM."""
    _begin()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    from sottovoce.server.learning import learn_until
    from sottovoce.server.store.store import Store

    store, pulse = Store.open(settings.database), Pulse(settings.folder)
    pulse.beat()
    learn_until(stopping.is_set, store, keep=settings.keep_reports, pulse=pulse)


def _begin() -> None:
    """Set up a process: it logs, leaves Ctrl-C to the supervisor, and dies when that does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def outlive() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)  # at once, as if killed: nothing that was acknowledged can be lost

    threading.Thread(target=outlive, daemon=True).start()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
