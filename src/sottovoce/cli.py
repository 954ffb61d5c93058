"""The command line: arguments only."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sottovoce.shared.errors import SottovoceError

app = typer.Typer(
    help="Learn which option suits which person without collecting anything about that person.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


@app.callback()
def sottovoce() -> None:
    """Learn which option suits which person without collecting anything about that person."""


@app.command()
def demo(
    people: Annotated[int, typer.Option(min=100, help="How many simulated people come.")] = 6000,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of each report.")] = 8.0,
    seed: Annotated[int, typer.Option(min=0, help="Fixes who comes; noise is never fixed.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("out"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Run simulated people through real devices and a real learner, and draw what it learned."""
    from sottovoce.lab.demo import run

    summary = run(people=people, epsilon=epsilon, seed=seed, out=out)
    if as_json:
        console.print_json(json.dumps(asdict(summary), default=str))
        return
    status = summary.status
    console.print(
        f"{people} people took part; each sent one report with ε = {summary.epsilon:g}.\n"
        f"Reward lost per person: {summary.reward_lost:.3f}"
        f" (last tenth {summary.lost_in_last_tenth:.3f}; at random {summary.lost_at_random:.3f}).\n"
        f"Release {status.release} has {status.bins} bins, {status.settled_bins} of them settled.\n"
        f"Picture: {summary.picture}"
    )


@app.command()
def receipt(
    ledger: Annotated[Path, typer.Argument(help="A ledger file made on a device.")],
) -> None:
    """Print what a person's privacy ledger says: what was spent, when and on what."""
    from sottovoce.device.ledger import Ledger

    console.print(Ledger.read(ledger).receipt(), highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command line; an error of this package is one line, not a traceback."""
    try:
        app()
    except SottovoceError as error:
        Console(stderr=True).print(f"error: {error}", style="red", highlight=False, markup=False)
        raise SystemExit(2) from None
