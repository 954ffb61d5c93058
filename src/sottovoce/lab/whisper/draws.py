"""One person's signed subset, drawn fast and with the law of ``device/whisper/subset.py``.

The device draws exact integers and packs them. Here floating-point numbers are good enough, and
the set is added to the sums at once. Tests compare the two laws.
"""

import numpy as np

from sottovoce.estimate.whisper.state import Counts, Floats, Records
from sottovoce.lab.compiled import compiled

_BITS = 52  # of a random number, all fair


@compiled
def send(
    mechanism: Records,
    cell: int,
    value: float,
    sums: Floats,
    order: Counts,
    picks: Counts,
    rng: np.random.Generator,
) -> None:
    """Add the signed subset of one person to the sums.

    cell: -1 for a person who has none. value: 1 or -1. order, picks: room to work in.
    """
    cells, size = mechanism.cells, mechanism.set_size
    if cell < 0 and mechanism.elsewhere:
        cell, value = cells - 1, 1.0
    own = 0.0
    if cell >= 0:
        if rng.random() < mechanism.contains:
            own = value
        elif rng.random() * (2 * cells - size) < size:
            own = -value
        sums[cell] += own
    if size == cells:
        bits = 0
        for other in range(cells):
            if other % _BITS == 0:
                bits = int(rng.random() * 2.0**_BITS)
            if other != cell:
                sums[other] += 2.0 * (bits & 1) - 1.0
            bits >>= 1
        return
    add_others(cells, cell, size - (own != 0.0), sums, order, picks, rng)


@compiled
def add_others(
    cells: int,
    cell: int,
    need: int,
    sums: Floats,
    order: Counts,
    picks: Counts,
    rng: np.random.Generator,
) -> None:
    """Add ``need`` of the cells other than the person's own, each with a fair sign."""
    left = cells
    if cell >= 0:
        left = cells - 1
        order[cell], order[left] = left, cell
    for pick in range(need):
        other = pick + int(rng.random() * (left - pick))
        order[pick], order[other] = order[other], order[pick]
        picks[pick] = other
        sums[order[pick]] += 1.0 if rng.random() < 0.5 else -1.0
    for pick in range(need - 1, -1, -1):  # back to the order of before
        other = picks[pick]
        order[pick], order[other] = order[other], order[pick]
    if cell >= 0:
        order[cell], order[left] = cell, left
