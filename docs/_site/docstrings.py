"""The docstrings of the package as Markdown: its lists of arguments and fields become lists.

The package writes "name: what it is", a line for each argument or field, with further lines
indented. Markdown would run these lines together.
"""

import re
from typing import Any

import griffe

ENTRY = re.compile(r"(\w+(?:, \w+)*)( \([^)]*\))?: (.*)")


class Lists(griffe.Extension):
    """Turns each such line into an item of a list."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = with_lists(obj.docstring.value)


def with_lists(text: str) -> str:
    """Return a docstring with its entries as list items."""
    lines: list[str] = []
    in_list = False
    for line in text.splitlines():
        entry = ENTRY.fullmatch(line)
        if entry and (in_list or not lines or not lines[-1].strip()):
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            lines.append(f"- {names}{entry[2] or ''}: {entry[3]}")
            in_list = True
        else:
            in_list = in_list and line.startswith(" ")
            lines.append(line)
    return "\n".join(lines)
