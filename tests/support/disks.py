"""A disk so small that it is full in a moment."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Three megabytes, of which nothing is used."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or unmount is None:
        pytest.skip("only root can mount a small disk")
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if subprocess.run([mount, *options], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run([unmount, str(folder)], check=True)


def fill(file: Path, *, but: int = 0) -> None:
    """Fill a disk with one file, but for so many blocks of 4096 bytes."""
    with file.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))
    with file.open("r+b") as ballast:
        ballast.truncate(max(0, file.stat().st_size - 4096 * but))
