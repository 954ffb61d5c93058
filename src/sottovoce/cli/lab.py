"""The lab's commands: simulate, reproduce."""

import inspect
import re
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_type_hints

import typer

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
from sottovoce.shared.methods import MethodSettings, method_names, method_part


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
