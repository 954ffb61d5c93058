"""Columns of a table in memory: numbers or levels, with or without gaps."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.environments import Counts, Floats

Rows = NDArray[np.bool_]
"""Which rows of a table are meant, (n,)."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Finite numbers (n,); NaN where one is missing."""

    values: Floats

    def missing(self) -> Rows:
        """Return where there is nothing."""
        return np.isnan(self.values)

    def take(self, rows: Rows) -> "Numbers":
        """Return some of the rows."""
        return Numbers(self.values[rows])


@dataclass(frozen=True, slots=True)
class Levels:
    """Places in a list of levels (n,); -1 where one is missing."""

    codes: Counts
    levels: tuple[str, ...]

    def missing(self) -> Rows:
        """Return where there is nothing."""
        return self.codes < 0

    def take(self, rows: Rows) -> "Levels":
        """Return some of the rows."""
        return Levels(self.codes[rows], self.levels)

    def codes_in(self, known: tuple[str, ...]) -> Counts:
        """Return the places in another list of levels; -1 where it has no such level."""
        places = {level: place for place, level in enumerate(known)}
        table = np.array([places.get(level, -1) for level in self.levels] + [-1], dtype=np.int64)
        return table[self.codes]  # what is missing (-1) finds the last entry


Column = Numbers | Levels
Columns = Mapping[str, Column]


def take(columns: Columns, rows: Rows) -> dict[str, Column]:
    """Return some of the rows of all columns."""
    return {name: column.take(rows) for name, column in columns.items()}


def seen(column: Levels) -> tuple[str, ...]:
    """Return the levels that occur, in their order."""
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
    return tuple(level for level, count in zip(column.levels, counts, strict=True) if count)


def strings(column: Column) -> Levels:
    """Return numbers as levels, from the smallest to the largest; levels stay as they are."""
    if isinstance(column, Levels):
        return column
    there = ~column.missing()
    values, places = np.unique(column.values[there], return_inverse=True)
    codes = np.full(len(column.values), -1, dtype=np.int64)
    codes[there] = places
    return Levels(codes, tuple(f"{value:.15g}" for value in values.tolist()))
