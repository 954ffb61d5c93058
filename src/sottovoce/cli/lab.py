"""The lab's commands: simulate, reproduce."""

import inspect
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_type_hints

import typer

from sottovoce.cli.app import (
    AsJson,
    Command,
    Engine,
    Epsilon,
    Workers,
    console,
    names_in,
    say,
    say_json,
)
from sottovoce.shared.methods import MethodSettings, method_names, method_part


def settings_options() -> dict[str, inspect.Parameter]:
    """Return an option for each setting of each method, explained by the method's docstring.

    What is not given is None, so that a method is asked for nothing that it does not have.
    """
    options: dict[str, inspect.Parameter] = {}
    for method in method_names():
        kind: type[MethodSettings] = method_part(method, "shared").SETTINGS
        entries = re.findall(r"^(\w+): (.+(?:\n +.+)*)", inspect.getdoc(kind) or "", re.MULTILINE)
        texts = {name: " ".join(text.replace("``", "").split()) for name, text in entries}
        types = get_type_hints(kind)
        for each in fields(kind):
            default = each.default if types[each.name] is not bool else None
            option = typer.Option(
                f"--{each.name.replace('_', '-')}",
                help=f"{method}: {texts.get(each.name, '')}",
                show_default=False if default is None else str(default),
            )
            options.setdefault(
                each.name,
                inspect.Parameter(
                    each.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=None,
                    annotation=Annotated[types[each.name] | None, option],
                ),
            )
    return options


@dataclass(frozen=True, kw_only=True)
class Simulate(Command):
    """Ask what would happen: the mean regret of a method in a simulated world."""

    extra = "lab"

    model: Annotated[
        Literal["exponential", "symmetric"], typer.Option(help="The simulated world.")
    ] = "exponential"
    epsilon: Epsilon = 1.0
    n: Annotated[int, typer.Option(help="How many people come.")] = 20_000
    method: Annotated[
        str,
        typer.Option(help=f"{', '.join(method_names())}, or a baseline: abse, linear, nn."),
    ] = "whisper"
    settings: dict[str, Any] = field(default_factory=dict)
    release_every: Annotated[int, typer.Option(help="Reports between two releases.")] = 100
    reps: Annotated[int, typer.Option(min=1, help="How many runs.")] = 10
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first run.")] = 0
    as_json: AsJson = False

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """Put the settings of all methods in the place of ``settings``."""
        own = super().parameters()
        at = [each.name for each in own].index("settings")
        return [*own[:at], *settings_options().values(), *own[at + 1 :]]

    @classmethod
    def make(cls, **given: Any) -> Self:
        """Gather the settings that were given."""
        settings = {name: given.pop(name) for name in settings_options()}
        chosen = {name: value for name, value in settings.items() if value is not None}
        return cls(settings=chosen, **given)

    def run(self) -> None:
        """Average some runs."""
        from sottovoce.lab.mean_regret import mean_regret
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


@dataclass(frozen=True, kw_only=True)
class Reproduce(Command):
    """Reproduce the paper's experiments: a CSV, a PNG and an SVG for each.

    table, on real data (also as Markdown), tells the mean reward of methods
    relative to abse, which is not private, with and without auxiliary data.

    A run that is stopped goes on where it was when it is started again.
    """

    extra = "lab"

    name: Annotated[
        str,
        typer.Argument(
            help="process, n-target, n-source, kappa, gamma, order, rewards, densities; all for"
            " these eight; table for the table on real data, which all leaves out: it needs files"
        ),
    ]
    reps: Annotated[int, typer.Option(help="Runs of each setting.")] = 20
    out: Annotated[Path, typer.Option(help="Where tables and pictures go.")] = Path("out/paper")
    published: Annotated[
        Path | None,
        typer.Option(
            envvar="SOTTOVOCE_PUBLISHED",
            help="A CSV of the authors' means, to draw beside ours; for table one of the paper's"
            " real-data table (epsilon, epsilon_aux, dataset, fraction, ldpmab_w, …).",
        ),
    ] = None
    datasets: Annotated[
        str,
        typer.Option(
            help="table: the data sets, with commas; also adult-regions, green-taxi-street, jobs."
        ),
    ] = "adult,green-taxi,jobs-hr,flights"
    data_dir: Annotated[
        Path | None,
        typer.Option(envvar="SOTTOVOCE_DATA", help="table: the folder with the data sets."),
    ] = None
    workers: Workers = -1
    engine: Engine = "joblib"

    def run(self) -> None:
        """Make the figures, and say where they are."""
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
