"""Named features: a plain choice, or the columns that say most about classes.

Each feature has one axis. Numbers with gaps have a second one, which says whether they are missing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sottovoce.lab.data.columns import (
    Column,
    Columns,
    Levels,
    Numbers,
    Rows,
    levels_of,
    numbers_of,
    seen,
)
from sottovoce.lab.data.reduction import Distribution
from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import (
    MISSING,
    MOST_LEVELS,
    OTHER,
    Boolean,
    Categorical,
    Feature,
    Numeric,
    Ordinal,
)

PARTS = 4
"""Into how many parts an axis is cut to see what it says."""

CAUTION = 2.0
"""How many people with the classes of all stand in every cell beside its own people."""

Text = Literal["ranks", "levels"]

TRUTH = ("false", "true")
"""The levels of a column of truth values."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A number, or a level's index in an order, by the fitting rows' distribution function.

    order: None for numbers.
    optional: there may be gaps. Missing numbers lie at 0, and a second axis tells them from others,
        as in a schema. Missing levels are a level of their own.
    """

    name: str
    order: tuple[str, ...] | None
    distribution: Distribution
    optional: bool

    @property
    def feature(self) -> Feature:
        second = self.optional and self.order is None
        return Numeric(_printable(self.name), 0, 1, optional=second)

    def positions(self, column: Column) -> Floats:
        if self.order is not None:
            levels = levels_of(column, self.name, " everywhere")
            filled = levels.filled(MISSING) if self.optional else levels
            return self.distribution.apply(filled.ranks_in(self.order))[:, np.newaxis]
        positions = self.distribution.apply(numbers_of(column, self.name, " everywhere"))
        return _with_missing(positions, column.missing(), optional=self.optional)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Levels without an order: a place for each of those that the fitting rows have.

    After them come a place for all other levels and, if there may be gaps, one for these.

    known: the levels, in an order that is of no use to a method that heeds the schema.
    """

    name: str
    known: tuple[str, ...]
    optional: bool

    @property
    def feature(self) -> Feature:
        name = _printable(self.name)
        levels = tuple(_printable(level, taken=(OTHER, MISSING)) for level in self.known)
        if len(levels) > 1:
            return Categorical(name, levels, optional=self.optional, other=True)
        # A schema wants two levels; these are the same places by their names.
        return Categorical(name, (*levels, OTHER, *(MISSING,) * self.optional))

    def positions(self, column: Column) -> Floats:
        codes = levels_of(column, self.name, " everywhere").codes_in(self.known)
        other, count = len(self.known), len(self.known) + 1 + self.optional
        places = np.where(codes < 0, np.where(column.missing(), count - 1, other), codes)
        return ((places + 0.5) / count)[:, np.newaxis]


@dataclass(frozen=True, slots=True)
class _Declared:
    """A feature of a public schema, as a device places it; nothing is fitted."""

    feature: Feature

    @property
    def name(self) -> str:
        return self.feature.name

    def positions(self, column: Column) -> Floats:
        feature, missing = self.feature, column.missing()
        if missing.any() and not feature.optional:
            rule = "have no gaps, unless its feature is optional"
            raise self._refusal(rule, f"{int(missing.sum())} rows with gaps")
        match feature:
            case Numeric():
                inside = np.clip(numbers_of(column, self.name), feature.low, feature.high)
                positions = (inside - feature.low) / (feature.high - feature.low)
                return _with_missing(positions, missing, optional=feature.optional)
            case Ordinal():
                codes = self._codes(column, feature.levels)
                lowest = 0.5 / len(feature.levels)
                positions = (codes + 0.5) / len(feature.levels)
                return _with_missing(positions, missing, optional=feature.optional, at=lowest)
            case Categorical():
                other = len(feature.levels) if feature.other else None
                codes = self._codes(column, feature.levels, other=other)
            case Boolean():
                levels = levels_of(column, self.name)
                lower = tuple(level.lower() for level in levels.levels)
                codes = self._codes(Levels(levels.codes, lower), TRUTH)
        count = feature.axes[0].levels
        return ((np.where(missing, count - 1, codes) + 0.5) / count)[:, np.newaxis]

    def _codes(self, column: Column, known: tuple[str, ...], other: int | None = None) -> Counts:
        """Return the index of each level; -1 where it is missing."""
        codes = levels_of(column, self.name).codes_in(known)
        unknown = (codes < 0) & ~column.missing()
        if unknown.any() and other is None:
            rule = "hold the levels of its feature only"
            raise self._refusal(rule, f"others in {int(unknown.sum())} rows")
        return np.where(unknown, -1 if other is None else other, codes)

    def _refusal(self, rule: str, came: str) -> ExperimentError:
        return ExperimentError(must(f"column {self.name!r}", rule, came))


def _with_missing(positions: Floats, missing: Rows, *, optional: bool, at: float = 0.0) -> Floats:
    """Put what is missing in one place, and add the axis that tells it from the rest."""
    if not optional:
        return positions[:, np.newaxis]
    return np.stack([np.where(missing, at, positions), np.where(missing, 0.75, 0.25)], axis=1)


_Chosen = _Ranked | _Placed | _Declared


@dataclass(frozen=True, slots=True)
class Selection:
    """A fitted map from named columns to contexts."""

    chosen: tuple[_Chosen, ...]

    @property
    def schema(self) -> tuple[Feature, ...]:
        """The features as a device would have them: fitted numbers by their rank, from 0 to 1."""
        return tuple(each.feature for each in self.chosen)

    @property
    def features(self) -> tuple[str, ...]:
        """What the axes are."""
        return tuple(axis.name for feature in self.schema for axis in feature.axes)

    @property
    def encoded(self) -> int:
        """The number of columns."""
        return len(self.chosen)

    @classmethod
    def fit(
        cls,
        columns: Columns,
        features: Sequence[str | Feature],
        *,
        labels: Counts | None = None,
        optional: Collection[str] = (),
        text: Text = "ranks",
    ) -> "Selection":
        """Fit on the rows of some columns.

        features: names of columns, or features with their public bounds or levels, for which
            nothing is fitted.
        labels: the class of each row. With them, levels that behave alike become neighbours;
            without, levels keep the order of the alphabet.
        optional: the columns that may have gaps, here or in other rows.
        text: what becomes of levels: ranks in that order, or places without an order.
        """
        chosen: list[_Chosen] = []
        for feature in features:
            if not isinstance(feature, str):
                may_miss = feature.optional or feature.name in optional
                chosen.append(_Declared(replace(feature, optional=may_miss)))
            elif text == "levels" and isinstance(columns[feature], Levels):
                chosen.append(_placed(feature, columns[feature], optional=feature in optional))
            else:
                gaps = feature in optional
                chosen.append(_ranked(feature, columns[feature], labels, optional=gaps))
        return cls(tuple(chosen))

    def apply(self, columns: Columns) -> Floats:
        """Return the contexts (n, d), in [0, 1], of any rows with the same columns."""
        return np.concatenate([each.positions(columns[each.name]) for each in self.chosen], axis=1)


def _ranked(name: str, column: Column, labels: Counts | None, *, optional: bool) -> _Ranked:
    if isinstance(column, Numbers):
        return _Ranked(name, None, Distribution.fit(column.values), optional)
    filled = column.filled(MISSING) if optional else column
    order = seen(filled) if labels is None else _alike(filled, labels)
    return _Ranked(name, order, Distribution.fit(filled.ranks_in(order)), optional)


def _placed(name: str, column: Column, *, optional: bool) -> _Placed | _Declared:
    """Keep the levels that occur, the most frequent ones if a schema has no room for all."""
    column = levels_of(column, name)
    if set(column.levels) <= set(TRUTH):
        return _Declared(Boolean(name, optional=optional))
    known = seen(column)
    codes = column.codes_in(known)
    counts = np.bincount(codes[codes >= 0], minlength=len(known))
    kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_LEVELS - 2])
    return _Placed(name, tuple(known[index] for index in kept), optional)


def _alike(column: Levels, labels: Counts) -> tuple[str, ...]:
    """Order levels by their shares of the classes, along the direction in which they differ most.

    With two classes that is the share of the second one.
    """
    levels = seen(column)
    codes = column.codes_in(levels)
    there = codes >= 0
    counts = np.zeros((len(levels), int(labels.max()) + 1))
    np.add.at(counts, (codes[there], labels[there]), 1)
    people = counts.sum(axis=1, keepdims=True)
    shares = counts / people - counts.sum(axis=0) / max(people.sum(), 1)
    direction = np.linalg.svd(np.sqrt(people) * shares, full_matrices=False)[2][0]
    direction = direction * (np.sign(direction[np.abs(direction).argmax()]) or 1.0)
    order = np.argsort(shares @ direction, kind="stable")
    return tuple(levels[index] for index in order)


def _printable(text: str, *, taken: Sequence[str] = ()) -> str:
    """Return a name that a schema takes."""
    return text if text.isprintable() and text not in taken else repr(text)


def telling_columns(
    columns: Columns, labels: Counts, *, dimensions: int, optional: Collection[str] = ()
) -> list[str]:
    """Choose columns one after the other: each time the one that, with those before it, says most.

    Each axis is cut into parts, with one more for missing numbers; the classes of the people in a
    cell predict those of others there. What is said is the mean logarithm of these predictions,
    each half of the rows by the other.
    """
    if len(columns) < dimensions:
        raise ExperimentError(
            must("dimensions", f"be at most the {len(columns)} columns", dimensions)
        )
    parts = {}
    for name, column in columns.items():
        alone = Selection.fit(columns, [name], labels=labels, optional=optional)
        positions = alone.apply(columns)[:, 0]
        parts[name] = np.minimum((PARTS * positions).astype(np.int64), PARTS - 1)
        if len(alone.features) > 1:
            parts[name] = np.where(column.missing(), PARTS, parts[name])
    chosen: list[str] = []
    cells = np.zeros(len(labels), dtype=np.int64)
    for _ in range(dimensions):
        left = [name for name in columns if name not in chosen]
        said = [_said(cells * (PARTS + 1) + parts[name], labels) for name in left]
        chosen.append(left[int(np.argmax(said))])
        # Cells are numbered afresh, so that there are never more numbers than people.
        cells = np.unique(cells * (PARTS + 1) + parts[chosen[-1]], return_inverse=True)[1]
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
