"""The command that compares: methods on a table of classes, or on the log of a trial."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.markup import escape
from rich.table import Table

from sottovoce.cli.app import (
    AsJson,
    Command,
    Epsilon,
    Workers,
    argument,
    console,
    errors,
    names_in,
    option,
    say,
    say_json,
)
from sottovoce.shared.errors import ExperimentError, must

if TYPE_CHECKING:
    from sottovoce.estimate.diagnosis import Diagnosis
    from sottovoce.lab.comparison import Compared
    from sottovoce.lab.means import Mean


class Compare(Command, extra="lab"):
    """Compare methods on a table of your own: which of them would bring people most.

    With --label, each class of that column is an arm, and brings 1 to the
    people of that class. Rows come once each, in a random order.

    sottovoce compare pupils.csv --label grade --group school --target north

    With --arm and --reward, the table is the log of a trial, in which each
    person got one arm. Methods learn on one half of the rows and are valued
    on the other. The Open Bandit Dataset's columns are known by themselves.

    sottovoce compare trial.csv --arm arm --reward outcome --propensity chance

    Nothing is sent anywhere.
    """

    files: list[Path] = argument(..., "A table: .csv, .csv.gz or .parquet; or several of one log.")
    label: str | None = option(None, "The column with the classes, which are the arms.")
    arm: str | None = option(None, "A log: the column with the arm that each person got.")
    reward: str | None = option(None, "A log: the column with what the arm brought.")
    propensity: str | None = option(
        None, "A log: the column with the chance that the arm had for this person."
    )
    behaviour: Literal["estimated", "shares", "uniform"] | None = option(
        None,
        "A log without propensities: estimated from the features, which is the default; the arms'"
        " shares, if everybody had the same chances; or uniform.",
    )
    reward_range: str | None = option(
        None, "A log: the rewards that count as 0 and as 1, with a comma, such as 0,60."
    )
    clip: float = option(0.01, "A log: smaller propensities count as this.", min=0)
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
        if self.label is None:
            self._log()
        else:
            self._classes(self.label)

    def _log(self) -> None:
        """Compare on the log of a trial."""
        from sottovoce.cli.logs import show_log
        from sottovoce.lab.logs.comparison import LogEffort, compare_on_log
        from sottovoce.lab.logs.reading import Columns, range_of, read_log
        from sottovoce.lab.logs.tables import as_json

        only = {"--group": self.group, "--target": self.target, "--public": self.public}
        if given := [name for name, value in only.items() if value]:
            rule = "come with --label: a log has no auxiliary rows"
            raise ExperimentError(must(given[0], rule, "a log"))
        columns = Columns(
            arm=self.arm,
            reward=self.reward,
            propensity=self.propensity,
            features=names_in(self.features) or None,
            drop=names_in(self.drop),
            categorical=names_in(self.categorical),
            behaviour=self.behaviour,
            reward_range=range_of(self.reward_range),
        )
        methods = [name for name in names_in(self.methods) if name != "abse"]
        with errors.status("reading") as shown:
            log = read_log(self.files, columns)
            effort = LogEffort(self.reps, tell=lambda what: shown.update(f"learning: {what}"))
            found = compare_on_log(
                log, methods=methods, epsilon=self.epsilon, clip=self.clip, effort=effort
            )
        if self.as_json:
            say_json(as_json(found))
        else:
            show_log(found)

    def _classes(self, label: str) -> None:
        """Compare on a table of classes."""
        from sottovoce.lab.comparison import Effort, as_json, compare
        from sottovoce.lab.data.table import Table as Data

        logs = {"--arm": self.arm, "--reward": self.reward, "--propensity": self.propensity}
        if given := [name for name, value in logs.items() if value]:
            rule = "come without --label: a table of classes has no log"
            raise ExperimentError(must(given[0], rule, f"--label {label}"))
        if len(self.files) != 1:
            raise ExperimentError(must("a table of classes", "be one file", len(self.files)))
        if self.group is None and self.public is None:
            rule = (
                "be fitted on rows that are not the target's: give --group and --target for"
                " auxiliary rows, or --public with a file, or with a share of the rows such as 0.05"
            )
            raise ExperimentError(must("what turns columns into axes", rule, "neither"))
        table = Data(
            self.files[0],
            label=label,
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
