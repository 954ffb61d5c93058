"""The command line: run in this process, and as data, for what is compared with it."""

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from enum import Enum
from typing import Any, NamedTuple
from unittest.mock import patch

import typer

from sottovoce.cli import main
from sottovoce.cli.commands import app


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Done:
    """Run ``sottovoce`` here: a process of its own would spend most of its time on imports."""
    out, errors = io.StringIO(), io.StringIO()
    status = 0
    with (
        patch.object(sys, "argv", ["sottovoce", *arguments]),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
    return Done(status, out.getvalue(), errors.getvalue())


class Option(NamedTuple):
    """One option or argument of a command.

    names: ``--n`` and the like; of an argument, its name in capitals.
    default: as a user would type it; None where there is none.
    """

    names: tuple[str, ...]
    required: bool
    is_flag: bool
    default: str | None


def _options(command: Any) -> Iterator[Option]:
    for each in command.params:
        argument = each.param_type_name == "argument"
        names = [each.opts[0].upper()] if argument else [*each.opts, *each.secondary_opts]
        default = each.default.value if isinstance(each.default, Enum) else each.default
        is_flag = isinstance(default, bool)
        text = None if default is None or is_flag else str(default)
        yield Option(tuple(names), each.required, is_flag, text)


def _commands(command: Any, path: str) -> Iterator[tuple[str, list[Option]]]:
    for name, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from _commands(each, f"{path}{name} ")
        else:
            yield path + name, list(_options(each))


COMMANDS = dict(_commands(typer.main.get_command(app), ""))
"""The options of each command, by its name without ``sottovoce``."""
