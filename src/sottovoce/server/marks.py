"""What this machine knows to be published, in a file beside the signing key.

A database can go back in time: somebody puts an old file in its place, a WAL is lost, a standby
that was behind takes over. It cannot notice that by itself. So the workers write down, for each
experiment, the newest release and how long its log was, and the server does not start on a database
that has less: it would publish other releases under old numbers. ``sottovoce restore`` declares a
new branch in such a database, and that is enough.
"""

import hashlib
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from sottovoce.server.amendments import document_of
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.amendment import RESTORE
from sottovoce.shared.errors import StoreBehind, StoreError, must

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """One experiment: its newest release, the hash of its text, and how long its log was.

    branches: the names of its branches so far.
    """

    version: int
    text: str
    length: int
    branches: tuple[str, ...] = ()


class Marks:
    """The marks of one database. key: the file of the signing key, beside which they are."""

    def __init__(self, key: Path, database: str) -> None:
        self._path = key.with_name(f"{key.name}.published")
        # Not the address: it may hold a password.
        address = make_url(database).set(password=None).render_as_string()
        self._name = hashlib.sha256(address.encode()).hexdigest()[:16]
        self._noted: dict[str, Mark] = {}
        self._is_told = False

    def read(self) -> dict[str, Mark]:
        """Return what is noted of the database; nothing where there is no file."""
        entries = self._table().get(self._name, {})
        try:
            return {
                name: Mark(**{**entry, "branches": tuple(entry["branches"])})
                for name, entry in entries.items()
            }
        except (AttributeError, KeyError, TypeError):
            raise self._trouble() from None

    def note(self, marks: Mapping[str, Mark]) -> None:
        """Note what is published by now, if it is more than before. A folder may be read-only."""
        if marks == self._noted:
            return
        try:
            table = self._table()
            before = self.read()
            merged = {**before, **{n: _later(m, before.get(n)) for n, m in marks.items()}}
            self._write({**table, self._name: {n: asdict(m) for n, m in merged.items()}})
            self._noted = dict(marks)
        except (OSError, StoreError) as error:
            if not self._is_told:
                logger.warning("what is published cannot be noted in %s: %s", self._path, error)
            self._is_told = True

    def forget(self) -> None:
        """Forget the database: a new one is begun on purpose."""
        table = self._table()
        if table.pop(self._name, None) is not None:
            self._write(table)

    def check(self, store: Store) -> None:
        """Raise StoreBehind if a database has less than what is noted of it."""
        noted = self.read()
        there = {name for name, _ in store.experiments()} if noted else set()
        for name, mark in noted.items():
            what = f"the database must have experiment {name[:16]} with release {mark.version}"
            hint = "which was published from it: put the database back, or see sottovoce restore"
            if name not in there:
                raise StoreBehind(f"{what}, {hint}; to begin with a new one, say --new-database")
            documents = [document_of(one) for one in store.amendments(name)]
            branches = {one.branch for one in documents if one.kind == RESTORE}
            if branches - set(mark.branches):
                continue  # it was restored, and says so
            found = store.release(name, mark.version)
            if found is None or wire.release_hash(found.text).hex() != mark.text:
                raise StoreBehind(f"{what}, {hint}")
            if (length := store.length(name)) < mark.length:
                rule = f"have {mark.length} reports, as many as it had"
                hint = "put it back, or see sottovoce restore"
                raise StoreBehind(must(f"the log of {name[:16]}", rule, length, hint=hint))

    def _table(self) -> dict[str, Any]:
        try:
            table = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise self._trouble() from None
        if not isinstance(table, dict):
            raise self._trouble()
        return table

    def _trouble(self) -> StoreError:
        hint = "look whether the database is what it was, and delete it"
        return StoreError(must(str(self._path), "be as it was written", "another file", hint=hint))

    def _write(self, table: Mapping[str, Any]) -> None:
        half = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}.part")
        try:
            half.write_text(json.dumps(table), encoding="utf-8")
            half.replace(self._path)
        finally:
            half.unlink(missing_ok=True)


def _later(now: Mark, before: Mark | None) -> Mark:
    """Keep the later of two: several workers note what they see."""
    if before is None or set(now.branches) > set(before.branches):
        return now
    return max(now, before, key=lambda mark: (mark.version, mark.length))
