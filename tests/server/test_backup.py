"""Backups of running servers, and restores that go on in a new branch."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sottovoce.server.backup import DATABASE, KEY, MANIFEST, back_up, read_backup
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.keys import SigningKey
from sottovoce.server.learning import LearnerPool
from sottovoce.server.replay import replay
from sottovoce.server.restore import declare, restore
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.amending import draft, restores_of
from sottovoce.shared.amendment import EXTEND_HORIZON, PAUSE
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import Rejection, StoreError
from sottovoce.shared.signed import first_link, last_link
from sottovoce.shared.wire import nonce_of
from support.databases import KINDS, new_database
from support.learned import NAME, come, newest, opened
from support.senders import report_of, walking

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, folder=tmp_path) as url:
        yield url


def restored_to(url: str, folder: Path, tmp_path: Path, **about: bool) -> Store:
    """Restore over the same database, as an operator does whose disk is back."""
    restore(folder, url, by="operator", replace=True, **about)
    store = Store.open(url)
    store.migrate()
    return store


def test_a_restored_server_goes_on_in_a_branch_of_its_own(url: str, tmp_path: Path) -> None:
    """The text of every release that follows is new, even where the same reports come again."""
    store = opened(url)
    come(store, 1200, seed=1)
    back_up(store, tmp_path / "backup")
    before, reports = store.releases(NAME), store.length(NAME)
    later = come(store, 1200, seed=2)
    lost = store.releases(NAME)[len(before) :]
    assert len(lost) >= 2
    store.close()

    store = restored_to(url, tmp_path / "backup", tmp_path)
    assert store.releases(NAME) == before
    assert store.length(NAME) == reports
    pool = LearnerPool(store)
    pool.poll()
    first = newest(store)
    assert first.version == len(before) + 1
    (said,) = restores_of(first.experiment)
    hashes = [wire.release_hash(each.text) for each in before]
    assert (said.release, said.link) == (
        len(before),
        last_link(first_link(NAME), hashes).hex(),
    )
    # The very same reports come again, as far as they can be read.
    catalogue = Catalogue(store, SigningKey.create(tmp_path / "key"))
    verdicts = next(iter(catalogue.check(later[:1]))).refusals
    readable = [
        each
        for each in later
        if wire.release_of(each) in {wire.release_hash(one.text)[:12] for one in before}
    ]
    store.append(NAME, [(nonce_of(each), each) for each in readable])
    assert verdicts == [None]  # that of the last release that was in the backup
    pool.close()
    come(store, 1200, seed=3)
    texts = {each.text for each in store.releases(NAME)[len(before) :]}
    assert texts
    assert not texts & {each.text for each in lost}
    # A report for a lost release is read by no other text.
    for each in later:
        (checked,) = catalogue.check([each])
        known = wire.release_of(each) in {wire.release_hash(one.text)[:12] for one in before}
        assert checked.refusals == [None if known else Rejection.LOST_RELEASE]
    found = replay(store, NAME)
    assert (found.troubles, found.waiting) == ((), 0)
    assert any("restore" in each for each in found.amendments)
    store.close()


def test_the_same_backup_can_be_restored_twice(url: str, tmp_path: Path) -> None:
    store = opened(url)
    come(store, 600, seed=1)
    back_up(store, tmp_path / "backup")
    store.close()
    texts = []
    for _ in range(2):
        store = restored_to(url, tmp_path / "backup", tmp_path)
        come(store, 300, seed=2)
        texts.append({each.text for each in store.releases(NAME)})
        version = newest(store).version
        store.close()
    both = texts[0] & texts[1]
    assert version > len(both)
    store = Store.open(f"sqlite:///{tmp_path}/backup/{DATABASE}")
    assert both == {each.text for each in store.releases(NAME)}
    store.close()


def test_every_restore_has_a_branch_of_its_own(tmp_path: Path) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    back_up(store, tmp_path / "backup")
    store.close()
    names = [
        restore(tmp_path / "backup", f"sqlite:///{tmp_path}/{name}.db", by="operator")[0].branch
        for name in ("one", "other")
    ]
    assert len(set(names)) == 2


def test_a_backup_has_every_release_that_its_reports_lead_to(url: str, tmp_path: Path) -> None:
    """Also those that the learner makes after the moment of the copy, and amendments among them."""
    store = opened(url)
    rng = random.Random(0)
    some = [report_of(newest(store), rng) for _ in range(1000)]
    store.append(NAME, [(nonce_of(each), each) for each in some])
    pool = LearnerPool(store)
    calls = []
    snapshot = store.snapshot

    def learning_meanwhile(fingerprint: str) -> tuple[int, str] | None:
        calls.append(fingerprint)
        if len(calls) == 3:
            more = draft(walking(), EXTEND_HORIZON, by="operator", made=MOMENT, horizon=200_000)
            assert store.add_amendment(NAME, 1, canonical_json(more.to_table()).decode())
        if len(calls) >= 3:
            pool.poll()
        return snapshot(fingerprint)

    store.snapshot = learning_meanwhile  # type: ignore[method-assign]
    made = back_up(store, tmp_path / "backup")
    pool.close()
    copy = Store.open(f"sqlite:///{tmp_path}/backup/{DATABASE}")
    (told,) = made.experiments
    assert copy.releases(NAME) == store.releases(NAME)
    assert len(copy.releases(NAME)) == told.release > 2
    assert [each.version for each in copy.amendments(NAME)] == [2]
    found = replay(copy, NAME)
    assert (found.troubles, found.waiting) == ((), 0)
    copy.close()
    store.close()
    assert (
        read_backup(tmp_path / "backup").experiments == made.experiments
    )  # reading changes nothing


@pytest.mark.parametrize(("one", "other"), [("sqlite", "postgresql"), ("postgresql", "sqlite")])
def test_a_backup_of_one_database_is_restored_to_another(
    tmp_path: Path, one: str, other: str
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with (
        new_database(one, folder=tmp_path / "one") as url,
        new_database(other, folder=tmp_path / "other") as target,
    ):
        store = opened(url)
        come(store, 600, seed=1)
        back_up(store, tmp_path / "backup")
        (told,) = restore(tmp_path / "backup", target, by="operator")
        assert told.reports == 600
        moved = Store.open(target)
        moved.migrate()
        assert moved.read(NAME, after=0, limit=1000) == store.read(NAME, after=0, limit=1000)
        come(moved, 300, seed=2)
        assert moved.add_experiment("0" * 64, "{}", "first")  # numbers of experiments go on
        found = replay(moved, NAME)
        assert (found.troubles, found.waiting) == ((), 0)
        moved.close()
        store.close()


def test_what_waited_is_left_out_and_told(url: str, tmp_path: Path) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    pause = draft(walking(), PAUSE, by="operator", made=MOMENT)
    store.add_amendment(NAME, 1, canonical_json(pause.to_table()).decode())
    back_up(store, tmp_path / "backup")
    store.close()
    (told,) = restore(tmp_path / "backup", url, by="operator", replace=True)
    assert told.left_out == ("pause",)
    store = Store.open(url)
    store.migrate()
    come(store, 100, seed=2)
    assert [each.kind for each in newest(store).experiment.amendments] == ["restore"]
    store.close()


def test_a_database_that_went_back_by_itself_declares_a_branch(url: str, tmp_path: Path) -> None:
    store = opened(url)
    come(store, 600, seed=1)
    version = newest(store).version
    store.close()
    store = Store.open(url)
    (told,) = declare(store, by="operator")
    assert told.release == version
    come(store, 100, seed=2)
    assert [each.kind for each in newest(store).experiment.amendments] == ["restore"]
    store.close()


def test_a_key_is_in_a_backup_only_if_it_is_asked_for(tmp_path: Path) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    key = tmp_path / "sottovoce.key"
    SigningKey.create(key)
    assert not back_up(store, tmp_path / "without").with_key
    assert sorted(each.name for each in (tmp_path / "without").iterdir()) == [MANIFEST, DATABASE]
    assert back_up(store, tmp_path / "with", key=key).with_key
    assert (tmp_path / "with" / KEY).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "with" / KEY).read_bytes() == key.read_bytes()
    store.close()


SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (lambda path: truncate(path / DATABASE, -4096), "must have a database of"),
    "one byte": (lambda path: flip(path / DATABASE), "that its manifest names; got another one"),
    "no database": (lambda path: (path / DATABASE).unlink(), "must hold reports.db; got none"),
    "no manifest": (lambda path: (path / MANIFEST).unlink(), "must have a whole manifest"),
    "half a manifest": (lambda path: truncate(path / MANIFEST, -9), "must have a whole manifest"),
    "another manifest": (lambda path: told(path, nonsense=1), "must have a whole manifest"),
    "newer": (lambda path: told(path, schema=99), "or older; got 99; restore it with sottovoce"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_backup_that_is_not_whole_changes_nothing(tmp_path: Path, how: str) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    store = opened(url)
    come(store, 300, seed=1)
    back_up(store, tmp_path / "backup")
    store.close()
    spoil, message = SPOILED[how]
    spoil(tmp_path / "backup")
    before = {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    with pytest.raises(StoreError, match=message):
        restore(tmp_path / "backup", url, by="operator", replace=True)
    assert {each: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()} == before


def truncate(path: Path, by: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:by])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def told(path: Path, **more: int) -> None:
    manifest = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(manifest | more))


@pytest.mark.parametrize("beside", ["", "-wal", "-shm"])
def test_a_restore_beside_what_a_killed_server_left_is_refused(tmp_path: Path, beside: str) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    come(store, 300, seed=1)
    back_up(store, tmp_path / "backup")
    store.close()
    (tmp_path / "new").mkdir()
    left = tmp_path / "new" / f"store.db{beside}"
    left.write_bytes(b"what a killed server left")
    with pytest.raises(
        StoreError, match=f"must not meet files of another database; got {left.name}"
    ):
        restore(tmp_path / "backup", f"sqlite:///{tmp_path}/new/store.db", by="operator")
    assert [each.name for each in left.parent.iterdir()] == [left.name]


def test_a_wal_of_a_killed_server_is_put_aside_with_its_file(tmp_path: Path) -> None:
    """Beside another file it would be taken for that one's, and spoil it."""
    url = f"sqlite:///{tmp_path}/store.db"
    store = opened(url)
    come(store, 300, seed=1)
    back_up(store, tmp_path / "backup")
    come(store, 300, seed=2)
    for end in ("", "-wal", "-shm"):  # as if killed: nobody has closed it
        shutil.copyfile(f"{tmp_path}/store.db{end}", tmp_path / f"killed.db{end}")
    store.close()
    assert (tmp_path / "killed.db-wal").stat().st_size
    restore(tmp_path / "backup", f"sqlite:///{tmp_path}/killed.db", by="operator", replace=True)
    with closing(sqlite3.connect(tmp_path / "killed.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM report").fetchone() == (300,)
    (aside,) = [each for each in tmp_path.glob("killed.db.before-*") if each.name[-4:-3] != "-"]
    with closing(sqlite3.connect(aside)) as database:
        assert database.execute("SELECT count(*) FROM report").fetchone() == (600,)


def test_a_database_in_use_is_not_replaced(url: str, tmp_path: Path) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    back_up(store, tmp_path / "backup")
    with pytest.raises(StoreError, match="must be used by nobody else: stop the server"):
        restore(tmp_path / "backup", url, by="operator", replace=True)
    other = Store.open(url)
    with pytest.raises(StoreError, match="must be used by nobody else: stop the server"):
        declare(other, by="operator")
    other.close()
    assert store.length(NAME) == 300
    assert not store.amendments(NAME)
    store.close()


def test_an_experiment_that_the_backup_does_not_have_is_not_lost(url: str, tmp_path: Path) -> None:
    store = opened(url)
    back_up(store, tmp_path / "backup")
    store.add_experiment("f" * 64, "{}", "first")
    store.close()
    with pytest.raises(StoreError, match=f"hold no experiment that the backup .* got {'f' * 64}"):
        restore(tmp_path / "backup", url, by="operator", replace=True)
    store = Store.open(url)
    assert len(store.experiments()) == 2
    store.close()


def test_a_database_with_experiments_is_replaced_only_if_that_is_said(
    url: str, tmp_path: Path
) -> None:
    store = opened(url)
    back_up(store, tmp_path / "backup")
    store.close()
    with pytest.raises(StoreError, match=r"must be empty|must not meet files"):
        restore(tmp_path / "backup", url, by="operator")
    assert len(restore(tmp_path / "backup", url, by="operator", replace=True)) == 1


def test_a_backup_goes_to_a_new_folder_only(tmp_path: Path) -> None:
    store = opened(f"sqlite:///{tmp_path}/store.db")
    (tmp_path / "backup").mkdir()
    with pytest.raises(StoreError, match="must go to a new folder"):
        back_up(store, tmp_path / "backup")
    with pytest.raises(StoreError, match="must be a folder that can be written"):
        back_up(store, tmp_path / "no" / "folder")
    store.close()
