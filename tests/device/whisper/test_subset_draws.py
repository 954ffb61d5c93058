"""Signed subset selection with the operating system's own randomness, at N = 200.

The law is proved exactly for small N in ``test_subset.py``; here the same code runs at full
size. False alarms: each ``faults`` is wrong with probability at most 1e-6, shared out over its
exact binomial tests (Bonferroni), and 12 honest ones are made, so the file fails by chance in at
most 12 of a million runs. What the mutations change lies more than 10 standard deviations off.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sottovoce.device.whisper.subset import whisper
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset, unpack

CELLS = 200
REPORTS = 3000
FALSE_ALARM_RATE = 1e-6
# All three layouts: w is 200 (bits), 101 and 63 (digits), and 7 (symbols).
EPSILONS = [1.0, 1.6, 2.0, 4.0]


def collect(mechanism: SignedSubset, cell: int | None, value: float) -> Any:
    """Values, shape (reports, cells)."""
    reports = [whisper(mechanism, cell=cell, value=value) for _ in range(REPORTS)]
    return np.array([unpack(mechanism, report) for report in reports])


def faults(values: Any, *, epsilon: float, size: int, cell: int | None, value: float) -> list[str]:
    """Exact binomial tests of each cell, of its sign, and of neighbouring cells together."""
    a, theta = np.exp(epsilon), size / (2 * CELLS)
    z = 1 + theta * (a - 1)
    count = len(values)
    if wrong := int(((values != 0).sum(axis=1) != size).sum()):
        return [f"{wrong} sets are not of size {size}"]
    own = theta * (a + 1) / z
    rest = size / CELLS if cell is None else (size - own) / (CELLS - 1)
    held = np.full(CELLS, rest)
    plus = np.full(CELLS, 0.5)
    if cell is not None:
        held[cell] = own
        plus[cell] = (a * (1 + value) / 2 + (1 - value) / 2) / (a + 1)
    inside = (values != 0).sum(axis=0)
    tails = {
        "inclusion": two_sided(inside, count, held),
        "sign": two_sided((values > 0).sum(axis=0), inside, plus),
        "signs of neighbours": two_sided(
            (values[:, 1:] * values[:, :-1] > 0).sum(axis=0),
            (values[:, 1:] * values[:, :-1] != 0).sum(axis=0),
            np.full(CELLS - 1, 0.5),
        ),
    }
    if cell is None:
        both = size * (size - 1) / (CELLS * (CELLS - 1))
        for distance in (1, 2, CELLS // 2):
            pairs = (values[:, distance:] * values[:, :-distance] != 0).sum(axis=0)
            name = f"inclusion of two cells {distance} apart"
            tails[name] = two_sided(pairs, count, np.full(len(pairs), both))
    each = FALSE_ALARM_RATE / sum(len(tail) for tail in tails.values())
    return [
        f"{name} at {place}: p = {tail[place]:.1e}"
        for name, tail in tails.items()
        for place in np.flatnonzero(tail < each)
    ]


def two_sided(successes: Any, count: Any, chance: Any) -> Any:
    """Twice the smaller tail: for each test, below p with probability at most p."""
    chance = np.clip(chance, 0, 1)
    low = stats.binom.cdf(successes, count, chance)
    high = stats.binom.sf(successes - 1, count, chance)
    return 2 * np.minimum(low, high)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("cell", "value"), [(7, 1.0), (199, -0.5), (None, 1.0)])
def test_every_cell_is_drawn_as_often_as_the_law_says(
    epsilon: float, cell: int | None, value: float
) -> None:
    mechanism = signed_subset(epsilon, CELLS)
    values = collect(mechanism, cell, value)
    found = faults(values, epsilon=epsilon, size=mechanism.size, cell=cell, value=value)
    assert found == []


def drop_signs(values: Any) -> Any:
    return abs(values)


def swap_two_cells(values: Any) -> Any:
    values[:, [7, 8]] = values[:, [8, 7]]
    return values


def copy_a_sign(values: Any) -> Any:
    values[:, 1] = abs(values[:, 1]) * np.where(values[:, 0], values[:, 0], 1)
    return values


@pytest.mark.parametrize("change", [drop_signs, swap_two_cells, copy_a_sign, np.negative])
def test_changed_reports_are_found(change: Callable[[Any], Any]) -> None:
    mechanism = signed_subset(1.0, CELLS)
    values = change(collect(mechanism, 7, 1.0))
    assert faults(values, epsilon=1.0, size=mechanism.size, cell=7, value=1.0) != []


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_odds_of_another_epsilon_are_found(epsilon: float) -> None:
    values = collect(signed_subset(epsilon, CELLS, size=CELLS), 7, 1.0)
    assert faults(values, epsilon=1.0, size=CELLS, cell=7, value=1.0) != []


def test_null_that_leans_to_the_first_cells_is_found() -> None:
    mechanism = signed_subset(2.0, CELLS)
    values = collect(mechanism, None, 1.0)
    lean = np.sort(abs(values[:, :50]), axis=1)[:, ::-1]
    values[:, :50] = lean * np.where(values[:, 50:100], values[:, 50:100], 1)
    assert faults(values, epsilon=2.0, size=mechanism.size, cell=None, value=1.0) != []
