"""The command line: arguments only."""

import json
from dataclasses import asdict
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.method import Ldpmab

app = typer.Typer(
    help="Learn which option suits which person without collecting anything about that person.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


class Model(Enum):
    """The simulated worlds of the paper."""

    exponential = "exponential"
    symmetric = "symmetric"


class Preset(Enum):
    """The constants of ldpmab."""

    authors = "authors"
    paper = "paper"


class Engine(Enum):
    """Where the runs of a sweep are made."""

    joblib = "joblib"
    ray = "ray"


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
def simulate(
    model: Annotated[Model, typer.Option(help="The simulated world.")] = Model.exponential,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of each report.")] = 8.0,
    n: Annotated[int, typer.Option(help="How many people come.")] = 20_000,
    preset: Annotated[Preset, typer.Option(help="The constants of ldpmab.")] = Preset.authors,
    c: Annotated[float | None, typer.Option(help="c of C_n = c·log n.")] = None,
    release_every: Annotated[int, typer.Option(help="Reports between two releases.")] = 100,
    reps: Annotated[int, typer.Option(min=1, help="How many runs.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first run.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Ask what would happen: the mean regret of a method in a simulated world."""
    from sottovoce.lab.ask import ask

    answer = ask(
        model.value,
        method=Ldpmab(preset.value, c),
        epsilon=epsilon,
        n=n,
        release_every=release_every,
        reps=reps,
        seed=seed,
    )
    if as_json:
        console.print_json(json.dumps(asdict(answer)))
        return
    error = "" if answer.standard_error is None else f" ± {answer.standard_error:.0f}"
    console.print(
        f"regret {answer.regret_mean:.0f}{error} over {reps} runs,"
        f" {answer.regret_mean / answer.regret_at_random:.2f} of what arms at random lose"
        f" ({answer.regret_at_random:.0f})"
    )


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="process, n-target, n-source, kappa, gamma, order, rewards, densities, or all"
        ),
    ],
    reps: Annotated[int, typer.Option(help="Runs of each setting.")] = 20,
    out: Annotated[Path, typer.Option(help="Where tables and pictures go.")] = Path("out/paper"),
    published: Annotated[
        Path | None,
        typer.Option(
            envvar="SOTTOVOCE_PUBLISHED", help="A CSV of the authors' means, to draw beside ours."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    engine: Annotated[Engine, typer.Option(help="Where runs are made.")] = Engine.joblib,
) -> None:
    """Reproduce the paper's synthetic experiments: a CSV, a PNG and an SVG for each.

    A run that is stopped goes on where it was when it is started again.
    """
    from sottovoce.lab.reproduce.run import NAMES, Options
    from sottovoce.lab.reproduce.run import reproduce as run

    options = Options(reps, out, published, workers, engine.value)
    for each in NAMES if name == "all" else [name]:
        for picture in run(each, options):
            console.print(f"{picture}", highlight=False, soft_wrap=True)


bench = typer.Typer(help="Measure.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.callback()
def benchmarks() -> None:
    """Measure how fast the lab is."""


@bench.command()
def speed(
    seconds: Annotated[float, typer.Option(min=0, help="Time for each line.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Print users a second of the lab's simulations, on one core."""
    from sottovoce.lab.bench import measure_speed

    speeds = measure_speed(seconds=seconds)
    if as_json:
        console.print_json(json.dumps([asdict(each) for each in speeds]))
        return
    table = Table("method", "release every", "ε", "n", "users/s, median", "best", "calls")
    for column in table.columns[1:]:
        column.justify = "right"
    for each in speeds:
        table.add_row(
            *(each.method, str(each.release_every), f"{each.epsilon:g}", f"{each.n:,}"),
            *(f"{each.median:,.0f}", f"{each.best:,.0f}", str(each.calls)),
        )
    console.print(table)


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
