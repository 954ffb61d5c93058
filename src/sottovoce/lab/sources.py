"""Which version of the rules and of the lab this is, for caches and files of results."""

import hashlib
from functools import cache
from pathlib import Path

_LAB = Path(__file__).parent


@cache
def source_digest() -> str:
    """Return 16 hexadecimal digits that change with any source file of the lab or the estimator."""
    digest = hashlib.sha256()
    for path in sorted([*_LAB.rglob("*.py"), *(_LAB.parent / "estimate").rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
