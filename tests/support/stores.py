"""A store with two experiments, and looks behind its door."""

import subprocess
import sys
import time
from typing import Any

from sqlalchemy import text

from sottovoce.server.store.store import LearnerSession, Store

NAME = "0123456789abcdef"
OTHER = "fedcba9876543210"


def opened(url: str) -> Store:
    store = Store.open(url)
    store.migrate()
    for name in (NAME, OTHER):
        store.add_experiment(name, f'{{"name": "{name}"}}', "first")
    return store


def learning(store: Store) -> LearnerSession:
    """Take the lock that is free by now, or will be in a moment."""
    for _ in range(200):
        session = store.learner_session(NAME)
        if session is not None:
            return session
        time.sleep(0.05)
    raise AssertionError("nobody let go of the lock")


def reports(*numbers: int, body: str = "body") -> list[tuple[bytes, bytes]]:
    return [(number.to_bytes(16), f"{body} {number}".encode()) for number in numbers]


def query(store: Store, statement: str, **values: object) -> list[Any]:
    with store._database.transaction() as connection:
        return [tuple(row) for row in connection.execute(text(statement), values)]


def change(store: Store, statement: str) -> None:
    with store._database.transaction(writes=True) as connection:
        connection.exec_driver_sql(statement)


def is_whole(store: Store, *, length: int) -> None:
    """Every report is there once, and the positions are 1, 2, 3, … without a gap."""
    rows = query(store, "SELECT position, nonce FROM report WHERE experiment = 1 ORDER BY position")
    assert [position for position, _ in rows] == list(range(1, length + 1))
    assert len({bytes(nonce) for _, nonce in rows}) == length
    assert store.length(NAME) == length


def process(script: str, *arguments: str) -> "subprocess.Popen[str]":
    begin = "import sys, time; from sottovoce.server.store.store import Store, LoggedRelease\n"
    command = [sys.executable, "-c", begin + script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
