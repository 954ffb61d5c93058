"""A plain choice of named features, one for each axis."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.data.axis import Axis
from sottovoce.lab.data.columns import Column, Columns, Levels, Numbers, seen
from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature, Numeric


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A number, by the fitting rows' distribution function."""

    name: str
    axis: Axis

    def places(self, column: Column) -> Floats:
        if not isinstance(column, Numbers):
            raise ExperimentError(must(f"column {self.name!r}", "hold numbers everywhere", "text"))
        return self.axis.apply(column.values)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A level, by its place in an order and the fitting rows' distribution function."""

    name: str
    order: tuple[str, ...]
    axis: Axis

    def places(self, column: Column) -> Floats:
        if not isinstance(column, Levels):
            raise ExperimentError(must(f"column {self.name!r}", "hold text everywhere", "numbers"))
        return self.axis.apply(_with_gaps(column.codes_in(self.order)))


@dataclass(frozen=True, slots=True)
class _Declared:
    """A feature of a public schema, as a device places it; nothing is fitted."""

    feature: Feature

    @property
    def name(self) -> str:
        return self.feature.name

    def places(self, column: Column) -> Floats:
        feature = self.feature
        if isinstance(feature, Numeric):
            if not isinstance(column, Numbers):
                raise ExperimentError(must(f"column {self.name!r}", "hold numbers", "text"))
            inside = np.clip(column.values, feature.low, feature.high)
            places = (inside - feature.low) / (feature.high - feature.low)
            return np.where(column.missing(), 0.5, places)
        if not isinstance(column, Levels):
            raise ExperimentError(must(f"column {self.name!r}", "hold text", "numbers"))
        codes = column.codes_in(feature.levels)
        unknown = int(((codes < 0) & ~column.missing()).sum())
        if unknown:
            rule = "hold the levels of its feature only"
            raise ExperimentError(must(f"column {self.name!r}", rule, f"others in {unknown} rows"))
        return np.where(codes < 0, 0.5, (codes + 0.5) / len(feature.levels))


@dataclass(frozen=True, slots=True)
class Selection:
    """A fitted map from named columns to contexts."""

    chosen: tuple[_Ranked | _Ordered | _Declared, ...]

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
        return np.stack([each.places(columns[each.name]) for each in self.chosen], axis=1)


def _fit(
    columns: Columns, feature: str | Feature, labels: Counts | None
) -> _Ranked | _Ordered | _Declared:
    if not isinstance(feature, str):
        return _Declared(feature)
    column = columns[feature]
    if isinstance(column, Numbers):
        return _Ranked(feature, Axis.fit(column.values))
    order = seen(column) if labels is None else _alike(column, labels)
    return _Ordered(feature, order, Axis.fit(_with_gaps(column.codes_in(order))))


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
    return tuple(levels[place] for place in order)


def _with_gaps(codes: Counts) -> Floats:
    return np.where(codes < 0, np.nan, codes.astype(np.float64))
