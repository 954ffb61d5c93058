"""The public context schema: how raw features become a point of [0, 1]^d.

The schema is public; the values are not. Only the device calls ``position``. Each feature takes
one axis, so that d stays small: regret grows quickly with d.
"""

from dataclasses import dataclass
from typing import Any

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ContextError, ExperimentError, kind_of, must


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number; ``low`` maps to 0 and ``high`` to 1, and what lies outside is clamped."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        _check_name(self.name)
        low, high = finite_float(self.low), finite_float(self.high)
        if low is None or high is None or not low < high or finite_float(high - low) is None:
            raise ExperimentError(
                must(
                    f"the bounds of {self.name!r}",
                    "be finite numbers with low < high",
                    (self.low, self.high),
                )
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def position(self, value: Any) -> float:
        """Map a raw number to [0, 1]."""
        number = finite_float(value)
        if number is None:
            raise ContextError(must(f"feature {self.name!r}", "be a finite number", kind_of(value)))
        clamped = min(max(number, self.low), self.high)
        return (clamped - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class _Levels:
    name: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_name(self.name)
        if isinstance(self.levels, str):
            raise ExperimentError(
                must(f"the levels of {self.name!r}", "be a list of names", "one string")
            )
        object.__setattr__(self, "levels", tuple(self.levels))
        if len(self.levels) < 2 or not all(isinstance(level, str) for level in self.levels):
            raise ExperimentError(
                must(f"the levels of {self.name!r}", "be at least 2 names", list(self.levels))
            )
        if len(set(self.levels)) != len(self.levels):
            raise ExperimentError(
                must(f"the levels of {self.name!r}", "differ from each other", list(self.levels))
            )

    def position(self, value: Any) -> float:
        """Map a level to the middle of its share of [0, 1]; an unknown one is refused."""
        if not isinstance(value, str) or value not in self.levels:
            came = "an unknown level" if isinstance(value, str) else kind_of(value)
            raise ContextError(
                must(f"feature {self.name!r}", "be one of the schema's levels", came)
            )
        return (self.levels.index(value) + 0.5) / len(self.levels)


@dataclass(frozen=True, slots=True)
class Ordinal(_Levels):
    """Named levels in their natural order, from low to high."""


@dataclass(frozen=True, slots=True)
class Categorical(_Levels):
    """Named levels without an order.

    They share one axis in the order given, and a bin holds neighbours first: list the levels
    that you expect to behave alike side by side.
    """


Feature = Numeric | Ordinal | Categorical


def feature_to_json(feature: Feature) -> dict[str, Any]:
    """Write a feature the way it stands in a TOML file."""
    match feature:
        case Numeric():
            return {"name": feature.name, "numeric": [feature.low, feature.high]}
        case Ordinal():
            return {"name": feature.name, "ordinal": list(feature.levels)}
        case Categorical():
            return {"name": feature.name, "categorical": list(feature.levels)}


def feature_from_json(entry: Any) -> Feature:
    """Read a feature such as ``{"name": "age", "numeric": [18, 90]}``."""
    rule = "have a name and one of numeric = [low, high], ordinal = [...], categorical = [...]"
    if not isinstance(entry, dict) or "name" not in entry or len(entry) != 2:
        raise ExperimentError(must("a context feature", rule, repr(entry)))
    (kind,) = entry.keys() - {"name"}
    values = entry[kind]
    if not isinstance(values, list):
        raise ExperimentError(must(f"context feature {entry['name']!r}", rule, repr(entry)))
    match kind:
        case "numeric" if len(values) == 2:
            return Numeric(entry["name"], *values)
        case "ordinal":
            return Ordinal(entry["name"], tuple(values))
        case "categorical":
            return Categorical(entry["name"], tuple(values))
        case _:
            raise ExperimentError(must(f"context feature {entry['name']!r}", rule, repr(entry)))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ExperimentError(must("the name of a feature", "be a non-empty string", repr(name)))
