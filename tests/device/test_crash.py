"""A device that is killed at the worst moment loses no report and sends none twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.outbox import Outbox
from sottovoce.device.transport import Request
from sottovoce.shared import wire
from support.fake_server import FakeServer, on_loopback

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
