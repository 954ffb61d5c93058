"""Which rules these are: the digest by which problems are drawn and figures are signed."""

import ast
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sottovoce

PACKAGE = Path(sottovoce.__file__).parent
DRAW = Path(__file__).with_name("generated.py")
"""How problems are drawn, beside the worlds of the lab that they are made of."""

RULES = (
    *("shared/**/*.py", "device/**/*.py", "estimate/**/*.py"),
    *("lab/baselines/**/*.py", "lab/problems.py"),
    *("lab/worlds.py", "lab/drift.py", "lab/missing.py"),
)
"""What decides how much people lose: all that devices and learners run by, the baselines they are
compared with, and what problems are made of."""


def rules_digest(package: Path = PACKAGE, draw: Path = DRAW) -> str:
    """Return the SHA-256 of what the rules say: constants and code, in 64 hexadecimal digits.

    Comments, docstrings and layout are left out, so that none of them draws other problems; names
    and the order of definitions are not.
    """
    digest = hashlib.sha256()
    for path in (*(path for rule in RULES for path in sorted(package.glob(rule))), draw):
        name = path.name if path == draw else path.relative_to(package).as_posix()
        digest.update(name.encode())
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
