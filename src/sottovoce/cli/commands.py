"""All commands, in the order in which they are listed."""

from typing import Annotated

import typer

from sottovoce import __version__
from sottovoce.cli.amend import Amend
from sottovoce.cli.app import add, say
from sottovoce.cli.audit import Audit
from sottovoce.cli.backup import Backup, Restore
from sottovoce.cli.bench import Regret, Service, Speed
from sottovoce.cli.compare import Compare
from sottovoce.cli.device import Contribute, Monitor, Receipt
from sottovoce.cli.export import Export
from sottovoce.cli.gain import Gain
from sottovoce.cli.lab import Reproduce, Simulate
from sottovoce.cli.plan import Plan
from sottovoce.cli.service import Demo, Key, Replay, Serve
from sottovoce.cli.value import Value

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
bench = typer.Typer(
    help="Measure how fast the lab and a server are, and how much people lose.",
    no_args_is_help=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(__version__)
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


add(app, Demo, Serve, Amend, Replay, Backup, Restore, Key, Contribute, Receipt, Monitor, Export)
add(app, Gain, Value, Audit, Plan, Simulate, Compare, Reproduce)
add(bench, Speed, Service, Regret)
app.add_typer(bench, name="bench")
