"""A disk that is full at any moment: a clear error, nothing is lost, and nothing is spent for it.

The disk is a real one, and as full as can be but for a few blocks: of each number of blocks that
are left, some file is the first that does not fit.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment
from support.disks import fill, small_disk
from support.fake_server import FakeClock, FakeServer, client_of

DAY = 86_400.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as disk:
        yield disk


class App:
    """An app whose files are on the disk; it starts anew each time."""

    def __init__(self, disk: Path, clock: FakeClock) -> None:
        self.server = FakeServer(
            experiment(method="whisper", reward=[0, 60], reward_window="7 days")
        )
        self.disk, self.clock = disk, clock
        self.start()

    def start(self) -> None:
        self.ledger = sv.Ledger(self.disk / "ledger", budget=1e6, now=self.clock)
        self.client = client_of(
            self.server, self.clock, ledger=self.ledger, outbox=self.disk / "outbox"
        )

    @property
    def spent(self) -> int:
        return len(self.ledger.entries())


def error_of(call: Callable[[], object]) -> str:
    """Say what went wrong, if anything did."""
    try:
        call()
    except (sv.OutboxError, sv.LedgerError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("left", range(13))
def test_wherever_the_disk_ends_nothing_is_spent_for_a_decision_that_is_not_kept(
    disk: Path, left: int
) -> None:
    app = App(disk, FakeClock())
    app.client.choose(CONTEXT)
    fill(disk / "ballast", but=left)
    made, told = 1, ""
    for _ in range(400):
        told = error_of(lambda: app.client.choose(CONTEXT))
        if told:
            break
        made += 1
    assert "nothing was written" in told
    (disk / "ballast").unlink()
    assert app.client.open == made
    assert app.spent == made
    app.client.choose(CONTEXT)
    assert app.client.open == app.spent == made + 1


@pytest.mark.parametrize("left", [0, 1, 2, 3])
def test_a_decision_stays_until_there_is_room_for_its_report(disk: Path, left: int) -> None:
    app = App(disk, FakeClock())
    decisions = [app.client.choose(CONTEXT) for _ in range(30)]
    fill(disk / "ballast", but=left)
    kept = []
    for each in decisions[:20]:
        if told := error_of(partial(app.client.report, each, reward=30)):
            assert "nothing was written" in told
            kept.append(each)
    assert kept or left
    (disk / "ballast").unlink()
    for each in kept:
        app.client.report(each, reward=30)
    assert (app.client.open, app.client.waiting) == (10, 20)
    app.clock.now += 7 * DAY
    fill(disk / "ballast", but=left)
    told = error_of(app.client.flush)  # ten have expired, and twenty are to be sent
    assert not told or "nothing was written" in told
    (disk / "ballast").unlink()
    app.start()
    assert app.client.flush()
    assert (app.client.open, app.client.waiting) == (0, 0)
    assert len(app.server.bodies) == app.spent == 30


def test_whoever_leaves_a_full_disk_is_told_and_leaves_later(disk: Path) -> None:
    app = App(disk, FakeClock())
    for _ in range(10):
        app.client.choose(CONTEXT)
    fill(disk / "ballast")
    with pytest.raises(sv.OutboxError, match="nothing was written"):
        app.client.leave()
    assert app.client.open == 10
    (disk / "ballast").unlink()
    app.client.leave()
    assert (app.client.open, app.client.waiting) == (0, 0)
    assert app.spent == 10
