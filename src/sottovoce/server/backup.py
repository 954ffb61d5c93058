"""A running server's database → a folder that it can be restored from.

The folder holds the database as one SQLite file, whatever the server runs on, and a manifest that
says what is in it. It holds no signing key, unless that is asked for: whoever has the key can
publish in the server's name.

Releases follow from the log. So that the backup has every release that its reports have led to, it
waits a moment for the learner to count them, and takes the releases that came meanwhile. What is
published later follows from later reports, and can be worked out from no backup.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sottovoce.server.store import schema
from sottovoce.server.store.copying import copy_out, settle
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.amendment import WRITTEN
from sottovoce.shared.errors import StoreError, must
from sottovoce.shared.signed import first_link, last_link

DATABASE, MANIFEST, KEY = "reports.db", "manifest.json", "signing.key"
# Seconds to wait for the learner, and between two looks at it.
PATIENCE, LOOK_EVERY = 10.0, 0.1


@dataclass(frozen=True, slots=True)
class Copied:
    """One experiment of a backup.

    release, link: the newest release, and its link in the chain.
    reports: how many are in the log. learned: how many of them its releases follow from, as far as
        anybody knows.
    """

    experiment: str
    name: str
    reports: int
    learned: int
    release: int
    link: str


@dataclass(frozen=True, slots=True)
class Backup:
    """What a manifest says."""

    made: str
    version: str
    schema: int
    bytes: int
    sha256: str
    with_key: bool
    experiments: tuple[Copied, ...]


def back_up(store: Store, folder: Path, *, key: Path | None = None) -> Backup:
    """Write a backup to a new folder, while the server runs.

    key: the signing key to put beside the database; None for a backup without it.
    """
    if folder.exists():
        raise StoreError(must("a backup", "go to a new folder", f"{folder}, which exists"))
    half = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    try:
        store.check()
        half.mkdir(mode=0o700)
        path = half / DATABASE
        copy_out(store.database, path)
        _complete(store, path)
        if key is not None:
            (half / KEY).touch(mode=0o600)
            (half / KEY).write_bytes(key.read_bytes())
        backup = _described(path, with_key=key is not None)
        (half / MANIFEST).write_text(json.dumps(asdict(backup), indent=2) + "\n", encoding="utf-8")
        for each in (half / MANIFEST, half):
            descriptor = os.open(each, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        half.rename(folder)
    except OSError as error:
        raise StoreError(
            f"{folder} must be a folder that can be written; {error.strerror}"
        ) from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return backup


def read_backup(folder: Path) -> Backup:
    """Read a manifest, and check that its database is the one it speaks of."""
    what = f"the backup {folder}"
    try:
        table = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        entries = tuple(Copied(**each) for each in table.pop("experiments"))
        backup = Backup(**table, experiments=entries)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise StoreError(must(what, "have a whole manifest", "none, or another")) from None
    if backup.schema > schema.newest():
        rule = f"be of schema {schema.newest()} or older"
        hint = f"restore it with sottovoce {backup.version}"
        raise StoreError(must(what, rule, backup.schema, hint=hint))
    try:
        size, digest = _digest(folder / DATABASE)
    except OSError:
        raise StoreError(must(what, f"hold {DATABASE}", "none")) from None
    if size != backup.bytes:
        raise StoreError(must(what, f"have a database of {backup.bytes} bytes", f"{size} bytes"))
    if digest != backup.sha256:
        raise StoreError(must(what, "have the database that its manifest names", "another one"))
    return backup


def as_store(path: Path) -> Store:
    """Open a file as a database of its own."""
    return Store.open(f"sqlite:///{path.absolute()}")


def described(store: Store) -> tuple[Copied, ...]:
    """Say what experiments a database has, and how far they are."""
    found = []
    for fingerprint, text in store.experiments():
        releases = store.releases(fingerprint)
        hashes = [wire.release_hash(each.text) for each in releases]
        snapshot = store.snapshot(fingerprint)
        learned = max(snapshot[0] if snapshot else 0, releases[-1].position)
        found.append(
            Copied(
                fingerprint,
                str(json.loads(text).get("name", "")),
                store.length(fingerprint),
                learned,
                releases[-1].version,
                last_link(first_link(fingerprint), hashes).hex(),
            )
        )
    return tuple(found)


def _complete(live: Store, path: Path) -> None:
    """Take the releases that the learner makes of the reports in a copy, if it does so soon."""
    copy = as_store(path)
    names = [fingerprint for fingerprint, _ in copy.experiments()]
    lengths = {each: copy.length(each) for each in names}
    deadline = time.monotonic() + PATIENCE
    while _behind(live, lengths) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY)
    for fingerprint in _not_behind(live, lengths):
        copy.catch_up(fingerprint, live.story(fingerprint, until=lengths[fingerprint]))
    copy.close()


def _behind(live: Store, lengths: dict[str, int]) -> bool:
    return len(_not_behind(live, lengths)) < len(lengths)


def _not_behind(live: Store, lengths: dict[str, int]) -> Sequence[str]:
    """Return the experiments whose learner has counted so many reports."""
    known = {each: live.snapshot(each) for each in lengths}
    return [each for each, end in lengths.items() if end <= ((known[each] or (0,))[0])]


def _described(path: Path, *, with_key: bool) -> Backup:
    store = as_store(path)
    experiments = described(store)
    store.close()
    settle(path)
    size, digest = _digest(path)
    made = datetime.now(UTC).strftime(WRITTEN)
    return Backup(made, version("sottovoce"), schema.newest(), size, digest, with_key, experiments)


def _digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest: Any = hashlib.file_digest(file, "sha256")
    return path.stat().st_size, digest.hexdigest()
