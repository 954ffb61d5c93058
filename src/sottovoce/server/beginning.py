"""What a server looks at before it starts: that the key and the database are those of before."""

import logging
from pathlib import Path

from sottovoce.server.keys import SigningKey
from sottovoce.server.marks import Marks
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import SignatureError, StoreBehind, StoreError, must

logger = logging.getLogger(__name__)


def key_for(store: Store, path: Path, *, is_new: bool) -> SigningKey:
    """Return the signing key; make one where nothing was signed before, or if that is meant."""
    if not path.exists() and not is_new and (names := _experiments(store)):
        rule = f"be there, for the database has {len(names)} experiments that it signs"
        hint = "put it back; to sign with a new one, say --new-key"
        raise SignatureError(must(f"the signing key {path}", rule, "no file", hint=hint))
    key = SigningKey.read_or_create(path)
    if path.stat().st_mode & 0o077:
        text = "the signing key %s can be read by others than its owner: chmod 600 %s"
        logger.warning(text, path, path)
    try:
        if not is_new and _experiments(store):
            store.check_signer(key.id)
    except SignatureError:
        raise
    except StoreError as error:  # workers look again when the database is there
        logger.warning("%s", error)
    return key


def check_database(store: Store, marks: Marks, *, is_new: bool) -> None:
    """Raise StoreBehind if the database is not there any more, or has less than was published."""
    if is_new:
        marks.forget()
        return
    try:
        marks.check(store)
    except StoreBehind:
        raise
    except StoreError as error:
        if marks.read() and store.is_missing():
            hint = "put it back, or see sottovoce restore; for a new one, say --new-database"
            raise StoreBehind(
                must("the database", "be there, as it was", "no file", hint=hint)
            ) from None
        logger.warning("%s", error)


def _experiments(store: Store) -> list[str]:
    """Return the experiments of a database; none if it is away or new."""
    try:
        return [name for name, _ in store.experiments()]
    except StoreError:
        return []
