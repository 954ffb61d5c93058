"""A backup → a database, which goes on in a new branch; never under an old number with other text.

Devices may hold releases that are newer than the backup: that part of the history is lost. So the
first thing that a restored server publishes is a RESTORE. It names the last release that there is
and its link in the chain, and every later release carries it. Its text has a random name in it: so
nothing that follows has the text of anything that was lost, and no report is read by another text
than its own. Devices and monitors check it (``device/releases.py``, ``device/monitor.py``).

Amendments that waited for the learner are left out: it may have taken them in what was lost, and
they name what was before them. Ask for them again.
"""

import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sottovoce.server.amendments import document_of, experiment_after, text_of
from sottovoce.server.backup import DATABASE, Backup, as_store, described, read_backup
from sottovoce.server.store.copying import copy_in, refuse_company, settle
from sottovoce.server.store.sqlite import Sqlite
from sottovoce.server.store.store import Store
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ARCHIVED, RESTORE, WRITTEN
from sottovoce.shared.errors import StoreError, must
from sottovoce.shared.experiment import Experiment

BESIDE = ("", "-wal", "-shm", "-journal")
"""What belongs to an SQLite database."""


@dataclass(frozen=True, slots=True)
class Restored:
    """One experiment that goes on in a new branch.

    release: the last one that there is. branch: the name of what follows.
    reports: how many there are.
    left_out: amendments that waited, in words.
    """

    experiment: str
    name: str
    reports: int
    release: int
    branch: str
    left_out: tuple[str, ...]


def restore(folder: Path, url: str, *, by: str, replace: bool = False) -> list[Restored]:
    """Fill a database from a backup, and declare new branches in it.

    replace: whether the database may hold experiments, all of them also in the backup. An SQLite
        file is then put aside, not deleted.
    """
    backup = read_backup(folder)
    store = Store.open(url)
    database = store.database
    try:
        if isinstance(database, Sqlite):
            return _to_file(folder / DATABASE, database, backup, by=by, replace=replace)
        store.migrate()
        _check_replaced(store, backup)
        half = folder.with_name(f"{folder.name}.restoring")
        try:
            shutil.copyfile(folder / DATABASE, half)
            restored = _declared_in(half, by=by)
            copy_in(half, database, replace=replace)
        finally:
            _remove(half)
        return restored
    finally:
        store.close()


def declare(store: Store, *, by: str) -> list[Restored]:
    """Declare a new branch of every experiment in a database that something else has restored."""
    store.check()
    database = store.database
    if isinstance(database, Sqlite):
        _check_alone(database)
    else:
        with database.transaction() as connection:
            refuse_company(connection)
    return _declare(store, by=by)


def _to_file(
    copy: Path, database: Sqlite, backup: Backup, *, by: str, replace: bool
) -> list[Restored]:
    path = database.path
    if not path.parent.is_dir():
        raise StoreError(must("the database", "be in a folder that exists", str(path.parent)))
    there = [file for end in BESIDE if (file := _beside(path, end)).exists()]
    if there and not replace:
        hint = "put them aside, or say --replace"
        came = " and ".join(each.name for each in there)
        raise StoreError(must("a restore", "not meet files of another database", came, hint=hint))
    if path.exists():
        _check_alone(database)
        _check_replaced(Store(database), backup)
        database.engine.dispose()
    half = _beside(path, ".restoring")
    try:
        shutil.copyfile(copy, half)
        restored = _declared_in(half, by=by)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        aside = _beside(path, f".before-{moment}-{secrets.token_hex(2)}")
        for end in BESIDE:
            if (old := _beside(path, end)).exists():
                old.rename(_beside(aside, end))
        half.rename(path)
    finally:
        _remove(half)
    return restored


def _check_alone(database: Sqlite) -> None:
    if not database.is_alone():
        rule = "be used by nobody else: stop the server"
        raise StoreError(must("a database to restore", rule, "one in use"))


def _check_replaced(store: Store, backup: Backup) -> None:
    """Refuse to lose an experiment that the backup does not have."""
    known = {each.experiment for each in backup.experiments}
    others = [each for each, _ in store.experiments() if each not in known]
    if others:
        rule = f"hold no experiment that the backup does not have ({', '.join(sorted(known))})"
        raise StoreError(must("a database to replace", rule, ", ".join(others)))


def _declared_in(path: Path, *, by: str) -> list[Restored]:
    """Declare the branches in a file before it is put in its place."""
    copy = as_store(path)
    copy.migrate()
    restored = _declare(copy, by=by)
    copy.close()
    settle(path)
    return restored


def _declare(store: Store, *, by: str) -> list[Restored]:
    found: list[Restored] = []
    texts = dict(store.experiments())
    for each in described(store):
        logged = store.amendments(each.experiment)
        taken = [one for one in logged if not one.waits]
        first = Experiment.from_table(json.loads(texts[each.experiment]))
        experiment = experiment_after(first, taken)
        if experiment.state == ARCHIVED:
            continue  # nothing is published any more, and nothing can be lost
        branch = secrets.token_hex(16)
        made = datetime.now(UTC)
        if taken:  # a clock that was put back must not keep this one out
            last = datetime.strptime(document_of(taken[-1]).made, WRITTEN).replace(tzinfo=UTC)
            made = max(made, last)
        about = {"release": each.release, "link": each.link, "branch": branch}
        amendment = draft(experiment, RESTORE, by=by, made=made, **about)
        amended(experiment, amendment)
        store.replace_waiting(each.experiment, len(taken) + 1, text_of(amendment))
        waiting = [document_of(one) for one in logged if one.waits]
        left_out = tuple(str(one) for one in waiting if one.kind != RESTORE)
        found.append(
            Restored(each.experiment, each.name, each.reports, each.release, branch, left_out)
        )
    return found


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _remove(path: Path, ends: Sequence[str] = (*BESIDE, "-migration")) -> None:
    for end in ends:
        _beside(path, end).unlink(missing_ok=True)
