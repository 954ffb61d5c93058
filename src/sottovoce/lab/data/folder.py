"""Where the files of the named data sets are."""

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from sottovoce.lab.data.files import File
from sottovoce.shared.errors import ExperimentError, must

VARIABLE = "SOTTOVOCE_DATA"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that a data set is made of.

    paths: where it may lie in the folder; the first that is there is taken.
    what: what it is, and where it comes from.
    """

    paths: tuple[str, ...]
    what: str

    def open(self, data_dir: str | PathLike[str] | None) -> File:
        """Read the file from a folder; None for the one that SOTTOVOCE_DATA names."""
        return File(self.find(data_dir))

    def find(self, data_dir: str | PathLike[str] | None) -> Path:
        """Return where the file is, without reading it."""
        folder = data_dir if data_dir is not None else os.environ.get(VARIABLE)
        rule = f"be a folder with {' or '.join(self.paths)}: {self.what}"
        what = f"data_dir (--data-dir, or the variable {VARIABLE})"
        if not folder:
            raise ExperimentError(must(what, rule, "none"))
        for path in self.paths:
            if (Path(folder) / path).is_file():
                return Path(folder) / path
        raise ExperimentError(must(what, rule, f"{folder}, which has no such file"))
