"""Checks of the baselines' settings."""

from typing import Any

from sottovoce.shared.check import finite_float, whole_number
from sottovoce.shared.errors import ExperimentError, must


def check_positive(value: Any, *, what: str, zero: bool = False) -> float:
    """Check a setting; ``zero`` allows 0 as well."""
    number = finite_float(value)
    if number is None or number < 0 or (number == 0 and not zero):
        rule = f"be finite and {'>=' if zero else '>'} 0"
        raise ExperimentError(must(what, rule, repr(value)))
    return number


def check_descent(settings: Any, *, name: str) -> None:
    """Check the settings that the private baselines share, and make them floats."""
    for field in ("step", "power"):
        number = check_positive(getattr(settings, field), what=f"{field} of {name}")
        object.__setattr__(settings, field, number)
    for field in ("delay", "ridge"):
        number = check_positive(getattr(settings, field), what=f"{field} of {name}", zero=True)
        object.__setattr__(settings, field, number)
    if settings.power > 1:
        raise ExperimentError(must(f"power of {name}", "lie in (0, 1]", settings.power))
    if settings.warm_up is not None:
        whole_number(settings.warm_up, what=f"warm_up of {name}", least=0)
