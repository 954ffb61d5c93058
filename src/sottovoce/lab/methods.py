"""What ``simulate`` can play: methods with a learner, baselines, and policies of anybody's own."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any
from uuid import uuid4

from sottovoce.lab.baselines.abse import Abse
from sottovoce.lab.baselines.gradients import Linear, Neural
from sottovoce.lab.driver import AnyPolicy
from sottovoce.shared.check import known_keys
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.methods import MethodSettings, method_names, method_part, settings_from

Begin = Callable[[Experiment], AnyPolicy]
"""Makes the policy of an experiment; the experiment's own method has no part in it."""

Playable = MethodSettings | Mapping[str, Any] | str | Begin
"""A method, its table, its name, or anything that makes a policy from an experiment."""

BASELINES: dict[str, type[Abse] | type[Linear] | type[Neural]] = {
    "abse": Abse,
    "linear": Linear,
    "nn": Neural,
}
"""Published methods to compare with, which have no devices."""


@dataclass(frozen=True, slots=True)
class LabMethod:
    """What is to be played.

    settings: the method of the experiment; a default where another policy is played in its place.
    """

    name: str
    begin: Begin
    settings: MethodSettings | str = "whisper"

    def __str__(self) -> str:
        return self.name

    @property
    def privacy_note(self) -> str:
        """What to know of its privacy, where that is weaker than others' or none at all."""
        if isinstance(self.settings, MethodSettings) and self.settings.arms_are_public:
            return f"Weaker privacy: each report is {self.settings.promise}."
        return getattr(self.begin, "privacy_note", "")


def method_of(value: Any) -> LabMethod:
    """Accept all that is ``Playable``."""
    if isinstance(value, type) and not hasattr(value, "serve"):  # settings, but no policy
        came = f"the class {value.__name__}: add ()"
        raise ExperimentError(must("a method", "be an object", came))
    if callable(value):
        return LabMethod(name_of(value), value)
    name = value.get("name") if isinstance(value, Mapping) else value
    if isinstance(name, str) and name not in method_names():
        return LabMethod(name, baseline_from(value))
    settings = settings_from(value)
    # Compiled code is loaded only where something is played.
    return LabMethod(settings.name, method_part(settings.name, "lab").begin, settings)


def baseline_from(value: Mapping[str, Any] | str) -> Abse | Linear | Neural:
    """Read a baseline: its name, or its table."""
    settings = dict(value) if isinstance(value, Mapping) else {"name": value}
    name = settings.pop("name", None)
    if name not in BASELINES:
        known = [*method_names(), *BASELINES]
        raise ExperimentError(must("the method's name", f"be one of {known}", repr(name)))
    kind = BASELINES[name]
    known_keys(settings, what=f"method {name}", known={field.name for field in fields(kind)})
    baseline: Abse | Linear | Neural = kind(**settings)
    return baseline


def baseline_to_table(baseline: Abse | Linear | Neural) -> dict[str, Any]:
    """Write a baseline as ``baseline_from`` reads it."""
    return {"name": name_of(baseline), **asdict(baseline)}


def name_of(method: Begin) -> str:
    """Return what a baseline, or what makes a policy of somebody's own, is called."""
    for name, kind in BASELINES.items():
        if type(method) is kind:
            return name
    return getattr(method, "__name__", type(method).__name__)


def source_of(method: Begin) -> str:
    """Return the source of what makes a policy, so that it can be told from an edited one."""
    kind: Any = method if inspect.isroutine(method) or isinstance(method, type) else type(method)
    parts = [each for each in getattr(kind, "__mro__", (kind,)) if each is not object]
    try:
        return "\n".join(inspect.getsource(each) for each in parts)
    except (OSError, TypeError):  # typed in, say: then it is like no other
        return uuid4().hex
