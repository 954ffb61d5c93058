"""What all commands share: how a class becomes a command, and how it prints."""

import inspect
import json
import re
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field, fields
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    dataclass_transform,
    get_origin,
    get_type_hints,
)

import typer
from rich.console import Console

from sottovoce.shared.extras import missing

console = Console()
errors = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Engine = Annotated[Literal["joblib", "ray"], typer.Option(help="Where runs are made.")]
Epsilon = Annotated[float, typer.Option(help="The privacy budget of each report.")]
Workers = Annotated[int, typer.Option(help="Processes; -1 for all cores.")]


def option(default: Any, text: str, *names: str, **more: Any) -> Any:
    """Return a field that is an option of a command; one without a default is required.

    names: --check, where it is not to be called like the field, or has no --no-check.
    more: as ``typer.Option`` has it.
    """
    return _field(default, typer.Option(*names, help=text, **more))


def argument(default: Any, text: str) -> Any:
    """Return a field that is an argument of a command."""
    return _field(default, typer.Argument(help=text))


def _field(default: Any, info: Any) -> Any:
    return field(default=MISSING if default is ... else default, metadata={"typer": info})


def parameter(name: str, kind: Any, default: Any = MISSING) -> inspect.Parameter:
    """Return an argument or option as Typer reads it; ``kind`` says what it is."""
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


@dataclass_transform(field_specifiers=(option, argument), kw_only_default=True)
@dataclass
class Command(ABC):
    """A command. Its fields are its arguments and options.

    It is called like its class, and explained by the docstring of its class.

    extra: the extras of the package that it needs.
    """

    extra: ClassVar[str]

    def __init_subclass__(cls, *, extra: str) -> None:
        dataclass(kw_only=True)(cls)
        cls.extra = extra

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """Return its arguments and options."""
        types = get_type_hints(cls, include_extras=True)
        for each in fields(cls):
            if "typer" in each.metadata:
                types[each.name] = Annotated[types[each.name], each.metadata["typer"]]
        return [
            parameter(each.name, types[each.name], each.default)
            for each in fields(cls)
            if get_origin(types[each.name]) is Annotated
        ]

    @classmethod
    def make(cls, **given: Any) -> Self:
        """Return the command with what was given."""
        return cls(**given)

    @abstractmethod
    def __call__(self) -> None:
        """Do it."""


def add(group: typer.Typer, *kinds: type[Command]) -> None:
    """Add commands to a group."""
    for kind in kinds:
        _add(group, kind)


def _add(group: typer.Typer, kind: type[Command]) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()

    def run(**given: Any) -> None:
        try:
            kind.make(**given)()
        except ModuleNotFoundError as error:
            raise missing(error, who=f"sottovoce {name}", extra=kind.extra) from None

    run.__doc__ = kind.__doc__
    # typer reads the signature; mypy does not know that a function may have one of its own.
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
