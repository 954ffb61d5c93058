"""The first pass over a file, before any report is made: which rows fit the schema.

It finds whatever is wrong with a file as a whole before anything is sent. The file's bytes and the
experiment are pinned, so each run finds the same.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sottovoce.device.contribute.rows import Columns, Judge
from sottovoce.device.contribute.source import Source, reading
from sottovoce.shared.errors import RowsError
from sottovoce.shared.experiment import Experiment

MOST_LINES = 1000
"""The most line numbers to keep for each reason; all rows are counted."""

OnRefusal = Callable[[Path, int, str], None]
"""Called for each refused row, with the file, the line and the reason."""

_TELL_EVERY = 10_000


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

    fitting: how many rows can be reported. refused: the others, by reason.
    clamped: how many numbers of each feature lie outside its bounds, in rows that fit.
    """

    rows: int
    fitting: int
    refused: dict[str, Refused]
    clamped: dict[str, int]


def survey(
    source: Source,
    *,
    experiment: Experiment,
    columns: Columns,
    on_refusal: OnRefusal,
    on_rows: Callable[[Path, int], None],
) -> Survey:
    """Read a file and judge its rows; a file without a single fitting row is refused.

    on_rows: called from time to time with the file and the number of rows read.
    """
    judge = Judge(experiment, columns)
    rows, counts, lines = 0, Counter[str](), dict[str, list[int]]()
    with reading(source, columns.names(experiment)) as numbered:
        for line, values in numbered:
            rows += 1
            if rows % _TELL_EVERY == 0:
                on_rows(source.path, rows)
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
    if rows and not fitting:
        ((most, times),) = counts.most_common(1)
        raise RowsError(
            f"{source.path} must have rows that fit the schema; of {rows} rows none does"
            f" ({times} times: {most}); nothing was sent"
        )
    return Survey(rows, fitting, refused, dict(judge.clamped))
