"""The journal: what it keeps, in which order, and what it refuses."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import sottovoce as sv
from factories import clinic
from sottovoce.device.contribute.journal import Begun, Journal, Pins
from sottovoce.device.device import Device
from sottovoce.shared import wire
from sottovoce.shared.errors import OutboxError

FILE = Begun(b"sha", 100, b"name", b"columns", rows=20)


def pins() -> Pins:
    return Pins(clinic().fingerprint, "clinic-b", 4.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with closing(Journal(path, pins=pins())) as journal:
        journal.begin(FILE)
        yield journal


def reports(count: int) -> list[bytes]:
    """Reports whose nonces fall from one to the next, while the releases rise."""
    first = sv.Learner(clinic()).release()
    report = Device(first, population="clinic-b", most_epsilon=4.0).report_nothing_logged()
    return [
        wire.report_to_bytes(
            replace(report, release=bytes([i]) * 12, nonce=bytes([count - i]) * 16)
        )
        for i in range(count)
    ]


def test_reports_are_kept_in_the_order_of_their_nonces_and_not_of_their_rows(
    journal: Journal,
) -> None:
    made = reports(9)
    journal.keep(b"sha", rows=(0, 9), reports=made)
    kept = [each.report for each in journal.oldest(100, experiment="")]
    assert kept == made[::-1]


@pytest.mark.parametrize("count", [0, 8, 10])
def test_rows_are_finished_only_with_one_report_each(journal: Journal, count: int) -> None:
    with pytest.raises(OutboxError, match=f"one report for each of 9 rows; got {count}"):
        journal.keep(b"sha", rows=(0, 9), reports=reports(count))
    assert journal.count(experiment="") == 0
    assert journal.files() == [FILE]


def test_rows_are_finished_only_once(journal: Journal) -> None:
    journal.keep(b"sha", rows=(0, 9), reports=reports(9))
    with pytest.raises(OutboxError, match="say that 0 rows are done"):
        journal.keep(b"sha", rows=(0, 9), reports=reports(9))
    assert journal.count(experiment="") == 9
    assert journal.files() == [replace(FILE, done=9)]


@pytest.mark.parametrize("version", [1, 3])
def test_a_journal_of_another_version_is_refused_and_left_alone(path: Path, version: int) -> None:
    Journal(path, pins=pins()).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(OutboxError, match=f"a journal of version 2; got one of version {version}"):
        Journal(path, pins=pins())
    assert path.read_bytes() == before


def test_a_journal_has_only_what_it_needs(journal: Journal, path: Path) -> None:
    journal.close()
    with closing(sqlite3.connect(path)) as database:
        columns = {
            table: [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
            for (table,) in database.execute("SELECT name FROM sqlite_master")
        }
    assert columns == {
        "pinned": ["experiment", "population", "epsilon"],
        "files": ["sha256", "size", "name", "columns", "rows", "done"],
        "waiting": ["number", "report"],
    }
