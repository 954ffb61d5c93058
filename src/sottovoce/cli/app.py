"""What all commands share: how a class becomes a command, and how it prints."""

import inspect
import json
import re
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Self

import typer
from rich.console import Console

from sottovoce.shared.extras import missing

console = Console()
errors = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Engine = Annotated[Literal["joblib", "ray"], typer.Option(help="Where runs are made.")]
Epsilon = Annotated[float, typer.Option(help="The privacy budget of each report.")]
Workers = Annotated[int, typer.Option(help="Processes; -1 for all cores.")]


class Command(ABC):
    """A command: a dataclass whose fields are its arguments and options.

    It is called like the class, and explained by its docstring.

    extra: the extras of the package that it needs.
    """

    extra: ClassVar[str]

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """Return its arguments and options, as Typer reads them."""
        return list(inspect.signature(cls).parameters.values())

    @classmethod
    def make(cls, **given: Any) -> Self:
        """Return the command with what was given."""
        return cls(**given)

    @abstractmethod
    def run(self) -> None:
        """Do it."""


def add(group: typer.Typer, *kinds: type[Command]) -> None:
    """Add commands to a group."""
    for kind in kinds:
        _add(group, kind)


def _add(group: typer.Typer, kind: type[Command]) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()

    def run(**given: Any) -> None:
        try:
            kind.make(**given).run()
        except ModuleNotFoundError as error:
            raise missing(error, who=f"sottovoce {name}", extra=kind.extra) from None

    run.__doc__ = kind.__doc__
    run.__signature__ = inspect.Signature(kind.parameters())  # type: ignore[attr-defined]
    group.command(name)(run)


def say(line: object) -> None:
    """Print a line as it is, however long."""
    console.print(str(line), highlight=False, soft_wrap=True, markup=False)


def say_json(figures: Any) -> None:
    """Print figures for a script."""
    console.print_json(json.dumps(figures, default=str))


def names_in(text: str | None) -> tuple[str, ...]:
    """Read names with commas between them."""
    return () if text is None else tuple(name.strip() for name in text.split(","))
