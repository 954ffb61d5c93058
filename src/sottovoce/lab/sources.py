"""Which version of the rules and of the lab this is, for caches and files of results."""

import hashlib
from functools import cache
from pathlib import Path

_LAB = Path(__file__).parent


@cache
def source_digest() -> str:
    """Return 16 hexadecimal digits that change with any source file that a run depends on."""
    digest = hashlib.sha256()
    rooms = (_LAB, *(_LAB.parent / room for room in ("device", "estimate", "shared")))
    for path in sorted(path for room in rooms for path in room.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
