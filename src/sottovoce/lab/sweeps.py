"""Sweeps: settings × repetitions, on all cores or a cluster, resumable after a kill.

Each run has a seed of its own, made from its setting and its repetition, so that the numbers do not
depend on the number of workers or on the order in which runs end. (Runs that are to be compared in
pairs share one: see ``paired_by``.) Results are appended to a file as they come; when all are
there, the file is put in order, so that a sweep that was killed and started again leaves the same
file as one that was not.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NoReturn

try:
    import fcntl
except ImportError:  # not on Windows, where a sweep goes without its lock
    fcntl = None  # type: ignore[assignment]  # a module or nothing: mypy has no type for that

import joblib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sottovoce.lab.sources import source_digest
from sottovoce.shared import check
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.errors import ExperimentError, must

Setting = Mapping[str, Any]
"""Anything that JSON can hold."""

Task = Callable[[Setting, int], Mapping[str, float]]
"""Given a setting and a seed, make one run and return its figures."""

Engine = Literal["joblib", "ray"]


@dataclass(frozen=True, slots=True)
class Run:
    """One repetition of one setting, and its figures."""

    setting: int
    repetition: int
    figures: Mapping[str, float]


def sweep(
    task: Task,
    settings: Sequence[Setting],
    *,
    reps: int,
    path: str | PathLike[str],
    workers: int = -1,
    engine: Engine = "joblib",
    paired_by: Sequence[str] | None = None,
) -> list[Run]:
    """Run every setting ``reps`` times, with a progress bar; return the runs in order.

    path: where results are kept; runs that it already has are not made again. More repetitions
        may be asked for later.
    workers: how many processes; -1 for all cores (or all of the cluster).
    paired_by: keys of the settings. Those that agree in them get the same seed in the same
        repetition, so that their runs can be compared in pairs; None for a seed of its own each.
    """
    check.whole_number(reps, what="reps", least=1)
    if workers != -1:
        check.whole_number(workers, what="workers", least=1)
    keys = [setting if paired_by is None else _pair(setting, paired_by) for setting in settings]
    book = _Book(Path(path), task, settings, paired_by)
    missing = [
        (setting, repetition)
        for setting in range(len(settings))
        for repetition in range(reps)
        if (setting, repetition) not in book.done
    ]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress,
        book.file,
    ):
        total = len(settings) * reps
        bar = progress.add_task(Path(path).stem, total=total, completed=total - len(missing))
        jobs = (
            joblib.delayed(_one)(
                task, settings[setting], setting, repetition, seed_of(keys[setting], repetition)
            )
            for setting, repetition in missing
        )
        for run in _results(jobs, workers=workers, engine=engine, count=len(missing)):
            book.write(run)
            progress.advance(bar)
    return [run for run in book.close_in_order() if run.repetition < reps]


def seed_of(setting: Setting, repetition: int) -> int:
    """Return the seed of a run: the same wherever and whenever it is made."""
    text = canonical_json([setting, repetition])
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "big")


def _pair(setting: Setting, paired_by: Sequence[str]) -> Setting:
    """Return what a setting shares with those it is compared with."""
    if isinstance(paired_by, str):
        raise ExperimentError(must("paired_by", "be a list of keys", repr(paired_by)))
    absent = [key for key in paired_by if key not in setting]
    if absent:
        raise ExperimentError(must("paired_by", "be keys of every setting", absent))
    return {key: setting[key] for key in paired_by}


def _one(task: Task, setting: Setting, index: int, repetition: int, seed: int) -> Run:
    return Run(index, repetition, task(setting, seed))


def _results(jobs: Iterable[Any], *, workers: int, engine: Engine, count: int) -> Iterator[Run]:
    """Yield results as they come."""
    if count == 0:
        return
    if engine == "joblib":
        yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
        return
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ExperimentError("engine ray needs Ray: pip install 'sottovoce[cluster]'") from error
    if not ray.is_initialized():  # joins the cluster of this machine, or starts a local one
        ray.init(log_to_driver=False)
    register_ray()
    with (
        joblib.parallel_config(backend="ray", n_jobs=workers),
        joblib.Parallel() as parallel,
    ):
        # This backend returns lists only: rounds of runs, each written down when it ends.
        pending = list(jobs)
        size = 16 * joblib.effective_n_jobs(workers)
        for start in range(0, len(pending), size):
            yield from parallel(pending[start : start + size])


class _Book:
    """The file of results: a heading, then one run a line."""

    def __init__(
        self,
        path: Path,
        task: Task,
        settings: Sequence[Setting],
        paired_by: Sequence[str] | None,
    ) -> None:
        self.path = path
        # Runs of another task, or of another version of the rules, must not be mixed with these.
        named: Any = getattr(task, "func", task)  # of a task with some arguments bound
        self.heading: dict[str, Any] = {
            "task": f"{named.__module__}.{named.__qualname__}",
            "code": source_digest(),
            "settings": hashlib.sha256(canonical_json(list(settings))).hexdigest()[:16],
        }
        if paired_by is not None:
            self.heading["paired_by"] = list(paired_by)
        self.done: dict[tuple[int, int], Run] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Opened before any work, so that a folder that cannot be written costs nothing.
            self.file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise ExperimentError(f"{path} must be a file that can be written; {error}") from error
        self._lock()
        self._read()

    def _lock(self) -> None:
        """Keep a second sweep off the same file, where the system can."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.file.close()
            raise ExperimentError(
                f"the sweep file {self.path} must have one writer; another sweep has it open"
            ) from error

    def _read(self) -> None:
        self.file.seek(0)
        try:
            lines = self.file.read().splitlines(keepends=True)
        except UnicodeDecodeError:
            self._refuse("it is no text")
        if lines and not lines[-1].endswith("\n"):
            # The last line of a killed run is cut off: it is dropped, and its run made again.
            del lines[-1]
            self.file.truncate(len("".join(lines).encode()))
        if not lines:
            self._append(self.heading)
            return
        heading = _parse(lines[0])
        if heading != self.heading:
            self._refuse("it was made with other settings, another task or other code")
        for number, line in enumerate(lines[1:], start=2):
            entry = _parse(line)
            if entry is None:
                self._refuse(f"its line {number} is damaged")
            run = Run(entry["setting"], entry["repetition"], entry["figures"])
            self.done[run.setting, run.repetition] = run

    def _refuse(self, why: str) -> NoReturn:
        self.file.close()
        raise ExperimentError(
            f"{self.path} must be a file of this sweep; {why}: delete it or choose another place"
        )

    def write(self, run: Run) -> None:
        """Append one run."""
        self.done[run.setting, run.repetition] = run
        self._append(_entry(run))

    def _append(self, entry: Mapping[str, Any]) -> None:
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()

    def close_in_order(self) -> list[Run]:
        """Put the runs in order, in the file too."""
        runs = [self.done[key] for key in sorted(self.done)]
        ordered = self.path.with_suffix(".ordered")
        lines = [json.dumps(self.heading), *(json.dumps(_entry(run)) for run in runs)]
        ordered.write_text("\n".join(lines) + "\n", encoding="utf-8")
        ordered.replace(self.path)
        return runs


def _entry(run: Run) -> dict[str, Any]:
    figures = {name: float(value) for name, value in sorted(run.figures.items())}
    return {"setting": run.setting, "repetition": run.repetition, "figures": figures}


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
