"""The drill: a backup under load, many more reports, kill -9, a restore; and all come back."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.device.monitor import Monitor
from sottovoce.device.transport import Request, Response, send
from sottovoce.server.replay import replay
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from support.databases import KINDS, new_database
from support.learned import NAME, newest
from support.senders import WALKING, Senders, walking
from support.services import COMMAND, Service, alive, wait_until
from support.stores import query

PERSON = {"age": 42, "sleep": 7}


class Phone:
    """A device: some reports are sent, some given to a network that loses them, some wait."""

    def __init__(self, service: Service, folder: Path) -> None:
        folder.mkdir()
        self.is_online = True
        self.ledger = sv.Ledger(folder / "ledger", budget=1000.0)
        self.client = sv.Client(
            service.url,
            experiment=NAME,
            keys=[service.key],
            most_epsilon=8.0,
            outbox=folder / "outbox",
            ledger=self.ledger,
            refresh_every=1e9,
            transport=self._send,
            jitter=lambda: 0.0,
        )
        assert self.client.refresh()
        self.version = self._version

    @property
    def _version(self) -> int:
        assert self.client.release is not None
        return self.client.release.version

    def live(self) -> None:
        """Three decisions of each kind: sent and taken; given to the network; never sent."""
        decisions = [self.client.choose(PERSON) for _ in range(9)]
        for each in decisions[:3]:
            self.client.report(each, reward=1.0)
        assert self.client.send() == 3
        self.is_online = False
        for each in decisions[3:6]:
            self.client.report(each, reward=0.0)
        assert self.client.send() == 0
        self.client.report(decisions[6], reward=1.0)
        assert (self.client.waiting, self.client.open) == (4, 2)

    def come_back(self) -> None:
        self.is_online = True
        assert self.client.refresh()
        self.client.send()

    def _send(self, request: Request) -> Response:
        if not self.is_online:
            raise sv.TransportError("the server must be reachable; the phone is offline")
        return send(request)


def sottovoce(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def look(service: Service, folder: Path) -> tuple[tuple[object, ...], tuple[str, ...]]:
    keys = [service.key]
    found = Monitor([service.url], experiment=NAME, keys=keys, folder=folder).look()
    assert not found.unreachable
    return found.findings, found.restores


def restore(*arguments: str) -> None:
    """PostgreSQL may need a moment to notice that those who were killed are gone."""
    command = [*COMMAND, "restore", *arguments]

    def is_done() -> bool:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0 or "used by nobody else" in done.stderr, done.stderr
        return done.returncode == 0

    wait_until(is_done, told="the killed must be gone")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_drill(tmp_path: Path, kind: str) -> None:
    releases, backup = tmp_path / "releases", tmp_path / "backup"
    with new_database(kind, folder=tmp_path) as database:
        store = Store.open(database)
        with Service(tmp_path, WALKING, database=database, workers=2) as service:
            service.wait_until_ready()
            early = Phone(service, tmp_path / "early")
            with Senders(service.url, walking()) as senders:
                senders.wait_for(1500)
                wait_until(lambda: newest(store).version > 2, told="it must learn")
                middle = Phone(service, tmp_path / "middle")
                sottovoce("backup", str(backup), "--database", database)
                senders.wait_for(10_000, patience=300)
                wait_until(lambda: newest(store).version > 6, told="it must learn")
            copied = json.loads((backup / "manifest.json").read_text())["experiments"][0]
            late = Phone(service, tmp_path / "late")
            assert early.version < middle.version <= copied["release"] < late.version
            for phone in (early, middle, late):
                phone.live()
            assert look(service, releases) == ((), ())
            lost = store.releases(NAME, after=copied["release"])
            store.close()
            os.killpg(service.watcher, signal.SIGKILL)
            wait_until(
                lambda: not any(map(alive, service.processes().values())), told="all must die"
            )
            restore(str(backup), "--database", database, "--replace", "--by", "Ada")
            service.start()
            service.wait_until_ready()
            store = Store.open(database)
            wait_until(lambda: newest(store).version > copied["release"], told="it must go on")
            before = store.length(NAME)
            for phone in (early, middle, late):
                phone.come_back()
            wait_until(
                lambda: (store.snapshot(NAME) or (0,))[0] == store.length(NAME),
                told="it must learn",
            )

            # None is lost that a release can read: all that waited there were taken.
            for phone in (early, middle):
                assert (phone.client.waiting, phone.client.open) == (0, 2)
                assert len(phone.ledger.entries()) == 9
            assert store.length(NAME) == before + 8
            # Of the lost release, what was sent stays spent; what was not is given back.
            assert (late.client.waiting, late.client.open) == (3, 0)
            assert len(late.ledger.entries()) == 6
            assert "given back       ε = 24, for 3 reports never sent" in late.ledger.receipt()
            assert not late.client.refused

            # No report is read by another text than its own.
            now = store.releases(NAME, after=copied["release"])
            assert not {each.text for each in now} & {each.text for each in lost}
            known = {wire.release_hash(each.text)[:12] for each in store.releases(NAME)}
            rows = query(store, "SELECT body FROM report")
            assert {wire.release_of(bytes(body)) for (body,) in rows} <= known

            # Who watches is told; and the log agrees.
            findings, restores = look(service, releases)
            assert findings == ()
            assert len(restores) == 1
            assert f"goes on from release {copied['release']}" in restores[0]
            status = json.loads(send(_get(service, "status")).body)
            assert status["restores"] == 1
            words = [each["words"] for each in status["amendments"]]
            assert [f"restore from release {copied['release']}" in each for each in words] == [True]
            found = replay(store, NAME)
            assert (found.troubles, found.waiting) == ((), 0)
            store.close()
            assert service.stop() == 0


def _get(service: Service, page: str) -> Request:
    return Request("GET", f"{service.url}/experiments/{NAME}/{page}")
