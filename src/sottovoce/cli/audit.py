"""The command that checks the privacy claim: audit."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sottovoce.cli.app import (
    AsJson,
    Command,
    Workers,
    console,
    errors,
    option,
    say,
    say_json,
)
from sottovoce.shared.errors import ExperimentError, must

if TYPE_CHECKING:
    from sottovoce.lab.audit.tasks import Finding, Task


class Audit(Command, extra="lab"):
    """Check the privacy claim: exactly where that can be done, and by attacks on real reports.

    Ends with status 1 if anything breaks its claim. With --faults it audits
    devices that are broken on purpose, and ends with status 1 if one of them
    is not caught.
    """

    epsilon: list[float] | None = option(
        None, "The claimed ε; may be given several times. 1 and 4 if none is given."
    )
    method: list[str] | None = option(
        None, "What to audit: a method or a baseline; may be given several times. All by default."
    )
    quick: bool = option(False, "Shorter runs and looser bounds.", "--quick")
    faults: bool = option(False, "Audit devices that are broken on purpose.", "--faults")
    callable: str | None = option(None, "Audit a Python function instead, as module:function.")
    command: str | None = option(
        None, "Audit a command instead, which reads requests and writes reports, line by line."
    )
    error_rate: float = option(
        0.001, "The chance that anything correct is flagged in the whole audit."
    )
    seed: int = option(0, "Fixes the attacker's choices. The noise has no seed.", min=0)
    workers: Workers = -1
    picture: Path | None = option(None, "A file for a picture, .png or .svg.")
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.lab.audit.run import audit

        tasks = self._tasks()
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=errors,
            transient=True,
        ) as shown:
            bar = shown.add_task("audit", total=len(tasks))

            def tell(finding: "Finding", done: int, of: int) -> None:
                shown.update(bar, completed=done, description=f"{finding.method}: {finding.case}")

            found = audit(
                tasks,
                error_rate=self.error_rate,
                seed=self.seed,
                workers=self.workers,
                progress=tell,
            )
        if self.picture is not None:
            from sottovoce.lab.audit.picture import draw_audit

            draw_audit(found, self.picture)
        self._tell(found)
        if any(each.kept is self.faults for each in found):
            raise typer.Exit(1)

    def _tasks(self) -> "Sequence[Task]":
        from sottovoce.lab.audit.external import LineCommand, PythonCallable
        from sottovoce.lab.audit.faults import faults
        from sottovoce.lab.audit.run import FULL, QUICK, external_tasks, known_methods, tasks_of

        chosen = [self.faults, self.callable is not None, self.command is not None]
        if sum(chosen) > 1:
            rule = "have at most one of --faults, --callable and --command"
            raise ExperimentError(must("an audit", rule, sum(chosen)))
        length = QUICK if self.quick else FULL
        epsilons = self.epsilon or [1.0, 4.0]
        if self.faults:
            return [fault.task for fault in faults((self.epsilon or [1.0])[0])]
        if self.callable is not None:
            function = PythonCallable(self.callable)
            function.found()
            return external_tasks(function, self._method(), epsilons, length=length)
        if self.command is not None:
            command = LineCommand(self.command)
            return external_tasks(command, self._method(), epsilons, length=length)
        return tasks_of(self.method or known_methods(), epsilons, length=length)

    def _method(self) -> str:
        """Return the method whose releases another mechanism gets."""
        return self.method[0] if self.method else "whisper"

    def _tell(self, found: "Sequence[Finding]") -> None:
        broken = [each for each in found if not each.kept]
        if self.as_json:
            figures: dict[str, Any] = {
                "error_rate": self.error_rate,
                "broken": len(broken),
                "findings": [_plain(each) for each in found],
            }
            say_json(figures)
            return
        console.print(_table(found))
        if self.faults:
            say(f"{len(broken)} of {len(found)} faults were caught.")
        elif broken:
            say(f"{len(broken)} of {len(found)} claims are BROKEN.")
        else:
            say(
                f"All {len(found)} claims stand. If all are true, an audit flags one with a"
                f" probability of at most {self.error_rate:g}."
            )


def _plain(finding: "Finding") -> dict[str, Any]:
    """Return a finding for JSON, which knows no infinity."""
    table = asdict(finding)
    if finding.bound == float("inf"):
        table["bound"] = "inf"
    return table


def _table(found: "Sequence[Finding]") -> Table:
    table = Table(box=box.SIMPLE)
    for name in ("method", "case", "look"):
        table.add_column(name)
    for name in ("claim", "found", "reports"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for each in found:
        claim = "none" if each.epsilon is None else f"{each.epsilon:g}"
        sign = "= " if each.kind == "exact" else "≥ "
        bound = "" if each.bound is None else f"{sign}{each.bound:.3f}"
        verdict = "[bold red]BROKEN[/]" if not each.kept else "" if each.epsilon is None else "kept"
        runs = f"{each.runs:,}" if each.runs else ""
        names = (escape(each.method), escape(each.case), each.kind)
        table.add_row(*names, claim, bound, runs, verdict)
    return table
