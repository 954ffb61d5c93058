"""The axes of an experiment as questions see them: slots, parts and patterns.

A *slot* is one unknown effect inside of a bin: how its halves differ along a number, or how one
level differs from the bin as a whole. A *part* is a half or a level. A *pattern* is one way to ask
about an axis at a small ε: one for halves, a row of a Hadamard matrix for each of R ≥ L for levels.
"""

from typing import NamedTuple

from sottovoce.shared.experiment import Experiment


class Slots(NamedTuple):
    """Where the slots and patterns of each axis are, as plain numbers.

    levels (d,): how many levels without order an axis has; 0 for numbers and levels in order.
    places (d,): how many places people can be in along it; 0 for a number.
    slots (d + 1,): the first slot of each axis, and in the end how many there are.
    patterns (d + 1,): the same of patterns; number 0 is the question about no axis.
    """

    levels: tuple[int, ...]
    places: tuple[int, ...]
    slots: tuple[int, ...]
    patterns: tuple[int, ...]


def slots_of(experiment: Experiment) -> Slots:
    """Lay out the axes of an experiment."""
    if Slots not in experiment.derived:
        levels = experiment.settings.levels_in_sets(experiment)
        slots, patterns = [0], [1]
        for count in levels:
            slots.append(slots[-1] + max(count, 1))
            patterns.append(patterns[-1] + rows_for(count))
        places = tuple(axis.levels for axis in experiment.axes)
        experiment.derived[Slots] = Slots(levels, places, tuple(slots), tuple(patterns))
    found: Slots = experiment.derived[Slots]
    return found


def rows_for(levels: int) -> int:
    """Return how many patterns an axis has: as many as the next power of two has rows."""
    return 1 << (levels - 1).bit_length() if levels else 1


def pattern_sign(row: int, level: int) -> int:
    """Return ±1, an entry of the Hadamard matrix: minus for an odd number of common bits.

    It takes the same steps for every level. Rows and levels are below 2^16.
    """
    bits = row & level
    bits ^= bits >> 8
    bits ^= bits >> 4
    bits ^= bits >> 2
    bits ^= bits >> 1
    return 1 - 2 * (bits & 1)
