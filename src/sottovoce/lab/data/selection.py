"""Named features: a plain choice, or the columns that say most about classes.

Each feature has one axis. Numbers with gaps have a second one, which says whether they are missing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

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
from sottovoce.shared.schema import MISSING, Boolean, Categorical, Feature, Numeric, Ordinal

PARTS = 4
"""Into how many parts an axis is cut to see what it says."""

CAUTION = 2.0
"""How many people with the classes of all stand in every cell beside its own people."""


@dataclass(frozen=True, slots=True)
class _Fitted:
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
    def axes(self) -> tuple[str, ...]:
        second = self.optional and self.order is None
        return (self.name, *([f"{self.name} is {MISSING}"] if second else []))

    def positions(self, column: Column) -> Floats:
        if self.order is not None:
            levels = levels_of(column, self.name, " everywhere")
            filled = levels.filled(MISSING) if self.optional else levels
            return self.distribution.apply(filled.ranks_in(self.order))[:, np.newaxis]
        positions = self.distribution.apply(numbers_of(column, self.name, " everywhere"))
        return _with_missing(positions, column.missing(), optional=self.optional)


@dataclass(frozen=True, slots=True)
class _Declared:
    """A feature of a public schema, as a device places it; nothing is fitted."""

    feature: Feature

    @property
    def name(self) -> str:
        return self.feature.name

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.feature.axes)

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
                codes = self._codes(Levels(levels.codes, lower), ("false", "true"))
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


@dataclass(frozen=True, slots=True)
class Selection:
    """A fitted map from named columns to contexts."""

    chosen: tuple[_Fitted | _Declared, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """What the axes are."""
        return tuple(axis for each in self.chosen for axis in each.axes)

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
    ) -> "Selection":
        """Fit on the rows of some columns.

        features: names of columns, or features with their public bounds or levels, for which
            nothing is fitted.
        labels: the class of each row. With them, levels that behave alike become neighbours;
            without, levels keep the order of the alphabet.
        optional: the columns that may have gaps, here or in other rows.
        """
        return cls(tuple(_fit(columns, feature, labels, optional) for feature in features))

    def apply(self, columns: Columns) -> Floats:
        """Return the contexts (n, d), in [0, 1], of any rows with the same columns."""
        return np.concatenate([each.positions(columns[each.name]) for each in self.chosen], axis=1)


def _fit(
    columns: Columns, feature: str | Feature, labels: Counts | None, optional: Collection[str]
) -> _Fitted | _Declared:
    if not isinstance(feature, str):
        may_miss = feature.optional or feature.name in optional
        return _Declared(replace(feature, optional=may_miss))
    column, gaps = columns[feature], feature in optional
    if isinstance(column, Numbers):
        return _Fitted(feature, None, Distribution.fit(column.values), gaps)
    filled = column.filled(MISSING) if gaps else column
    order = seen(filled) if labels is None else _alike(filled, labels)
    return _Fitted(feature, order, Distribution.fit(filled.ranks_in(order)), gaps)


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
