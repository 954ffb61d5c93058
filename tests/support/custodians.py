"""Logged rows of an imagined clinic, files made of them, and a clock that nobody waits for."""

import csv
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sottovoce as sv
from factories import ARMS, LEVELS
from sottovoce.device.contribute.contribute import contribute
from sottovoce.device.contribute.link import Clock, Custodian
from sottovoce.device.contribute.summary import Contribution
from sottovoce.shared import wire
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.questions import question_of
from sottovoce.shared.whisper.subset import unpack
from support.custodian_server import CustodianServer

HEADER = ("age", "activity", "arm", "reward")


class FakeTime:
    """A clock that moves only when somebody sleeps, or says that something takes time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep, random.Random(5).random)


def good_rows(count: int, *, first: int = 0) -> list[tuple[Any, ...]]:
    """Rows in which the coach helps, and nothing else does."""
    arms = [ARMS[i // 3 % 3] for i in range(first, first + count)]
    return [
        (18 + i % 72, LEVELS[i % 3], arm, int(arm == "coach"))
        for i, arm in enumerate(arms, start=first)
    ]


def write_csv(path: Path, rows: Sequence[Sequence[Any]], *, header: Sequence[str] = HEADER) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def hand_in(server: CustodianServer, files: Sequence[Path], **settings: Any) -> Contribution:
    """Contribute without a network and without waiting, with settings that fit."""
    defaults: dict[str, Any] = {
        "experiment": server.experiment.fingerprint,
        "keys": [server.key],
        "population": "clinic-b",
        "epsilon": 4.0,
        "transport": server.transport,
        "patience": 0.0,
        "most_unfit": 1.0,
        "clock": FakeTime().clock(),
    }
    return contribute(server.address, files, Custodian(**{**defaults, **settings}))


# --- people who can be told apart -----------------------------------------------------------------


def named_arms(people: int) -> sv.Experiment:
    """An experiment in which each person has an arm of their own, at an ε that hides nothing."""
    return sv.Experiment(
        arms=[f"arm {i}" for i in range(people)],
        # Levels: of numbers, some rows would be asked where they are, which names nobody.
        context=[sv.Ordinal("age", tuple(str(age) for age in range(30, 50)))],
        epsilon=1.0,
        release_every=10**6,
        auxiliary=[sv.Population("clinic-b", epsilon=60.0, users=people)],
    )


def named_rows(people: int) -> list[tuple[Any, ...]]:
    """The rows of these people: age, arm, reward."""
    return [(str(30 + i % 20), f"arm {i}", i % 2) for i in range(people)]


def arms_told(server: CustodianServer) -> Counter[int]:
    """Read each report as nobody could at a sensible ε: whose is it?"""
    told: Counter[int] = Counter()
    release = server.learner.release()
    layout = cell_layout(release, population=1, by_arm=True)
    assert layout is not None
    for body in server.log.values():
        report = wire.report_from_bytes(body)
        assert isinstance(report.payload, bytes)
        cells = layout.mechanism(question_of(report.question, release.experiment).axis)
        values = unpack(cells.mechanism, report.payload)
        ((cell, _),) = [(cell, value) for cell, value in enumerate(values) if value]
        told[cell // cells.parts] += 1
    return told
