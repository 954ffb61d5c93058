"""The run: a custodian's files through one device per row, into the journal, to the server."""

import csv
import hashlib
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from sottovoce.device import transport as http
from sottovoce.device.contribute.journal import Begun, Journal, Pins, name_of
from sottovoce.device.contribute.link import Link, OnWait
from sottovoce.device.contribute.rows import Columns, Judge, Row
from sottovoce.device.contribute.source import Source, look, reading
from sottovoce.device.contribute.summary import Contribution, FileSummary, OnProgress, Progress
from sottovoce.device.contribute.survey import OnRefusal, Survey, survey
from sottovoce.device.device import Device
from sottovoce.device.transport import Transport
from sottovoce.shared import check, wire
from sottovoce.shared.errors import DeviceError, RowsError, must
from sottovoce.shared.experiment import Experiment, canonical_json
from sottovoce.shared.release import Release

# Rows that are made for one release, unless somebody says: as many as the learner takes in before
# it looks at its sums, within bounds.
FEWEST, MOST = 100, 5000
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class _Plan:
    """A file that will be contributed."""

    source: Source
    survey: Survey
    begun: Begun


def contribute(
    server: str,
    files: Sequence[str | os.PathLike[str]],
    *,
    experiment: str,
    keys: Sequence[str],
    population: str,
    epsilon: float,
    arm_column: str = "arm",
    reward_column: str = "reward",
    renamed: Mapping[str, str] | None = None,
    state: str | os.PathLike[str] | None = None,
    refused: str | os.PathLike[str] | None = None,
    only_check: bool = False,
    chunk: int | None = None,
    patience: float = PATIENCE,
    transport: Transport = http.send,
    progress: OnProgress | None = None,
    on_wait: OnWait | None = None,
) -> Contribution:
    """Privatise each row of some files here, once, and send the reports.

    files: .csv, .csv.gz or .parquet; none, only to send what still waits.
    experiment: its fingerprint. keys: the public keys that may sign its releases.
    epsilon: the most that one row may spend.
    renamed: the column of each feature whose column is not called like the feature.
    state: the journal; see ``default_state``. Keep it: without it, rows would be sent again.
    refused: where to list the rows that do not fit, as file, line and reason.
    only_check: say which rows fit, and send nothing.
    chunk: rows that are read, privatised and sent at once. The fewer, the more closely they follow
        the releases; as many as the learner takes in between two looks, if nobody says.
    patience: seconds without any success at the server after which the run stops.
    on_wait: is told the trouble and the seconds before each pause.
    """
    most = None if chunk is None else check.whole_number(chunk, what="chunk", least=1)
    link = Link(
        server,
        experiment=experiment,
        keys=keys,
        transport=transport,
        patience=patience,
        on_wait=on_wait,
    )
    public = link.release().experiment
    pins = _agree(public, population=population, epsilon=epsilon)
    most = most or min(max(public.release_every, FEWEST), MOST)
    columns = Columns(arm_column, reward_column, dict(renamed or {}))
    path = default_state(experiment, population) if state is None else Path(state)
    paths = [Path(os.fspath(each)) for each in files]
    with closing(Journal(path, pins=pins)) as journal:
        run = _Run(link, journal, public, pins, columns, most, progress or _silent)
        with _listing(refused, instead_of=[path, *paths]) as on_refusal:
            plans = run.plan(paths, on_refusal=on_refusal)
        waited = journal.count(experiment=experiment)
        if only_check:
            return run.summary([run.checked(plan) for plan in plans], waited=0)
        link.send(journal)
        return run.summary([run.contribute(plan) for plan in plans], waited=waited)


def default_state(experiment: str, population: str) -> Path:
    """Return where the journal is kept if nobody says: in one place, wherever one works."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    mark = hashlib.sha256(population.encode()).hexdigest()[:8]
    return Path(home) / "sottovoce" / f"contribute-{experiment}-{mark}.sqlite"


@dataclass(frozen=True, slots=True)
class _Run:
    link: Link
    journal: Journal
    experiment: Experiment
    pins: Pins
    columns: Columns
    chunk: int
    progress: OnProgress

    def plan(self, paths: Sequence[Path], *, on_refusal: OnRefusal) -> list[_Plan]:
        """Look at every file before anything is sent of any."""
        # A file of which no row was done may change: nothing of it has left.
        known = [each for each in self.journal.files() if each.done]
        names = canonical_json(self.columns.names(self.experiment))
        columns = hashlib.sha256(names).digest()
        plans = []
        for path in paths:
            source = look(path, sizes=[each.size for each in known])
            _check_known(source, known, columns=columns)
            found = survey(
                source,
                experiment=self.experiment,
                columns=self.columns,
                on_refusal=on_refusal,
                on_rows=partial(self._read, path),
            )
            begun = Begun(source.sha256, source.size, name_of(path), columns, found.rows)
            known.append(begun)
            plans.append(_Plan(source, found, begun))
        return plans

    def _read(self, path: Path, rows: int) -> None:
        self.progress(Progress(str(path), rows, None))

    def checked(self, plan: _Plan) -> FileSummary:
        """Say what would be done with a file."""
        before = self._begun(plan).done
        return FileSummary(str(plan.source.path), plan.survey, before, sent=0)

    def contribute(self, plan: _Plan) -> FileSummary:
        """Contribute the rows of a file that are not done yet."""
        begun = self._begun(plan)
        if not begun.done:
            begun = plan.begun
            self.journal.begin(begun)
        sent = 0 if begun.finished else self._rows(plan.source, begun)
        return FileSummary(str(plan.source.path), plan.survey, begun.done, sent)

    def _begun(self, plan: _Plan) -> Begun:
        """Return how far a file is, by the journal if it knows the file."""
        known = {each.sha256: each for each in self.journal.files()}
        return known.get(plan.begun.sha256, plan.begun)

    def _rows(self, source: Source, begun: Begun) -> int:
        """Chunk by chunk: the newest release, reports, the journal, and only then the server."""
        done, made = begun.done, 0
        judge = Judge(self.experiment, self.columns)
        with reading(source, self.columns.names(self.experiment)) as numbered:
            deque(islice(numbered, done), maxlen=0)
            while values := [each for _, each in islice(numbered, self.chunk)]:
                release = self.link.release()
                rows = [row for row in map(judge.read, values) if isinstance(row, Row)]
                reports = [self._report(release, row) for row in rows]
                source.check_unchanged()
                now = done + len(values)
                self.journal.keep(begun.sha256, rows=(done, now), reports=reports)
                done, made = now, made + len(reports)
                self.link.send(self.journal)
                self.link.wait_for_learner()
                self.progress(Progress(str(source.path), done, begun.rows))
        return made

    def _report(self, release: Release, row: Row) -> bytes:
        """Return the one report of one person: a device for each, which reports no second time."""
        device = Device(release, population=self.pins.population, most_epsilon=self.pins.epsilon)
        report = device.report_logged(row.context, arm=row.arm, reward=row.reward)
        return wire.report_to_bytes(report)

    def summary(self, files: Sequence[FileSummary], *, waited: int) -> Contribution:
        """Put the figures of the run together."""
        link = self.link
        return Contribution(
            experiment=self.pins.experiment,
            population=self.pins.population,
            epsilon=self.pins.epsilon,
            files=tuple(files),
            rows=sum(each.survey.rows for each in files),
            sent=sum(each.sent for each in files),
            waited=waited,
            stored=link.taken - link.repeated,
            repeated=link.repeated,
            refused=dict(link.refused),
        )


def _agree(experiment: Experiment, *, population: str, epsilon: float) -> Pins:
    """Check what the experiment asks of each row before any is read."""
    asked = experiment.populations[experiment.population_index(population)].epsilon
    if asked > check.epsilon(epsilon):
        rule = f"ask population {population!r} for at most epsilon = {epsilon:g} a row"
        raise DeviceError(must(f"experiment {experiment.fingerprint}", rule, f"{asked:g}"))
    return Pins(experiment.fingerprint, population, asked)


def _check_known(source: Source, known: Sequence[Begun], *, columns: bytes) -> None:
    """Refuse a file that would make a second report of a row that the journal knows."""
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
    """Open the list of refused rows; it never takes the place of a file that is read."""
    if path is None:
        yield lambda source, line, reason: None
        return
    target = Path(path)
    if target.resolve() in [each.resolve() for each in instead_of]:
        raise RowsError(must("the list of refused rows", "be a file of its own", str(target)))
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("file", "line", "reason"))
        yield lambda source, line, reason: writer.writerow((source, line, reason))


def _silent(progress: Progress) -> None:
    pass
