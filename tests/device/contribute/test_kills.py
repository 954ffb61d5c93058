"""A custodian's process, killed at random, against a real learner over real HTTP."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factories import clinic
from sottovoce.device.contribute.contribute import contribute
from sottovoce.device.contribute.link import Custodian
from support.custodian_server import CustodianServer, serving
from support.custodians import (
    HEADER,
    FakeTime,
    arms_told,
    good_rows,
    named_arms,
    named_rows,
    write_csv,
)
from support.slow import slow_but

PROCESS = """
import json, sys
from sottovoce.device.contribute import link
from sottovoce.device.contribute.contribute import contribute
from sottovoce.device.contribute.link import Custodian
# Short turns, so that the process is killed at work and not only while it waits.
link.SECONDS_A_TURN = link.SECONDS_A_ROW = 0.0001
settings = json.loads(sys.argv[1])
print("begun", flush=True)
done = contribute(settings.pop("server"), settings.pop("files"), Custodian(**settings))
print(done.sent)
"""

PEOPLE = 240
ROUNDS = 30


def settings(server: CustodianServer, **others: Any) -> dict[str, Any]:
    return {
        "experiment": server.experiment.fingerprint,
        "keys": [server.key],
        "population": "clinic-b",
        "epsilon": server.experiment.populations[1].epsilon,
        **others,
    }


def start(server: CustodianServer, files: list[Path], **others: Any) -> "subprocess.Popen[str]":
    given = {"server": server.address, "files": list(map(str, files)), **settings(server, **others)}
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("suffix", slow_but(["csv"], ["csv", "parquet"]))
def test_a_run_that_is_killed_at_random_moments_reports_every_row_once(
    tmp_path: Path, suffix: str
) -> None:
    rows = named_rows(PEOPLE)
    path = tmp_path / f"rows.{suffix}"
    if suffix == "csv":
        write_csv(path, rows, header=["age", "arm", "reward"])
    else:
        table = dict(zip(["age", "arm", "reward"], zip(*rows, strict=True), strict=True))
        pq.write_table(pa.table({name: list(values) for name, values in table.items()}), path)
    rng = random.Random()
    with serving(named_arms(PEOPLE)) as server:
        process: subprocess.Popen[str] | None = None
        countdown = [0]

        def kill_at_times(stage: str) -> None:
            """Kill when a batch has come, before it is stored or before it is answered."""
            countdown[0] -= 1
            if countdown[0] == 0 and process is not None:
                os.kill(process.pid, signal.SIGKILL)
            else:
                time.sleep(0.002)

        server.hook = kill_at_times
        killed, finished = 0, False
        for _ in range(ROUNDS):
            countdown[0] = rng.randrange(3, 14) if rng.random() < 0.5 else -1
            process = start(server, [path], state=str(tmp_path / "journal"), chunk=2)
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            try:
                process.wait(rng.uniform(0, 0.12) if countdown[0] < 0 else 30)
            except subprocess.TimeoutExpired:
                process.kill()
            _, errors = process.communicate()
            killed += process.returncode == -signal.SIGKILL
            finished = process.returncode == 0
            assert process.returncode in (0, -signal.SIGKILL), errors
        assert killed >= 20
        countdown[0] = -1
        if not finished:
            process = start(server, [path], state=str(tmp_path / "journal"))
            _, errors = process.communicate()
            assert process.returncode == 0, errors
    # One form of each report ever left, and each person's report is there once.
    assert len(server.sent) == len(server.log) == PEOPLE
    assert arms_told(server) == Counter(range(PEOPLE))


def test_two_processes_cannot_have_one_journal(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", good_rows(50))
    with serving(clinic()) as server:
        second: list[subprocess.Popen[str]] = []

        def start_another(stage: str) -> None:
            if stage == "after" and not second:
                second.append(start(server, [path], state=str(tmp_path / "journal")))

        server.hook = start_another

        def wait(*progress: object) -> None:
            _, errors = second[0].communicate(timeout=60)
            assert second[0].returncode == 1
            assert "another has it now" in errors

        contribute(
            server.address,
            [path],
            Custodian(**settings(server, state=tmp_path / "journal", chunk=50, progress=wait)),
        )
    assert len(server.log) == 50


def test_csv_and_parquet_teach_a_learner_over_http(tmp_path: Path) -> None:
    first = write_csv(tmp_path / "first.csv", good_rows(1500))
    second = tmp_path / "second.parquet"
    columns = dict(zip(HEADER, zip(*good_rows(1500, first=1500), strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), second)
    with serving(clinic()) as server:
        done = contribute(
            server.address,
            [first, second],
            Custodian(
                **settings(server, state=tmp_path / "journal", chunk=400, clock=FakeTime().clock())
            ),
        )
        assert (done.rows, done.sent, done.stored) == (3000, 3000, 3000)
        assert server.learner.status().reports["clinic-b"] == 3000
        assert len(server.releases) > 1
        assert json.loads(json.dumps(asdict(done)))["stored"] == 3000
