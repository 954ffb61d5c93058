"""Many columns to d axes: standardise, one-hot, a few directions, then each of them to [0, 1].

    x_i    the encoded columns of person i, (p,), less the mean of the fitting rows
    C      their covariance in the fitting rows, (p, p)
    s_i    = x_i·D, the scores, with directions D (p, d)
    u_i    = F_j(s_ij) for each axis j, with the distribution function F_j of the fitting rows

D is one of two things. Without labels: the first d principal components of C. With the labels of
the fitting rows: first the directions along which a ridge regression of the classes says most (K-1
of them at most), then the principal components of what these leave over.

A reduction is fitted on auxiliary or public rows, and published. It is a handful of averages over
those rows (means, a covariance, shares), and with labels their averages too. The ε of their reports
does not cover it: who has to protect these rows as well fits it on public data, or names the
features and their bounds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sottovoce.lab.data.columns import Column, Columns, Numbers, levels_of, numbers_of, seen
from sottovoce.lab.environments import Counts, Floats
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.schema import Feature, Numeric

BLOCK = 16384
FARTHEST = 4.0
"""Standard deviations from the mean beyond which all numbers count alike."""

MOST_LEVELS = 64
"""A column with more keeps the most frequent levels; the others are coded like unknown ones."""

MOST_KNOTS = 1024
"""About how many points of a distribution function are kept, and published."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution function: equal lengths of the axis hold similar numbers of people.

    u(x) = (#{values < x} + #{values <= x}) / 2n at the fitting values, so that those who share a
    value lie in the middle of their share; straight lines in between, and the ends beyond. What is
    missing lies in the middle of the axis.
    """

    knots: Floats
    shares: Floats

    @classmethod
    def fit(cls, values: Floats) -> "Distribution":
        """Learn the distribution of some values (n,)."""
        knots, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        if len(knots) == 0:
            return cls(np.zeros(1), np.full(1, 0.5))
        shares = (np.cumsum(counts) - counts / 2) / counts.sum()
        if len(knots) > MOST_KNOTS:
            # Values that many people share are kept: each is the first past some mark.
            first = np.searchsorted(shares, np.linspace(0, shares[-1], MOST_KNOTS // 2))
            kept = np.unique(np.concatenate([first, np.maximum(first - 1, 0)]))
            knots, shares = knots[kept], shares[kept]
        return cls(knots, shares)

    def apply(self, values: Floats) -> Floats:
        """Return the positions of some values (n,)."""
        return np.where(np.isnan(values), 0.5, np.interp(values, self.knots, self.shares))


@dataclass(frozen=True, slots=True)
class _Number:
    """(x - mean) / deviation, in one column, cut off at ±4; 0 where it is missing.

    Without the cut, one enormous value could make a component of its own, and a column that hardly
    varies among the fitting rows could throw everybody else to the end of an axis.
    """

    name: str
    mean: float
    deviation: float
    width: int = 1

    def write(self, column: Column, out: Floats) -> None:
        values = numbers_of(column, self.name, " everywhere")
        far = np.clip((values - self.mean) / self.deviation, -FARTHEST, FARTHEST)
        out[:, 0] = np.nan_to_num(far)


@dataclass(frozen=True, slots=True)
class _OneOf:
    """A column of 0 and 1 for each level; all 0 where the level is missing or unknown.

    Two levels share one column if neither is ever missing.
    """

    name: str
    levels: tuple[str, ...]
    paired: bool

    @property
    def width(self) -> int:
        return 1 if self.paired else len(self.levels)

    def write(self, column: Column, out: Floats) -> None:
        codes = levels_of(column, self.name, " everywhere").codes_in(self.levels)
        if self.paired:
            codes = codes - 1  # the first level is 0, the second 1
        rows = np.flatnonzero(codes >= 0)
        out[:] = 0
        out[rows, codes[rows]] = 1


_Code = _Number | _OneOf


@dataclass(frozen=True, slots=True)
class Reduction:
    """A fitted map from columns to contexts; a pure function of the rows it was fitted on."""

    codes: tuple[_Code, ...]
    mean: Floats
    directions: Floats
    distributions: tuple[Distribution, ...]
    features: tuple[str, ...]

    @property
    def schema(self) -> tuple[Feature, ...]:
        """The axes as features: numbers, whatever they were made of."""
        return tuple(Numeric(name, 0, 1) for name in self.features)

    @property
    def encoded(self) -> int:
        """The number of columns before the reduction, p."""
        return len(self.mean)

    @classmethod
    def fit(
        cls,
        columns: Columns,
        *,
        dimensions: int,
        labels: Counts | None = None,
        levels: Mapping[str, Sequence[str]] | None = None,
    ) -> "Reduction":
        """Fit on the rows of some columns.

        labels: the class of each row, for directions that tell classes apart.
        levels: all levels of some columns, if they are publicly known; otherwise those that occur.
        """
        codes = tuple(_fit_code(name, column, levels or {}) for name, column in columns.items())
        width = sum(code.width for code in codes)
        if width < dimensions:
            rule = f"be at most the {width} encoded columns"
            raise ExperimentError(must("dimensions", rule, dimensions))
        classes = 0 if labels is None else int(labels.max()) + 1
        right = np.zeros((_length(columns), 0)) if labels is None else np.eye(classes)[labels]
        n = len(right)
        total, square, cross = np.zeros(width), np.zeros((width, width)), np.zeros((width, classes))
        start = 0
        for block in _encoded(codes, columns):
            total += block.sum(axis=0)
            square += block.T @ block
            cross += block.T @ right[start : start + len(block)]
            start += len(block)
        mean = total / n
        covariance = square / n - np.outer(mean, mean)
        if labels is None:
            directions = _principal(covariance, dimensions)
            telling = 0
        else:
            apart = _telling(covariance, cross / n - np.outer(mean, right.mean(axis=0)), n=n)
            telling = min(apart.shape[1], dimensions)
            directions = _completed(covariance, apart[:, :telling], dimensions)
        scores = _scores(codes, columns, mean, directions)
        return cls(
            codes=codes,
            mean=mean,
            directions=directions,
            distributions=tuple(Distribution.fit(scores[:, j]) for j in range(dimensions)),
            features=(
                *(f"direction {j + 1} of the classes" for j in range(telling)),
                *(f"component {j + 1}" for j in range(dimensions - telling)),
            ),
        )

    def apply(self, columns: Columns) -> Floats:
        """Return the contexts (n, d), in [0, 1], of any rows with the same columns."""
        scores = _scores(self.codes, columns, self.mean, self.directions)
        placed = [each.apply(scores[:, j]) for j, each in enumerate(self.distributions)]
        return np.stack(placed, axis=1)


def _fit_code(name: str, column: Column, known: Mapping[str, Sequence[str]]) -> _Code:
    if isinstance(column, Numbers):
        there = column.values[~column.missing()]
        mean = float(there.mean()) if len(there) else 0.0
        deviation = float(there.std()) if len(there) else 0.0
        return _Number(name, mean, deviation or 1.0)
    levels = tuple(known[name]) if name in known else seen(column)
    if len(levels) > MOST_LEVELS:
        codes = column.codes_in(levels)
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        often = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
        levels = tuple(levels[index] for index in often)
    return _OneOf(name, levels, paired=len(levels) == 2 and not column.missing().any())


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())).missing())


def _encoded(codes: Sequence[_Code], columns: Columns) -> Iterator[Floats]:
    """Encode block by block, so that memory stays flat."""
    n = _length(columns)
    width = sum(code.width for code in codes)
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        out = np.empty((rows.stop - start, width))
        first = 0
        for code in codes:
            code.write(columns[code.name].take(rows), out[:, first : first + code.width])
            first += code.width
        yield out


def _scores(codes: Sequence[_Code], columns: Columns, mean: Floats, directions: Floats) -> Floats:
    blocks = [(block - mean) @ directions for block in _encoded(codes, columns)]
    scores = np.concatenate(blocks)
    # Sums of the same numbers can differ in the last digit: those are ties, not an order.
    return np.asarray(np.round(scores, 9) + 0.0)


def _principal(covariance: Floats, count: int) -> Floats:
    """Return the directions of the largest variance, (p, count), the same way round every time."""
    directions = np.linalg.svd(covariance, hermitian=True)[0][:, :count]
    largest = np.abs(directions).argmax(axis=0)
    return np.asarray(directions * np.sign(directions[largest, np.arange(count)]))


def _telling(covariance: Floats, cross: Floats, *, n: int) -> Floats:
    """Return the directions (p, r) that tell the classes apart, the best first; r <= K-1.

    B = (C + p/n)⁻¹ cov(x, classes), a ridge with the weight of one person for each column; then the
    principal components of what B says of the people.
    """
    p, classes = cross.shape
    slopes = np.linalg.solve(covariance + p / n * np.eye(p), cross)
    turn, strength, _ = np.linalg.svd(slopes.T @ covariance @ slopes, hermitian=True)
    there = strength[: classes - 1] > 1e-9 * max(float(strength[0]), 1e-300)
    directions = (slopes @ turn)[:, : classes - 1][:, there]
    spread = np.sqrt(np.einsum("pj,pq,qj->j", directions, covariance, directions))
    directions = directions[:, spread > 0] / spread[spread > 0]
    largest = np.abs(directions).argmax(axis=0) if directions.size else np.empty(0, dtype=int)
    return np.asarray(directions * np.sign(directions[largest, np.arange(directions.shape[1])]))


def _completed(covariance: Floats, directions: Floats, count: int) -> Floats:
    """Add the principal components of what some directions leave over, up to ``count`` in all."""
    more = count - directions.shape[1]
    if more == 0:
        return directions
    # x less its regression on the scores s = xD is xR, with R = 1 - D(DᵀCD)⁻¹DᵀC.
    explained = directions.T @ covariance
    rest = np.eye(len(covariance)) - directions @ np.linalg.solve(explained @ directions, explained)
    left = rest.T @ covariance @ rest
    return np.concatenate([directions, rest @ _principal((left + left.T) / 2, more)], axis=1)
