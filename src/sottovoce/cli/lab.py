"""The lab on the command line: simulate, reproduce, bench."""

import json
from collections.abc import Callable
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from sottovoce.cli.app import app, console
from sottovoce.shared.ldpmab.settings import Ldpmab
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.whisper.settings import Whisper

if TYPE_CHECKING:
    from sottovoce.lab.bench_service import ServiceSpeed


class Model(Enum):
    """The simulated worlds of the paper."""

    exponential = "exponential"
    symmetric = "symmetric"


class MethodName(Enum):
    """The methods, and the baselines of the lab."""

    whisper = "whisper"
    ldpmab = "ldpmab"
    abse = "abse"
    linear = "linear"
    nn = "nn"


class Guarantee(Enum):
    """What whisper waits for before it drops an arm."""

    regret = "regret"
    certified = "certified"


class Preset(Enum):
    """The constants of ldpmab."""

    authors = "authors"
    paper = "paper"


class Engine(Enum):
    """Where the runs of a sweep are made."""

    joblib = "joblib"
    ray = "ray"


@app.command()
def simulate(
    model: Annotated[Model, typer.Option(help="The simulated world.")] = Model.exponential,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of each report.")] = 1.0,
    n: Annotated[int, typer.Option(help="How many people come.")] = 20_000,
    method: Annotated[MethodName, typer.Option(help="The method.")] = MethodName.whisper,
    guarantee: Annotated[
        Guarantee, typer.Option(help="whisper: what it waits for before it drops an arm.")
    ] = Guarantee.regret,
    delta: Annotated[float, typer.Option(help="whisper: the chance of error if certified.")] = 0.05,
    public_arms: Annotated[
        bool, typer.Option("--public-arms", help="whisper: WEAKER PRIVACY, the arm is public.")
    ] = False,
    preset: Annotated[Preset, typer.Option(help="ldpmab: its constants.")] = Preset.authors,
    c: Annotated[float | None, typer.Option(help="ldpmab: c of C_n = c·log n.")] = None,
    release_every: Annotated[int, typer.Option(help="Reports between two releases.")] = 100,
    reps: Annotated[int, typer.Option(min=1, help="How many runs.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first run.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Ask what would happen: the mean regret of a method in a simulated world."""
    from sottovoce.lab.mean_regret import mean_regret

    settings: MethodSettings | str = method.value
    if method is MethodName.whisper:
        settings = Whisper(guarantee.value, delta, public_arms)
    elif method is MethodName.ldpmab:
        settings = Ldpmab(preset.value, c)
    found = mean_regret(
        model.value,
        method=settings,
        epsilon=epsilon,
        n=n,
        release_every=release_every,
        reps=reps,
        seed=seed,
    )
    if as_json:
        console.print_json(json.dumps(asdict(found)))
        return
    error = "" if found.standard_error is None else f" ± {found.standard_error:.0f}"
    console.print(
        f"regret {found.regret_mean:.0f}{error} over {reps} runs,"
        f" {found.regret_mean / found.regret_at_random:.2f} of what arms at random lose"
        f" ({found.regret_at_random:.0f})"
    )
    if public_arms:
        console.print(
            "Weaker privacy: with public arms a report is ε-LDP in the context and the outcome,"
            " not in the arm."
        )
    if method is MethodName.abse:
        console.print("Not private: abse sees the context, the arm and the outcome of everybody.")


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="process, n-target, n-source, kappa, gamma, order, rewards, densities; all for"
            " these eight; table for the table on real data, which all leaves out: it needs files"
        ),
    ],
    reps: Annotated[int, typer.Option(help="Runs of each setting.")] = 20,
    out: Annotated[Path, typer.Option(help="Where tables and pictures go.")] = Path("out/paper"),
    published: Annotated[
        Path | None,
        typer.Option(
            envvar="SOTTOVOCE_PUBLISHED",
            help="A CSV of the authors' means, to draw beside ours; for table one of the paper's"
            " real-data table (epsilon, epsilon_aux, dataset, fraction, ldpmab_w, …).",
        ),
    ] = None,
    datasets: Annotated[
        str,
        typer.Option(
            help="table: the data sets, with commas; also adult-regions, green-taxi-street, jobs."
        ),
    ] = "adult,green-taxi,jobs-hr,flights",
    data_dir: Annotated[
        Path | None,
        typer.Option(envvar="SOTTOVOCE_DATA", help="table: the folder with the data sets."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    engine: Annotated[Engine, typer.Option(help="Where runs are made.")] = Engine.joblib,
) -> None:
    """Reproduce the paper's experiments: a CSV, a PNG and an SVG for each.

    table, on real data (also as Markdown), tells the mean reward of methods
    relative to abse, which is not private, with and without auxiliary data.

    A run that is stopped goes on where it was when it is started again.
    """
    from sottovoce.lab.reproduce.run import NAMES, Options
    from sottovoce.lab.reproduce.run import reproduce as run

    options = Options(reps, out, published, workers, engine.value)
    if name == "table":
        from sottovoce.lab.reproduce.real.run import reproduce_table

        made = reproduce_table(options, datasets=names_in(datasets), data_dir=data_dir)
        for line in [*map(str, made.paths), *made.lines]:
            console.print(line, highlight=False, soft_wrap=True, markup=False)
        return
    for each in NAMES if name == "all" else [name]:
        for picture in run(each, options):
            console.print(f"{picture}", highlight=False, soft_wrap=True)


def names_in(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(","))


bench = typer.Typer(help="Measure.", no_args_is_help=True)
app.add_typer(bench, name="bench")


@bench.callback()
def benchmarks() -> None:
    """Measure how fast the lab and a server are, and how much people lose."""


@bench.command()
def speed(
    seconds: Annotated[float, typer.Option(min=0, help="Time for each line.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Print users a second of the lab's simulations, and a device's time for one report."""
    from sottovoce.lab.bench import measure_devices, measure_speed

    speeds, devices = measure_speed(seconds=seconds), measure_devices(seconds=seconds)
    if as_json:
        figures = {
            "lab": [asdict(each) for each in speeds],
            "device": [asdict(each) for each in devices],
        }
        console.print_json(json.dumps(figures))
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
    table = Table("device", "ε", "bins", "choose + report, µs, median", "best", "bytes")
    for column in table.columns[1:]:
        column.justify = "right"
    for one in devices:
        table.add_row(
            *(one.method, f"{one.epsilon:g}", f"{one.bins}"),
            *(f"{one.median:.0f}", f"{one.best:.0f}", f"{one.bytes}"),
        )
    console.print(table)


@bench.command()
def service(
    seconds: Annotated[float, typer.Option(min=0.1, help="Time for each round.")] = 2.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of single reports.")] = 5,
    reports: Annotated[int, typer.Option(min=50_000, help="Reports in batches.")] = 1_000_000,
    connections: Annotated[int, typer.Option(min=1, help="Clients with single reports.")] = 128,
    postgres: Annotated[
        str | None,
        typer.Option(help="An empty PostgreSQL database; else pgserver's, if that is installed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Print how many reports a server can store, durably, on SQLite and PostgreSQL."""
    from sottovoce.lab.bench_service import measure_service

    with Console(stderr=True).status("starting") as shown:
        figures = measure_service(
            seconds=seconds,
            rounds=rounds,
            reports=reports,
            connections=connections,
            postgres=postgres,
            tell=lambda what: shown.update(what),
        )
    if as_json:
        console.print_json(json.dumps([asdict(each) for each in figures]))
        return
    table = Table("", *(each.database for each in figures))
    for column in table.columns[1:]:
        column.justify = "right"
    rows: list[tuple[str, Callable[[ServiceSpeed], str]]] = [
        ("requests that do nothing, 1/s", lambda each: f"{each.nothing:,.0f}"),
        ("single reports, on disk, 1/s", lambda each: f"{each.single:,.0f}"),
        ("ratio of the two", lambda each: f"{each.ratio:.2f}"),
        ("at half load: p50, ms", lambda each: f"{each.half_load_p50:.1f}"),
        ("at half load: p99, ms", lambda each: f"{each.half_load_p99:.1f}"),
        ("reports in batches, on disk, 1/s", lambda each: f"{each.batch:,.0f}"),
        ("until they were learned from, 1/s", lambda each: f"{each.learned:,.0f}"),
        ("memory before, MB", lambda each: f"{each.memory[0]:.0f}"),
        ("memory half-way, MB", lambda each: f"{each.memory[len(each.memory) // 2]:.0f}"),
        (f"memory after {reports:,}, MB", lambda each: f"{each.memory[-1]:.0f}"),
    ]
    for title, figure in rows:
        table.add_row(title, *(figure(each) for each in figures))
    console.print(table)


@bench.command()
def regret(
    reps: Annotated[int, typer.Option(help="Runs of each cell and method.")] = 20,
    models: Annotated[
        str, typer.Option(help="The paper's models, with commas.")
    ] = "exponential,symmetric",
    aux: Annotated[bool, typer.Option(help="With auxiliary data too, or without only.")] = True,
    problems: Annotated[
        bool, typer.Option("--problems", help="On simulated problems instead of the paper's.")
    ] = False,
    published: Annotated[
        Path | None,
        typer.Option(
            envvar="SOTTOVOCE_PUBLISHED",
            help="A CSV of the authors' means, to compare with; only its cells are run.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods, with commas; the first is judged.")
    ] = None,
    all_methods: Annotated[
        bool, typer.Option("--all-methods", help="Not only the first with auxiliary data.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    engine: Annotated[Engine, typer.Option(help="Where runs are made.")] = Engine.joblib,
    out: Annotated[
        Path | None, typer.Option(help="A .jsonl file that keeps the runs, to go on after a stop.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="A .png or .svg for the cells without auxiliary data.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Print what people lose: on the paper's cells, or on simulated problems."""
    from sottovoce.lab import regret as lab
    from sottovoce.lab import regret_tables as tables

    names = lab.METHODS if methods is None else names_in(methods)
    options = lab.Options(reps, names, workers, engine.value, out)
    if problems:
        cells = lab.on_problems(options)
    else:
        cells = lab.against_paper(
            options,
            models=names_in(models),
            auxiliary=aux,
            all_methods=all_methods,
            published=published,
        )
        if picture is not None:
            from sottovoce.lab.regret_pictures import draw_cells

            draw_cells(cells, picture)
    if as_json:
        console.print_json(json.dumps(lab.as_json(cells)))
        return
    for table in tables.problem_tables(cells) if problems else tables.paper_tables(cells):
        console.print(table)
    lines = [*tables.summary_lines(cells), *(tables.warnings(cells) if problems else ())]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
