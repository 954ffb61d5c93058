"""Rows of several populations to a data set; the reduction never sees a target row."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from sottovoce.lab.data.columns import Columns, Levels, Rows, take
from sottovoce.lab.data.reduction import Reduction
from sottovoce.lab.data.sample import DataSet, Sample
from sottovoce.lab.data.selection import Selection, Text, telling_columns
from sottovoce.lab.environments import Counts
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature

Reduce = Literal["components", "supervised", "columns"]
REDUCTIONS = ("components", "supervised", "columns")
DEFAULT: Reduce = "supervised"

# Ranks are better where both can be had: docs/research/real-data.md has the figures.
TEXTS = ("ranks", "levels")

MOST_CLASSES = 255
LEAST_OF_A_CLASS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """How columns become contexts.

    features: named columns, one for each axis; None for a reduction of all columns. Numbers that
        may be missing have a second axis (``selection.py``).
    reduce: for the latter. ``supervised``: the directions that tell classes apart in the fitting
        rows, then principal components. ``columns``: the columns that say most about the classes
        of the fitting rows, as if they had been named. ``components``: principal components alone,
        for which the fitting rows need no labels, and give away nothing about them.
    dimensions: d, for the latter; with ``columns``, how many of them.
    levels: all levels of some columns, where they are publicly known.
    text: what becomes of named columns of text. ``ranks``: a number, by the rank of a level in an
        order that puts levels with similar classes side by side. ``levels``: a place for each
        level, without an order, and true or false for truth values, as a schema has them.
    """

    features: Sequence[str | Feature] | None = None
    reduce: Reduce = DEFAULT
    dimensions: int = 3
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: Text = "ranks"

    def __post_init__(self) -> None:
        if self.text not in TEXTS:
            raise ExperimentError(must("text", f"be one of {', '.join(TEXTS)}", repr(self.text)))
        check.whole_number(self.dimensions, what="dimensions", least=1)
        if self.reduce not in REDUCTIONS:
            rule = f"be one of {', '.join(REDUCTIONS)}"
            raise ExperimentError(must("reduce", rule, repr(self.reduce)))
        if self.features is not None and (isinstance(self.features, str) or not self.features):
            rule = "be a list of columns, at least one"
            raise ExperimentError(must("features", rule, repr(self.features)))

    @property
    def fits_nothing(self) -> bool:
        """Whether every feature has public bounds, so that no row has to be looked at."""
        return self.features is not None and not any(isinstance(f, str) for f in self.features)

    def fit(
        self, columns: Columns, labels: Counts | None, *, optional: Collection[str] = ()
    ) -> Reduction | Selection:
        """Fit on rows that are not the target's. optional: the columns that may have gaps."""
        select = partial(Selection.fit, columns, labels=labels, optional=optional, text=self.text)
        if self.features is not None:
            return select(self.features)
        if self.reduce == "components":
            labels = None
        elif labels is None:
            raise ExperimentError(
                must("reduce", "be 'components' where the fitting rows have no label", self.reduce)
            )
        elif self.reduce == "columns":
            dimensions = self.dimensions
            return select(
                telling_columns(columns, labels, dimensions=dimensions, optional=optional)
            )
        return Reduction.fit(columns, dimensions=self.dimensions, labels=labels, levels=self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """All rows of a table, and who belongs where.

    label: the class of each row; no gaps.
    target, auxiliary: which rows; those of nobody are left out.
    fitting: columns and labels (if any) of public rows; None to fit on the auxiliary rows.
    optional: the columns that may have gaps.
    """

    columns: Columns
    label: Levels
    target: Rows
    auxiliary: Mapping[str, Rows]
    fitting: tuple[Columns, Counts | None] | None = None
    dropped: int = 0
    optional: Collection[str] = ()


def prepare(name: str, crowd: Crowd, preparation: Preparation) -> DataSet:
    """Fit the reduction, and apply it to every population."""
    labels, arms = _classes(crowd)
    if crowd.fitting is not None:
        reduction = preparation.fit(*crowd.fitting, optional=crowd.optional)
    else:
        rows = np.logical_or.reduce([*crowd.auxiliary.values(), np.zeros(len(labels), np.bool_)])
        if not rows.any() and not preparation.fits_nothing:
            rule = (
                "be fitted on rows that are not the target's: give group= for auxiliary rows, "
                "public= for public ones, or features= with bounds"
            )
            raise ExperimentError(must("the reduction", rule, "none"))
        fitting = take(crowd.columns, rows)
        reduction = preparation.fit(fitting, labels[rows], optional=crowd.optional)

    def sample(rows: Rows) -> Sample:
        return Sample(reduction.apply(take(crowd.columns, rows)), labels[rows])

    return DataSet(
        name=name,
        arms=arms,
        features=reduction.features,
        target=sample(crowd.target),
        auxiliary={each: sample(rows) for each, rows in crowd.auxiliary.items()},
        encoded=reduction.encoded,
        dropped=crowd.dropped,
        schema=reduction.schema,
    )


def _classes(crowd: Crowd) -> tuple[Counts, tuple[str, ...]]:
    """Check the populations and their classes; return the label of each row, and the arms."""
    used = np.logical_or.reduce([crowd.target, *crowd.auxiliary.values()])
    groups = {f"the auxiliary group {name!r}": rows for name, rows in crowd.auxiliary.items()}
    for name, rows in {"the target group": crowd.target, **groups}.items():
        if not rows.any():
            raise ExperimentError(must(name, "have rows", f"0 rows of {len(rows)}"))
    counts = np.bincount(crowd.label.codes[used], minlength=len(crowd.label.levels))
    arms = tuple(level for level, count in zip(crowd.label.levels, counts, strict=True) if count)
    people = f"{len(arms)} in {int(used.sum())} rows"
    if len(arms) < 2:
        raise ExperimentError(must("the label", "have at least 2 classes", people))
    rare = int(((counts > 0) & (counts < LEAST_OF_A_CLASS)).sum())
    if len(arms) > MOST_CLASSES or rare:
        rule = f"have at most {MOST_CLASSES} classes, and {LEAST_OF_A_CLASS} rows or more of each"
        raise ExperimentError(
            must("the label", rule, f"{people}, {rare} of them with a single row")
        )
    if len(np.unique(crowd.label.codes[crowd.target])) < 2:
        rule = "have at least 2 classes in the target group"
        raise ExperimentError(must("the label", rule, f"1 in {int(crowd.target.sum())} rows"))
    return crowd.label.codes_in(arms), arms
