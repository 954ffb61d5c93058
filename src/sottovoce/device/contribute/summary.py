"""What a run did, in figures and in words: counts, lines and reasons, but no value of a row."""

from collections.abc import Callable
from dataclasses import dataclass

from sottovoce.device.contribute.survey import Survey

_FEW = 5


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What became of one file in this run.

    survey: its rows, and which of them do not fit.
    before: how many rows earlier runs had finished.
    sent: how many reports this run made of it.
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

    epsilon: what each row spends.
    rows: of all files. sent: how many reports this run made of them.
    waited: how many reports an earlier run had made, and this one sent.
    stored, repeated, refused: what the server said of these reports. It had the repeated ones
        already, from a run that was stopped before the answer came.
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How many rows of a file are finished.

    rows: how many it has; None while the file is read for the first time.
    """

    path: str
    done: int
    rows: int | None


OnProgress = Callable[[Progress], None]


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
    return lines


def _describe_file(file: FileSummary) -> list[str]:
    found = file.survey
    lines = [f"{file.path}: {found.rows} rows, of which {found.fitting} fit the schema."]
    for reason, refused in found.refused.items():
        some = ", ".join(map(str, refused.lines[:_FEW]))
        more = ", …" if refused.rows > _FEW else ""
        lines.append(f"  {refused.rows} refused: {reason} (line {some}{more})")
    for feature, count in found.clamped.items():
        lines.append(f"  {count} values of {feature} outside its bounds count as the nearest bound")
    if file.finished:
        lines.append("  It was contributed before; nothing is sent a second time.")
    elif file.before:
        lines.append(f"  Its first {file.before} rows were contributed before.")
    return lines
