"""Once is once: a choice, a public ranking, and the one report of a client without a ledger."""

import dataclasses
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, Purse, four_bins
from sottovoce.device.ledger import OneReport
from sottovoce.device.outbox import Outbox
from sottovoce.device.whisper import subset
from sottovoce.shared import wire
from support.fake_server import FakeClock, client_of
from support.shelf import Shelf, waiting_in

YOUNG = {"age": 20, "bmi": 40}  # where arms are public, all three are live here
OLD = {"age": 80, "bmi": 20}  # one arm is left
PUBLIC = four_bins(public_arms=True)


def later(release: sv.Release) -> sv.Release:
    return dataclasses.replace(release, version=release.version + 1)


def power_cut(*_: Any, **__: Any) -> bytes:
    raise SystemError("power cut")


# --- one report ----------------------------------------------------------------------------------


def test_ten_starts_with_one_outbox_make_one_report(tmp_path: Path) -> None:
    server, outcomes = Shelf(four_bins()), Counter[bool]()
    for _ in range(10):
        client = client_of(server, ledger=None, outbox=tmp_path / "outbox")
        decision = client.choose(CONTEXT)
        outcomes[decision.asked] += 1
        client.report(decision, reward=1)
        assert client.flush()
    assert outcomes == {True: 1, False: 9}
    assert len(server.bodies) == 1


def test_the_one_report_is_spent_on_disk_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Shelf(four_bins())
    client = client_of(server, ledger=None, outbox=tmp_path / "outbox")
    monkeypatch.setattr(subset, "whisper", power_cut)
    with pytest.raises(SystemError):
        client.choose(CONTEXT)
    monkeypatch.undo()
    again = client_of(server, ledger=None, outbox=tmp_path / "outbox")
    assert not again.choose(CONTEXT).asked
    assert (again.open, again.waiting) == (0, 0)


def test_the_one_report_is_of_each_experiment_by_itself(tmp_path: Path) -> None:
    for epsilon in (1.0, 2.0):
        client = client_of(
            Shelf(four_bins(epsilon=epsilon)), ledger=None, outbox=tmp_path / "outbox"
        )
        client.report(client.choose(CONTEXT), reward=1)


def test_with_a_ledger_the_ledger_alone_decides(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    for _ in range(3):
        client = client_of(server, outbox=tmp_path / "outbox")
        client.report(client.choose(CONTEXT), reward=1)
        assert client.flush()
    assert len(server.bodies) == 3


def test_of_many_threads_and_starts_one_makes_the_report(tmp_path: Path) -> None:
    outboxes = [Outbox(tmp_path / "outbox") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        noted = list(pool.map(lambda each: each.note_report(experiment="walking"), outboxes))
    assert sorted(noted) == [False] * 7 + [True]
    one = OneReport()

    def spend(_: int) -> int:
        try:
            one.spend(1.0, experiment="", name="", release=1)
        except sv.BudgetSpent:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(50))) == 1


# --- one choice ----------------------------------------------------------------------------------


def test_a_choice_is_gone_before_its_report_is_made() -> None:
    """Whoever comes in between, another thread for example, finds none."""
    told: list[str] = []

    class Nosy(Purse):
        def spend(self, *args: Any, **kwargs: Any) -> None:
            super().spend(*args, **kwargs)
            try:
                device.report(reward=0)
            except sv.DeviceError as error:
                told.append(str(error))

    ledger = Nosy()
    device = sv.Device(four_bins(), ledger=ledger)
    device.choose(CONTEXT)
    device.report(reward=1)
    assert len(ledger.spent) == 1
    assert ["nothing was chosen" in each for each in told] == [True]


def test_a_crash_while_the_report_is_made_uses_the_choice_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Purse()
    device = sv.Device(four_bins(), ledger=ledger)
    device.choose(CONTEXT)
    monkeypatch.setattr(subset, "whisper", power_cut)
    with pytest.raises(SystemError):
        device.report(reward=1)
    monkeypatch.undo()
    with pytest.raises(sv.DeviceError, match="choose must come before each report"):
        device.report(reward=1)
    assert len(ledger.spent) == 1


def test_of_many_threads_one_reports_on_a_choice() -> None:
    ledger = Purse()
    device = sv.Device(four_bins(), ledger=ledger)
    device.choose(CONTEXT)

    def report(_: int) -> bool:
        try:
            device.report(reward=1)
        except sv.DeviceError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(report, range(50))) == 1
    assert len(ledger.spent) == 1


def test_a_context_that_is_refused_ends_the_choice_of_an_earlier_release_too() -> None:
    device = sv.Device(four_bins(), ledger=Purse())
    device.choose(CONTEXT)
    device.follow(later(four_bins()))
    with pytest.raises(sv.ContextError):
        device.choose({"age": 42})
    with pytest.raises(sv.DeviceError, match="the last context was refused"):
        device.report(reward=1)


def test_a_decision_is_reported_against_its_own_release_whatever_came_since(tmp_path: Path) -> None:
    server = Shelf(four_bins())
    client = client_of(server, outbox=tmp_path / "outbox")
    decision = client.choose(CONTEXT)
    before, server.current = server.current, later(server.current)
    assert client.refresh()
    client.report(decision, reward=1)
    client.report(client.choose(CONTEXT), reward=1)
    named = [each.release for each in waiting_in(tmp_path / "outbox", server.experiment)]
    assert named == [wire.release_id(before), wire.release_id(server.current)]


FORKS = """
import os
import sottovoce as sv
from factories import CONTEXT, Purse, four_bins
from support.fake_server import client_of
from support.shelf import Shelf

def forked(use):
    child = os.fork()
    if child == 0:
        try:
            use()
            said = "done"
        except sv.SottovoceError as error:
            said = f"{type(error).__name__} {error}"
        os.write(1, f"{said}\\n".encode())
        os._exit(0)
    os.waitpid(child, 0)

def anew(device):
    chosen = device.choose(CONTEXT)
    if isinstance(device, sv.Client):
        device.report(chosen, reward=1)
    else:
        device.report(reward=1)

device = sv.Device(four_bins(), ledger=Purse())
device.choose(CONTEXT)
for _ in range(4):
    forked(lambda: device.report(reward=1))
device.report(reward=1)
forked(lambda: anew(device))
forked(lambda: anew(sv.Device(four_bins())))

one = sv.Device(four_bins())
public = sv.Device(four_bins(public_arms=True), ledger=Purse(), public_arms=True)
client = client_of(Shelf(four_bins()), ledger=None)
client.refresh()
for each in (one, public, client):
    forked(lambda: anew(each))
    anew(each)
"""


def test_a_fork_makes_no_second_report_of_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    choice = "DeviceError a choice must be reported where it was made; got another process"
    assert done.stdout.splitlines() == [
        *[choice] * 4,
        "done",  # a choice of its own, from a ledger that agrees
        "done",  # a device of its own
        "LedgerError a device without a ledger must report where it was made; got another process",
        "DeviceError a ranking must be used where it was drawn; got another process",
        "OutboxError an outbox in memory must be used where it was made; got another process",
    ]


# --- one ranking ---------------------------------------------------------------------------------


def ranking_of(device: sv.Device) -> tuple[int, ...]:
    chosen: tuple[int, ...] = vars(device)["_pending"].secret.ranking
    return chosen


def test_however_often_an_app_chooses_the_ranking_is_that_of_the_next_report() -> None:
    device = sv.Device(PUBLIC, ledger=Purse(), public_arms=True)
    seen = []
    for _ in range(30):
        # By chance alone, the same arm would come 20 times in a row once in 3^19 reports.
        arms = {device.choose(YOUNG) for _ in range(20)}
        assert len(arms) == 1
        device.choose(OLD)
        with pytest.raises(sv.ContextError):
            device.choose({"age": 20})
        device.follow(later(PUBLIC))
        assert {device.choose(YOUNG)} == arms
        kept = ranking_of(device)
        report = device.report(reward=1)
        assert report.ranking in ((), kept)
        seen.append(kept)
    # All 30 rankings are the same, if each is new, once in 6^29 runs.
    assert len(set(seen)) > 1


def test_the_ranking_says_nothing_about_the_bin() -> None:
    """Any arm may come first, also for someone whose bin offers only one."""
    first = Counter[int]()
    for _ in range(200):
        device = sv.Device(PUBLIC, public_arms=True)
        assert device.choose(OLD) == "reminder"
        first[ranking_of(device)[0]] += 1
    # One of three never comes first in 200 once in 10^34 runs.
    assert set(first) == {0, 1, 2}


def test_every_decision_has_a_ranking_of_its_own_and_ends_in_a_report(tmp_path: Path) -> None:
    """So no app can choose until it likes what it gets, and report on that alone."""
    server, clock = Shelf(PUBLIC), FakeClock()
    client = client_of(server, clock, outbox=tmp_path / "outbox", public_arms=True)
    arms = {client.choose(YOUNG).arm for _ in range(30)}
    # By chance alone, one of three arms never comes in 30 rankings once in 60,000 runs.
    assert len(arms) == 3
    clock.now += 90_000
    assert (client.open, client.waiting) == (0, 30)
    reports = waiting_in(tmp_path / "outbox", server.experiment)
    assert len({each.ranking for each in reports}) > 1
