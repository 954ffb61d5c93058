"""The public context schema: how raw features become a point of [0, 1]^d.

The schema is public; the values are not. Only the device calls ``position``. Each feature has one
axis, so that d stays small: regret grows quickly with d.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sottovoce.shared import check
from sottovoce.shared.errors import ContextError, ExperimentError, kind_of, must


class Axis(NamedTuple):
    """One axis of [0, 1]^d."""

    name: str
    levels: int = 0
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number. ``low`` maps to 0 and ``high`` to 1; numbers outside are clamped to these."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        check.name(self.name, what="the name of a feature")
        low, high = check.finite_float(self.low), check.finite_float(self.high)
        if low is None or high is None or not low < high or check.finite_float(high - low) is None:
            what, came = f"the bounds of {self.name!r}", (self.low, self.high)
            raise ExperimentError(must(what, "be finite numbers with low < high", came))
        object.__setattr__(self, "low", low + 0.0)  # not -0.0, which has another fingerprint
        object.__setattr__(self, "high", high + 0.0)

    def position(self, value: Any) -> float:
        """Map a raw number to [0, 1]."""
        number = check.finite_float(value)
        if number is None:
            raise ContextError(must(f"feature {self.name!r}", "be a finite number", kind_of(value)))
        clamped = min(max(number, self.low), self.high)
        return (clamped - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class _Levels:
    name: str
    levels: tuple[str, ...]
    # A look into a table takes as long for the last level as for the first.
    _positions: Mapping[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.name(self.name, what="the name of a feature")
        levels = check.distinct_names(self.levels, what=f"the levels of {self.name!r}", least=2)
        object.__setattr__(self, "levels", levels)
        positions = {level: (index + 0.5) / len(levels) for index, level in enumerate(levels)}
        object.__setattr__(self, "_positions", positions)

    def position(self, value: Any) -> float:
        """Map a level to the middle of its share of [0, 1]; refuse an unknown level."""
        if not isinstance(value, str) or value not in self._positions:
            came = "an unknown level" if isinstance(value, str) else kind_of(value)
            what = f"feature {self.name!r}"
            raise ContextError(must(what, "be one of the schema's levels", came))
        return self._positions[value]


@dataclass(frozen=True, slots=True)
class Ordinal(_Levels):
    """Named levels in their natural order, from low to high."""


@dataclass(frozen=True, slots=True)
class Categorical(_Levels):
    """Named levels without an order.

    They share one axis, in the given order, and bins hold levels that are next to each other. So
    list levels side by side if you expect them to behave alike.
    """


Feature = Numeric | Ordinal | Categorical


def feature_to_table(feature: Feature) -> dict[str, Any]:
    """Return a feature as it is written in a TOML file."""
    match feature:
        case Numeric():
            return {"name": feature.name, "numeric": [feature.low, feature.high]}
        case Ordinal():
            return {"name": feature.name, "ordinal": list(feature.levels)}
        case Categorical():
            return {"name": feature.name, "categorical": list(feature.levels)}


def feature_from_table(entry: Any) -> Feature:
    """Read a feature such as ``{"name": "age", "numeric": [18, 90]}``."""
    rule = "have a name and one of numeric = [low, high], ordinal = [...], categorical = [...]"
    if not isinstance(entry, dict) or "name" not in entry or len(entry) != 2:
        raise ExperimentError(must("a context feature", rule, repr(entry)))
    (kind,) = entry.keys() - {"name"}
    values = entry[kind]
    match kind, values:
        case "numeric", list([low, high]):
            return Numeric(entry["name"], low, high)
        case "ordinal", list():
            return Ordinal(entry["name"], tuple(values))
        case "categorical", list():
            return Categorical(entry["name"], tuple(values))
        case _:
            raise ExperimentError(must(f"context feature {entry['name']!r}", rule, repr(entry)))
