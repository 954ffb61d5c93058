"""The commands of devices, custodians and observers: contribute, receipt, monitor."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.progress import Progress, TaskID

from sottovoce.cli.app import AsJson, Command, argument, errors, option, say, say_json
from sottovoce.shared.errors import TransportError

if TYPE_CHECKING:
    from sottovoce.device.monitor import Look

TRY_LATER = 75
"""The exit code that mail systems and schedulers know as "temporary failure" (EX_TEMPFAIL)."""


class Contribute(Command, extra="custodian"):
    """Privatise logged rows on this machine, each once, and send the reports.

    A row that does not fit sends a report that says nothing, at the same price: how many rows fit
    stays private. If many do not, nothing is sent: the file is probably not the right one. A run
    that is stopped goes on where it was when it is started again. If the journal was deleted or
    restored from a copy, rows may be reported twice: they have then spent 2ε. Exit code 75: the
    server could not be reached for too long; start again later.
    """

    server: str = option(..., "The server's address.")
    experiment: str = option(..., "The fingerprint of the experiment.")
    key: list[str] = option(..., "A public key that may sign releases, 64 digits; repeatable.")
    population: str = option(..., "Whose rows these are, such as clinic-b.")
    epsilon: float = option(..., "The most that one row may spend.")
    data: list[Path] | None = argument(
        None, "Files .csv, .csv.gz or .parquet; none to send only what still waits."
    )
    arm: str = option("arm", "The column of the arm.")
    reward: str = option("reward", "The column of the reward.")
    rename: list[str] | None = option(None, "A feature's column, as feature=column; repeatable.")
    state: Path | None = option(
        None,
        "The journal. Keep it: without it, or with an old copy, rows may be reported twice, at 2ε.",
    )
    refused: Path | None = option(None, "A CSV for the rows that do not fit: file, line, reason.")
    most_unfit: float = option(
        0.2, "Send nothing if a larger share of a file's rows does not fit.", min=0, max=1
    )
    check: bool = option(False, "Only say which rows fit; send nothing.", "--check")
    patience: float = option(300.0, "Seconds without any success before it stops.", min=0)
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.device.contribute.contribute import contribute
        from sottovoce.device.contribute.link import Custodian
        from sottovoce.device.contribute.rows import Columns, renamed_columns
        from sottovoce.device.contribute.summary import describe

        columns = Progress.get_default_columns()
        with Progress(*columns, console=errors, disable=self.as_json) as bars:
            tasks: dict[str, TaskID] = {}

            def show(path: str, done: int, rows: int | None) -> None:
                stage = f"{'checking' if rows is None else 'sending'} {Path(path).name}"
                if stage not in tasks:
                    tasks[stage] = bars.add_task(escape(stage), total=rows)
                bars.update(tasks[stage], completed=done)

            def waits(trouble: str, seconds: float) -> None:
                bars.console.print(f"{trouble}: next try in {seconds:.0f} s", highlight=False)

            try:
                custodian = Custodian(
                    experiment=self.experiment,
                    keys=self.key,
                    population=self.population,
                    epsilon=self.epsilon,
                    columns=Columns(self.arm, self.reward, renamed_columns(self.rename or [])),
                    state=self.state,
                    refused=self.refused,
                    only_check=self.check,
                    most_unfit=self.most_unfit,
                    patience=self.patience,
                    progress=show,
                    on_wait=waits,
                )
                done = contribute(self.server, self.data or [], custodian)
            except TransportError as error:
                errors.print(f"error: {error}", style="red", highlight=False, markup=False)
                raise typer.Exit(TRY_LATER) from None
        if self.as_json:
            say_json(asdict(done))
            return
        for line in describe(done, only_check=self.check):
            say(line)


class Monitor(Command, extra="cli"):
    """Follow an experiment from outside: keep every release, and report two histories.

    It says when there are two texts under one version, when the chain of releases is broken, and
    when somebody has a release that the server does not show. Ends with 1 if it found any of these,
    and with 75 if no server could be reached.
    """

    server: list[str] = argument(..., "The server's address, and others that show the same.")
    experiment: str = option(..., "The fingerprint of the experiment, 64 digits.")
    key: list[str] = option(..., "A public key that may sign releases, 64 digits; repeatable.")
    keep: Path = option(Path("releases"), "The folder for the releases, one file for each.")
    seen: list[Path] | None = option(
        None, "What somebody else was given: a signed release, or such a folder; repeatable."
    )
    every: float | None = option(None, "Seconds between two looks; without it, one look.", min=1)
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.device.monitor import Monitor as Following

        following = Following(
            self.server, experiment=self.experiment, keys=self.key, folder=self.keep
        )
        wrong = reached = False
        try:
            while True:
                look = following.look(self.seen or [])
                wrong |= bool(look.findings)
                reached |= len(look.unreachable) < len(self.server)
                if self.as_json:
                    say_json(asdict(look))
                else:
                    _say_look(look, folder=self.keep)
                if self.every is None:
                    break
                time.sleep(self.every)
        except KeyboardInterrupt:
            pass
        if wrong:
            raise typer.Exit(1)
        if not reached:
            raise typer.Exit(TRY_LATER)


def _say_look(look: "Look", *, folder: Path) -> None:
    for each in look.unreachable:
        say(f"{each} gave no release.")
    for found in look.findings:
        say(f"WRONG  {found.where}: {found.what}")
    for restore in look.restores:
        say(f"NOTE   {restore}")
    if look.newest and not look.findings:
        new = f", {look.new} of them new" if look.new else ""
        what = "each branch is declared" if look.restores else "one history"
        say(f"{look.newest} releases in {folder}{new}: {what}, each continues the last.")


class Receipt(Command, extra="cli"):
    """Print what a person's privacy ledger says: what was spent, when and on what."""

    ledger: Path = argument(..., "A ledger file made on a device.")

    def __call__(self) -> None:
        from sottovoce.device.ledger import Ledger

        say(Ledger.read(self.ledger).receipt())
