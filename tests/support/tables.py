"""Made-up classification tables, and where the real ones are."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from support.paths import SHARED


def data_dir() -> Path:
    """The folder of the real data; the test is skipped where there is none."""
    folder = Path(os.environ.get("SOTTOVOCE_DATA") or SHARED / "data")
    if not (folder / "adult").is_dir():
        pytest.skip(f"no real data in {folder}; SOTTOVOCE_DATA names another folder")
    return folder


def pupils(*, rows: int = 600, classes: int = 3, seed: int = 0) -> dict[str, list[Any]]:
    """Pupils of three schools: grades that depend on hours, sleep and a favourite subject."""
    rng = np.random.default_rng(seed)
    hours = rng.gamma(2, 2, rows)
    sleep = rng.normal(8, 1, rows)
    subject = rng.choice(["art", "music", "physics", "sport"], rows)
    score = hours / 4 + 0.5 * (sleep - 8) + (subject == "physics") + rng.normal(0, 0.2, rows)
    grade = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    school = rng.choice(["north", "south", "west"], rows, p=[0.6, 0.3, 0.1])
    return {
        "hours": hours.tolist(),
        "sleep": sleep.tolist(),
        "subject": subject.tolist(),
        "boards": (rng.random(rows) < 0.3).tolist(),
        "floor": rng.integers(0, 5, rows).tolist(),
        "school": school.tolist(),
        "grade": [f"grade {k}" for k in grade.tolist()],
    }


def write(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    """Write a table; values of mixed kinds as text, as they stand in a CSV file."""
    arrays = {name: _array(values) for name, values in columns.items()}
    table = pa.table(arrays)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".gz":
        with pa.CompressedOutputStream(str(path), "gzip") as stream:
            pyarrow.csv.write_csv(table, stream)
    else:
        pyarrow.csv.write_csv(table, path)
    return path


def _array(values: Sequence[Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
