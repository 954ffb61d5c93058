"""Checks of public settings. Device, learner and server all use the same ones."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from sottovoce.shared.errors import ExperimentError, must

# Outside of these bounds 4/ε or ε² cannot be computed precisely in double precision.
SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 1e6


def finite_float(value: Any) -> float | None:
    """Return a finite number as a float, and anything else (NaN, text, a bool) as None."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ArithmeticError, TypeError, ValueError):
        # Foreign number types may raise with a message that shows the number.
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


def whole_number(value: Any, *, what: str, least: int) -> int:
    """Check a whole number; up to 2^53 it is exact in JSON and JavaScript."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:
        raise ExperimentError(must(what, f"be a whole number >= {least}", repr(value)))
    if int(value) > 2**53:
        raise ExperimentError(must(what, "be at most 2^53", repr(value)))
    return int(value)


def truth_value(value: Any, *, what: str) -> bool:
    """Check a setting that is on or off."""
    if not isinstance(value, bool):
        raise ExperimentError(must(what, "be true or false", repr(value)))
    return value


def name(value: Any, *, what: str) -> str:
    """Check a name; control characters could forge lines of a receipt or a log."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ExperimentError(must(what, "be a non-empty, printable string", repr(value)))
    return value


def items(values: Any, kinds: Any, *, what: str, rule: str) -> tuple[Any, ...]:
    """Check that all items of a list have the right type."""
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    if not listed or not all(isinstance(value, kinds) for value in values):
        raise ExperimentError(must(what, rule, repr(values)))
    return tuple(values)


def distinct_names(values: Any, *, what: str, least: int) -> tuple[str, ...]:
    """Check a list of different, non-empty names."""
    names = items(values, str, what=what, rule="be a list of names")
    for each in names:
        name(each, what=what)
    if len(names) < least:
        raise ExperimentError(must(what, f"be at least {least}", f"{len(names)}: {list(names)}"))
    if len(set(names)) != len(names):
        raise ExperimentError(must(what, "differ from each other", list(names)))
    return names


def known_keys(entry: Any, *, what: str, known: set[str]) -> dict[str, Any]:
    """Check that a JSON or TOML table has known keys only."""
    if not isinstance(entry, dict):
        raise ExperimentError(must(what, "be a table", type(entry).__name__))
    if strange := sorted(map(str, entry.keys() - known)):
        raise ExperimentError(must(what, f"have only the keys {sorted(known)}", strange))
    return entry


def propensities(values: Any, *, what: str) -> tuple[float, ...]:
    """Check the probabilities of all arms; 0 means that nobody got the arm."""
    rule = "be numbers >= 0 that add up to 1"
    listed = items(values, (int, float), what=what, rule=rule)
    chances = [finite_float(value) for value in listed]
    known = [chance for chance in chances if chance is not None and chance >= 0]
    if len(known) != len(chances) or not math.isclose(math.fsum(known), 1, abs_tol=1e-9):
        raise ExperimentError(must(what, rule, list(listed)))
    return tuple(known)
