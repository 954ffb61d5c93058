"""The baseline: some people get an arm that no data chose, so that the gain can be measured.

An experiment may have ``baseline = { arm = "control", share = 0.1 }``. A public coin, drawn without
a look at the person, then divides the target's people:

    share      the baseline group   gets the baseline's arm, and is asked for the outcome alone
    share      the policy group     gets the arm of the policy, and is asked for the outcome alone
    the rest   neither              is served and asked as without a baseline

The report names the group. So the two groups differ in nothing but how their arm was chosen, and
the difference of their mean outcomes is what the policy brings (``estimate/gain.py``).

Shares are counted in ``UNIT`` people. A release says how large the share is now: at first that of
the experiment, and seven tenths of it once the answer is clear.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sottovoce.shared.check import finite_float, known_keys, name
from sottovoce.shared.errors import ExperimentError, malformed, must

if TYPE_CHECKING:
    from sottovoce.shared.experiment import Experiment

UNIT = 10_000
"""The people of whom shares are counted. Not tuned: an owner's share has at most four digits."""

AT_RANDOM = "random"

POLICY, BASELINE, NEITHER = range(3)
"""The groups."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the policy is compared with, and how many people that takes.

    share: of the target's people, who get the baseline's arm; as many again are asked what the
        policy brings. More than 0 and less than 0.5.
    arm: the arm that they get; None for arms at random: each that is neither retired nor capped,
        equally often.
    """

    share: float
    arm: str | None = None

    def __post_init__(self) -> None:
        share = finite_float(self.share)
        if share is None or not 0 < share < 0.5:
            rule = "be more than 0 and less than 0.5, for as many again are asked what the policy"
            rule += " brings"
            raise ExperimentError(must("the share of a baseline", rule, repr(self.share)))
        if round(share * UNIT) == 0 or abs(share * UNIT - round(share * UNIT)) > 1e-6:
            rule = f"have at most four digits after the point, and be at least {1 / UNIT:g}"
            raise ExperimentError(must("the share of a baseline", rule, repr(self.share)))
        object.__setattr__(self, "share", share)
        if self.arm is not None:
            name(self.arm, what="the arm of a baseline")

    @property
    def units(self) -> int:
        """How many of ``UNIT`` people get the baseline's arm at first."""
        return round(self.share * UNIT)

    @property
    def least(self) -> int:
        """How many of them still do once the answer is clear."""
        return max(1, self.units * 7 // 10)

    def to_table(self) -> dict[str, Any]:
        """Write it as ``baseline_from`` reads it."""
        return {"share": self.share, **({} if self.arm is None else {"arm": self.arm})}


def baseline_from(value: Any) -> Baseline | None:
    """Accept a baseline, its table, or none."""
    if value is None or isinstance(value, Baseline):
        return value
    if not isinstance(value, Mapping):
        rule = "be a table with a share, and an arm if it is not arms at random"
        raise ExperimentError(must("baseline", rule, type(value).__name__))
    table = known_keys(dict(value), what="baseline", known={"share", "arm"})
    if "share" not in table:
        raise ExperimentError(must("baseline", "have a share", "none"))
    return Baseline(**table)


def checked_baseline(value: Any, experiment: "Experiment") -> Baseline | None:
    """Read the setting ``baseline`` of an experiment; refuse an arm that it does not have.

    "random" stands for arms at random, unless some arm is called so.
    """
    baseline = baseline_from(value)
    if baseline is None:
        return None
    arms = experiment.arms
    if baseline.arm == AT_RANDOM and AT_RANDOM not in arms:
        baseline = Baseline(baseline.share)
    if baseline.arm is not None and baseline.arm not in arms:
        rule = f'be one of {list(arms)}, or "{AT_RANDOM}"'
        raise ExperimentError(must("the arm of a baseline", rule, repr(baseline.arm)))
    if not experiment.settings.measures_gain:
        rule = f"be left out with {experiment.settings.name}, whose reports cannot name a group"
        raise ExperimentError(must("baseline", rule, "one", hint="use whisper"))
    return baseline


def baseline_arms(experiment: "Experiment") -> tuple[int, ...]:
    """Return the arms that people of the baseline group get, each as often as the others.

    No data chooses them: they follow from the experiment and its amendments alone. An arm with a
    cap is not among them, for its cap would be exceeded.
    """
    baseline = experiment.compared_with
    if baseline is not None and baseline.arm is not None:
        return (list(experiment.arms).index(baseline.arm),)
    in_use = [k for k in range(len(experiment.arms)) if k not in experiment.retired]
    return tuple(k for k in in_use if k not in experiment.caps) or tuple(in_use)


def group_of(coin: int, share: int) -> int:
    """Return the group of a coin of 0 … UNIT - 1; share: of UNIT, for each of the two groups."""
    if coin >= 2 * share:
        return NEITHER
    if coin >= share:
        return BASELINE
    return POLICY


def check_share(share: Any, experiment: "Experiment") -> None:
    """Refuse a release by which more people get the baseline's arm than the experiment says."""
    baseline = experiment.compared_with
    most = 0 if baseline is None else baseline.units
    least = min(1, most)
    if type(share) is not int or not least <= share <= most:
        rule = f"be a whole number from {least} to {most}"
        raise malformed("a release's baseline_share", rule, repr(share))
