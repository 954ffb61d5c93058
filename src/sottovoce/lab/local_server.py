"""A server of one's own on this machine, for the demo, for measurements and for tests."""

import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sottovoce.device.transport import Request, Response, send
from sottovoce.server.keys import SigningKey
from sottovoce.server.serve import Listening, serve
from sottovoce.server.settings import ServerSettings
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import StoreError, TransportError
from sottovoce.shared.experiment import Experiment

# Seconds for it to start.
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that runs.

    key: the public key that devices have to trust.
    """

    url: str
    key: str
    store: Store
    settings: ServerSettings

    def get(self, path: str) -> Response:
        """Ask for a page."""
        return send(Request("GET", self.url + path))

    def wait_until_learned(self, experiment: Experiment, *, patience: float = PATIENCE) -> None:
        """Return when the learner has counted all that is stored, and said so."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            snapshot = self.store.snapshot(experiment.fingerprint)
            if snapshot and snapshot[0] == self.store.length(experiment.fingerprint):
                return
            time.sleep(0.05)
        raise StoreError(f"the learner must catch up within {patience:g} seconds; it did not")


@contextmanager
def running(
    experiments: Sequence[Experiment],
    *,
    database: str | None = None,
    port: int = 0,
    workers: int = 1,
    measured: bool = False,
) -> Iterator[LocalServer]:
    """Start a server on the loopback address, and stop it in the end.

    database: a new SQLite file, gone in the end, unless it is given.
    measured: see ``ServerSettings``.
    """
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:
        key = SigningKey.create(Path(folder) / "key.pem")
        settings = ServerSettings(
            database=database or f"sqlite:///{folder}/reports.db",
            key=Path(folder) / "key.pem",
            new_key=True,
            token=secrets.token_urlsafe(24),
            experiments=tuple(experiments),
            measured=measured,
        )
        listening = Listening.on("127.0.0.1", port)
        store = Store.open(settings.database)
        stopped = threading.Event()
        watcher = threading.Thread(
            target=serve,
            args=(settings, listening),
            kwargs={"workers": workers, "stopped": stopped},
        )
        watcher.start()
        try:
            local = LocalServer(listening.url, key.public.hex(), store, settings)
            _wait_until_ready(local)
            yield local
        finally:
            stopped.set()
            watcher.join()
            store.close()


def _wait_until_ready(server: LocalServer) -> None:
    deadline = time.monotonic() + PATIENCE
    paths = [f"/experiments/{each.fingerprint}/status" for each in server.settings.experiments]
    while time.monotonic() < deadline:
        try:
            if all(server.get(path).status == 200 for path in ["/ready", *paths]):
                return
        except TransportError:
            pass
        time.sleep(0.05)
    raise TransportError(f"the server must start within {PATIENCE:g} seconds; it did not")
