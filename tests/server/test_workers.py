"""Several workers, and several machines, on one database learn what one would."""

import asyncio
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sottovoce as sv
from sottovoce.lab.environments import Slope
from sottovoce.lab.people import Visit, visit, with_outcomes
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.ingest import Ingest, RefusedReport
from sottovoce.server.keys import SigningKey
from sottovoce.server.replay import replay
from sottovoce.server.store.postgres import LOCK
from sottovoce.server.store.store import LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import Rejection, StoreError
from support.databases import cluster, new_database
from support.relearning import relearn
from support.senders import PAIR, pair, report_of, walking
from support.services import Service, wait_until

PEOPLE = 1200
# The sessions that hold the learner's lock, by the name of their machine.
HOLDERS = """
SELECT application_name, pid FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND classid = %s AND objid <> 0
"""


class Watch:
    """Looks again and again who holds the learner's lock."""

    def __init__(self) -> None:
        self.holders: list[list[tuple[str, int]]] = []

    def look(self) -> list[tuple[str, int]]:
        found = [(str(name), int(pid)) for name, pid in cluster().execute(HOLDERS, LOCK)]
        self.holders.append(found)
        return found

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()

        def keep_on() -> None:
            while not stop.wait(0.02):
                with suppress(psycopg.Error):
                    self.look()

        thread = threading.Thread(target=keep_on)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@pytest.mark.slow
def test_two_machines_with_several_workers_learn_what_one_learner_would(tmp_path: Path) -> None:
    watch = Watch()
    with new_database("postgresql", folder=tmp_path) as database:
        store = Store.open(database)
        with (
            machine("one", tmp_path, database, workers=2) as one,
            machine("two", tmp_path, database, workers=1) as two,
            watch.running(),
            ThreadPoolExecutor(2) as rooms,
        ):
            visits = [rooms.submit(come, each, seed) for seed, each in enumerate((one, two))]
            wait_until(lambda: store.length(pair().fingerprint) > PEOPLE // 2, told="people come")
            ((name, session),) = watch.look()
            active = {"one": one, "two": two}[name]
            begun = time.monotonic()
            os.kill(active.processes()["learner"], signal.SIGKILL)
            wait_until(
                lambda: [pid for _, pid in watch.look()] not in ([], [session]),
                told="another learner must take over",
            )
            print(f"another learner had the lock after {time.monotonic() - begun:.2f} s")
            for each in visits:
                each.result()
            wait_until(lambda: has_learned_all(store), told="the learner must catch up")
        found = replay(store, pair().fingerprint)
        assert (found.troubles, found.waiting, found.reports) == ((), 0, 2 * PEOPLE)
        _, releases = relearn(store, pair())
        assert store.releases(pair().fingerprint) == releases
        assert len(releases) >= 3  # so many there were in each of 1200 simulated runs
        store.close()
    # Never two at a time; and both have been, one after the other.
    assert max(map(len, watch.holders)) == 1
    assert len({holder for held in watch.holders for holder in held}) >= 2


def test_a_worker_refuses_nothing_that_the_database_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while it has yet to notice what another has published, nor while the database is away.

    A refusal is for good: the client forgets the report.
    """
    store = Store.open(f"sqlite:///{tmp_path}/store.db")
    store.migrate()
    second, report = first_two(store)
    newest_versions = store.newest_versions

    async def deliver() -> None:
        key = SigningKey(Ed25519PrivateKey.generate())
        ingest = Ingest(store, Catalogue(store, key), most_waiting=10**6)
        running = asyncio.create_task(ingest.run())
        monkeypatch.setattr(store, "newest_versions", away)
        for _ in range(3):
            with pytest.raises(StoreError):
                await ingest.put([report])
        monkeypatch.setattr(store, "newest_versions", newest_versions)
        assert (await ingest.put([report])).refused == [RefusedReport(0, Rejection.UNKNOWN_RELEASE)]
        publish(store, second)
        assert (await ingest.put([report])).stored == 1
        running.cancel()
        ingest.close()

    asyncio.run(deliver())
    assert store.length(walking().fingerprint) == 1


def away() -> dict[str, int]:
    raise StoreError("the database must be reachable; as a test has it")


def first_two(store: Store) -> tuple[LoggedRelease, bytes]:
    """Add an experiment; return its second release, not yet published, and a report for it."""
    learner, rng = sv.Learner(walking()), random.Random(0)
    text = canonical_json(walking().to_table()).decode()
    store.add_experiment(walking().fingerprint, text, wire.release_to_json(learner.release()))
    while learner.release().version == 1:
        learner.receive(wire.report_from_bytes(report_of(learner.release(), rng)))
    release = learner.release()
    return LoggedRelease(2, 1, wire.release_to_json(release)), report_of(release, rng)


def publish(store: Store, release: LoggedRelease) -> None:
    session = store.learner_session(walking().fingerprint)
    assert session is not None
    session.publish([release])
    session.close()


@contextmanager
def machine(name: str, folder: Path, database: str, *, workers: int) -> Iterator[Service]:
    """A server of its own, with the key of all of them; its sessions bear its name."""
    own, key = folder / name, folder / "key.pem"
    own.mkdir()
    SigningKey.read_or_create(key)
    shutil.copy2(key, own / "key.pem")
    address = f"{database}&application_name={name}"
    with Service(own, PAIR, database=address, workers=workers) as service:
        service.wait_until_ready()
        yield service
        assert service.stop() == 0


def come(service: Service, seed: int) -> Visit:
    rng = np.random.default_rng(seed)
    return visit(service, pair(), with_outcomes(Slope(), rng, PEOPLE), tablets=4)


def has_learned_all(store: Store) -> bool:
    snapshot = store.snapshot(pair().fingerprint)
    return snapshot is not None and snapshot[0] == 2 * PEOPLE
