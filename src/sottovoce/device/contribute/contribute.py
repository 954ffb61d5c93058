"""The run: a custodian's files through one device per row, into the journal, to the server.

What goes out, when and how large does not depend on what is in the rows. Each row gives one report,
which says nothing if the row does not fit. Rows are read only between a release and the end of its
turn (``link.py``). Only how many rows there are decides which chunks they are sent in. There is one
exception: a file of which many rows do not fit is refused before anything is sent, for it is
probably the wrong file, and would spend its people's ε on nothing.
"""

import csv
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from sottovoce.device.contribute.journal import Begun, Journal, Pins, name_of
from sottovoce.device.contribute.link import Custodian, Link
from sottovoce.device.contribute.rows import Columns, Judge, Row
from sottovoce.device.contribute.source import Source, look, reading
from sottovoce.device.contribute.summary import (
    Contribution,
    FileSummary,
    OnProgress,
    OnRefusal,
    Survey,
    check_fit,
    survey,
)
from sottovoce.device.device import Device
from sottovoce.shared import check, wire
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import DeviceError, RowsError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release

# By default, the rows of one chunk are as many as the learner takes in between two steps, within
# these bounds.
FEWEST, MOST = 100, 5000


@dataclass(frozen=True, slots=True)
class _Plan:
    """A file to contribute."""

    source: Source
    survey: Survey
    begun: Begun


def contribute(
    server: str, files: Sequence[str | os.PathLike[str]], custodian: Custodian
) -> Contribution:
    """Privatise each row of some files once, on this machine, and send the reports.

    A row that does not fit the experiment sends a report that says nothing, at the same price.

    files: .csv, .csv.gz or .parquet. Without files, only the reports that still wait are sent.
    """
    link = Link(server, custodian)
    public = link.release().experiment
    # Checked before any row is read.
    asked = public.populations[public.population_index(custodian.population)].epsilon
    if asked > check.epsilon(custodian.epsilon):
        most = f"at most epsilon = {custodian.epsilon:g} a row"
        rule = f"ask population {custodian.population!r} for {most}"
        raise DeviceError(must(f"experiment {public.fingerprint}", rule, f"{asked:g}"))
    if public.state != RUNNING:
        what = f"experiment {public.fingerprint}"
        raise DeviceError(must(what, "be running to be contributed to", public.state))
    pins = Pins(public.fingerprint, custodian.population, asked)
    chunk = custodian.chunk or min(max(public.release_every, FEWEST), MOST)
    path = Path(custodian.state or default_state(custodian.experiment, custodian.population))
    paths = [Path(os.fspath(each)) for each in files]
    with closing(Journal(path, pins=pins)) as journal:
        run = _Run(
            link,
            journal,
            public,
            pins,
            custodian.columns,
            chunk,
            custodian.progress,
            custodian.most_unfit,
        )
        with _listing(custodian.refused, instead_of=[path, *paths]) as on_refusal:
            plans = run.plan(paths, on_refusal=on_refusal)
        waited = journal.count(experiment=custodian.experiment)
        if custodian.only_check:
            return run.summary([run.before(plan) for plan in plans], waited=0)
        link.wait_for_turn(sum(plan.survey.rows for plan in plans))
        link.send(journal)
        return run.summary([run.contribute(plan) for plan in plans], waited=waited)


def default_state(experiment: str, population: str) -> Path:
    """Return the journal's default path, which does not depend on the current folder.

    The name is only a name: what the journal is for is written in it, whole (``Pins``).
    """
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    mark = hashlib.sha256(population.encode()).hexdigest()[:8]
    return Path(home) / "sottovoce" / f"contribute-{experiment[:16]}-{mark}.sqlite"


@dataclass(frozen=True, slots=True)
class _Run:
    link: Link
    journal: Journal
    experiment: Experiment
    pins: Pins
    columns: Columns
    chunk: int
    progress: OnProgress
    most_unfit: float

    def plan(self, paths: Sequence[Path], *, on_refusal: OnRefusal) -> list[_Plan]:
        """Look at all files before any report is sent."""
        # A file without a finished row may change: no report of it exists.
        known = [each for each in self.journal.files() if each.done]
        names = canonical_json(self.columns.names(self.experiment))
        columns = hashlib.sha256(names).digest()
        plans = []
        for path in paths:
            source = look(path, sizes=[each.size for each in known])
            _check_known(source, known, columns=columns)
            judge = Judge(self.experiment, self.columns)
            found = survey(source, judge, on_refusal=on_refusal, progress=self.progress)
            # Not where an earlier run has begun: how far it came is no secret any more.
            if source.sha256 not in {each.sha256 for each in known}:
                check_fit(path, found, most_unfit=self.most_unfit)
            begun = Begun(source.sha256, source.size, name_of(path), columns, found.rows)
            known.append(begun)
            plans.append(_Plan(source, found, begun))
        return plans

    def before(self, plan: _Plan) -> FileSummary:
        """Return what earlier runs have done with a file."""
        done = {each.sha256: each.done for each in self.journal.files()}
        before = done.get(plan.source.sha256, 0)
        return FileSummary(str(plan.source.path), plan.survey, before, sent=0)

    def contribute(self, plan: _Plan) -> FileSummary:
        """Contribute those rows of a file that earlier runs have not finished."""
        summary = self.before(plan)
        if not summary.before:
            self.journal.begin(plan.begun)
        if summary.before == plan.survey.rows:
            return summary
        return replace(summary, sent=self._rows(plan, done=summary.before))

    def _rows(self, plan: _Plan, *, done: int) -> int:
        """For each chunk: get the newest release, make reports, write the journal, then send.

        Return how many reports were made. The first turn also passes over the finished rows.
        """
        source, rows = plan.source, plan.survey.rows
        judge = Judge(self.experiment, self.columns)
        before, read = done, 0
        with reading(source, judge.names) as numbered:
            left = islice(numbered, done, None)
            while done < rows:
                # The release first: from here to the end of the turn, nobody sees how long it takes
                # to read and privatise the rows.
                release = self.link.release()
                chunk = islice(left, self.chunk)
                reports = [self._report(release, judge.read(values)) for _, values in chunk]
                source.check_unchanged()
                now = min(done + self.chunk, rows)
                self.journal.keep(source.sha256, rows=(done, now), reports=reports)
                self.link.wait_for_turn(now - read)
                done = read = now
                self.link.send(self.journal)
                self.link.wait_for_learner()
                self.progress(str(source.path), done, rows)
        return done - before

    def _report(self, release: Release, row: Row | str) -> bytes:
        """Return the report of one row, made by a device of its own that reports only once.

        row: or why it does not fit. Then the report says nothing. It may not be missing: the server
        would learn how many rows do not fit.
        """
        device = Device(release, population=self.pins.population, most_epsilon=self.pins.epsilon)
        if isinstance(row, Row):
            report = device.report_logged(row.context, arm=row.arm, reward=row.reward)
        else:
            report = device.report_nothing_logged()
        return wire.report_to_bytes(report)

    def summary(self, files: Sequence[FileSummary], *, waited: int) -> Contribution:
        """Return the figures of the run."""
        return Contribution(
            experiment=self.pins.experiment,
            population=self.pins.population,
            epsilon=self.pins.epsilon,
            files=tuple(files),
            rows=sum(each.survey.rows for each in files),
            sent=sum(each.sent for each in files),
            waited=waited,
            stored=self.link.taken - self.link.repeated,
            repeated=self.link.repeated,
            refused=dict(self.link.refused),
            put_off=dict(self.link.put_off),
        )


def _check_known(source: Source, known: Sequence[Begun], *, columns: bytes) -> None:
    """Refuse a file that would lead to a second report of a row."""
    for each in known:
        if each.sha256 == source.sha256:
            if each.columns != columns:
                raise RowsError(
                    f"the columns of {source.path} must be as they were when it was begun;"
                    " they are not"
                )
            return
    for each in known:
        if each.name == name_of(source.path):
            raise RowsError(
                f"{source.path} must be as it was when it was begun; it has changed:"
                " put rows that are new in a file of another name"
            )
        if each.rows and source.begins.get(each.size) == each.sha256:
            raise RowsError(
                f"{source.path} must hold new rows only; it begins with all of a file that was"
                " begun before: put the rows that came later in a file of their own"
            )


@contextmanager
def _listing(
    path: str | os.PathLike[str] | None, *, instead_of: Sequence[Path]
) -> Iterator[OnRefusal]:
    """Open the list of rows that do not fit; it must not overwrite a file that is read."""
    if path is None:
        yield lambda source, line, reason: None
        return
    target = Path(path)
    if target.resolve() in [each.resolve() for each in instead_of]:
        raise RowsError(
            must("the list of rows that do not fit", "be a file of its own", str(target))
        )
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("file", "line", "reason"))
        yield lambda source, line, reason: writer.writerow((source, line, reason))
