"""Logged rows of an imagined clinic, and files made of them."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factories import ARMS, LEVELS
from sottovoce.device.contribute.contribute import contribute
from sottovoce.device.contribute.link import Custodian
from sottovoce.device.contribute.summary import Contribution
from support.custodian_server import CustodianServer

HEADER = ("age", "activity", "arm", "reward")


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
    """Contribute without a network, with settings that fit."""
    defaults: dict[str, Any] = {
        "experiment": server.experiment.fingerprint,
        "keys": [server.key],
        "population": "clinic-b",
        "epsilon": 4.0,
        "transport": server.transport,
        "patience": 0.0,
    }
    return contribute(server.address, files, Custodian(**{**defaults, **settings}))
