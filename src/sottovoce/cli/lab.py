"""The lab's commands: simulate, compare, reproduce."""

import inspect
import re
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_type_hints

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from sottovoce.cli.app import (
    AsJson,
    Command,
    Engine,
    Epsilon,
    Workers,
    argument,
    console,
    names_in,
    option,
    parameter,
    say,
    say_json,
)
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import MethodSettings, method_names, method_part

if TYPE_CHECKING:
    from sottovoce.estimate.diagnosis import Diagnosis
    from sottovoce.lab.comparison import Compared
    from sottovoce.lab.means import Mean


def settings_options() -> dict[str, Any]:
    """Return an option for each setting of each method, explained by the method's docstring."""
    options: dict[str, Any] = {}
    for method in method_names():
        kind: type[MethodSettings] = method_part(method, "shared").SETTINGS
        entries = re.findall(r"^(\w+): (.+(?:\n +.+)*)", inspect.getdoc(kind) or "", re.MULTILINE)
        texts = {name: " ".join(text.replace("``", "").split()) for name, text in entries}
        types = get_type_hints(kind)
        for each in fields(kind):
            shown = each.default not in (None, False) and str(each.default)
            info = typer.Option(
                f"--{each.name.replace('_', '-')}",
                help=f"{method}: {texts.get(each.name, '')}",
                show_default=shown,
            )
            options.setdefault(each.name, Annotated[types[each.name] | None, info])
    return options


class Simulate(Command, extra="lab"):
    """Ask what would happen: the mean regret of a method in a simulated world."""

    model: Literal["exponential", "symmetric"] = option("exponential", "The simulated world.")
    epsilon: Epsilon = 1.0
    n: int = option(20_000, "How many people come.")
    method: str = option(
        "whisper", f"{', '.join(method_names())}, or a baseline: abse, linear, nn."
    )
    settings: dict[str, Any] = field(default_factory=dict)
    release_every: int = option(100, "Reports between two releases.")
    reps: int = option(10, "How many runs.", min=1)
    seed: int = option(0, "The seed of the first run.", min=0)
    as_json: AsJson = False

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """Add the settings of all methods. Those that are not given are None."""
        settings = settings_options().items()
        return [*super().parameters(), *(parameter(name, kind, None) for name, kind in settings)]

    @classmethod
    def make(cls, **given: Any) -> Self:
        """Gather the settings that are given: a method refuses those that it does not have."""
        settings = {name: given.pop(name) for name in settings_options()}
        chosen = {name: value for name, value in settings.items() if value is not None}
        return cls(settings=chosen, **given)

    def __call__(self) -> None:
        from sottovoce.lab.means import mean_regret
        from sottovoce.lab.methods import method_of

        table = {"name": self.method, **self.settings}
        found = mean_regret(
            self.model,
            method=table,
            epsilon=self.epsilon,
            n=self.n,
            release_every=self.release_every,
            reps=self.reps,
            seed=self.seed,
        )
        if self.as_json:
            say_json(asdict(found))
            return
        error = "" if found.standard_error is None else f" ± {found.standard_error:.0f}"
        console.print(
            f"regret {found.regret_mean:.0f}{error} over {self.reps} runs,"
            f" {found.regret_mean / found.regret_at_random:.2f} of what arms at random lose"
            f" ({found.regret_at_random:.0f})"
        )
        if note := method_of(table).privacy_note:
            console.print(note)


class Compare(Command, extra="lab"):
    """Compare methods on a table of your own: which of them would bring people most.

    Each class of the label is an arm, and brings 1 to the people of that
    class. Rows come once each, in a random order. Nothing is sent anywhere.

    sottovoce compare pupils.csv --label grade --group school --target north
    """

    file: Path = argument(..., "A table: .csv, .csv.gz or .parquet.")
    label: str = option(..., "The column with the classes, which are the arms.")
    group: str | None = option(
        None, "The column that tells the target from auxiliary rows, if any."
    )
    target: list[str] | None = option(
        None, "The value of the group that is the target; may be given several times."
    )
    auxiliary: Literal["together", "each"] = option(
        "together", "All other rows as one population, or one for each value of the group."
    )
    features: str | None = option(
        None, "Columns, with commas, one for each axis, instead of a reduction."
    )
    dimensions: int = option(3, "How many axes a reduction leaves.")
    reduce: Literal["supervised", "columns", "components"] = option(
        "supervised",
        "The directions that tell classes apart, the columns that do, or principal components.",
    )
    text: Literal["ranks", "levels"] = option(
        "ranks",
        "Text in named columns: a rank among levels that behave alike, or levels without an order.",
    )
    nulls: Literal["refuse", "drop", "keep"] = option(
        "refuse",
        "Rows in which something is missing: refuse the table, drop them, or keep them. Kept, named"
        " columns with gaps become optional features.",
    )
    drop: str | None = option(None, "Columns to leave out, with commas.")
    categorical: str | None = option(None, "Columns of numbers that are codes, with commas.")
    public: str | None = option(
        None,
        "Where the reduction is fitted if not on auxiliary rows: a file with public rows,"
        " or a share of the target such as 0.05, treated as public and not played.",
    )
    epsilon: Epsilon = 1.0
    epsilon_aux: float = option(4.0, "The privacy budget of each auxiliary report.")
    methods: str = option(
        "whisper,ldpmab,linear,nn",
        "Methods, with commas; abse, which is not private, is always beside.",
    )
    reps: int = option(5, "Runs of each method, on the same people.")
    heed: bool = option(
        False,
        "Also play whisper so that it goes on without auxiliary rows when they seem to mislead.",
        "--heed",
    )
    out: Path | None = option(None, "A folder for a CSV, and for the runs, to go on after a stop.")
    workers: Workers = -1
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.lab.comparison import Effort, as_json, compare
        from sottovoce.lab.data.table import Table as Data

        if self.group is None and self.public is None:
            rule = (
                "be fitted on rows that are not the target's: give --group and --target for"
                " auxiliary rows, or --public with a file, or with a share of the rows such as 0.05"
            )
            raise ExperimentError(must("what turns columns into axes", rule, "neither"))
        table = Data(
            self.file,
            label=self.label,
            group=self.group,
            target=self.target or None,
            auxiliary="each" if self.auxiliary == "each" else None,
            features=names_in(self.features) or None,
            dimensions=self.dimensions,
            reduce=self.reduce,
            text=self.text,
            drop=names_in(self.drop),
            categorical=names_in(self.categorical),
            nulls=self.nulls,
            public=None if self.public is None else _share_or_file(self.public),
        )
        compared = compare(
            table,
            methods=[name for name in names_in(self.methods) if name != "abse"],
            epsilon=self.epsilon,
            epsilon_aux=self.epsilon_aux,
            heed=self.heed,
            effort=Effort(self.reps, self.workers, self.out),
        )
        if self.as_json:
            say_json(as_json(compared))
            return
        _show(compared)
        if self.out is not None:
            say(self.out / "compare.csv")


class Reproduce(Command, extra="lab"):
    """Reproduce the paper's experiments: a CSV, a PNG and an SVG for each.

    table, on real data (also as Markdown), tells the mean reward of methods
    relative to abse, which is not private, with and without auxiliary data.

    A run that is stopped goes on where it was when it is started again.
    """

    name: str = argument(
        ...,
        "process, n-target, n-source, kappa, gamma, order, rewards, densities; all for"
        " these eight; table for the table on real data, which all leaves out: it needs files",
    )
    reps: int = option(20, "Runs of each setting.")
    out: Path = option(Path("out/paper"), "Where tables and pictures go.")
    published: Path | None = option(
        None,
        "A CSV of the authors' means, to draw beside ours; for table one of the paper's"
        " real-data table (epsilon, epsilon_aux, dataset, fraction, ldpmab_w, …).",
        envvar="SOTTOVOCE_PUBLISHED",
    )
    datasets: str = option(
        "adult,green-taxi,jobs-hr,flights",
        "table: the data sets, with commas; also adult-regions, green-taxi-street, jobs.",
    )
    data_dir: Path | None = option(
        None, "table: the folder with the data sets.", envvar="SOTTOVOCE_DATA"
    )
    workers: Workers = -1
    engine: Engine = "joblib"

    def __call__(self) -> None:
        from sottovoce.lab.reproduce.real.run import reproduce_table
        from sottovoce.lab.reproduce.run import NAMES, Options, reproduce

        options = Options(self.reps, self.out, self.published, self.workers, self.engine)
        if self.name == "table":
            datasets = names_in(self.datasets)
            made = reproduce_table(options, datasets=datasets, data_dir=self.data_dir)
            for line in (*made.paths, *made.lines):
                say(line)
            return
        for name in NAMES if self.name == "all" else [self.name]:
            for picture in reproduce(name, options):
                say(picture)


def _share_or_file(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _show(compared: "Compared") -> None:
    """Print the comparison: methods down, t across."""
    from sottovoce.lab.reproduce.real.cases import FRACTIONS
    from sottovoce.lab.reproduce.real.comparison import LEAST_REPS, LEVEL, TOO_FEW
    from sottovoce.lab.reproduce.real.tables import SIGN

    data, comparison = compared.data, compared.comparison
    groups = ", ".join(f"{len(sample):,} ({name})" for name, sample in data.auxiliary.items())
    budget = "" if compared.epsilon_aux is None else f", ε_m = {compared.epsilon_aux:g}"
    say(
        f"{data.name}: {len(data.target):,} people, {len(data.arms)} arms, ε = {compared.epsilon:g}"
        + (f"; auxiliary rows: {groups}{budget}" if groups else "")
        + (f"; {data.dropped:,} rows left out" if data.dropped else "")
    )
    say(f"axes: {', '.join(data.features)}")
    table = Table(box=box.SIMPLE, title="mean reward ± standard error", title_justify="left")
    table.add_column("method", no_wrap=True)
    if groups:
        table.add_column("auxiliary", no_wrap=True)
    for name in FRACTIONS.values():
        table.add_column(f"t = {name}", justify="right", no_wrap=True)
    rows: dict[Any, list[str]] = {}
    for cell in comparison.cells:
        for each in cell.entries:
            figure = f"[bold]{_figure(each.reward)}[/]" if each.best else _figure(each.reward)
            mark = f" {SIGN}" if each.significant else "  "
            rows.setdefault(each.player, []).append(f"{figure}{mark}")
    for player, figures in rows.items():
        how = ["with" if player.auxiliary else "without"] if groups else []
        table.add_row(player.method, *how, *figures)
    table.add_section()
    beside: dict[str, list[str]] = {}
    for context in comparison.contexts:
        beside.setdefault(context.name, []).append(f"{_figure(context.reward)}  ")
    for name, figures in beside.items():
        table.add_row(name, *([""] if groups else []), *figures)
    console.print(table)
    if comparison.reps < LEAST_REPS:
        say(TOO_FEW)
    elif len(rows) > 1:
        say(
            f"{SIGN}: better than every other method by the one-sided Wilcoxon signed-rank test at"
            f" {LEVEL:g}, over {comparison.reps} repetitions."
        )
    if compared.heeded is not None:
        warned = sum(people is not None for people in compared.heeded)
        say(f"whisper heeded a warning in {warned} of {comparison.reps} repetitions.")
    if compared.diagnosis is not None:
        _show_diagnosis(compared.diagnosis)


def _show_diagnosis(diagnosis: "Diagnosis") -> None:
    """Print what each auxiliary population brought."""
    title = "auxiliary rows with whisper, in the first repetition"
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    table.add_column("population")
    for name in ("rows", "effective users", "overlap", "exploration"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in diagnosis.sources:
        shares = (each.overlap, each.exploration)
        figures = ["not known" if share is None else f"{share:.2f}" for share in shares]
        users = f"{each.effective_users:,.0f}"
        table.add_row(escape(each.population), f"{each.reports:,}", users, *figures)
    console.print(table)
    audit = diagnosis.audit
    if audit is not None and audit.answers:
        say(
            f"Mean reward {audit.delivered:.2f} ± {audit.standard_error:.2f} among"
            f" {audit.answers:,} who were asked; {audit.promised:.2f} was expected,"
            f" {audit.at_random:.2f} of arms at random."
        )
    for warning in diagnosis.warnings:
        say(f"Warning: {warning}")


def _figure(mean: "Mean") -> str:
    """Write a mean with its standard error; none for a single run, or where nothing varies."""
    error = f" ± {mean.standard_error:.3f}" if mean.standard_error else ""
    return f"{mean.mean:.3f}{error}"
