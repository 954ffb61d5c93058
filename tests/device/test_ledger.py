import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.device.database import connect

SPEND: dict[str, Any] = {"experiment": "0123456789abcdef", "name": "walking", "release": 3}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_a_ledger_adds_up_exactly_and_refuses_to_exceed_its_budget(path: Path) -> None:
    ledger = sv.Ledger(path, budget=0.5)
    for _ in range(4):
        ledger.spend(0.125, **SPEND)
    assert ledger.left == 0
    with pytest.raises(sv.BudgetSpent, match=r"be at most 0.0, what is left; got 1e-09"):
        ledger.spend(1e-9, **SPEND)
    assert len(ledger.entries()) == 4


def test_rounding_never_lets_a_ledger_overspend(path: Path) -> None:
    # Ten times 0.1 is 0.9999999999999999 in floats, and a little more than 1 exactly.
    ledger = sv.Ledger(path, budget=1.0)
    for _ in range(9):
        ledger.spend(0.1, **SPEND)
    with pytest.raises(sv.BudgetSpent):
        ledger.spend(0.1, **SPEND)


def test_even_a_correctly_rounded_sum_would_overspend_here(path: Path) -> None:
    # 0.01 + 0.07 rounds to 0.08, and is more than that exactly.
    ledger = sv.Ledger(path, budget=0.08)
    ledger.spend(0.01, **SPEND)
    with pytest.raises(sv.BudgetSpent):
        ledger.spend(0.07, **SPEND)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None])
def test_only_a_real_cost_can_be_spent(path: Path, epsilon: Any) -> None:
    ledger = sv.Ledger(path, budget=1)
    with pytest.raises(sv.ExperimentError, match="epsilon must be finite and > 0"):
        ledger.spend(epsilon, **SPEND)
    assert ledger.entries() == []


def test_the_budget_is_one_for_all_experiments(path: Path) -> None:
    ledger = sv.Ledger(path, budget=2)
    ledger.spend(1.5, experiment="0" * 16, name="walking", release=1)
    with pytest.raises(sv.BudgetSpent):
        ledger.spend(1, experiment="1" * 16, name="sleeping", release=1)


def test_what_was_spent_long_ago_is_still_spent(path: Path) -> None:
    ledger = sv.Ledger(path, budget=2)
    ledger.spend(1.5, **SPEND)
    change(path, "UPDATE spent SET moment = '1999-12-31T23:59:59+00:00'")
    with pytest.raises(sv.BudgetSpent):
        ledger.spend(1, **SPEND)


def test_spending_is_on_disk_before_it_counts(path: Path) -> None:
    sv.Ledger(path, budget=1)
    with closing(connect(path)) as database:
        assert database.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_no_file_name_has_a_meaning_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:x?mode=memory", "50% of ε"):
        sv.Ledger(name, budget=1).spend(1, **SPEND)
        assert sv.Ledger(name, budget=1).left == 0
        assert (tmp_path / name).is_file()


def test_what_was_spent_is_there_after_a_restart(path: Path) -> None:
    sv.Ledger(path, budget=2).spend(1.5, **SPEND)
    again = sv.Ledger(path, budget=2)
    assert again.left == 0.5
    with pytest.raises(sv.BudgetSpent):
        again.spend(1, **SPEND)


def test_the_budget_is_for_life(path: Path) -> None:
    sv.Ledger(path, budget=2)
    with pytest.raises(sv.LedgerError, match="the ledger's budget must be ε = 2, as"):
        sv.Ledger(path, budget=3)
    assert sv.Ledger.read(path).budget == 2


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_a_bad_budget_is_refused(path: Path, budget: float) -> None:
    with pytest.raises(sv.ExperimentError, match="the ledger's budget must be finite and > 0"):
        sv.Ledger(path, budget=budget)
    assert not path.exists()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = 1")
        database.execute(statement)


def spoil_empty(path: Path) -> None:
    path.write_bytes(b"")


def spoil_mark(path: Path) -> None:
    change(path, "PRAGMA application_id = 1")


def spoil_table(path: Path) -> None:
    change(path, "ALTER TABLE spent RENAME TO lost")


def spoil_negative(path: Path) -> None:
    change(path, "INSERT INTO spent VALUES ('', '', '', 1, -5)")


def spoil_infinite(path: Path) -> None:
    change(path, "INSERT INTO spent VALUES ('', '', '', 1, 9e999)")


def spoil_words(path: Path) -> None:
    change(path, "INSERT INTO spent VALUES ('', '', '', 1, 'some')")


def spoil_text(path: Path) -> None:
    path.write_text("not a database, but long enough to be taken for one" * 100)


def spoil_truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def spoil_other_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE spent (x)")
    database.close()


def spoil_version(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def spoil_forget_budget(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM budget")
    database.close()


def spoil_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_empty,
        spoil_mark,
        spoil_text,
        spoil_truncate,
        spoil_other_database,
        spoil_version,
        spoil_forget_budget,
        spoil_directory,
    ],
)
def test_an_unreadable_ledger_fails_closed(path: Path, spoil: Any) -> None:
    ledger = sv.Ledger(path, budget=8)
    device = sv.Device(sv.Learner(experiment()).release(), ledger=ledger)
    device.choose(CONTEXT)
    spoil(path)
    with pytest.raises(sv.LedgerError):
        device.report(reward=1)
    with pytest.raises(sv.LedgerError):
        sv.Ledger(path, budget=8)
    with pytest.raises(sv.LedgerError):
        sv.Ledger.read(path)


@pytest.mark.parametrize("spoil", [spoil_table, spoil_negative, spoil_infinite, spoil_words])
def test_a_ledger_whose_entries_make_no_sense_spends_nothing(path: Path, spoil: Any) -> None:
    ledger = sv.Ledger(path, budget=8)
    device = sv.Device(sv.Learner(experiment()).release(), ledger=ledger)
    device.choose(CONTEXT)
    spoil(path)
    with pytest.raises(sv.LedgerError):
        device.report(reward=1)
    with pytest.raises(sv.LedgerError):
        ledger.receipt()


def test_a_ledger_that_vanished_is_not_begun_again_by_spending(path: Path) -> None:
    ledger = sv.Ledger(path, budget=8)
    path.unlink()
    with pytest.raises(sv.LedgerError, match="must be readable and writable"):
        ledger.spend(1, **SPEND)
    assert not path.exists()


def test_a_read_only_ledger_fails_closed(path: Path) -> None:
    ledger = sv.Ledger(path, budget=8)
    ledger.spend(1, **SPEND)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    # Permissions do not bind root, so the attempt is made by somebody else.
    attempt = f"""
import os, sottovoce as sv
from sottovoce.device.ledger import Ledger
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    Ledger({str(path)!r}, budget=8).spend(1, experiment="0" * 16, name="n", release=1)
except sv.LedgerError as error:
    print(error)
"""
    above = [parent for parent in path.parents if parent.stat().st_mode & 0o005 != 0o005]
    for parent in above:
        if os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o005)
    done = subprocess.run(
        [sys.executable, "-c", attempt], capture_output=True, text=True, check=True
    )
    path.parent.chmod(0o755)
    assert "must be readable and writable" in done.stdout
    assert "readonly" in done.stdout
    assert len(ledger.entries()) == 1


def test_a_ledger_in_a_missing_folder_fails_closed(tmp_path: Path) -> None:
    with pytest.raises(sv.LedgerError, match="must be readable and writable"):
        sv.Ledger(tmp_path / "no" / "such" / "folder", budget=1)
    with pytest.raises(sv.LedgerError, match="must be an existing file"):
        sv.Ledger.read(tmp_path / "none")


def test_many_at_once_cannot_overspend(path: Path) -> None:
    ledger = sv.Ledger(path, budget=5)

    def try_to_spend(_: int) -> bool:
        try:
            sv.Ledger(path, budget=5).spend(1, **SPEND)
        except sv.BudgetSpent:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(try_to_spend, range(20))) == 5
    assert ledger.left == 0


def test_the_receipt_can_be_read_by_a_person(path: Path) -> None:
    ledger = sv.Ledger(path, budget=8)
    ledger.spend(1, **SPEND)
    ledger.spend(2.5, **SPEND)
    receipt = ledger.receipt()
    assert "lifetime budget  ε = 8" in receipt
    assert "spent            ε = 3.5 in 2 reports" in receipt
    assert "left             ε = 4.5" in receipt
    assert receipt.count("walking (0123456789abcdef)") == 2


# --- a budget for a time --------------------------------------------------------------------------

DAY = 86_400


class Wall:
    """A clock on the wall, which can be set."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_budget_for_a_time_is_for_every_stretch_of_it(path: Path) -> None:
    wall = Wall()
    ledger = sv.Ledger(path, budget=4, per="30 days", now=wall)
    begin = wall.now
    for day in (0, 10, 20, 29.999):
        wall.now = begin + day * DAY
        ledger.spend(1, **SPEND)
    assert ledger.left == 0
    wall.now = begin + 30 * DAY
    with pytest.raises(sv.BudgetSpent, match=r"be at most 0.0, what is left; got 1"):
        ledger.spend(1, **SPEND)  # a moment is rounded down: the first counts for a second more
    wall.now = begin + 30 * DAY + 2
    assert ledger.left == 1
    ledger.spend(1, **SPEND)
    with pytest.raises(sv.BudgetSpent):
        ledger.spend(1, **SPEND)
    wall.now = begin + 300 * DAY
    assert ledger.left == 4
    assert len(ledger.entries()) == 5


def test_within_any_stretch_no_more_than_the_budget_is_ever_spent(path: Path) -> None:
    """Whatever the moments are, and however often somebody tries."""
    rng, wall = random.Random(4), Wall()
    ledger = sv.Ledger(path, budget=1, per="7 days", now=wall)
    spent: list[float] = []
    for _ in range(300):
        wall.now += rng.expovariate(1 / (0.4 * DAY))
        try:
            ledger.spend(0.25, **SPEND)
        except sv.BudgetSpent:
            continue
        spent.append(wall.now)
    assert len(spent) > 50
    for last in spent:
        assert sum(last - 7 * DAY <= each <= last for each in spent) <= 4


def test_a_clock_that_is_set_back_frees_nothing(path: Path) -> None:
    wall = Wall()
    ledger = sv.Ledger(path, budget=1, per="7 days", now=wall)
    ledger.spend(1, **SPEND)
    wall.now -= 400 * DAY
    with pytest.raises(sv.BudgetSpent):
        ledger.spend(1, **SPEND)


def test_a_budget_is_changed_only_on_purpose(path: Path) -> None:
    ledger = sv.Ledger(path, budget=4, per="30 days")
    ledger.spend(3, **SPEND)
    for other in ({"budget": 4}, {"budget": 4, "per": "31 days"}, {"budget": 5, "per": "30 days"}):
        with pytest.raises(sv.LedgerError, match="to give it another one, call"):
            sv.Ledger(path, **other)
    assert sv.Ledger(path, budget=4, per="30d").left == 1
    smaller = sv.Ledger.change(path, budget=2, per="30 days")
    assert smaller.left == 0
    with pytest.raises(sv.BudgetSpent, match=r"be at most 0.0, what is left"):
        smaller.spend(0.5, **SPEND)
    with pytest.raises(sv.LedgerError):
        ledger.spend(1, **SPEND)  # whoever still has the old one
    larger = sv.Ledger.change(path, budget=8)
    assert (larger.left, larger.per) == (5, None)
    assert sv.Ledger.read(path).budget == 8
    receipt = larger.receipt()
    assert "budget before    ε = 4 in any 30 days, until 20" in receipt
    assert "budget before    ε = 2 in any 30 days, until 20" in receipt
    assert "lifetime budget  ε = 8" in receipt


@pytest.mark.parametrize(
    "bad", [{"budget": 0}, {"budget": "4"}, {"budget": 4, "per": "soon"}, {"budget": 4, "per": 30}]
)
def test_a_change_that_cannot_be_leaves_the_ledger_as_it_was(
    path: Path, bad: dict[str, Any]
) -> None:
    sv.Ledger(path, budget=4).spend(3, **SPEND)
    with pytest.raises(sv.ExperimentError):
        sv.Ledger.change(path, **bad)
    assert sv.Ledger(path, budget=4).left == 1
    with pytest.raises(sv.LedgerError, match="a ledger must be an existing file"):
        sv.Ledger.change(path.with_name("none"), budget=4)


def test_a_ledger_of_before_goes_on_with_all_that_was_spent(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE budget (epsilon REAL NOT NULL CHECK (epsilon > 0));"
            "CREATE TABLE spent (moment TEXT NOT NULL, experiment TEXT NOT NULL,"
            " name TEXT NOT NULL, release INTEGER NOT NULL,"
            " epsilon REAL NOT NULL CHECK (epsilon > 0));"
            "INSERT INTO budget VALUES (4);"
            "INSERT INTO spent VALUES ('2026-01-01T00:00:00+00:00', 'a', 'b', 1, 3.0);"
            "PRAGMA application_id = 0x536F766F; PRAGMA user_version = 1;"
        )
    ledger = sv.Ledger(path, budget=4)
    assert ledger.left == 1
    ledger.spend(1, **SPEND)
    assert sv.Ledger.change(path, budget=1, per="1 day").left == 0


def test_a_moment_that_is_none_is_damage(path: Path) -> None:
    ledger = sv.Ledger(path, budget=4, per="1 day")
    ledger.spend(1, **SPEND)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE spent SET moment = 'long ago'")
    with pytest.raises(sv.LedgerError, match="must say when each report was made; it is damaged"):
        ledger.spend(1, **SPEND)
