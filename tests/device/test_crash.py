"""A device that is killed at the worst moment loses no report and sends none twice."""

import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.outbox import Outbox
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.amending import draft
from sottovoce.shared.amendment import ADD_ARM, EXTEND_HORIZON, PAUSE, RESUME, RETIRE_ARM
from support.fake_server import FakeServer, on_loopback
from support.slow import slow_but

PERSON = """
import os, signal, sys
import sottovoce as sv
from sottovoce.device import transport

address, experiment, key, folder, moment = sys.argv[1:]

def send(request):
    if request.method == "GET":
        return transport.send(request)
    if moment == "after":
        transport.send(request)
    os.kill(os.getpid(), signal.SIGKILL)

client = sv.Client(
    address, experiment=experiment, keys=[key], outbox=folder + "/outbox", most_epsilon=1,
    ledger=sv.Ledger(folder + "/ledger", budget=1), transport=send,
)
client.report(client.choose({"age": 42, "bmi": 27.5}), reward=1)
client.send()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_report_outlives_its_process(tmp_path: Path, moment: str) -> None:
    server = FakeServer(experiment(method="whisper"))
    key = server.key.public.hex()
    with on_loopback(server) as address:
        person = [address, server.experiment, key, str(tmp_path), moment]
        done = subprocess.run([sys.executable, "-c", PERSON, *person], check=False)
        assert done.returncode == -signal.SIGKILL
        (waiting,) = Outbox(tmp_path / "outbox").oldest(9, experiment=server.experiment)
        assert len(server.bodies) == (moment == "after")
        ledger = sv.Ledger.read(tmp_path / "ledger")
        again = sv.Client(
            address,
            experiment=server.experiment,
            keys=[key],
            most_epsilon=1,
            outbox=tmp_path / "outbox",
            ledger=ledger,
        )
        assert again.waiting == 1
        assert again.flush(timeout=20)
        assert again.send() == 0
    nonce = wire.report_from_bytes(waiting.report).nonce
    assert server.bodies == {nonce: waiting.report}
    assert server.learner.status().reports == {"target": 1}
    assert ledger.left == 0
    assert len([each for each in server.seen if is_report(each)]) == 1 + (moment == "after")


def is_report(request: Request) -> bool:
    return request.method == "POST"


# --- with decisions open and amendments under way -------------------------------------------------

APP = """
import random, sys
import sottovoce as sv

address, experiment, key, folder = sys.argv[1:]
client = sv.Client(
    address, experiment=experiment, keys=[key], outbox=folder + "/outbox", most_epsilon=1,
    ledger=sv.Ledger(folder + "/ledger", budget=1e6), refresh_every=0,
)
mine = []
while True:
    decision = client.choose({"age": random.uniform(18, 90), "bmi": 27.5})
    if decision.asked:
        mine.append(decision.id)
        print("made", decision.id, flush=True)
    if mine and random.random() < 0.5:
        some = mine.pop(random.randrange(len(mine)))
        client.report(some, reward=random.choice([0, 1, None]))
        print("told", some, flush=True)
    if random.random() < 0.3:
        client.send()
"""

DAY = 86_400.0


def amend(server: FakeServer, number: int) -> None:
    """Amend by every kind in turns."""
    arms = [each for each in server.learner.experiment.arms if each.startswith("arm")]
    kinds: list[tuple[str, dict[str, Any]]] = [
        (ADD_ARM, {"arm": f"arm {number}"}),
        (PAUSE, {}),
        (RESUME, {}),
        (EXTEND_HORIZON, {"horizon": 10**6 + number}),
        (RETIRE_ARM, {"arm": arms[-1] if arms else ""}),
    ]
    kind, about = kinds[number % len(kinds)]
    now = server.learner.experiment
    made = datetime(2026, 3, 1, tzinfo=UTC)
    server.learner.amend(draft(now, kind, by="Ada", made=made, **about))
    server.publish(server.learner.release())


@pytest.mark.parametrize("rounds", slow_but([7], [7, 60]))
def test_however_often_an_app_is_killed_each_decision_ends_in_one_report(
    tmp_path: Path, rounds: int
) -> None:
    rng = random.Random()
    server = FakeServer(experiment(method="whisper", reward_window="7 days"))
    key = server.key.public.hex()
    made: list[str] = []
    told: list[str] = []
    turn = threading.Lock()

    def handle(request: Request) -> Response:
        with turn:
            return server(request)

    with on_loopback(handle) as address:
        for number in range(rounds):
            app = subprocess.Popen(
                [sys.executable, "-c", APP, address, server.experiment, key, str(tmp_path)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert app.stdout is not None
            # An experiment that is paused asks nobody; so the first line may never come.
            if server.learner.experiment.state == "running":
                made += [app.stdout.readline().split()[1]]
            time.sleep(rng.uniform(0, 0.1))
            with turn:
                amend(server, number)
            time.sleep(rng.uniform(0, 0.1))
            app.kill()
            # A line that was cut off was acknowledged to nobody.
            rest, _ = app.communicate()
            lines = [line.split() for line in rest.splitlines() if len(line) == 5 + 32]
            made += [number for word, number in lines if word == "made"]
            told += [number for word, number in lines if word == "told"]
        client = sv.Client(
            address,
            experiment=server.experiment,
            keys=[key],
            most_epsilon=1,
            outbox=tmp_path / "outbox",
            ledger=sv.Ledger.read(tmp_path / "ledger"),
            now=lambda: time.time() + 8 * DAY,
        )
        for each in made:  # all have expired by then
            with pytest.raises(sv.DeviceError, match="must be"):
                client.report(each, reward=1)
        assert client.flush(timeout=60)
        assert (client.open, client.waiting, client.refused.total()) == (0, 0, 0)
    print(f"{len(made)} made, {len(told)} told, {len(server.bodies)} reports")
    # A kill may come after a decision was kept, and before its line was written.
    assert len(made) <= len(server.bodies) <= len(made) + rounds
    spent = len(sv.Ledger.read(tmp_path / "ledger").entries())
    assert spent <= len(server.bodies) + rounds
    assert sum(server.learner.status().reports.values()) == len(server.bodies)
    assert len(set(told)) == len(told)
    assert set(told) <= set(made)


TELL = """
import sys
import sottovoce as sv

address, experiment, key, folder, decision = sys.argv[1:]
client = sv.Client(
    address, experiment=experiment, keys=[key], outbox=folder + "/outbox", most_epsilon=1,
    ledger=sv.Ledger(folder + "/ledger", budget=1),
)
client.refresh()
print("ready", flush=True)
sys.stdin.readline()
try:
    client.report(decision, reward=1)
except sv.DeviceError:
    sys.exit(3)
"""


def test_of_several_processes_that_report_the_same_decision_one_does(tmp_path: Path) -> None:
    server = FakeServer(experiment(method="whisper"))
    key = server.key.public.hex()
    with on_loopback(server) as address:
        client = sv.Client(
            address,
            experiment=server.experiment,
            keys=[key],
            most_epsilon=1,
            outbox=tmp_path / "outbox",
            ledger=sv.Ledger(tmp_path / "ledger", budget=1),
        )
        decision = client.choose({"age": 42, "bmi": 27.5})
        person = [address, server.experiment, key, str(tmp_path), decision.id]
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", TELL, *person],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: each.communicate("go\n"), processes))
        assert sorted(each.returncode for each in processes) == [0, 3, 3, 3]
        assert (client.open, client.waiting) == (0, 1)
        assert client.flush(timeout=20)
    assert len(server.bodies) == 1
