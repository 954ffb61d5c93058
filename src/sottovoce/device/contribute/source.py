"""A custodian's file: its hash, whether it has changed, and its rows one after another.

A file is known by the SHA-256 of its bytes. Errors name the file, a line and columns, and never
show a value.
"""

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO, cast

from sottovoce.device.contribute import parquet
from sottovoce.device.contribute.rows import Numbered, find_columns
from sottovoce.shared.errors import RowsError, must

KINDS = (".csv", ".csv.gz", ".parquet")
_BLOCK = 1 << 20


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
    with _opened(path) as file:
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
    with _opened(source.path) as file:
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
    reader = csv.reader(text, strict=True)
    header = _next(reader, path=path)
    if not header:
        raise RowsError(f"{path} must begin with a header row; its first line is empty")
    places = find_columns(columns, header, path=path)
    while True:
        # A row that spans several lines has the number of its first line.
        line = reader.line_num + 1
        fields = _next(reader, path=path)
        if fields is None:
            return
        if fields:
            whole = len(fields) == len(header)
            yield line, [fields[place] for place in places] if whole else None


def _next(reader: Any, *, path: Path) -> list[str] | None:
    line = reader.line_num + 1
    try:
        fields: list[str] | None = next(reader, None)
    except (csv.Error, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        trouble = type(error).__name__
    else:
        return fields
    # Raised outside of the except clause, because the first error may hold the row.
    raise RowsError(f"{path} must be CSV in UTF-8; from line {line} on it is not ({trouble})")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        yield file


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    return (found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)


def _unreadable(path: Path, error: OSError) -> RowsError:
    return RowsError(f"{path} must be a file that can be read; {error.strerror}")
