"""Which version of the rules and of the lab this is, for caches, files of results and draws."""

import ast
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

_LAB = Path(__file__).parent

RULES = ("shared", "device", "estimate", "lab/baselines", "lab/problems")
"""What decides how much people lose: all that devices and learners run by, the baselines they are
compared with, and the draw of the problems."""


@cache
def source_digest() -> str:
    """Return 16 hexadecimal digits that change with any source file that a run depends on."""
    digest = hashlib.sha256()
    rooms = (_LAB, *(_LAB.parent / room for room in ("device", "estimate", "shared")))
    for path in sorted(path for room in rooms for path in room.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def rules_digest(package: Path = _LAB.parent) -> str:
    """Return the SHA-256 of what the rules say: constants and code, in 64 hexadecimal digits.

    Comments, docstrings and layout are left out, so that none of them draws other problems; names
    and the order of definitions are not.
    """
    digest = hashlib.sha256()
    for room in RULES:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            for word in _words(ast.parse(path.read_text(encoding="utf-8"))):
                digest.update(word.encode() + b"\0")
    return digest.hexdigest()


def _words(node: Any) -> Iterator[str]:
    """Write a syntax tree as words that are the same in every version of Python."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if value not in (None, []):  # what is empty in one version is not there in another
                yield name
                yield from _words(value)
    elif isinstance(node, list):
        for each in node:
            if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
                yield from _words(each)  # a text that stands alone is a docstring
    else:
        yield repr(node)


def made_by(command: str) -> dict[str, str]:
    """Say where figures come from, to be kept beside them."""
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "version": version("sottovoce"),
        "rules": rules_digest(),
    }
