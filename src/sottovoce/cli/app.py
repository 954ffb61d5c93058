"""The command line itself; each room adds its commands."""

from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Learn which option suits which person without collecting anything about that person.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(version("sottovoce"))
        raise typer.Exit


@app.callback()
def sottovoce(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Learn which option suits which person without collecting anything about that person."""
