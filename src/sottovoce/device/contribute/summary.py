"""What a file holds and what a run did with it, in figures and in words, but no value of a row.

A file is surveyed before any report is made: that finds whatever is wrong with it as a whole before
anything is sent. The file's bytes and the experiment are pinned, so each run finds the same.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sottovoce.device.contribute.rows import Judge
from sottovoce.device.contribute.source import Source, reading
from sottovoce.shared.errors import RowsError

MOST_LINES = 1000
"""The most line numbers to keep for each reason; all rows are counted."""

OnRefusal = Callable[[Path, int, str], None]
"""Called for each row that does not fit, with the file, the line and the reason."""

OnProgress = Callable[[str, int, int | None], None]
"""Called with a file, how many rows are finished, and of how many: None while it is surveyed."""

_TELL_EVERY = 10_000
_FEW = 5


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows that do not fit, for one reason.

    lines: the first ``MOST_LINES`` lines where such rows begin; the header is line 1. In Parquet,
        the numbers of the rows, from 1.
    """

    rows: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a file holds.

    fitting: how many rows fit the schema. refused: the others, by reason.
        The reports of these say nothing.
    clamped: how many numbers of each feature lie outside its bounds, in rows that fit.
    """

    rows: int
    fitting: int
    refused: dict[str, Refused]
    clamped: dict[str, int]


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What became of one file in this run.

    survey: its rows, and which of them do not fit.
    before: how many rows earlier runs had finished.
    sent: how many reports this run made of it: one for each row that it finished.
    """

    path: str
    survey: Survey
    before: int
    sent: int

    @property
    def finished(self) -> bool:
        """Whether earlier runs had finished all rows."""
        return 0 < self.survey.rows == self.before


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one run did.

    epsilon: what each row spends, also one that does not fit.
    rows: of all files. sent: how many reports this run made of them, one for each row.
    waited: how many reports an earlier run had made, and this one sent.
    stored, repeated, refused: what the server said of these reports. It had the repeated ones
        already, from a run that was stopped before the answer came.
    put_off: how many the server cannot read now, by reason: the next run with this journal offers
        them again.
    """

    experiment: str
    population: str
    epsilon: float
    files: tuple[FileSummary, ...]
    rows: int
    sent: int
    waited: int
    stored: int
    repeated: int
    refused: dict[str, int]
    put_off: dict[str, int] = field(default_factory=dict)


def survey(source: Source, judge: Judge, *, on_refusal: OnRefusal, progress: OnProgress) -> Survey:
    """Read a file and judge its rows."""
    rows, counts, lines = 0, Counter[str](), dict[str, list[int]]()
    with reading(source, judge.names) as numbered:
        for line, values in numbered:
            rows += 1
            if rows % _TELL_EVERY == 0:
                progress(str(source.path), rows, None)
            reason = judge.read(values)
            if not isinstance(reason, str):
                continue
            counts[reason] += 1
            if counts[reason] <= MOST_LINES:
                lines.setdefault(reason, []).append(line)
            on_refusal(source.path, line, reason)
    source.check_unchanged()
    refused = {each: Refused(counts[each], tuple(lines[each])) for each in counts}
    fitting = rows - counts.total()
    return Survey(rows, fitting, refused, dict(judge.clamped))


def check_fit(path: Path, found: Survey, *, most_unfit: float) -> None:
    """Refuse a file of which too many rows do not fit the schema.

    Such a file is a mistake: the reports of these rows would say nothing, and cost ε each. What to
    do next is up to the custodian.
    """
    unfit = found.rows - found.fitting
    if not found.rows or (found.fitting and unfit <= most_unfit * found.rows):
        return
    reasons = sorted(found.refused.items(), key=lambda each: -each[1].rows)[:_FEW]
    listed = "; ".join(
        f"{refused.rows} × {reason} (line {', '.join(map(str, refused.lines[:_FEW]))}"
        f"{', …' if refused.rows > _FEW else ''})"
        for reason, refused in reasons
    )
    raise RowsError(
        f"{path} must have rows that fit the schema, all but {100 * most_unfit:g} % at most;"
        f" {unfit} of {found.rows} do not: {listed}; nothing was sent"
    )


def describe(done: Contribution, *, only_check: bool = False) -> list[str]:
    """Tell a custodian what became of the rows."""
    lines = [line for file in done.files for line in _describe_file(file)]
    if only_check:
        return [*lines, "Nothing was sent."]
    if done.waited:
        lines.append(f"{done.waited} reports of an earlier run were waiting.")
    lines.append(
        f"{done.sent} rows were privatised with ε = {done.epsilon:g} each and sent;"
        f" the server stored {done.stored} reports"
        + (f" and had {done.repeated} already." if done.repeated else ".")
    )
    lines += [f"The server refused {count}: {reason}." for reason, count in done.refused.items()]
    lines += [
        f"The server cannot read {count} now: {reason}. They stay in the journal; send them again"
        " later."
        for reason, count in done.put_off.items()
    ]
    return lines


def _describe_file(file: FileSummary) -> list[str]:
    found = file.survey
    others = "; the others send a report that says nothing, so that their number stays private"
    lines = [
        f"{file.path}: {found.rows} rows, of which {found.fitting} fit the schema"
        f"{others if found.refused else ''}."
    ]
    for reason, refused in found.refused.items():
        some = ", ".join(map(str, refused.lines[:_FEW]))
        more = ", …" if refused.rows > _FEW else ""
        lines.append(f"  {refused.rows} × {reason} (line {some}{more})")
    for feature, count in found.clamped.items():
        lines.append(f"  {count} values of {feature} outside its bounds count as the nearest bound")
    if file.finished:
        lines.append("  It was contributed before; nothing is sent a second time.")
    elif file.before:
        lines.append(f"  Its first {file.before} rows were contributed before.")
    return lines
