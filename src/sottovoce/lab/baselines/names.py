"""The names of the baselines, and their tables: what JSON, sweeps and the command line hold."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from sottovoce.lab.baselines.abse import Abse
from sottovoce.lab.baselines.baseline import Baseline
from sottovoce.lab.baselines.linear import Linear
from sottovoce.lab.baselines.neural import Neural
from sottovoce.shared.check import known_keys
from sottovoce.shared.errors import ExperimentError, must

BASELINES: dict[str, type[Abse] | type[Linear] | type[Neural]] = {
    "abse": Abse,
    "linear": Linear,
    "nn": Neural,
}

LEARNERS = ("whisper", "ldpmab")
"""The methods that have a learner and devices, which an experiment names itself."""


def baseline_from(value: Any) -> Baseline | None:
    """Accept a baseline, its name, or its table; None for a method of learners."""
    if isinstance(value, type):
        raise ExperimentError(
            must("a method", "be an object", f"the class {value.__name__}: add ()")
        )
    if isinstance(value, Baseline):
        return value
    name = value.get("name") if isinstance(value, Mapping) else value
    if not isinstance(name, str) or name in LEARNERS:
        return None
    if name not in BASELINES:
        known = [*LEARNERS, *BASELINES]
        raise ExperimentError(must("the method's name", f"be one of {known}", repr(name)))
    kind = BASELINES[name]
    settings = dict(value) if isinstance(value, Mapping) else {}
    settings.pop("name", None)
    known_keys(settings, what=f"method {name}", known={field.name for field in fields(kind)})
    return kind(**settings)


def baseline_to_table(baseline: Abse | Linear | Neural) -> dict[str, Any]:
    """Write a baseline as ``baseline_from`` reads it."""
    (name,) = (name for name, kind in BASELINES.items() if type(baseline) is kind)
    return {"name": name, **asdict(baseline)}
