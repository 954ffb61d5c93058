"""A classification table of your own, as a bandit.

Each class of the label is an arm; the rows of the target are the people who come, and those of the
other groups are auxiliary data. The other columns become d numbers in [0, 1] (reduction.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np

from sottovoce.lab.data.columns import Column, Columns, Levels, Rows, strings, take, with_gaps
from sottovoce.lab.data.files import File
from sottovoce.lab.data.prepare import DEFAULT, Crowd, Preparation, Reduce, prepare
from sottovoce.lab.data.sample import DataSet
from sottovoce.lab.data.selection import Text
from sottovoce.lab.environments import Counts
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature

MOST_POPULATIONS = 255

Values = str | float | Sequence[str | float]
"""One value of the group column, or several."""


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV (.csv, .csv.gz) or Parquet file, and what its columns are.

    label: the column with the classes.
    group: the column that splits the people, if any.
    target: its value, or values, that are the target.
    auxiliary: None for all other values as one population, "each" for one population for each, or
        a mapping from names to values; the rows of values that it leaves out are not used.
    features: named columns, one for each axis, instead of a reduction of all columns: numbers by
        their rank among the fitting rows, levels in an order that puts those with similar classes
        side by side. Or features of a schema (``sv.Numeric("age", 18, 90)``): then nothing is
        fitted, and those that are optional may be missing.
    text: "levels" for levels without an order instead, as ``sv.Categorical`` has them, and
        ``sv.Boolean`` for truth values; see ``Preparation``.
    dimensions, reduce: what the columns are reduced to otherwise; see ``Preparation``.
    columns: the covariates; None for all columns with a name but label, group and ``drop``.
    categorical: columns of numbers that are codes of levels.
    levels: all levels of some columns, where they are publicly known.
    nulls: what to do with rows in which something is missing. "refuse": raise an error. "drop":
        leave the rows out, and count them. "keep": keep them; only rows without label or group are
        left out. Named columns with gaps become optional features: numbers get a second axis, which
        says whether they are missing, and text gets the level "missing". A reduction takes the mean
        for a number and no level for a level.
    public: where to fit the reduction, other than on the auxiliary rows: a file with the same
        columns (without a label, if need be, for ``components`` or features), or a share of the
        target's rows, such as 0.05: taken at random, the same ones every time, treated as public
        and not played.

    What is fitted is published. Fitted on auxiliary rows, it tells something about them that the
    ε of their reports does not cover; fitted on public rows, or not at all, it tells nothing.
    """

    path: str | PathLike[str]
    _: KW_ONLY
    label: str
    group: str | None = None
    target: Values | None = None
    auxiliary: Literal["each"] | Mapping[str, Values] | None = None
    features: Sequence[str | Feature] | None = None
    dimensions: int = 3
    reduce: Reduce = DEFAULT
    text: Text = "ranks"
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    nulls: Literal["refuse", "drop", "keep"] = "refuse"
    public: str | PathLike[str] | float | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if (self.group is None) != (self.target is None):
            came = f"group {self.group!r} and target {self.target!r}"
            raise ExperimentError(must("group and target", "be given together", came))
        if self.group is None and self.auxiliary is not None:
            raise ExperimentError(must("auxiliary", "go with a group", repr(self.auxiliary)))
        if self.nulls not in ("refuse", "drop", "keep"):
            rule = "be 'refuse', 'drop' or 'keep'"
            raise ExperimentError(must("nulls", rule, repr(self.nulls)))
        for what in ("columns", "drop", "categorical"):
            if isinstance(getattr(self, what), str):
                raise ExperimentError(must(what, "be a list of columns", repr(getattr(self, what))))
        share = self.public
        if isinstance(share, int | float) and not 0 < share < 1:
            raise ExperimentError(must("public", "be a file, or a share in (0, 1)", repr(share)))
        self._preparation()

    def load(self) -> DataSet:
        """Read the file, and make bandits of it."""
        file = File(self.path)
        names = self._covariates(file)
        columns = {name: self._column(file, name) for name in names}
        label = strings(file.column(self.label))
        group = None if self.group is None else strings(file.column(self.group))
        rest = {} if group is None else {self.group or "": group}
        kept = self._kept(columns, {self.label: label, **rest})
        columns, label = take(columns, kept), label.take(kept)
        if group is None:
            target: Rows = np.ones(len(label.codes), dtype=np.bool_)
            auxiliary: dict[str, Rows] = {}
        else:
            group = group.take(kept)
            target = self._rows(group, self.target, what="target")
            auxiliary = self._auxiliary(group, target)
        fitting: tuple[Columns, Counts | None] | None = None
        if isinstance(self.public, int | float):
            public = _share(target, float(self.public))
            fitting = (take(columns, public), label.codes[public])
            target = target & ~public
        elif self.public is not None:
            fitting = self._public(File(self.public), names, label.levels)
        name = file.path.name.split(".")[0] if self.name is None else self.name
        crowd = Crowd(
            columns=columns,
            label=label,
            target=target,
            auxiliary=auxiliary,
            fitting=fitting,
            dropped=int((~kept).sum()),
            optional=with_gaps(columns) | (with_gaps(fitting[0]) if fitting else set()),
        )
        return prepare(name, crowd, self._preparation())

    def _preparation(self) -> Preparation:
        return Preparation(
            features=self.features,
            reduce=self.reduce,
            dimensions=self.dimensions,
            levels=self.levels,
            text=self.text,
        )

    def _covariates(self, file: File) -> list[str]:
        """Return the columns that become contexts."""
        file.require([self.label], what="label")
        file.require([] if self.group is None else [self.group], what="group")
        file.require(self.drop, what="drop")
        file.require(self.categorical, what="categorical")
        if self.features is not None:
            names = [each if isinstance(each, str) else each.name for each in self.features]
            file.require(names, what="features")
        elif self.columns is not None:
            names = list(self.columns)
            file.require(names, what="columns")
        else:
            without = {self.label, self.group, *self.drop}
            # A column without a name is a row number that somebody's index left behind.
            names = [name for name in file.names if name and name not in without]
        if self.label in names:
            raise ExperimentError(must("the covariates", "leave out the label", self.label))
        if not names:
            raise ExperimentError(must("the covariates", "be at least one column", "none"))
        if len(set(names)) < len(names):
            raise ExperimentError(must("the covariates", "differ from each other", names))
        return names

    def _column(self, file: File, name: str) -> Column:
        return file.column(name, levels=name in self.categorical or name in self.levels)

    def _kept(self, columns: Columns, keys: Columns) -> Rows:
        """Return the rows that stay, given what is missing where."""
        features = [each for each in self.features or () if not isinstance(each, str)]
        may_miss = {feature.name for feature in features if feature.optional}
        gaps = {
            name: np.zeros_like(column.missing()) if name in may_miss else column.missing()
            for name, column in {**columns, **keys}.items()
        }
        counts = {name: int(rows.sum()) for name, rows in gaps.items() if rows.any()}
        listed = ", ".join(f"{count} in column {name!r}" for name, count in counts.items())
        if counts and self.nulls == "refuse":
            rule = "have no missing values (or say nulls='drop' or nulls='keep')"
            raise ExperimentError(must("the table", rule, listed))
        counted = [rows for name, rows in gaps.items() if self.nulls == "drop" or name in keys]
        length = len(next(iter(gaps.values())))
        kept = ~np.logical_or.reduce([np.zeros(length, dtype=np.bool_), *counted])
        if not kept.any():
            rule = "have rows in which nothing is missing"
            raise ExperimentError(
                must("the table", rule, f"{len(kept)} rows; missing are {listed}")
            )
        return np.asarray(kept)

    def _rows(self, group: Levels, values: Any, *, what: str) -> Rows:
        """Return the rows with one of some values of the group column."""
        listed = [values] if isinstance(values, str) or not isinstance(values, Iterable) else values
        wanted = [_level(value) for value in listed]
        absent = [value for value in wanted if value not in group.levels]
        if absent or not wanted:
            shown = [*group.levels[:20], *(["..."] if len(group.levels) > 20 else [])]
            rule = f"be values of column {self.group!r}, {shown}"
            raise ExperimentError(must(what, rule, absent))
        return np.isin(group.codes, [group.levels.index(value) for value in wanted])

    def _auxiliary(self, group: Levels, target: Rows) -> dict[str, Rows]:
        match self.auxiliary:
            case None:
                return {"others": ~target}
            case "each":
                codes = np.unique(group.codes[~target]).tolist()
                if not codes:
                    raise ExperimentError(must("the auxiliary groups", "have rows", "0 rows"))
                if len(codes) > MOST_POPULATIONS:
                    rule = f"have at most {MOST_POPULATIONS} values beside the target"
                    raise ExperimentError(must(f"column {self.group!r}", rule, len(codes)))
                return {group.levels[code]: group.codes == code for code in codes}
            case Mapping():
                groups = {
                    check.name(name, what="the name of an auxiliary group"): self._rows(
                        group, values, what=f"the auxiliary group {name!r}"
                    )
                    for name, values in self.auxiliary.items()
                }
                members = np.sum([target, *groups.values()], axis=0)
                if members.max() > 1:
                    rule = "belong to one group each"
                    raise ExperimentError(
                        must("rows", rule, f"{int((members > 1).sum())} in several")
                    )
                return groups
            case _:
                rule = "be None, 'each' or a mapping from names to values"
                raise ExperimentError(must("auxiliary", rule, repr(self.auxiliary)))

    def _public(
        self, file: File, names: Sequence[str], classes: tuple[str, ...]
    ) -> tuple[Columns, Counts | None]:
        """Read the public rows; what is missing there is treated alike."""
        file.require(names, what="the covariates")
        columns = {name: self._column(file, name) for name in names}
        if self.label not in file.names:
            return take(columns, self._kept(columns, {})), None
        label = strings(file.column(self.label))
        kept = self._kept(columns, {self.label: label})
        labels = label.codes_in(classes)
        kept &= labels >= 0
        if not kept.any():
            rule = "have rows with the classes of the table"
            raise ExperimentError(must(f"the public table {file.path}", rule, "0 rows"))
        return take(columns, kept), labels[kept]


def _level(value: object) -> str:
    """Write a value as the levels of its column are written."""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, int | float | np.integer | np.floating):
        return f"{float(value):.15g}"
    return str(value)


def _share(rows: Rows, share: float) -> Rows:
    """Return a random share of some rows, the same one every time."""
    indices = np.flatnonzero(rows)
    count = max(1, round(share * len(indices)))
    chosen = np.random.default_rng(0).permutation(indices)[:count]
    return np.isin(np.arange(len(rows)), chosen)
