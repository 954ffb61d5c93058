"""The settings of ``one_bit``, its questions, and the odds of a true bit."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import ClassVar

from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import ExperimentError, Rejection, WireError, must
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.release import BinPolicy, Release

MOST_ARMS = 2**15
"""A question is about an arm, of someone who was served or of a logged row, in two bytes."""

LARGEST_EXPONENT = 64.0
"""Beyond this ε the odds stay the same; the bit is more private than was asked for."""


@dataclass(frozen=True, slots=True)
class OneBit(MethodSettings):
    """One bit of randomised response about one arm.

    clear: an arm is dropped when it is so many standard errors behind the best.
    """

    name: ClassVar[str] = "one_bit"

    clear: float = 3.0

    def __post_init__(self) -> None:
        number = finite_float(self.clear)
        if number is None or number <= 0:
            raise ExperimentError(must("clear of one_bit", "be finite and > 0", repr(self.clear)))
        object.__setattr__(self, "clear", number)

    def check_experiment(self, experiment: Experiment) -> None:
        """Refuse more arms than there are questions for, and caps: chances are equal."""
        if experiment.caps:
            raise ExperimentError(must("an added arm", "have no cap with one_bit", "one"))
        if len(experiment.arms) > MOST_ARMS:
            raise ExperimentError(must("arms", f"be at most {MOST_ARMS}", len(experiment.arms)))

    def check_release(self, release: Release) -> None:
        """Refuse bins, and unequal chances, by which the estimates would be wrong."""
        for policy in release.bins:
            chances = {1 / len(policy.arms)}
            if policy.path or policy.waiting or set(policy.propensities) != chances:
                rule = "be one bin, whose live arms have equal chances"
                raise WireError(
                    Rejection.MALFORMED, must("a release of one_bit", rule, "something else")
                )

    @property
    def summary(self) -> str:
        """The method in a few words."""
        return "one_bit, one bit about one arm"

    @property
    def decision_rule(self) -> str:
        """When an arm is dropped, in a sentence."""
        return f"An arm is dropped when it is {self.clear:g} standard errors behind the best."


SETTINGS = OneBit


def odds(epsilon: float) -> tuple[int, int]:
    """Return whole numbers (A, B) with A/B ≤ e^ε: of A + B people, A tell the true bit."""
    with localcontext() as context:
        context.prec = 120
        least = Decimal(min(epsilon, LARGEST_EXPONENT)).exp() * (1 - Decimal(10) ** -110)
        return int((least * 2**64).to_integral_value(ROUND_FLOOR)), 2**64


def question_of(arm: int, *, arms: int, logged: bool) -> int:
    """Number the question about an arm; logged rows have questions of their own."""
    return arm + arms * logged


def chance_of(
    arm: int, live: Sequence[int], *, logged: bool, population: Population
) -> float | None:
    """Return how likely the arm was for whoever was asked about it; None if nobody knows."""
    if not logged:
        return 1 / len(live)
    return None if population.behaviour is None else population.behaviour[arm]


def policy_of(live: Sequence[int]) -> BinPolicy:
    """Return the one bin: the live arms, with equal chances."""
    return BinPolicy("", tuple(live), (1 / len(live),) * len(live))
