"""A server starts only with the key and the database of before, and says what to do otherwise."""

import json
import logging
import shutil
from pathlib import Path

import pytest

from sottovoce.server.beginning import check_database, key_for
from sottovoce.server.keys import SigningKey
from sottovoce.server.marks import Mark, Marks
from sottovoce.server.restore import declare
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import SignatureError, StoreBehind, StoreError
from sottovoce.shared.wire import release_hash
from support.learned import NAME, come, newest, opened
from support.stores import change


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def marks_of(store: Store, tmp_path: Path, url: str) -> Marks:
    """Note all that is published, as a worker does."""
    marks = Marks(tmp_path / "sottovoce.key", url)
    last = store.releases(NAME)[-1]
    restores = [each for each in newest(store).experiment.amendments if each.kind == "restore"]
    branches = tuple(each.branch or "" for each in restores)
    text = release_hash(last.text).hex()
    marks.note({NAME: Mark(last.version, text, store.length(NAME), branches)})
    return marks


def test_a_missing_key_is_not_replaced_where_there_are_experiments(
    tmp_path: Path, url: str
) -> None:
    store, path = opened(url), tmp_path / "sottovoce.key"
    with pytest.raises(SignatureError, match=r"must be there, for the database has 1 .*--new-key"):
        key_for(store, path, is_new=False)
    assert not path.exists()
    assert key_for(store, path, is_new=True).public == SigningKey.read(path).public
    store.close()


def test_a_new_key_is_made_where_nothing_was_signed(tmp_path: Path, url: str) -> None:
    store = Store.open(url)
    assert key_for(store, tmp_path / "sottovoce.key", is_new=False)
    assert not (tmp_path / "store.db").exists()
    store.close()


def test_a_second_machine_with_another_key_is_refused(tmp_path: Path, url: str) -> None:
    store = opened(url)
    one, other = (SigningKey.create(tmp_path / name) for name in ("one", "other"))
    store.note_signer(one.id, is_new=False)
    store.note_signer(one.id, is_new=False)
    with pytest.raises(SignatureError, match=f"must be {one.id}, which has signed so far"):
        store.note_signer(other.id, is_new=False)
    with pytest.raises(SignatureError, match="if it is meant, say --new-key"):
        key_for(store, tmp_path / "other", is_new=False)
    store.note_signer(other.id, is_new=True)
    for name in ("one", "other"):  # while machines change over
        key_for(store, tmp_path / name, is_new=False)
    store.close()


def test_a_key_that_all_can_read_is_warned_of(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, path = opened(url), tmp_path / "sottovoce.key"
    SigningKey.create(path)
    key_for(store, path, is_new=False)
    assert "can be read by others" not in caplog.text
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        key_for(store, path, is_new=False)
    assert "can be read by others" in caplog.text
    store.close()


def test_a_missing_database_is_not_replaced_by_an_empty_one(tmp_path: Path, url: str) -> None:
    store = opened(url)
    come(store, 300, seed=1)
    marks = marks_of(store, tmp_path, url)
    check_database(store, marks, is_new=False)
    store.close()
    (tmp_path / "store.db").unlink()
    again = Marks(tmp_path / "sottovoce.key", url)
    with pytest.raises(StoreBehind, match=r"got no file; put it back.* say --new-database"):
        check_database(Store.open(url), again, is_new=False)
    assert not (tmp_path / "store.db").exists()
    store = opened(url)  # an empty one
    with pytest.raises(StoreBehind, match=r"must have release|with release"):
        check_database(store, again, is_new=False)
    check_database(store, again, is_new=True)
    check_database(store, Marks(tmp_path / "sottovoce.key", url), is_new=False)
    store.close()


def test_an_older_database_is_found_and_one_with_a_declared_branch_is_taken(
    tmp_path: Path, url: str
) -> None:
    """The finding of a trial: a copy of before was put back, and old numbers got other texts."""
    store = opened(url)
    come(store, 600, seed=1)
    store.close()
    shutil.copyfile(tmp_path / "store.db", tmp_path / "older.db")
    store = opened(url)
    come(store, 900, seed=2)
    marks = marks_of(store, tmp_path, url)
    store.close()
    (tmp_path / "older.db").replace(tmp_path / "store.db")
    store = opened(url)
    with pytest.raises(StoreBehind, match="see sottovoce restore"):
        check_database(store, marks, is_new=False)
    declare(store, by="operator")
    check_database(store, marks, is_new=False)
    come(store, 900, seed=3)
    marks = marks_of(store, tmp_path, url)
    # What was declared once is no excuse the next time.
    change(store, "DELETE FROM release WHERE version = (SELECT max(version) FROM release)")
    with pytest.raises(StoreBehind):
        check_database(store, marks, is_new=False)
    store.close()


def test_a_log_that_has_lost_its_end_is_found(tmp_path: Path, url: str) -> None:
    """As a WAL that was cut short loses it: no release is missing."""
    store = opened(url)
    come(store, 600, seed=1)
    marks = marks_of(store, tmp_path, url)
    change(store, "DELETE FROM report WHERE position > 590")
    with pytest.raises(StoreBehind, match="must have 600 reports, as many as it had; got 590"):
        check_database(store, marks, is_new=False)
    store.close()


def test_the_marks_of_other_databases_stay(tmp_path: Path, url: str) -> None:
    key = tmp_path / "sottovoce.key"
    here, there = Marks(key, url), Marks(key, "postgresql://me:secret@db.example.org/other")
    here.note({NAME: Mark(3, "aa", 10)})
    there.note({NAME: Mark(7, "bb", 20)})
    here.note({NAME: Mark(2, "cc", 5)})  # of a worker that is behind
    assert here.read() == {NAME: Mark(3, "aa", 10)}
    assert there.read() == {NAME: Mark(7, "bb", 20)}
    assert "secret" not in (tmp_path / "sottovoce.key.published").read_text()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": 3'])
def test_marks_that_are_spoiled_are_told(tmp_path: Path, url: str, text: str) -> None:
    (tmp_path / "sottovoce.key.published").write_text(text)
    with pytest.raises(StoreError, match="must be as it was written; got another file"):
        Marks(tmp_path / "sottovoce.key", url).read()


def test_a_folder_that_is_read_only_stops_nobody(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    marks = Marks(tmp_path / "sottovoce.key", url)
    for version in (1, 2):
        marks.note({NAME: Mark(version, "aa", 1)})
    assert caplog.text.count("cannot be noted") == 1
    monkeypatch.undo()
    marks.note({NAME: Mark(3, "aa", 1)})
    assert json.loads((tmp_path / "sottovoce.key.published").read_text())
