"""Who gets which arm: any policy over the contexts of an experiment, to ask what it would bring.

It need not be one that was ever released: one arm for everybody, the policy of an older release, or
that of a policy file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sottovoce.shared.errors import PolicyError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.policy import Estimates, best_arm
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.schema import feature_to_table


class FixedPolicy(Protocol):
    """A policy that gives all people of a bin the same arm, as ``sv.Policy`` does."""

    @property
    def release(self) -> Release:
        """Its bins."""

    def best(self, policy: BinPolicy) -> int:
        """Return the number of the arm that the people of a bin get."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The chance of each arm in each bin of a partition.

    name: what people call it.
    chances: by the path of each bin, in the order of the arms of the experiment it is asked of.
    """

    name: str
    partition: Partition
    chances: Mapping[str, tuple[float, ...]]


def allocation_of(policy: Any, experiment: Experiment) -> Allocation:
    """Return who gets which arm of an experiment by a policy.

    policy: "always:ARM", a release, or a policy such as ``sv.Policy``.
    """
    if isinstance(policy, str):
        return _always(policy, experiment)
    if isinstance(policy, Release):
        release, name = policy, f"release {policy.version}"
        chances = {
            each.path: dict(zip(each.arms, each.propensities, strict=True)) for each in release.bins
        }
    elif hasattr(policy, "best") and isinstance(getattr(policy, "release", None), Release):
        release, name = policy.release, f"the best arms of release {policy.release.version}"
        chances = {each.path: {policy.best(each): 1.0} for each in release.bins}
    else:
        rule = 'be "always:ARM", a Release or a Policy'
        raise PolicyError(must("a policy to value", rule, type(policy).__name__))
    numbers = _numbers(release.experiment, experiment)
    count = len(experiment.arms)
    placed = {
        path: tuple(_spread({numbers[arm]: chance for arm, chance in each.items()}, count))
        for path, each in chances.items()
    }
    return Allocation(name, release.partition, placed)


def _always(text: str, experiment: Experiment) -> Allocation:
    kind, colon, arm = text.partition(":")
    if kind != "always" or not colon:
        raise PolicyError(must("a policy to value", 'begin with "always:"', repr(text)))
    if arm not in experiment.arms:
        rule = f"be one of {', '.join(experiment.arms)}"
        raise PolicyError(must("the arm of a policy to value", rule, repr(arm)))
    chances = tuple(_spread({list(experiment.arms).index(arm): 1.0}, len(experiment.arms)))
    return Allocation(text, Partition(experiment.dimension), {"": chances})


def _spread(chances: Mapping[int, float], count: int) -> Sequence[float]:
    return [chances.get(arm, 0.0) for arm in range(count)]


def _numbers(theirs: Experiment, ours: Experiment) -> dict[int, int]:
    """Return our number of each of their arms; refuse a policy of another schema or other arms."""
    if [feature_to_table(each) for each in theirs.context] != [
        feature_to_table(each) for each in ours.context
    ]:
        names = ", ".join(each.name for each in ours.context)
        rule = f"be over the same features, with the same bounds and levels ({names})"
        came = ", ".join(each.name for each in theirs.context)
        raise PolicyError(must("a policy to value", rule, f"one over {came}"))
    arms = {arm: number for number, arm in enumerate(ours.arms)}
    others = [arm for arm in theirs.arms if arm not in arms]
    if others:
        rule = f"be of the arms {', '.join(ours.arms)}"
        raise PolicyError(must("a policy to value", rule, ", ".join(others)))
    return {number: arms[arm] for number, arm in enumerate(theirs.arms)}


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """A policy as it was read: a release, and what was known of its arms."""

    release: Release
    estimates: Estimates

    def best(self, policy: BinPolicy) -> int:
        """Return the number of the arm that the people of a bin get."""
        return best_arm(policy, self.estimates)
