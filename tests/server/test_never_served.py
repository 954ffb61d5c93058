"""Never serve what cannot be counted: a server notices, stops, and says what is wrong."""

import asyncio
import multiprocessing
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import sottovoce as sv
from sottovoce.server import serve
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.health import Health, Pulse
from sottovoce.server.ingest import Ingest, Receipt
from sottovoce.server.keys import SigningKey
from sottovoce.server.learning import LearnerPool
from sottovoce.server.store.log import ExperimentLog
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import StoreBehind, StoreDamaged, StoreFull
from support.databases import KINDS, cluster, new_database
from support.http import get, post, serving, until
from support.learned import NAME, come, newest, opened
from support.senders import pair, report_of, walking
from support.stores import change

GO_BACK = "DELETE FROM release WHERE version > 1"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, folder=tmp_path) as url:
        yield url


def forget(store: Store) -> None:
    """As if the learner had never been saved."""
    change(store, "DELETE FROM saved")
    change(store, "DELETE FROM standing")


def test_a_worker_takes_nothing_once_the_database_has_gone_back(url: str, tmp_path: Path) -> None:
    """In the same transaction: not even until the worker has looked again."""
    store = opened(url)
    come(store, 900, seed=1)
    length, release = store.length(NAME), newest(store)
    catalogue = Catalogue(store, SigningKey.create(tmp_path / "key"))
    catalogue.refresh()
    few, many = (
        [report_of(release, random.Random(seed)) for _ in range(count)]
        for seed, count in ((1, 2), (2, 600))
    )

    async def deliver() -> None:
        ingest = Ingest(store, catalogue, most_waiting=10**7)
        running = asyncio.create_task(ingest.run())
        change(store, GO_BACK)
        for reports in (few, many, few):
            with pytest.raises(StoreBehind, match=r"must have release .* which it had; got only 1"):
                await ingest.put(reports)
        running.cancel()
        ingest.close()

    asyncio.run(deliver())
    assert store.length(NAME) == length
    with pytest.raises(StoreBehind):
        catalogue.refresh()
    assert catalogue.behind == NAME
    store.close()


def test_a_database_that_went_back_and_on_again_is_noticed(url: str, tmp_path: Path) -> None:
    """Its newest version is no lower; but the one that was served has another text there."""
    store = opened(url)
    come(store, 900, seed=1)
    catalogue = Catalogue(store, SigningKey.create(tmp_path / "key"))
    catalogue.refresh()
    change(store, "DELETE FROM release WHERE version > 1")
    change(store, "DELETE FROM report")
    change(store, "DELETE FROM chained")
    forget(store)
    come(store, 1800, seed=2)
    assert newest(store).version > catalogue.newest(NAME)
    for _ in range(3):  # and it stays so
        with pytest.raises(StoreBehind):
            catalogue.refresh()
    store.close()


def test_a_learner_does_not_go_on_from_a_database_that_went_back(url: str) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    pool = LearnerPool(store)
    pool.poll()
    come_meanwhile = newest(store).version
    pool.abandon()  # its session was lost, as in a failover
    change(store, GO_BACK)
    forget(store)
    for _ in range(3):
        pool.poll()
    assert come_meanwhile > 1
    assert newest(store).version == 1
    pool.close()
    store.close()


def test_a_server_whose_database_goes_back_is_not_ready_and_serves_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, [walking()]) as server:
        rng = random.Random(0)
        while newest(server.store).version < 2:
            for _ in range(100):
                assert post(server, report_of(newest(server.store), rng)).status == 200
            server.wait_until_learned(walking())
        current = f"/experiments/{NAME}/releases/current"
        until(lambda: b'\\"version\\":2' in get(server, current).body)
        report = report_of(newest(server.store), rng)
        release = server.store.releases(NAME)[-1]
        change(server.store, GO_BACK)
        answer = post(server, report)
        assert (answer.status, answer.json()["reason"]) == (503, "database behind")
        for path in ("/ready", current):
            until(lambda path=path: get(server, path).status == 503)
            assert get(server, path).json()["reason"] == "database behind"
        assert 'sottovoce_trouble{kind="behind"} 1.0' in get(server, "/metrics").body.decode()
        with server.store.database.transaction(writes=True) as connection:
            ExperimentLog.of(connection, NAME).add_release(release)  # the standby has caught up
        until(lambda: post(server, report).status == 200)
        assert get(server, current).status == 200


def test_what_cannot_be_learned_is_not_taken_and_the_server_is_not_ready(tmp_path: Path) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    come(store, 900, seed=1)
    forget(store)
    change(store, "UPDATE release SET position = position - 1 WHERE version = 2")
    store.close()
    with serving(tmp_path, [walking()], wait=False) as server:
        until(lambda: b"cannot be learned" in get(server, "/ready").body)
        assert get(server, "/ready").json()["reason"] == "frozen"
        assert post(server, report_of(newest(server.store), random.Random(3))).status == 503
        assert 'sottovoce_trouble{kind="frozen"} 1.0' in get(server, "/metrics").body.decode()
        assert server.store.length(NAME) == 900


def test_a_full_disk_is_told_until_there_is_room(tmp_path: Path) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    catalogue = Catalogue(store, SigningKey.create(tmp_path / "key"))
    health, report = Health(), report_of(newest(store), random.Random(0))
    append = store.append

    def full(*_: object, **__: object) -> list[bool]:
        raise StoreFull("the database must have room on its disk; as a test has it")

    async def deliver() -> None:
        ingest = Ingest(store, catalogue, most_waiting=10**6, health=health)
        running = asyncio.create_task(ingest.run())
        store.append = full  # type: ignore[method-assign]
        with pytest.raises(StoreFull):
            await ingest.put([report])
        assert health.troubles().keys() == {"full"}
        store.append = append  # type: ignore[method-assign]
        assert (await ingest.put([report])).stored == 1
        assert not health.troubles()
        running.cancel()
        ingest.close()

    asyncio.run(deliver())
    store.check_room()
    store.close()


def test_a_frozen_experiment_takes_no_reports_and_the_others_do(tmp_path: Path) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    catalogue = Catalogue(store, SigningKey.create(tmp_path / "key"))
    health, pulse = Health(tmp_path), Pulse(tmp_path)
    first = sv.Learner(pair()).release()
    text = canonical_json(pair().to_table()).decode()
    store.add_experiment(pair().fingerprint, text, wire.release_to_json(first))
    others = [report_of(first, random.Random(0))]
    report = report_of(newest(store), random.Random(0))

    async def deliver() -> None:
        ingest = Ingest(store, catalogue, most_waiting=10**6, health=health)
        running = asyncio.create_task(ingest.run())
        pulse.failed({NAME: "its releases do not follow"})
        (second,) = others
        both = await asyncio.gather(
            ingest.put([report]), ingest.put([second]), return_exceptions=True
        )
        assert isinstance(both[0], StoreDamaged)
        assert isinstance(both[1], Receipt)  # in the same commit
        assert both[1].stored == 1
        pulse.failed({"another": "its releases do not follow"})
        assert (await ingest.put([report])).stored == 1
        running.cancel()
        ingest.close()

    asyncio.run(deliver())
    assert "its releases do not follow" in health.troubles()["frozen"]
    store.close()


def test_an_experiment_that_nobody_learns_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    health = Health()
    for stored, learned, later, told in (
        (100, 100, 0, False),
        (200, 150, 50, False),
        (300, 150, 50, False),
        (400, 150, 50, True),
        (400, 160, 50, False),  # it gets on
        (400, 160, 100, True),
        (400, 400, 1, False),
    ):
        now += later
        health.look({NAME: (stored, learned)})
        assert ("lagging" in health.troubles()) == told


def test_a_learner_that_gives_no_sign_of_life_is_replaced_and_told(tmp_path: Path) -> None:
    pulse, health = Pulse(tmp_path), Health(tmp_path)
    assert not health.troubles()  # it may be starting
    pulse.beat()
    assert not health.troubles()
    old = time.time() - 3600
    os.utime(tmp_path / "learner.json", (old, old))
    assert health.troubles().keys() == {"hung"}
    hung = serve._Supervised("learner", time.sleep, (600,), signs=tmp_path, hangs_after=0.2)
    hung.check()
    first = hung.process
    assert first is not None

    def looked() -> bool:
        hung.check()
        return hung.process not in (first, None)

    until(looked)
    assert first.exitcode == -signal.SIGKILL
    serve._end([hung])


def test_one_that_gives_signs_stays(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path)
    good = serve._Supervised("learner", time.sleep, (600,), signs=tmp_path, hangs_after=0.5)
    good.check()
    first, end = good.process, time.monotonic() + 2
    while time.monotonic() < end:
        pulse._beaten = -10.0
        pulse.beat()
        good.check()
        time.sleep(0.05)
    assert good.process is first
    serve._end([good])


def test_what_a_killed_server_left_is_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0,))
    gone.start()
    gone.join()
    left = tmp_path / f"sottovoce-run-{gone.pid}-abc"
    running = tmp_path / f"sottovoce-run-{os.getpid()}-abc"
    other = tmp_path / "sottovoce-run-notes"
    for each in (left, running, other):
        each.mkdir()
    serve.clean_up()
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([running.name, other.name])


@pytest.mark.slow
def test_a_frozen_postgres_leaves_no_request_without_an_answer(tmp_path: Path) -> None:
    """Its processes stand still, and its connections stay open: nothing comes back, no error."""
    with (
        new_database("postgresql", folder=tmp_path) as url,
        serving(tmp_path, [walking()], database=url) as server,
    ):
        report = report_of(newest(server.store), random.Random(0))
        rows = cluster().execute("SELECT pid FROM pg_stat_activity WHERE datname IS NOT NULL")
        with psycopg.connect(url) as watching:
            (number,) = watching.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        pids = [pid for (pid,) in rows if pid != number and Path(f"/proc/{pid}").exists()]
        postmaster = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        frozen = [postmaster, *pids]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            answers: list[int] = []
            asked = [
                threading.Thread(target=lambda: answers.append(post(server, report).status)),
                threading.Thread(target=lambda: answers.append(get(server, "/ready").status)),
                threading.Thread(
                    target=lambda: answers.append(get(server, f"/experiments/{NAME}/status").status)
                ),
            ]
            for each in asked:
                each.start()
            for each in asked:
                each.join(30)
            assert answers == [503, 503, 503]
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        until(lambda: get(server, "/ready").status == 200)
        assert post(server, report).status == 200
        assert server.store.length(NAME) == 1
