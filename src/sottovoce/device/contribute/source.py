"""A custodian's file: its hash, whether it has changed, and its rows one after another.

A file is known by the SHA-256 of its bytes. Errors name the file, a line and columns, and never
show a value.
"""

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO, TypeVar, cast

from sottovoce.device.contribute import parquet
from sottovoce.device.contribute.rows import Numbered, find_columns
from sottovoce.shared.errors import RowsError, must

KINDS = (".csv", ".csv.gz", ".parquet")
_BLOCK = 1 << 20

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was when it was hashed.

    sha256: of its bytes.
    stamp: its size, time and inode; if they differ later, somebody wrote to the file.
    begins: the SHA-256 of its first bytes, for each of the requested sizes.
    """

    path: Path
    size: int
    sha256: bytes
    stamp: tuple[int, ...]
    begins: Mapping[int, bytes]

    def check_unchanged(self) -> None:
        """Refuse a file that somebody wrote to since it was hashed."""
        if _stamp(self.path) != self.stamp:
            raise RowsError(f"{self.path} must not change while it is read; it did")


def look(path: Path, *, sizes: Iterable[int] = ()) -> Source:
    """Hash a file, and its first bytes for each of some sizes."""
    if not path.name.lower().endswith(KINDS):
        raise RowsError(must(str(path), f"end with one of {list(KINDS)}", "another ending"))
    digest, begins, done = hashlib.sha256(), {}, 0
    stamp = _stamp(path)
    size = stamp[0]
    with _readable(path, lambda: path.open("rb")) as file:
        for stop in (*sorted(each for each in sizes if each < size), size):
            while block := file.read(min(_BLOCK, stop - done)):
                digest.update(block)
                done += len(block)
            begins[stop] = digest.digest()
    source = Source(path, size, digest.digest(), stamp, begins)
    source.check_unchanged()
    return source


@contextmanager
def reading(source: Source, columns: Sequence[str]) -> Iterator[Iterator[Numbered]]:
    """Open a file, and yield its rows with the wanted columns."""
    name = source.path.name.lower()
    with _readable(source.path, lambda: source.path.open("rb")) as file:
        source.check_unchanged()
        if name.endswith(".parquet"):
            yield parquet.rows(file, columns, path=source.path)
            return
        packed = name.endswith(".gz")
        with (
            gzip.open(file) if packed else file as plain,
            io.TextIOWrapper(cast(IO[bytes], plain), encoding="utf-8-sig", newline="") as text,
        ):
            yield _csv_rows(text, columns, path=source.path)


def _csv_rows(text: TextIO, columns: Sequence[str], *, path: Path) -> Iterator[Numbered]:
    """Read CSV with a header, in UTF-8; empty lines are skipped."""
    reader, line = csv.reader(text, strict=True), 1
    try:
        header = next(reader, None)
        if not header:
            raise RowsError(f"{path} must begin with a header row; its first line is empty")
        places = find_columns(columns, header, path=path)
        # A row that spans several lines has the number of its first line.
        line = reader.line_num + 1
        while (fields := next(reader, None)) is not None:
            if fields:
                whole = len(fields) == len(header)
                yield line, [fields[place] for place in places] if whole else None
            line = reader.line_num + 1
        return
    except (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        trouble = type(error).__name__
    # Raised outside of the except clause, because the first error may hold the row.
    raise RowsError(f"{path} must be CSV in UTF-8; from line {line} on it is not ({trouble})")


def _stamp(path: Path) -> tuple[int, ...]:
    found = _readable(path, path.stat)
    return (found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)


def _readable(path: Path, action: Callable[[], Result]) -> Result:
    try:
        return action()
    except OSError as error:
        raise RowsError(f"{path} must be a file that can be read; {error.strerror}") from None
