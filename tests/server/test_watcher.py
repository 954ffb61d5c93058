"""The processes of a server: how they end, and what becomes of one that cannot start."""

import os
import re
import signal
import socket
import threading
from pathlib import Path

import pytest

from sottovoce.device.transport import Request, send
from sottovoce.server.serve import Listening
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import SottovoceError
from support.senders import WALKING, Senders, walking
from support.services import FAULTY, Service, alive, wait_until


@pytest.mark.parametrize("how", ["SIGTERM", "Ctrl-C"])
def test_it_ends_when_told_to_also_after_kills(tmp_path: Path, how: str) -> None:
    """One that was killed must not leave anything behind that the others wait for."""
    with Service(tmp_path, WALKING, database=f"sqlite:///{tmp_path}/reports.db") as service:
        service.wait_until_ready()
        first = service.processes()
        for name in first:
            service.kill(name)
        wait_until(
            lambda: not set(service.processes().values()) & set(first.values()),
            told="the killed must be started again",
        )
        service.wait_until_ready()
        if how == "Ctrl-C":
            os.killpg(service.watcher, signal.SIGINT)  # as a terminal does
        assert service.stop() == 0
        assert "Traceback" not in service.output


def test_when_the_watcher_is_killed_all_end_even_while_they_start(tmp_path: Path) -> None:
    with Service(tmp_path, WALKING, database=f"sqlite:///{tmp_path}/reports.db") as service:
        for _ in range(3):
            wait_until(lambda: len(service.processes()) == 2, told="it must start")
            children = list(service.processes().values())
            service.kill("watcher")
            assert not any(map(alive, children))
        service.wait_until_ready()
        assert service.stop() == 0


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_tried_again_less_and_less_often(tmp_path: Path) -> None:
    with Service(tmp_path, WALKING, database=f"sqlite:///{tmp_path}/reports.db") as service:
        service.wait_until_ready()
        learner = service.processes()["learner"]
        key = tmp_path / "key.pem"
        key.rename(tmp_path / "away.pem")
        service.kill("worker 1")
        wait_until(lambda: len(pauses(service, "worker 1")) >= 4, told="it must be tried again")
        assert pauses(service, "worker 1")[:4] == [0.2, 0.2, 0.4, 0.8]
        (tmp_path / "away.pem").rename(key)
        service.wait_until_ready()
        assert service.processes()["learner"] == learner
        assert service.stop() == 0


@pytest.mark.slow
def test_a_learner_that_fails_at_each_start_keeps_nobody_from_reporting(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/reports.db"
    command = [*FAULTY, "fail_to_learn"]
    with Service(tmp_path, WALKING, database=database, command=command) as service:
        service.wait_until_ready()
        worker = service.processes()["worker 1"]
        with Senders(service.url, walking()) as senders:
            wait_until(lambda: len(pauses(service, "learner")) >= 4, told="it must be tried again")
            senders.wait_for(200)
        assert pauses(service, "learner")[:4] == [0.2, 0.4, 0.8, 1.6]
        assert service.processes()["worker 1"] == worker
        assert service.stop() == 0
    store = Store.open(database)
    assert store.length(walking().fingerprint) >= len(senders.acknowledged) > 200
    assert store.newest_versions()[walking().fingerprint] == 1


def pauses(service: Service, name: str) -> list[float]:
    """Return how long the watcher waited each time before it started a process again."""
    told = re.findall(rf"the {name} ended \(.*?\); starting it again in (\S+) s", service.output)
    return list(map(float, told))


def test_a_port_that_is_taken_is_waited_for_a_while() -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with pytest.raises(SottovoceError, match="must be free to listen on"):
        Listening.on("127.0.0.1", port, patience=0.2)
    threading.Timer(0.2, taken.close).start()
    listening = Listening.on("127.0.0.1", port)
    assert listening.port == port
    listening.close()


def test_workers_share_the_port_and_count_together(tmp_path: Path) -> None:
    """Metrics add up what all workers counted, also those that are no more."""
    database = f"sqlite:///{tmp_path}/reports.db"
    with Service(tmp_path, WALKING, database=database, workers=2) as service:
        service.wait_until_ready()
        with Senders(service.url, walking()) as senders:
            senders.wait_for(300)
        service.kill("worker 1")
        with Senders(service.url, walking()) as more:
            more.wait_for(300)
        said = send(Request("GET", f"{service.url}/metrics")).body.decode()
        stored = int(float(re.findall(r"^sottovoce_reports_stored_total (\S+)", said, re.M)[0]))
        # The last commit before the end of a process may not have been counted.
        assert stored <= Store.open(database).length(walking().fingerprint) <= stored + 100
        assert service.stop() == 0
    assert len(senders.acknowledged) + len(more.acknowledged) >= 600
