"""What the learner needs of a method: sums in, releases out.

A method's module ``estimate/<name>`` has the three functions of ``LearnerMethod``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.figures import Known, Worth
from sottovoce.estimate.gain_interval import GainEstimate
from sottovoce.estimate.gate import Batch, Gate, PastReleases
from sottovoce.estimate.history import Certificate, Event
from sottovoce.shared.allocation import Allocation
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.methods import method_part
from sottovoce.shared.release import Release
from sottovoce.shared.reward import RewardScale


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """What is known of one arm in one bin, or None while too little is.

    estimate: the mean reward of the arm in the bin. Where the arm was dropped, it is what was known
        when it was last measured, and what other bins have said of it since.
    radius: half of its interval. With ``ldpmab`` the paper's confidence radius r.
    level: how often the interval holds the truth; None where the method does not say.
    live: whether the arm is still in use in the bin.
    """

    path: str
    arm: str
    estimate: float | None
    radius: float | None
    level: float | None = None
    live: bool = True

    def counted_as(self, rewards: RewardScale) -> "CellEstimate":
        """Return an estimate of outcomes in [0, 1] in the owner's unit."""
        if self.estimate is None or self.radius is None:
            return self
        mean, radius = rewards.mean(self.estimate), rewards.width * self.radius
        return replace(self, estimate=mean, radius=radius)


class Estimator(Protocol):
    """The sums of one method, and the releases that come of them."""

    release: Release  # the current one
    gate: Gate  # what lets reports in; it knows the current release and all before

    def absorb(self, batch: Batch) -> int:
        """Add reports to the sums; return how many of their cells no longer stand."""

    def step(self) -> list[Event]:
        """Drop arms and split bins; publish the next release if anything changed."""

    def amend(self, experiment: Experiment) -> None:
        """Go on with an experiment after one more amendment; publish the next release at once."""

    def estimates(self) -> list[CellEstimate]:
        """Return what is known of each arm in each bin, as it was when last measured."""

    def shares(self) -> dict[str, Known]:
        """Return the share of the target's people in each bin; nothing if the method cannot."""

    def worth(self, allocation: Allocation) -> Worth | None:
        """Return the mean outcome by a policy; None if the method cannot."""

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped, where the method can tell."""

    def diagnose(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring, given how many reports each has sent."""

    def to_table(self) -> dict[str, Any]:
        """Write all of it but the release."""


class MeasuresGain(Protocol):
    """What an estimator has besides, whose method ``measures_gain``."""

    def gain(self, *, level: float) -> GainEstimate:
        """Return what the policy brings over the baseline."""


class LearnerMethod(Protocol):
    """A method in the estimator's room."""

    def begin(self, experiment: Experiment) -> Estimator:
        """Begin with one bin and all arms."""

    def resume(self, release: Release, table: dict[str, Any]) -> Estimator:
        """Read what ``to_table`` wrote; what is inconsistent raises ValueError or the like."""

    def past_releases(self, experiment: Experiment) -> PastReleases:
        """Begin with no release at all, to check reports by."""


def learner_method(experiment: Experiment) -> LearnerMethod:
    """Return the estimator's part of the method of an experiment."""
    return cast(LearnerMethod, method_part(experiment.settings.name, "estimate"))
