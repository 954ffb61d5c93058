"""Checks of the baselines' settings."""

from typing import Any

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ExperimentError, must


def make_positive(settings: Any, *names: str, of: str, zero: bool = False) -> None:
    """Check that some settings of a baseline are > 0, or with ``zero`` >= 0; make them floats."""
    for name in names:
        value = getattr(settings, name)
        number = finite_float(value)
        if number is None or number < 0 or (number == 0 and not zero):
            rule = f"be finite and {'>=' if zero else '>'} 0"
            raise ExperimentError(must(f"{name} of {of}", rule, repr(value)))
        object.__setattr__(settings, name, number)
