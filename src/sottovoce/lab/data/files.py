"""CSV and Parquet files as columns, by PyArrow, which no other module of the lab imports.

A text column in which every value is a number is a column of numbers, in Parquet as in CSV; one of
dates or times becomes seconds. Truth values are the levels ``false`` and ``true``.
"""

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.lab.data.columns import Column, Levels, Numbers, numbers_of, strings
from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must

MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A")
"""What stands for nothing in a CSV file."""

# A text column counts as numbers with something else among them if at least this share of its rows
# are numbers, or half of them with so many different numbers that they cannot be levels.
_MOSTLY = 0.9
_MORE_THAN_LEVELS = 20

_ENDINGS = (".csv", ".csv.gz", ".parquet")

VARIABLE = "SOTTOVOCE_DATA"
"""The variable that names the folder with the files of the named data sets."""


class File:
    """A table on disk."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.name.lower().endswith(_ENDINGS):
            rule = f"end in one of {', '.join(_ENDINGS)}"
            raise ExperimentError(must("the path of a table", rule, repr(str(self.path))))
        if not self.path.is_file():
            raise ExperimentError(must("the path of a table", "be a file", f"{self.path}: no file"))
        self._table = self._read()
        self.names: tuple[str, ...] = tuple(self._table.column_names)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ExperimentError(must(f"the columns of {self.path}", "differ", f"{twice} twice"))
        self.rows: int = self._table.num_rows
        if self.rows == 0:
            raise ExperimentError(must(f"the table {self.path}", "have rows", "0 rows"))

    def _read(self) -> Any:
        try:
            import pyarrow.csv
            import pyarrow.parquet
        except ImportError as error:
            raise ExperimentError("tables need PyArrow: pip install 'sottovoce[lab]'") from error
        kind = "Parquet" if self.path.name.lower().endswith(".parquet") else "CSV"
        try:
            if kind == "Parquet":
                return pyarrow.parquet.ParquetFile(self.path).read()
            return self._read_csv(pyarrow)
        # PyArrow's own errors are among these; a cut-off gzip file ends in EOFError.
        except (OSError, ValueError, NotImplementedError, EOFError) as error:
            trouble = type(error).__name__
        raise ExperimentError(
            must(f"the table {self.path}", f"be a sound {kind} file", f"one that is not: {trouble}")
        )

    def _read_csv(self, pyarrow: Any) -> Any:
        """Read everything as text: what it is shows only when all of it is there."""
        opened = gzip.open if self.path.name.lower().endswith(".gz") else open
        with opened(self.path, "rt", encoding="utf-8-sig") as file:
            heading = file.readline()
        parse = pyarrow.csv.ParseOptions(
            delimiter=max(",;\t", key=heading.count), newlines_in_values=True
        )
        names = pyarrow.csv.open_csv(self.path, parse_options=parse).schema.names
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()),
            null_values=MISSING,
            strings_can_be_null=True,
        )
        return pyarrow.csv.read_csv(self.path, parse_options=parse, convert_options=convert)

    def require(self, names: Sequence[str], *, what: str) -> None:
        """Refuse if a column is not there."""
        absent = [name for name in names if name not in self.names]
        if absent:
            rule = f"be among the columns of {self.path.name}, {list(self.names)}"
            raise ExperimentError(must(what, rule, absent))

    def column(self, name: str, *, levels: bool = False) -> Column:
        """Return one column; ``levels`` takes numbers as levels."""
        import pyarrow as pa
        import pyarrow.compute as pc

        array = self._table[name].combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        kind = array.type
        types = pa.types
        if types.is_null(kind):
            return Numbers(np.full(self.rows, np.nan))
        if types.is_string(kind) or types.is_large_string(kind):
            return self._text(name, pc.utf8_trim_whitespace(array), levels=levels)
        if types.is_boolean(kind):
            return self._text(name, array.cast(pa.string()), levels=True)
        if types.is_timestamp(kind) or types.is_date(kind):
            array = array.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64(), safe=False)
            return Numbers(_with_gaps(array) / 1e6)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            numbers = self._numbers(name, _with_gaps(array.cast(pa.float64(), safe=False)))
            return strings(numbers) if levels else numbers
        rule = "hold numbers, text, truth values or times"
        raise ExperimentError(must(f"column {name!r}", rule, str(kind)))

    def numbers(self, name: str) -> Floats:
        """Return one column of numbers."""
        return numbers_of(self.column(name), name)

    def _numbers(self, name: str, values: Floats) -> Numbers:
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise ExperimentError(
                must(f"column {name!r}", "hold finite numbers", f"{infinite} infinite ones")
            )
        return Numbers(values)

    def _text(self, name: str, array: Any, *, levels: bool) -> Column:
        encoded = array.dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        values: list[str] = encoded.dictionary.to_pylist()
        if not levels and values:
            numbers = [_number(value) for value in values]
            if None not in numbers:
                return self._numbers(name, np.array([*numbers, np.nan], dtype=np.float64)[codes])
            self._refuse_mixed(name, codes, numbers)
            times = [_seconds(value) for value in values]
            if None not in times:
                return Numbers(np.array([*times, np.nan], dtype=np.float64)[codes])
        known = tuple(sorted(values))
        return Levels(Levels(codes, tuple(values)).codes_in(known), known)

    def _refuse_mixed(self, name: str, codes: Counts, numbers: list[float | None]) -> None:
        counts = np.bincount(codes[codes >= 0], minlength=len(numbers))
        is_number = np.array([number is not None for number in numbers])
        share = counts[is_number].sum() / counts.sum()
        many = int(is_number.sum()) > _MORE_THAN_LEVELS
        if share >= _MOSTLY or (share >= 0.5 and many):
            rule = (
                f"hold numbers only, or levels only (say categorical=[{name!r}] if they are levels)"
            )
            came = f"numbers, and {int(counts[~is_number].sum())} rows that are none"
            raise ExperimentError(must(f"column {name!r}", rule, came))


def _with_gaps(array: Any) -> Floats:
    return np.array(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _seconds(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that a data set is made of.

    paths: where it may lie in the folder; the first that is there is taken.
    what: what it is, and where it comes from.
    """

    paths: tuple[str, ...]
    what: str

    def find(self, data_dir: str | PathLike[str] | None) -> Path:
        """Return where the file is in a folder; None for the one that SOTTOVOCE_DATA names."""
        folder = data_dir if data_dir is not None else os.environ.get(VARIABLE)
        rule = f"be a folder with {' or '.join(self.paths)}: {self.what}"
        what = f"data_dir (--data-dir, or the variable {VARIABLE})"
        if not folder:
            raise ExperimentError(must(what, rule, "none"))
        for path in self.paths:
            if (Path(folder) / path).is_file():
                return Path(folder) / path
        raise ExperimentError(must(what, rule, f"{folder}, which has no such file"))
