"""Small checks of public settings, each with the same answer everywhere."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from sottovoce.shared.errors import ExperimentError, must

# Outside these, 4/ε or ε² leave the range in which double precision can be trusted.
SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 1e6


def finite_float(value: Any) -> float | None:
    """Return a finite number as a float, and anything else (NaN, text, a bool) as None."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def epsilon(value: Any, *, what: str = "epsilon") -> float:
    """Check a privacy budget."""
    number = finite_float(value)
    if number is None or number <= 0:
        raise ExperimentError(must(what, "be finite and > 0", repr(value)))
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        rule = f"lie between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}"
        raise ExperimentError(must(what, rule, repr(value)))
    return number


def whole_number(value: Any, *, what: str, least: int, most: int = 2**53) -> int:
    """Check a whole number; ``most`` keeps it exact in JSON and JavaScript."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        upper = "" if most == 2**53 else f" and <= {most}"
        raise ExperimentError(must(what, f"be a whole number >= {least}{upper}", repr(value)))
    return int(value)


def distinct_names(values: Any, *, what: str, least: int) -> tuple[str, ...]:
    """Check a list of different, non-empty names."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ExperimentError(must(what, "be a list of names", repr(values)))
    names = tuple(values)
    if not all(isinstance(name, str) and name for name in names):
        raise ExperimentError(must(what, "be non-empty strings", list(names)))
    if len(names) < least:
        raise ExperimentError(must(what, f"be at least {least}", f"{len(names)}: {list(names)}"))
    if len(set(names)) != len(names):
        raise ExperimentError(must(what, "differ from each other", list(names)))
    return names


def known_keys(entry: Any, *, what: str, known: set[str]) -> dict[str, Any]:
    """Check that a JSON or TOML table has no key that nobody reads."""
    if not isinstance(entry, dict):
        raise ExperimentError(must(what, "be a table", type(entry).__name__))
    if strange := sorted(map(str, entry.keys() - known)):
        raise ExperimentError(must(what, f"have only the keys {sorted(known)}", strange))
    return entry
