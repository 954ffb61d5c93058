"""Slow clients, clients that vanish, and a database that is busy, full or away."""

import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.lab.local_server import LocalServer
from sottovoce.server.replay import replay
from sottovoce.shared import wire
from support.databases import cluster, new_database
from support.disks import fill, small_disk
from support.http import (
    ADMIN,
    JSON,
    Answer,
    as_json,
    ask,
    get,
    head,
    metric,
    opened,
    post,
    receipt,
    release_of,
    report_for,
    serving,
    status_on,
    until,
)
from support.stores import change

WHISPER = experiment(method="whisper")
FIRST = sv.Learner(WHISPER).release()
PATIENCE = 0.5


def length(server: LocalServer) -> int:
    return server.store.length(WHISPER.fingerprint)


def later(answer: Answer, status: int) -> None:
    """It says that nothing is lost, and when to come again."""
    assert (answer.status, answer.headers["retry-after"]) == (status, "1")
    assert set(answer.json()) == {"error"}


# Clients.


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that waits for little."""
    folder = tmp_path_factory.mktemp("small")
    with serving(folder, [WHISPER], patience=PATIENCE, most_waiting=100) as local:
        yield local


@pytest.mark.parametrize("declared", [True, False])
def test_a_report_that_did_not_arrive_in_full_is_not_stored(
    small: LocalServer, declared: bool
) -> None:
    before = length(small)
    report = report_for(FIRST)
    # All of a good report comes; but it is said that there is more.
    body = report if declared else f"{len(report):x}\r\n".encode() + report + b"\r\n"
    for leave in (socket.socket.close, lambda each: each.shutdown(socket.SHUT_WR)):
        with opened(small) as connection:
            connection.sendall(head(length=len(report) + 1 if declared else None) + body)
            time.sleep(0.1)
            leave(connection)
    time.sleep(0.2)
    assert length(small) == before
    assert post(small, report).json() == receipt(stored=1)


@pytest.mark.parametrize("drips", [False, True])
def test_a_body_that_takes_too_long_is_given_up(small: LocalServer, drips: bool) -> None:
    before = length(small)
    report = report_for(FIRST)
    with opened(small) as connection:
        connection.sendall(head(length=len(report)))
        begun = time.monotonic()
        for byte in report[:-1] if drips else b"":
            connection.sendall(bytes([byte]))
            time.sleep(0.02)
            if time.monotonic() - begun > PATIENCE:
                break
        assert status_on(connection) == 408
        assert PATIENCE <= time.monotonic() - begun < PATIENCE + 5
        is_closed(connection)
    assert length(small) == before


def is_closed(connection: socket.socket) -> None:
    with suppress(ConnectionError):
        while connection.recv(4096):
            pass


def test_a_large_body_does_not_hold_up_the_others(small: LocalServer) -> None:
    report = json.loads(as_json(report_for(FIRST)))
    del report["set"], report["question"], report["ranking"]
    body = json.dumps({**report, "payload": [1] * 4_000_000}, separators=(",", ":")).encode()
    with ThreadPoolExecutor(1) as thread:
        begun = time.monotonic()
        large = thread.submit(post, small, body, kind=JSON)
        slowest = 0.0
        while not large.done():
            asked = time.monotonic()
            assert get(small, "/health").status == 200
            slowest = max(slowest, time.monotonic() - asked)
        assert large.result().status == 400
    assert slowest < 0.6 * (time.monotonic() - begun)


def test_when_too_much_waits_the_others_come_later(small: LocalServer) -> None:
    path = small.settings.database.removeprefix("sqlite:///")
    reports = [report_for(FIRST) for _ in range(12)]
    before, turned_away = length(small), metric(small, "sottovoce_reports_turned_away_total")
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as writer,
        ThreadPoolExecutor(12) as devices,
    ):
        writer.execute("BEGIN IMMEDIATE")
        waiting = [devices.submit(post, small, report) for report in reports]
        until(lambda: any(each.done() for each in waiting))
        time.sleep(0.2)
        assert length(small) == before
        assert get(small, "/health").status == 200
        writer.execute("COMMIT")
        answers = [each.result() for each in waiting]
    refused = [answer for answer in answers if answer.status != 200]
    for answer in refused:
        later(answer, 429)
    assert 0 < len(refused) < 12
    assert all(answer.json() == receipt(stored=1) for answer in answers if answer.status == 200)
    assert length(small) == before + 12 - len(refused)
    assert metric(small, "sottovoce_reports_turned_away_total") == turned_away + len(refused)
    again = [post(small, report).json() for report in reports]
    assert again.count(receipt(stored=1)) == len(refused)


# Several workers.


def test_workers_share_nonces_and_add_up_what_they_count(tmp_path: Path) -> None:
    reports = [report_for(FIRST) for _ in range(10)]
    with serving(tmp_path, [WHISPER], workers=2) as server, ThreadPoolExecutor(16) as devices:
        answers = list(devices.map(lambda each: post(server, each), reports * 16))
        assert [answer.status for answer in answers] == [200] * 160
        assert sum(answer.json()["stored"] for answer in answers) == 10
        assert length(server) == 10
        for _ in range(4):  # whichever worker is asked
            assert metric(server, "sottovoce_reports_stored_total") == 10
            assert metric(server, "sottovoce_reports_repeated_total") == 150
            taken = {"endpoint": "take_report", "status": "200"}
            assert metric(server, "sottovoce_requests_total", **taken) == 160
        post(server, b"rubbish")
        post(server, b"rubbish", kind="application/json")
        post(server, wire.batch_to_bytes([b"rubbish"] * 5), batch=True)
        assert metric(server, "sottovoce_reports_refused_total", reason="malformed") == 7
        assert metric(server, "sottovoce_commit_seconds_count") > 0
        assert metric(server, "sottovoce_stored", experiment=WHISPER.fingerprint) == 10
        server.wait_until_learned(WHISPER)
        assert metric(server, "sottovoce_learned", experiment=WHISPER.fingerprint) == 10
        # An experiment that one worker began is known to all.
        new = experiment(method="whisper", name="new").to_table()
        made = [create(server, new) for _ in range(6)]
        assert [answer.status for answer in made] == [201, 200, 200, 200, 200, 200]
        page = f"/experiments/{made[0].json()['experiment']}/releases/current"
        assert {get(server, page).status for _ in range(6)} == {200}


def create(server: LocalServer, table: object) -> Answer:
    headers = {"Authorization": f"Bearer {server.settings.token}"}
    body = json.dumps(table).encode()
    return ask(server, "POST", "/experiments", body=body, kind="application/json", headers=headers)


# Databases.


def is_away(server: LocalServer) -> None:
    """What needs the database says later; what does not goes on."""
    later(get(server, "/ready"), 503)
    later(post(server, report_for(FIRST)), 503)
    later(post(server, wire.batch_to_bytes([report_for(FIRST)]), batch=True), 503)
    later(get(server, f"/experiments/{WHISPER.fingerprint}/status"), 503)
    later(get(server, "/experiments/0123456789abcdef"), 503)
    assert get(server, "/health").status == 200
    assert metric(server, "sottovoce_requests_total", endpoint="ready", status="503") > 0


def goes_and_comes_back(
    server: LocalServer, *, leave: Callable[[], object], come: Callable[[], object]
) -> None:
    assert post(server, report_for(FIRST)).json() == receipt(stored=1)
    current = get(server, f"/experiments/{WHISPER.fingerprint}/releases/current")
    leave()
    try:
        is_away(server)
        same = get(server, f"/experiments/{WHISPER.fingerprint}/releases/current")
        assert same.body == current.body
        report = report_for(FIRST)
        later(post(server, report), 503)
    finally:
        come()
    until(lambda: get(server, "/ready").status == 200)
    assert length(server) == 1
    assert post(server, report).json() == receipt(stored=1)
    assert post(server, report).json() == receipt(repeated=1)
    server.wait_until_learned(WHISPER)


def test_a_file_that_goes_and_comes_back(tmp_path: Path) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    with serving(tmp_path, [WHISPER], database=f"sqlite:///{home}/store.db") as server:
        goes_and_comes_back(server, leave=lambda: home.rename(away), come=lambda: away.rename(home))


def test_a_file_that_is_deleted_takes_no_more_reports(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with serving(tmp_path, [WHISPER], database=f"sqlite:///{home}/store.db") as server:
        assert post(server, report_for(FIRST)).status == 200
        shutil.rmtree(home)
        home.mkdir()
        for _ in range(3):
            later(post(server, report_for(FIRST)), 503)
        later(get(server, "/ready"), 503)


def test_a_file_that_is_another_now_is_noticed(tmp_path: Path) -> None:
    with serving(tmp_path, [WHISPER]) as server:
        assert post(server, report_for(FIRST)).status == 200
        (tmp_path / "words").write_text("not a database " * 1000)
        for file in ("store.db-wal", "store.db-shm"):
            (tmp_path / file).unlink()
        (tmp_path / "words").replace(tmp_path / "store.db")
        later(post(server, report_for(FIRST)), 503)
        later(get(server, "/ready"), 503)


def test_a_postgres_that_goes_and_comes_back(tmp_path: Path) -> None:
    with (
        new_database("postgresql", folder=tmp_path) as url,
        serving(tmp_path, [WHISPER], database=url) as server,
    ):
        goes_and_comes_back(server, leave=cluster().stop, come=cluster().start)


def test_a_postgres_that_is_down_at_the_start(tmp_path: Path) -> None:
    with new_database("postgresql", folder=tmp_path) as url:
        cluster().stop()
        try:
            with serving(tmp_path, [WHISPER], database=url, wait=False) as server:
                later(get(server, "/ready"), 503)
                later(get(server, f"/experiments/{WHISPER.fingerprint}/releases/current"), 503)
                report = report_for(FIRST)
                later(post(server, report), 503)
                cluster().start()
                until(lambda: get(server, "/ready").status == 200)
                until(lambda: post(server, report).status == 200)
                assert length(server) == 1
                assert release_of(server, WHISPER) == FIRST
                server.wait_until_learned(WHISPER)
        finally:
            cluster().start()


def test_a_postgres_without_room(tmp_path: Path) -> None:
    with (
        new_database("postgresql", folder=tmp_path) as url,
        serving(tmp_path, [WHISPER], database=url) as server,
    ):
        change(
            server.store,
            """CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               IF NEW.position > 3 THEN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END IF;
               RETURN NEW; END $$;
               CREATE TRIGGER no_room BEFORE INSERT ON report
               FOR EACH ROW EXECUTE FUNCTION no_room()""",
        )
        batch = wire.batch_to_bytes([report_for(FIRST) for _ in range(5)])
        later(post(server, batch, batch=True), 507)
        assert length(server) == 0
        change(server.store, "DROP TRIGGER no_room ON report")
        assert post(server, batch, batch=True).json() == receipt(stored=5)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk") as disk,
        serving(tmp_path, [WHISPER], database=f"sqlite:///{disk}/store.db") as server,
    ):
        assert post(server, report_for(FIRST)).json() == receipt(stored=1)
        fill(disk / "ballast")
        batch = wire.batch_to_bytes([report_for(FIRST) for _ in range(2000)])
        later(post(server, batch, batch=True), 507)
        assert length(server) == 1
        assert get(server, "/health").status == 200
        (disk / "ballast").unlink()
        assert post(server, batch, batch=True).json() == receipt(stored=2000)
        assert length(server) == 2001


def test_amendments_on_a_disk_that_is_full(tmp_path: Path) -> None:
    """Each that was answered for is there; no other is; and the learner takes them in the end."""

    def extend(horizon: int) -> Answer:
        body = json.dumps({"kind": "extend horizon", "by": "Ada", "horizon": horizon})
        path = f"/experiments/{WHISPER.fingerprint}/amendments"
        return ask(server, "POST", path, body=body, kind=JSON, headers=ADMIN)

    with (
        small_disk(tmp_path / "disk") as disk,
        serving(tmp_path, [WHISPER], database=f"sqlite:///{disk}/store.db") as server,
    ):
        fill(disk / "ballast")
        horizons = iter(range(10**6, 10**6 + 10_000))
        made = 0
        while (answer := extend(next(horizons))).status == 201:
            made += 1
        later(answer, 507)
        amendments = server.store.amendments
        assert len(amendments(WHISPER.fingerprint)) == made
        (disk / "ballast").unlink()
        assert extend(next(horizons)).status == 201
        until(lambda: not any(each.waits for each in amendments(WHISPER.fingerprint)))
        found = replay(server.store, WHISPER.fingerprint)
        assert (found.troubles, len(found.amendments)) == ((), made + 1)
