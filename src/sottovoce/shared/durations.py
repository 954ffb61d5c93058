"""Durations in words, such as "7 days": how people write them in files and on the command line."""

import re
from datetime import timedelta
from typing import Any

from sottovoce.shared.errors import ExperimentError, must

_UNITS = {
    "s": "seconds",
    "sec": "seconds",
    "second": "seconds",
    "min": "minutes",
    "minute": "minutes",
    "h": "hours",
    "hour": "hours",
    "d": "days",
    "day": "days",
    "w": "weeks",
    "week": "weeks",
}
_LONGEST = timedelta(days=36_500)


def duration(value: Any, *, what: str) -> timedelta:
    """Read a duration: a number and its unit, such as "90 min", "7 days" or "30d"."""
    rule = 'be a whole number with a unit, such as "90 min", "12 hours" or "7 days"'
    found = (
        re.fullmatch(r"\s*([0-9]{1,9})\s*([a-z]+)\s*", value) if isinstance(value, str) else None
    )
    unit = found and (_UNITS.get(found[2]) or _UNITS.get(found[2].removesuffix("s")))
    if not found or not unit:
        raise ExperimentError(must(what, rule, repr(value)))
    try:
        length = timedelta(**{unit: int(found[1])})
    except OverflowError:
        length = timedelta.max
    if not timedelta(0) < length <= _LONGEST:
        raise ExperimentError(must(what, "be more than 0 and at most 100 years", repr(value)))
    return length
