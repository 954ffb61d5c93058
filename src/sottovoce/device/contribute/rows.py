"""A logged row: which columns it has, and whether it fits the public schema."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from sottovoce.shared.errors import RowsError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.schema import Boolean, Categorical, Feature, Numeric

Numbered = tuple[int, Sequence[Any] | None]
"""The line of a row, or its number in Parquet, and its values in the wanted columns.

The values are None if the row and the header have different numbers of fields.
"""

Value = float | str | bool | None
"""What a device takes of a feature; None if it is missing."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a file hold the features, the arm and the reward.

    arm, reward: the names of these columns.
    renamed: the column of each feature whose column has another name than the feature.
    """

    arm: str = "arm"
    reward: str = "reward"
    renamed: Mapping[str, str] = field(default_factory=dict)

    def names(self, experiment: Experiment) -> tuple[str, ...]:
        """Return the columns of the features in their order, then the arm's and the reward's."""
        features = [feature.name for feature in experiment.context]
        if strange := sorted(self.renamed.keys() - set(features)):
            raise RowsError(must("a renamed feature", f"be one of {features}", strange))
        columns = (*(self.renamed.get(name, name) for name in features), self.arm, self.reward)
        if len(set(columns)) != len(columns):
            rule = "be a different column for each feature, the arm and the reward"
            raise RowsError(must("columns", rule, list(columns)))
        return columns


@dataclass(frozen=True, slots=True, repr=False)
class Row:
    """One logged row. It has no repr, so that no log file can hold it."""

    context: Mapping[str, Value]
    arm: str
    reward: float


def find_columns(wanted: Sequence[str], header: Sequence[str], *, path: Path) -> list[int]:
    """Return the index of each wanted column.

    Errors do not show the header: a file without one begins with a person's row.
    """
    if missing := [name for name in wanted if name not in header]:
        raise RowsError(f"{path} must have the columns {list(wanted)}; it lacks {missing}")
    if twice := [name for name in wanted if header.count(name) > 1]:
        raise RowsError(f"{path} must have each column once; it has {twice} more than once")
    return [header.index(name) for name in wanted]


_OUTCOMES: Mapping[str | bool, float] = {
    **dict.fromkeys(("yes", "true", True), 1.0),
    **dict.fromkeys(("no", "false", False), 0.0),
}
"""Words for whether it worked, where rewards go from 0 to 1."""


class Judge:
    """Reads the values of a row, or says why the row does not fit: by column, never by value.

    names: the columns that it reads, in order.
    clamped: how many numbers were outside the bounds of each feature, and how many rewards were,
        if the experiment says how they are counted. The device clamps them.
    """

    def __init__(self, experiment: Experiment, columns: Columns) -> None:
        self.names = columns.names(experiment)
        self._features: Sequence[Feature] = experiment.context
        self._arms = frozenset(experiment.arms)
        self._rewards = experiment.rewards
        self._columns = columns
        self.clamped: Counter[str] = Counter()

    def read(self, values: Sequence[Any] | None) -> Row | str:
        """Return the row, or the reason for which it does not fit.

        values: in the order of ``names``; None for a row with a wrong number of fields.
        """
        if values is None:
            return "has another number of fields than the header"
        context: dict[str, Value] = {}
        outside = []
        for feature, column, value in zip(self._features, self.names, values, strict=False):
            if _is_missing(value):
                if not feature.optional:
                    return f"{column} is missing"
                context[feature.name] = None
            elif isinstance(feature, Numeric):
                number = _number(value)
                if number is None:
                    return f"{column} is not a number"
                if not feature.low <= number <= feature.high:
                    outside.append(feature.name)
                context[feature.name] = number
            elif isinstance(feature, Boolean):
                truth = _truth(value)
                if truth is None:
                    return f"{column} is not true or false"
                context[feature.name] = truth
            else:
                level = _text(value)
                takes_others = isinstance(feature, Categorical) and feature.other
                if level not in feature.levels and not (level and takes_others):
                    return f"{column} is not a level of the schema"
                context[feature.name] = level
        given, outcome = values[-2:]
        if _is_missing(given):
            return f"{self._columns.arm} is missing"
        arm = _text(given)
        if arm not in self._arms:
            return f"{self._columns.arm} is not an arm of the experiment"
        if _is_missing(outcome):
            return f"{self._columns.reward} is missing"
        reward = self._reward(outcome)
        if isinstance(reward, str):
            return reward
        if not self._rewards.low <= reward <= self._rewards.high:
            outside.append(self._columns.reward)
        self.clamped.update(outside)
        return Row(context, arm, reward)

    def _reward(self, value: Any) -> float | str:
        """Return a reward as the experiment counts it, or why it is none."""
        scale, column = self._rewards, self._columns.reward
        if (scale.low, scale.high) == (0.0, 1.0):
            known = value.lower() if isinstance(value, str) else value
            value = _OUTCOMES.get(known, value) if isinstance(known, str | bool) else value
        reward = _number(value)
        if reward is None:
            return f"{column} is not a number"
        if not (scale.clamps or scale.low <= reward <= scale.high):
            return f"{column} is not in [{scale.low:g}, {scale.high:g}]"
        return reward


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float | None:
    """Return a finite number, also from text; "1_000" is refused, as only Python reads it."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    if isinstance(value, str) and "_" in value:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _truth(value: Any) -> bool | None:
    """Return a truth value, also one that is written as true or false in any case."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str:
    """Return a level or an arm as text; whole numbers have no decimal point."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # Anything else is neither a level nor an arm.
    return str(value) if type(value) is int else ""


def renamed_columns(texts: Sequence[str]) -> dict[str, str]:
    """Read the columns of renamed features, each written as feature=column."""
    renamed = {}
    for text in texts:
        feature, sign, column = text.partition("=")
        if not (feature and sign and column):
            raise RowsError(must("a renamed feature", "be written as feature=column", repr(text)))
        renamed[feature] = column
    return renamed
