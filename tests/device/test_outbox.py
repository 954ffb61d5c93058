import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.device.database import connect
from sottovoce.device.outbox import Kept, Outbox

WALKING, SLEEPING = "0123456789abcdef", "fedcba9876543210"
SEVEN = Kept(7, b"link 7", b"release 7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox"


@pytest.fixture(params=["disk", "memory"])
def outbox(request: pytest.FixtureRequest, path: Path) -> Outbox:
    return Outbox(path if request.param == "disk" else None, most=5)


def bodies(outbox: Outbox, limit: int = 100, experiment: str = WALKING) -> list[bytes]:
    return [each.report for each in outbox.oldest(limit, experiment=experiment)]


def test_the_oldest_come_first_and_what_was_removed_is_gone(outbox: Outbox) -> None:
    for body in (b"one", b"two", b"three"):
        outbox.put(body, experiment=WALKING)
    assert bodies(outbox) == [b"one", b"two", b"three"]
    assert bodies(outbox, limit=2) == [b"one", b"two"]
    first, second = outbox.oldest(2, experiment=WALKING)
    assert outbox.remove([first.number]) == 1
    assert outbox.remove([first.number, second.number]) == 1
    assert outbox.remove([]) == 0
    assert bodies(outbox) == [b"three"]
    assert outbox.count(experiment=WALKING) == 1


def test_a_number_is_never_given_twice(outbox: Outbox) -> None:
    outbox.put(b"one", experiment=WALKING)
    (first,) = outbox.oldest(1, experiment=WALKING)
    outbox.remove([first.number])
    outbox.put(b"two", experiment=WALKING)
    assert outbox.remove([first.number]) == 0
    assert bodies(outbox) == [b"two"]


def test_experiments_do_not_see_each_other(outbox: Outbox) -> None:
    outbox.put(b"walk", experiment=WALKING)
    outbox.put(b"sleep", experiment=SLEEPING)
    assert outbox.keep(SEVEN, experiment=WALKING, instead_of=None) is not None
    assert bodies(outbox) == [b"walk"]
    assert bodies(outbox, experiment=SLEEPING) == [b"sleep"]
    assert outbox.count(experiment=SLEEPING) == 1
    assert outbox.kept(experiment=SLEEPING) is None


def test_a_full_outbox_takes_no_more_and_drops_none(outbox: Outbox) -> None:
    for number in range(5):
        with outbox.room():
            outbox.put(bytes([number]), experiment=WALKING)
    with (
        pytest.raises(sv.OutboxError, match="an outbox must hold at most 5 decisions and reports"),
        outbox.room(),
    ):
        raise AssertionError("there is no room")
    assert bodies(outbox) == [bytes([number]) for number in range(5)]


def test_a_release_is_kept_only_instead_of_the_one_that_is_there(outbox: Outbox) -> None:
    eight, other = Kept(8, b"link 8", b"release 8"), Kept(8, b"another link", b"release 8")
    assert outbox.kept(experiment=WALKING) is None
    assert outbox.keep(eight, experiment=WALKING, instead_of=SEVEN) is None
    assert outbox.keep(SEVEN, experiment=WALKING, instead_of=None) is not None
    assert outbox.keep(other, experiment=WALKING, instead_of=None) is None
    assert outbox.keep(eight, experiment=WALKING, instead_of=SEVEN) is not None
    assert outbox.keep(other, experiment=WALKING, instead_of=SEVEN) is None
    assert outbox.kept(experiment=WALKING) == eight


def test_a_kept_release_that_is_damaged_is_refused(path: Path) -> None:
    outbox = Outbox(path)
    outbox.keep(SEVEN, experiment=WALKING, instead_of=None)
    change(path, "UPDATE kept SET link = 'text'")
    with pytest.raises(sv.OutboxError, match="must hold the release that was followed"):
        outbox.kept(experiment=WALKING)


def test_a_report_is_handed_out_when_it_is_due(path: Path) -> None:
    now = [1000.0]
    for file in (path, None):
        now[0] = 1000.0
        outbox = Outbox(file, now=lambda: now[0])
        outbox.put(b"later", experiment=WALKING, due=2000)
        outbox.put(b"now", experiment=WALKING)
        assert (bodies(outbox), outbox.due(experiment=WALKING)) == ([b"now"], 1)
        now[0] = 1999.9
        assert bodies(outbox) == [b"now"]
        now[0] = 2000.0
        assert (bodies(outbox), outbox.due(experiment=WALKING)) == ([b"later", b"now"], 2)


def test_whoever_leaves_an_experiment_leaves_nothing_of_it_here(outbox: Outbox) -> None:
    for experiment in (WALKING, SLEEPING):
        outbox.put(b"report", experiment=experiment)
        outbox.keep(SEVEN, experiment=experiment, instead_of=None)
        outbox.note_report(experiment=experiment)
    outbox.leave(experiment=WALKING)
    outbox.leave(experiment=WALKING)
    assert (bodies(outbox), outbox.kept(experiment=WALKING)) == ([], None)
    assert outbox.has_left(experiment=WALKING)
    assert not outbox.note_report(experiment=WALKING)  # what was spent stays spent
    assert not outbox.has_left(experiment=SLEEPING)
    assert bodies(outbox, experiment=SLEEPING) == [b"report"]
    assert outbox.kept(experiment=SLEEPING) == SEVEN


def test_each_experiment_is_noted_as_reported_to_once(outbox: Outbox) -> None:
    noted = [outbox.note_report(experiment=each) for each in (WALKING, SLEEPING, WALKING)]
    assert noted == [True, True, False]


def test_what_was_put_is_there_after_a_restart(path: Path) -> None:
    Outbox(path).put(b"report", experiment=WALKING)
    Outbox(path).keep(SEVEN, experiment=WALKING, instead_of=None)
    assert bodies(Outbox(path)) == [b"report"]
    assert Outbox(path).kept(experiment=WALKING) == SEVEN


def test_a_report_is_on_disk_before_put_returns(path: Path) -> None:
    Outbox(path)
    with closing(connect(path)) as database:
        assert database.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_report_that_was_sent_is_gone_from_the_disk(path: Path) -> None:
    outbox = Outbox(path)
    outbox.put(b"a body that is easily found" * 3, experiment=WALKING)
    assert b"easily found" in path.read_bytes()
    outbox.remove([each.number for each in outbox.oldest(1, experiment=WALKING)])
    assert b"easily found" not in path.read_bytes()


def test_there_is_no_room_for_a_context_an_arm_or_a_reward(path: Path) -> None:
    Outbox(path)
    with closing(sqlite3.connect(path)) as database:
        columns = [
            (table, [row[1] for row in database.execute(f"PRAGMA table_info({table})")])
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
    assert dict(columns) == {
        "waiting": ["number", "experiment", "due", "report"],
        "decision": [
            *("id", "experiment", "expires", "held", "release", "population"),
            *("question", "ranking", "kept"),
        ],
        "kept": ["experiment", "version", "link", "release"],
        "sticky": ["experiment", "key"],
        "reported": ["experiment"],
        "departed": ["experiment"],
        "sqlite_sequence": ["name", "seq"],
    }


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


TABLES = ("waiting", "decision", "sticky", "reported", "departed")


SPOILS: list[Callable[[Path], object]] = [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_text("not a database, but long enough to be taken for one" * 100),
    lambda path: path.write_bytes(path.read_bytes()[:5000]),
    lambda path: change(path, "PRAGMA application_id = 1"),
    lambda path: change(path, "PRAGMA user_version = 99"),
    lambda path: change(path, *(f"ALTER TABLE {each} RENAME TO lost_{each}" for each in TABLES)),
    lambda path: path.rename(path.with_name("elsewhere")),
]


@pytest.mark.parametrize("spoil", SPOILS)
def test_an_unreadable_outbox_fails_closed(path: Path, spoil: Callable[[Path], object]) -> None:
    outbox = Outbox(path)
    outbox.put(b"report", experiment=WALKING)
    spoil(path)
    for use in (
        lambda: outbox.room().__enter__(),
        lambda: outbox.put(b"x", experiment=WALKING),
        lambda: outbox.oldest(1, experiment=WALKING),
        lambda: outbox.remove([1]),
        lambda: outbox.count(experiment=WALKING),
        lambda: outbox.leave(experiment=WALKING),
        lambda: outbox.has_left(experiment=WALKING),
        lambda: outbox.note_report(experiment=WALKING),
    ):
        with pytest.raises(sv.OutboxError):
            use()


def test_a_report_that_is_none_is_not_handed_out(path: Path) -> None:
    outbox = Outbox(path)
    outbox.put(b"report", experiment=WALKING)
    change(path, "UPDATE waiting SET report = 'text'")
    with pytest.raises(sv.OutboxError, match="must hold reports; got something else"):
        outbox.oldest(1, experiment=WALKING)


def test_an_outbox_that_vanished_is_not_begun_again(path: Path) -> None:
    outbox = Outbox(path)
    path.unlink()
    with pytest.raises(sv.OutboxError, match="must be readable and writable"):
        outbox.put(b"report", experiment=WALKING)
    assert not path.exists()


def test_a_ledger_is_not_taken_for_an_outbox(path: Path) -> None:
    sv.Ledger(path, budget=1)
    with pytest.raises(sv.OutboxError, match="must be an outbox of version 3"):
        Outbox(path)


def test_an_outbox_of_an_older_version_is_refused_and_the_error_says_what_to_do(path: Path) -> None:
    Outbox(path)
    change(path, "PRAGMA user_version = 2")
    with pytest.raises(sv.OutboxError, match="got one of version 2: send its reports with"):
        Outbox(path)


def test_an_outbox_in_a_missing_folder_fails_closed(tmp_path: Path) -> None:
    with pytest.raises(sv.OutboxError, match="must be readable and writable"):
        Outbox(tmp_path / "no" / "folder")


def test_threads_can_share_an_outbox(path: Path) -> None:
    def put(number: int) -> None:
        Outbox(path).put(bytes([number]), experiment=WALKING)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(40)))
    assert sorted(bodies(Outbox(path))) == [bytes([number]) for number in range(40)]


def test_processes_can_share_an_outbox(path: Path) -> None:
    script = f"""
from sottovoce.device.outbox import Kept, Outbox
for number in range(20):
    Outbox({str(path)!r}).put(bytes([number]), experiment={WALKING!r})
"""
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert sorted(bodies(Outbox(path))) == sorted(bytes([n]) for n in range(20) for _ in range(3))
