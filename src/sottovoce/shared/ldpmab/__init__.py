"""``ldpmab``, the paper's method: its settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import MethodSettings

if TYPE_CHECKING:
    from sottovoce.shared.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Ldpmab(MethodSettings):
    """Arm elimination with the Laplace mechanism (the paper's Algorithms 2 and 3).

    preset: ``paper`` has the printed constants, ``authors`` those of the authors' experiments;
        docs/explanation/presets.md says which one to use.
    c: the constant of C_n = c·log n, which scales every confidence bound. None is the preset's own
       (1 for ``paper``; 2/ln 2 for ``authors``, whose C_n is 2·log2 n).
    """

    name: ClassVar[str] = "ldpmab"

    preset: Literal["authors", "paper"] = "authors"
    c: float | None = None

    def __post_init__(self) -> None:
        if self.preset not in ("authors", "paper"):
            rule = "be 'authors' or 'paper'"
            raise ExperimentError(must("the preset of ldpmab", rule, repr(self.preset)))
        if self.c is not None:
            number = finite_float(self.c)
            if number is None or number <= 0:
                raise ExperimentError(must("c of ldpmab", "be finite and > 0", repr(self.c)))
            object.__setattr__(self, "c", number)

    def check_experiment(self, experiment: "Experiment") -> None:
        """Refuse a cap on an arm: this method gives live arms chances of its own."""
        if experiment.caps:
            rule = "have no cap with ldpmab, which gives live arms chances of its own"
            raise ExperimentError(must("an added arm", rule, "one"))

    @property
    def summary(self) -> str:
        """The method in a few words, for people."""
        return f"ldpmab, preset {self.preset}"

    @property
    def decision_rule(self) -> str:
        """When an arm is dropped, in a sentence."""
        return "An arm is dropped when its interval lies below that of a better one."


SETTINGS = Ldpmab
