"""Raw values with so many digits that none turns up by chance, and a search for them anywhere."""

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566
# As the device would encode them, for bounds of 18 to 90 and of 15 to 45.
NUMBERS = (AGE, BMI, REWARD, (AGE - 18) / 72, (BMI - 15) / 30)
NAME, ARM = "Lindqvist-48151623", "arm-42108642"
WHOLE = 6173205081  # the age, without its point


def needles() -> dict[bytes, str]:
    """What to look for, and what it is."""
    found = {NAME.encode(): "a name", ARM.encode(): "an arm", str(WHOLE).encode(): "a whole number"}
    found |= {WHOLE.to_bytes(8, order): "a whole number" for order in ("little", "big")}
    for number in NUMBERS:
        found[repr(number)[:10].encode()] = "digits"
        for form in ("<d", ">d", "<f", ">f"):
            packed = struct.pack(form, number)
            found[packed] = f"a number as {form}"
            found[packed.hex().encode()] = f"a number as {form}, in hexadecimal"
    return found


NEEDLES = needles()


def canaries_in(data: bytes) -> list[str]:
    """What of it is in there."""
    lower = data.lower()
    return [
        f"{what}: {needle!r}"
        for needle, what in NEEDLES.items()
        if needle in data or (needle.isascii() and needle.lower() in lower)
    ]


def values_of(database: Path) -> Iterator[bytes]:
    """Each value of each table, as bytes; what is packed also unpacked."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        yield "\n".join(connection.iterdump()).encode()
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
                for value in row:
                    if isinstance(value, float):
                        yield struct.pack("<d", value)
                    yield value if isinstance(value, bytes) else str(value).encode()
                    if isinstance(value, bytes):
                        try:
                            yield zlib.decompress(value)
                        except zlib.error:
                            continue


def canaries_under(folder: Path) -> dict[str, list[str]]:
    """What is in any file of a folder, byte by byte, and in any value of a database there."""
    found = {}
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        seen = canaries_in(data)
        if data.startswith(b"SQLite format 3\0"):
            seen += [each for value in values_of(path) for each in canaries_in(value)]
        if seen:
            found[path.name] = seen
    return found
