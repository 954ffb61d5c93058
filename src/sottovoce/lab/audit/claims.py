"""What is claimed, and of whom: people, scenes, and the cases that an audit looks at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import MethodSettings, method_part
from sottovoce.shared.release import Release

Answer = bytes | tuple[float, ...]
"""What leaves a device: the bytes of a whole report. Other mechanisms may send numbers."""

Floats = NDArray[np.float64]

Scores = Callable[[Sequence[Answer]], Floats]
"""An attacker's statistics, (reports, statistics): large where ``one`` is likelier."""


@dataclass(frozen=True, slots=True)
class Person:
    """One of the possible data of a person.

    context: None stands for a row that does not fit the experiment.
    arm: None if the device draws it. Somebody who is served an arm of the audit's choice is one
        whose device happened to draw that arm.
    reward: None if no outcome came.
    logged: whether this is a row of a log. That is public.
    """

    context: Mapping[str, Any] | None
    arm: str | None = None
    reward: float | None = None
    logged: bool = False

    @property
    def place(self) -> Mapping[str, Any]:
        """The context of somebody who must have one."""
        if self.context is None:
            raise ExperimentError(must("somebody who is served", "have a context", "none"))
        return self.context


@dataclass(frozen=True, slots=True)
class Scene:
    """What the server may choose: the release, and the population of the person."""

    release: Release
    population: int = 0

    @property
    def epsilon(self) -> float:
        """The ε that is claimed for one report."""
        return self.release.experiment.populations[self.population].epsilon

    @property
    def population_name(self) -> str:
        """The name of the population."""
        return self.release.experiment.populations[self.population].name


class Mechanism(Protocol):
    """Anything that turns a person's data into what leaves the device."""

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Return so many independent reports of the same person."""


class Auditing(Protocol):
    """What a method may know of itself: ``audit_part`` of its module in the lab returns it."""

    def variants(self) -> Mapping[str, MethodSettings]:
        """Return the settings to audit, by a name for people."""

    def log_ratios(self, scene: Scene, one: Person, other: Person) -> Scores:
        """Return the best statistics to tell two people apart, by the method's own law."""

    def worst_exactly(self, scene: Scene, people: Sequence[Person]) -> "Exactly":
        """Return the exact worst ratio of whole reports between any two of these people."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """The exact worst log-ratio of whole reports.

    epsilon: rounded up to a float; infinite if something can be sent by one person only.
    kept: whether it is at most the claim, decided without rounding.
    how: what was computed.
    """

    epsilon: float
    kept: bool
    how: str


def auditing_of(method: str) -> Auditing | None:
    """Return what a method knows of itself for an audit; None if it says nothing."""
    part = getattr(method_part(method, "lab"), "audit_part", None)
    return None if part is None else cast(Auditing, part())


def must_know(method: str) -> Auditing:
    """Return the same of a method that must have it."""
    found = auditing_of(method)
    if found is None:
        raise ExperimentError(must(f"method {method}", "have an audit_part in the lab", "none"))
    return found
