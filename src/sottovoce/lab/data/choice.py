"""The few columns that say most about the classes, chosen on the fitting rows."""

import numpy as np

from sottovoce.lab.data.columns import Columns
from sottovoce.lab.data.selection import Selection
from sottovoce.lab.environments import Counts
from sottovoce.shared.errors import ExperimentError, must

PARTS = 4
"""Into how many parts an axis is cut to see what it says."""

CAUTION = 2.0
"""How many people with the classes of all stand in every cell beside its own people."""


def telling_columns(columns: Columns, labels: Counts, *, dimensions: int) -> list[str]:
    """Choose columns one after the other: each time the one that, with those before it, says most.

    Each axis is cut into parts; the classes of the people in a cell predict those of others there.
    What is said is the mean logarithm of these predictions, each half of the rows by the other.
    """
    if len(columns) < dimensions:
        raise ExperimentError(
            must("dimensions", f"be at most the {len(columns)} columns", dimensions)
        )
    parts = {}
    for name in columns:
        places = Selection.fit(columns, [name], labels=labels).apply(columns)[:, 0]
        parts[name] = np.minimum((PARTS * places).astype(np.int64), PARTS - 1)
    chosen: list[str] = []
    cells = np.zeros(len(labels), dtype=np.int64)
    for _ in range(dimensions):
        left = [name for name in columns if name not in chosen]
        said = [_said(cells * PARTS + parts[name], labels) for name in left]
        chosen.append(left[int(np.argmax(said))])
        # Cells are numbered afresh, so that there are never more numbers than people.
        cells = np.unique(cells * PARTS + parts[chosen[-1]], return_inverse=True)[1]
    return chosen


def _said(cells: Counts, labels: Counts) -> float:
    classes, size = int(labels.max()) + 1, int(cells.max()) + 1
    overall = np.bincount(labels, minlength=classes) / len(labels)
    even = np.arange(len(labels)) % 2 == 0
    total = 0.0
    for known, asked in ((even, ~even), (~even, even)):
        keys = cells[known] * classes + labels[known]
        counts = np.bincount(keys, minlength=size * classes).reshape(size, classes)
        shares = counts + CAUTION * overall
        shares /= shares.sum(axis=1, keepdims=True)
        total += float(np.log(shares[cells[asked], labels[asked]]).sum())
    return total / len(labels)
