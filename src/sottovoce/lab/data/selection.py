"""Named features, one for each axis: a plain choice, or the columns that say most about classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.data.columns import Column, Columns, Levels, Numbers, levels_of, numbers_of, seen
from sottovoce.lab.data.reduction import Axis
from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature, Numeric

PARTS = 4
"""Into how many parts an axis is cut to see what it says."""

CAUTION = 2.0
"""How many people with the classes of all stand in every cell beside its own people."""


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A number, or a level's index in an order, by the fitting rows' distribution function.

    order: None for numbers.
    """

    name: str
    order: tuple[str, ...] | None
    axis: Axis

    def positions(self, column: Column) -> Floats:
        if self.order is None:
            return self.axis.apply(numbers_of(column, self.name, " everywhere"))
        return self.axis.apply(levels_of(column, self.name, " everywhere").ranks_in(self.order))


@dataclass(frozen=True, slots=True)
class _Declared:
    """A feature of a public schema, as a device places it; nothing is fitted."""

    feature: Feature

    @property
    def name(self) -> str:
        return self.feature.name

    def positions(self, column: Column) -> Floats:
        feature = self.feature
        if isinstance(feature, Numeric):
            inside = np.clip(numbers_of(column, self.name), feature.low, feature.high)
            positions = (inside - feature.low) / (feature.high - feature.low)
            return np.where(column.missing(), 0.5, positions)
        codes = levels_of(column, self.name).codes_in(feature.levels)
        unknown = int(((codes < 0) & ~column.missing()).sum())
        if unknown:
            rule = "hold the levels of its feature only"
            raise ExperimentError(must(f"column {self.name!r}", rule, f"others in {unknown} rows"))
        return np.where(codes < 0, 0.5, (codes + 0.5) / len(feature.levels))


@dataclass(frozen=True, slots=True)
class Selection:
    """A fitted map from named columns to contexts."""

    chosen: tuple[_Fitted | _Declared, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """What the axes are."""
        return tuple(each.name for each in self.chosen)

    @property
    def encoded(self) -> int:
        """The number of columns, d."""
        return len(self.chosen)

    @classmethod
    def fit(
        cls, columns: Columns, features: Sequence[str | Feature], *, labels: Counts | None = None
    ) -> "Selection":
        """Fit on the rows of some columns.

        features: names of columns, or features with their public bounds or levels, for which
            nothing is fitted.
        labels: the class of each row. With them, levels that behave alike become neighbours;
            without, levels keep the order of the alphabet.
        """
        return cls(tuple(_fit(columns, feature, labels) for feature in features))

    def apply(self, columns: Columns) -> Floats:
        """Return the contexts (n, d), in [0, 1], of any rows with the same columns."""
        return np.stack([each.positions(columns[each.name]) for each in self.chosen], axis=1)


def _fit(columns: Columns, feature: str | Feature, labels: Counts | None) -> _Fitted | _Declared:
    if not isinstance(feature, str):
        return _Declared(feature)
    column = columns[feature]
    if isinstance(column, Numbers):
        return _Fitted(feature, None, Axis.fit(column.values))
    order = seen(column) if labels is None else _alike(column, labels)
    return _Fitted(feature, order, Axis.fit(column.ranks_in(order)))


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
        positions = Selection.fit(columns, [name], labels=labels).apply(columns)[:, 0]
        parts[name] = np.minimum((PARTS * positions).astype(np.int64), PARTS - 1)
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
