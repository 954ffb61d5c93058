"""One person's signed subset, drawn fast and with the law of ``device/subset.py``."""

import numpy as np

from sottovoce.lab.compiled import compiled
from sottovoce.lab.whisper.tables import CELLS, CONTAINS, ELSEWHERE, SIZE, Counts, Floats

_BITS = 52  # of a random number, all fair


@compiled
def answer(
    law: Floats,
    cell: int,
    value: float,
    sums: Floats,
    order: Counts,
    picks: Counts,
    rng: np.random.Generator,
) -> None:
    """Add the signed subset of one person to the sums, with the law of ``device/subset.py``.

    cell: -1 for a person who has none.
    """
    cells, size = int(law[CELLS]), int(law[SIZE])
    if cell < 0 and law[ELSEWHERE] > 0.0:
        cell, value = cells - 1, 1.0
    own = 0.0
    if cell >= 0:
        if rng.random() < law[CONTAINS]:
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
    left, need = cells, size
    if cell >= 0:
        left, need = cells - 1, size - (own != 0.0)
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
