"""Which keys have signed the releases of a database."""

from sqlalchemy import Connection, text

from sottovoce.shared.errors import SignatureError, must


def signers(connection: Connection) -> set[str]:
    """Return the ids of the keys that have signed."""
    return set(connection.execute(text("SELECT key FROM signer")).scalars())


def check_signer(key: str, known: set[str]) -> None:
    """Refuse a key that has not signed so far, if another one has."""
    if known and key not in known:
        rule = f"be {' or '.join(sorted(known))}, which has signed so far"
        hint = "devices may not trust another one; if it is meant, say --new-key"
        raise SignatureError(must("the signing key", rule, key, hint=hint))
