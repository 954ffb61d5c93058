"""Columns of a table in memory: numbers or levels, with or without gaps."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must

Rows = NDArray[np.bool_]
"""Which rows of a table are meant, (n,)."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Finite numbers (n,); NaN where one is missing."""

    values: Floats

    def missing(self) -> Rows:
        """Return where there is nothing."""
        return np.isnan(self.values)

    def take(self, rows: Rows | slice) -> "Numbers":
        """Return some of the rows."""
        return Numbers(self.values[rows])


@dataclass(frozen=True, slots=True)
class Levels:
    """Indices in a list of levels (n,); -1 where one is missing."""

    codes: Counts
    levels: tuple[str, ...]

    def missing(self) -> Rows:
        """Return where there is nothing."""
        return self.codes < 0

    def take(self, rows: Rows | slice) -> "Levels":
        """Return some of the rows."""
        return Levels(self.codes[rows], self.levels)

    def codes_in(self, known: tuple[str, ...]) -> Counts:
        """Return the indices in another list of levels; -1 where it has no such level."""
        indices = {level: index for index, level in enumerate(known)}
        table = np.array([indices.get(level, -1) for level in self.levels] + [-1], dtype=np.int64)
        return table[self.codes]  # what is missing (-1) finds the last entry

    def filled(self, level: str) -> "Levels":
        """Return the same with a level in place of what is missing."""
        known = self.levels if level in self.levels else (*self.levels, level)
        return Levels(np.where(self.codes < 0, known.index(level), self.codes), known)

    def ranks_in(self, order: tuple[str, ...]) -> Floats:
        """Return the same as numbers, with gaps where the order has no such level."""
        codes = self.codes_in(order)
        return np.where(codes < 0, np.nan, codes.astype(np.float64))


Column = Numbers | Levels
Columns = Mapping[str, Column]


def take(columns: Columns, rows: Rows) -> dict[str, Column]:
    """Return some of the rows of all columns."""
    return {name: column.take(rows) for name, column in columns.items()}


def with_gaps(columns: Columns) -> set[str]:
    """Name the columns in which something is missing."""
    return {name for name, column in columns.items() if column.missing().any()}


def seen(column: Levels) -> tuple[str, ...]:
    """Return the levels that occur, in their order."""
    counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
    return tuple(level for level, count in zip(column.levels, counts, strict=True) if count)


def strings(column: Column) -> Levels:
    """Return numbers as levels, from the smallest to the largest; levels stay as they are."""
    if isinstance(column, Levels):
        return column
    there = ~column.missing()
    values, indices = np.unique(column.values[there], return_inverse=True)
    codes = np.full(len(column.values), -1, dtype=np.int64)
    codes[there] = indices
    return Levels(codes, tuple(f"{value:.15g}" for value in values.tolist()))


def numbers_of(column: Column, name: str, where: str = "") -> Floats:
    """Return the values of a column that has to hold numbers."""
    if not isinstance(column, Numbers):
        raise ExperimentError(must(f"column {name!r}", f"hold numbers{where}", "text"))
    return column.values


def levels_of(column: Column, name: str, where: str = "") -> Levels:
    """Return a column that has to hold levels."""
    if not isinstance(column, Levels):
        raise ExperimentError(must(f"column {name!r}", f"hold text{where}", "numbers"))
    return column
