"""The commands that measure: bench speed, service, regret."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from sottovoce.cli.app import (
    AsJson,
    Command,
    Engine,
    Workers,
    console,
    errors,
    names_in,
    option,
    say,
    say_json,
)
from sottovoce.shared.errors import ExperimentError, must


class Speed(Command, extra="lab"):
    """Print users a second of the lab's simulations, and a device's time for one report."""

    seconds: float = option(1.0, "Time for each line.", min=0)
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.lab.bench import measure_devices, measure_speed

        speeds = measure_speed(seconds=self.seconds)
        devices = measure_devices(seconds=self.seconds)
        if self.as_json:
            figures = {"lab": list(map(asdict, speeds)), "device": list(map(asdict, devices))}
            say_json(figures)
            return
        _show(
            ("method", "release every", "ε", "n", "users/s, median", "best", "calls"),
            (
                (
                    *(each.method, f"{each.release_every}", f"{each.epsilon:g}", f"{each.n:,}"),
                    *(f"{each.median:,.0f}", f"{each.best:,.0f}", f"{each.calls}"),
                )
                for each in speeds
            ),
        )
        _show(
            ("device", "ε", "bins", "choose + report, µs, median", "best", "bytes"),
            (
                (
                    *(each.method, f"{each.epsilon:g}", f"{each.bins}"),
                    *(f"{each.median:.0f}", f"{each.best:.0f}", f"{each.bytes}"),
                )
                for each in devices
            ),
        )


class Service(Command, extra="lab,server"):
    """Print how many reports a server can store, durably, on SQLite and PostgreSQL."""

    seconds: float = option(2.0, "Time for each round.", min=0.1)
    rounds: int = option(5, "Rounds of single reports.", min=1)
    reports: int = option(1_000_000, "Reports in batches.", min=50_000)
    connections: int = option(128, "Clients with single reports.", min=1)
    postgres: str | None = option(
        None, "An empty PostgreSQL database; else pgserver's, if that is installed."
    )
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.lab.bench_service import Effort, measure_service

        effort = Effort(self.seconds, self.rounds, self.reports, self.connections)
        with errors.status("starting") as shown:
            figures = measure_service(
                effort, postgres=self.postgres, tell=lambda what: shown.update(what)
            )
        if self.as_json:
            say_json([asdict(each) for each in figures])
            return
        memory = [each.memory for each in figures]
        rows = (
            ("requests that do nothing, 1/s", [f"{each.nothing:,.0f}" for each in figures]),
            ("single reports, on disk, 1/s", [f"{each.single:,.0f}" for each in figures]),
            ("ratio of the two", [f"{each.ratio:.2f}" for each in figures]),
            ("at half load: p50, ms", [f"{each.half_load_p50:.1f}" for each in figures]),
            ("at half load: p99, ms", [f"{each.half_load_p99:.1f}" for each in figures]),
            ("reports in batches, on disk, 1/s", [f"{each.batch:,.0f}" for each in figures]),
            ("until they were learned from, 1/s", [f"{each.learned:,.0f}" for each in figures]),
            ("memory before, MB", [f"{each[0]:.0f}" for each in memory]),
            ("memory half-way, MB", [f"{each[len(each) // 2]:.0f}" for each in memory]),
            (f"memory after {self.reports:,}, MB", [f"{each[-1]:.0f}" for each in memory]),
        )
        titles = ("", *(each.database for each in figures))
        _show(titles, ((title, *cells) for title, cells in rows))


class Regret(Command, extra="lab"):
    """Print what people lose: on the paper's cells, the tuning problems, or other worlds."""

    reps: int = option(20, "Runs of each cell and method.")
    models: str = option("exponential,symmetric", "The paper's models, with commas.")
    aux: bool = option(True, "With auxiliary data too, or without only.")
    problems: bool = option(
        False, "On the tuning problems instead of the paper's cells.", "--problems"
    )
    worlds: bool = option(
        False, "In worlds beyond the paper's, beside the limits of each.", "--worlds"
    )
    only: str | None = option(None, "With --worlds: those with this in their name.")
    published: Path | None = option(
        None,
        "A CSV of the authors' means, to compare with; only its cells are run.",
        envvar="SOTTOVOCE_PUBLISHED",
    )
    methods: str | None = option(None, "Methods, with commas; the first is judged.")
    all_methods: bool = option(False, "Not only the first with auxiliary data.", "--all-methods")
    workers: Workers = -1
    engine: Engine = "joblib"
    out: Path | None = option(None, "A .jsonl file that keeps the runs, to go on after a stop.")
    picture: Path | None = option(None, "A .png or .svg for the cells without auxiliary data.")
    as_json: AsJson = False

    def __call__(self) -> None:
        if self.worlds:
            self._in_worlds()
            return
        if self.only is not None:
            raise ExperimentError(must("--only", "come with --worlds", repr(self.only)))
        from sottovoce.lab.regret import benches, cells, tables

        names = names_in(self.methods) or cells.METHODS
        options = cells.Options(self.reps, names, self.workers, self.engine, self.out)
        if self.problems:
            measured = benches.on_problems(options)
        else:
            measured = benches.against_paper(
                options,
                models=names_in(self.models),
                auxiliary=self.aux,
                all_methods=self.all_methods,
                published=self.published,
            )
            if self.picture is not None:
                from sottovoce.lab.regret.pictures import draw_cells

                draw_cells(measured, self.picture)
        if self.as_json:
            say_json(cells.as_json(measured))
            return
        shown = tables.problem_tables if self.problems else tables.paper_tables
        for table in shown(measured):
            console.print(table)
        for line in (
            *tables.summary_lines(measured),
            *(tables.warnings(measured) if self.problems else ()),
        ):
            say(line)

    def _in_worlds(self) -> None:
        from sottovoce.lab.regret import cells, tables, worlds

        names = names_in(self.methods) or worlds.METHODS
        options = cells.Options(self.reps, names, self.workers, self.engine, self.out)
        found = worlds.in_worlds(options, only=self.only)
        if self.as_json:
            say_json(worlds.as_json(found))
            return
        for table in tables.world_tables(found):
            console.print(table)
        for line in tables.limit_lines(found):
            say(line)


def _show(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table whose first column is text, and all others figures."""
    table = Table(*titles)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    console.print(table)
