"""The public context schema: how raw features become a point of [0, 1]^d.

The schema is public; the values are not. Only the device calls ``positions``. A feature has one
axis, or two if it may be missing and its values have an order. d should stay small: regret grows
quickly with d.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

from sottovoce.shared import check
from sottovoce.shared.errors import ContextError, ExperimentError, kind_of, must

MOST_LEVELS = 1024
"""How many places an axis may have, "other" and "missing" included."""

OTHER, MISSING, THERE = "other", "missing", "there"


class Axis(NamedTuple):
    """One coordinate of a context.

    levels: 0 for a number anywhere in [0, 1]; otherwise how many places there are, at
        (i + 0.5) / levels.
    ordered: False if the order of the places means nothing.
    """

    name: str
    levels: int = 0
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number. ``low`` maps to 0 and ``high`` to 1; numbers outside are clamped to these.

    optional: the number may be missing (None or NaN). A second axis then says whether it is: 0.25
        if it is there, 0.75 if it is missing. A missing number lies at 0 on the first axis.
    """

    name: str
    low: float
    high: float
    optional: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check.name(self.name, what="the name of a feature")
        check.truth_value(self.optional, what=f"optional of {self.name!r}")
        low, high = check.finite_float(self.low), check.finite_float(self.high)
        if low is None or high is None or not low < high or check.finite_float(high - low) is None:
            what, came = f"the bounds of {self.name!r}", (self.low, self.high)
            raise ExperimentError(must(what, "be finite numbers with low < high", came))
        object.__setattr__(self, "low", low + 0.0)  # not -0.0, which has another fingerprint
        object.__setattr__(self, "high", high + 0.0)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The number, and whether it is missing if it may be."""
        return (Axis(self.name), *_missing_axis(self.name, optional=self.optional))

    def positions(self, value: Any) -> tuple[float, ...]:
        """Map a raw number to [0, 1], on each axis."""
        rule = "be a finite number"
        missing = _is_missing(self, value, rule)
        # The same work for a missing number as for any other.
        number = check.finite_float(self.low if missing else value)
        if number is None:
            raise _refused(self, value, rule)
        clamped = min(max(number, self.low), self.high)
        position = (clamped - self.low) / (self.high - self.low)
        return (position, *_missing_position(optional=self.optional, missing=missing))


@dataclass(frozen=True, slots=True)
class Ordinal:
    """Named levels in their natural order, from low to high.

    optional: the level may be missing (None or NaN). A second axis then says whether it is, as for
        a ``Numeric``. A missing level lies at the first level on the first axis.
    """

    name: str
    levels: tuple[str, ...]
    optional: bool = field(default=False, kw_only=True)
    # A look into a table takes as long for the last level as for the first.
    _positions: Mapping[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        levels = _checked_levels(self.name, self.levels, places=())
        check.truth_value(self.optional, what=f"optional of {self.name!r}")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(
            self, "_positions", dict(zip(levels, _middles(len(levels)), strict=True))
        )

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The level, and whether it is missing if it may be."""
        missing = _missing_axis(self.name, optional=self.optional)
        return (Axis(self.name, len(self.levels)), *missing)

    def positions(self, value: Any) -> tuple[float, ...]:
        """Map a level to the middle of its share of [0, 1]; refuse an unknown level."""
        missing = _is_missing(self, value, _LEVELS_RULE)
        level = self.levels[0] if missing else value
        position = self._positions.get(level) if isinstance(level, str) else None
        if position is None:
            raise _refused(self, value, _LEVELS_RULE)
        return (position, *_missing_position(optional=self.optional, missing=missing))


@dataclass(frozen=True, slots=True)
class Categorical:
    """Named levels without an order: the order in which they are given means nothing.

    They share one axis, with a place for each level, then one for other levels, then one for
    missing ones.

    optional: the level may be missing (None or NaN).
    other: the device takes unknown levels, too, and puts them all in one place. Otherwise it
        refuses them.
    """

    name: str
    levels: tuple[str, ...]
    optional: bool = field(default=False, kw_only=True)
    other: bool = field(default=False, kw_only=True)
    # A look into a table takes as long for the last level as for the first. None: it is missing.
    _positions: Mapping[str | None, float] = field(init=False, repr=False, compare=False)
    _other_position: float | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.name(self.name, what="the name of a feature")
        check.truth_value(self.optional, what=f"optional of {self.name!r}")
        check.truth_value(self.other, what=f"other of {self.name!r}")
        places = (OTHER,) * self.other + (MISSING,) * self.optional
        levels = _checked_levels(self.name, self.levels, places=places)
        object.__setattr__(self, "levels", levels)
        middles = _middles(len(levels) + len(places))
        positions: dict[str | None, float] = dict(zip(levels, middles, strict=False))
        if self.optional:
            positions[None] = middles[-1]
        object.__setattr__(self, "_positions", positions)
        other = middles[len(levels)] if self.other else None
        object.__setattr__(self, "_other_position", other)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The one axis."""
        count = len(self.levels) + self.other + self.optional
        return (Axis(self.name, count, ordered=_is_ordered(count)),)

    def positions(self, value: Any) -> tuple[float, ...]:
        """Map a level to the middle of its share of [0, 1]."""
        missing = _is_missing(self, value, _LEVELS_RULE)
        level = None if missing else value
        known = missing or isinstance(level, str)
        position = self._positions.get(level, self._other_position) if known else None
        if position is None:
            raise _refused(self, value, _LEVELS_RULE)
        return (position,)


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false, on one axis: a place for False, one for True, and one for missing values.

    optional: the value may be missing (None or NaN).
    """

    name: str
    optional: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check.name(self.name, what="the name of a feature")
        check.truth_value(self.optional, what=f"optional of {self.name!r}")

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The one axis."""
        count = 2 + self.optional
        return (Axis(self.name, count, ordered=_is_ordered(count)),)

    def positions(self, value: Any) -> tuple[float, ...]:
        """Map a truth value to the middle of its share of [0, 1]; 0 and 1 are none."""
        rule = "be True or False"
        missing = _is_missing(self, value, rule)
        truth = _truth(False if missing else value)
        if truth is None:
            raise _refused(self, value, rule)
        index = (truth, 2)[missing]
        return ((index + 0.5) / (2 + self.optional),)


Feature = Numeric | Ordinal | Categorical | Boolean


def place_names(feature: Feature) -> tuple[tuple[str, ...], ...]:
    """Name the places of each axis of a feature, for people to read; a number's axis has none."""
    missing = (MISSING,) * feature.optional
    whether = ((THERE, MISSING),) * feature.optional
    match feature:
        case Numeric():
            return ((), *whether)
        case Ordinal():
            return (feature.levels, *whether)
        case Categorical():
            return ((*feature.levels, *(OTHER,) * feature.other, *missing),)
        case Boolean():
            return (("False", "True", *missing),)


# --- values ---------------------------------------------------------------------------------------

_LEVELS_RULE = "be one of the schema's levels"


def _is_missing(feature: Feature, value: Any, rule: str) -> bool:
    """Say whether a raw value is missing; refuse a missing one if the feature needs one."""
    # Both are looked at, so that a missing value takes no other way than the rest.
    nothing, not_a_number = value is None, isinstance(value, Real) and bool(value != value)
    missing = nothing or not_a_number
    if missing and not feature.optional:
        hint = "say optional=True in the schema if it may be missing"
        raise ContextError(must(f"feature {feature.name!r}", rule, kind_of(value), hint=hint))
    return missing


def _refused(feature: Feature, value: Any, rule: str) -> ContextError:
    unknown = isinstance(value, str) and isinstance(feature, Ordinal | Categorical)
    came = "an unknown level" if unknown else kind_of(value)
    return ContextError(must(f"feature {feature.name!r}", rule, came))


def _truth(value: Any) -> int | None:
    """Return a truth value, also one of NumPy's, as 0 or 1, and anything else as None."""
    if type(value) is bool:
        return int(value)
    try:
        single = value.dtype.kind == "b" and value.shape == ()
        return int(bool(value)) if single else None
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        # Foreign types may raise with a message that shows the value.
        return None


def _middles(count: int) -> list[float]:
    return [(index + 0.5) / count for index in range(count)]


def _missing_axis(name: str, *, optional: bool) -> tuple[Axis, ...]:
    return (Axis(f"{name} is missing", 2),) if optional else ()


def _missing_position(*, optional: bool, missing: bool) -> tuple[float, ...]:
    return ((0.25, 0.75)[missing],) if optional else ()


def _is_ordered(count: int) -> bool:
    """Two places have no order to lose."""
    return count == 2


def _checked_levels(name: str, levels: Any, *, places: Sequence[str]) -> tuple[str, ...]:
    """Check the levels of a feature. places: the names of places beside those of the levels."""
    check.name(name, what="the name of a feature")
    what = f"the levels of {name!r}"
    known = check.distinct_names(levels, what=what, least=2)
    if taken := [place for place in places if place in known]:
        rule = "leave the names of the places for other and missing levels to the schema"
        raise ExperimentError(must(what, rule, taken))
    if len(known) + len(places) > MOST_LEVELS:
        rule = f"be at most {MOST_LEVELS}, with the places for other and missing levels"
        raise ExperimentError(must(what, rule, len(known) + len(places)))
    return known


# --- tables ---------------------------------------------------------------------------------------

_KINDS = ("numeric", "ordinal", "categorical", "boolean")


def feature_to_table(feature: Feature) -> dict[str, Any]:
    """Return a feature as it is written in a TOML file; what is false is left out."""
    table: dict[str, Any] = {"name": feature.name}
    match feature:
        case Numeric():
            table["numeric"] = [feature.low, feature.high]
        case Ordinal():
            table["ordinal"] = list(feature.levels)
        case Categorical():
            table["categorical"] = list(feature.levels)
            table |= {"other": True} if feature.other else {}
        case Boolean():
            table["boolean"] = True
    return table | ({"optional": True} if feature.optional else {})


def feature_from_table(entry: Any) -> Feature:
    """Read a feature such as ``{"name": "age", "numeric": [18, 90], "optional": true}``."""
    rule = (
        "have a name and one of numeric = [low, high], ordinal = [...], categorical = [...],"
        " boolean = true"
    )
    # What came is at the end of a message, where a server leaves it out; the name, too.
    what = "a context feature"
    kinds = [kind for kind in _KINDS if kind in entry] if isinstance(entry, dict) else []
    if len(kinds) != 1 or "name" not in entry:
        raise ExperimentError(must(what, rule, repr(entry)))
    (kind,), name = kinds, entry["name"]
    flags = {"optional", *(["other"] if kind == "categorical" else [])}
    if strange := sorted(map(str, entry.keys() - {"name", kind, *flags})):
        known = ["name", kind, *sorted(flags)]
        raise ExperimentError(must(what, f"have only the keys {known}", f"{strange} in {name!r}"))
    given = {flag: entry[flag] for flag in flags & entry.keys()}
    match kind, entry[kind]:
        case "numeric", list([low, high]):
            return Numeric(name, low, high, **given)
        case "ordinal", list(levels):
            return Ordinal(name, tuple(levels), **given)
        case "categorical", list(levels):
            return Categorical(name, tuple(levels), **given)
        case "boolean", True:
            return Boolean(name, **given)
        case _:
            raise ExperimentError(must(what, rule, repr(entry)))
