"""Reads Parquet files with PyArrow (the extra "custodian"); no other module imports PyArrow."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from sottovoce.device.contribute.rows import Numbered, find_columns
from sottovoce.shared.errors import RowsError

# How many rows are in memory at once, as Python objects.
_BATCH = 5000


def rows(file: IO[bytes], columns: Sequence[str], *, path: Path) -> Iterator[Numbered]:
    """Read the wanted columns of each row; rows are numbered from 1."""
    opened = _open(file, path=path)
    find_columns(columns, opened.schema_arrow.names, path=path)
    batches = opened.iter_batches(_BATCH, columns=list(columns), use_threads=False)
    number = 0
    while (values := _next(batches, columns, path=path)) is not None:
        for each in zip(*values, strict=True):
            number += 1
            yield number, each


def _open(file: IO[bytes], *, path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise RowsError("Parquet files need PyArrow: pip install 'sottovoce[custodian]'") from error
    try:
        return ParquetFile(file)
    except (OSError, ValueError):
        pass
    raise RowsError(f"{path} must be a Parquet file; it cannot be read as one")


def _next(batches: Any, columns: Sequence[str], *, path: Path) -> list[list[Any]] | None:
    # PyArrow's errors are subclasses of OSError, ValueError and NotImplementedError.
    try:
        batch = next(batches, None)
        return None if batch is None else [batch.column(name).to_pylist() for name in columns]
    except (OSError, ValueError, NotImplementedError) as error:
        trouble = type(error).__name__
    # Raised outside of the except clause, because the first error may hold a raw value.
    raise RowsError(f"{path} must be a sound Parquet file; it cannot be read on ({trouble})")
