"""A server in this very process: it knows what the test has registered."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

import sottovoce as sv
from sottovoce.lab.local_server import LocalServer
from sottovoce.server.app import create_app
from sottovoce.server.keys import SigningKey
from sottovoce.server.learning import learn_until
from sottovoce.server.serve import Listening
from sottovoce.server.settings import ServerSettings
from sottovoce.server.store.store import Store
from support.http import TOKEN, get, until


@contextmanager
def serving_here(folder: Path, experiments: Sequence[sv.Experiment]) -> Iterator[LocalServer]:
    """Run the worker and the learner of a server in threads, and stop them in the end."""
    key = SigningKey.create(folder / "key.pem")
    settings = ServerSettings(
        database=f"sqlite:///{folder}/store.db",
        key=folder / "key.pem",
        token=TOKEN,
        experiments=tuple(experiments),
    )
    listening, stopped = Listening.on("127.0.0.1", 0), threading.Event()
    config = uvicorn.Config(
        create_app(settings), log_config=None, access_log=False, lifespan="on", ws="none"
    )
    worker, store = uvicorn.Server(config), Store.open(settings.database)
    threads = [
        threading.Thread(target=worker.run, kwargs={"sockets": [listening.bound]}),
        threading.Thread(target=learn_until, args=(stopped.is_set, store)),
    ]
    for thread in threads:
        thread.start()
    server = LocalServer(listening.url, key.public.hex(), store, settings)
    try:
        for each in experiments:
            status = f"/experiments/{each.fingerprint}/status"
            until(lambda path=status: get(server, path).status == 200)
        yield server
    finally:
        worker.should_exit = True
        stopped.set()
        for thread in threads:
            thread.join()
        listening.close()
        store.close()
