"""A policy release: immutable, versioned, public. The paper's π_t.

A release is all that a device needs: the experiment, the tree, and in each bin the live arms
with the chance of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sottovoce.shared.amending import after_amendments
from sottovoce.shared.amendment import amendments_from_tables
from sottovoce.shared.baseline import check_share
from sottovoce.shared.errors import ExperimentError, Rejection, WireError, malformed
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.scale import Knots, checked_scales

LAST_VERSION = 2**32 - 1
"""The highest version: a number that four bytes hold."""

Cell = tuple[str, int]
"""A (bin, arm) pair that is still contested."""


@dataclass(frozen=True, slots=True)
class BinPolicy:
    """The arms on offer in one bin and the chance of each.

    arms: the arms on offer: with ``ldpmab`` all live arms (the paper's A_s^j), with ``whisper`` the
        two that are compared in this release.
    waiting: arms that are live but not on offer in this release.
    """

    path: str
    arms: tuple[int, ...]
    propensities: tuple[float, ...]
    waiting: tuple[int, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether only one arm is left: the people of this bin have nothing to tell."""
        return len(self.arms) == 1

    @property
    def live(self) -> tuple[int, ...]:
        """The arms that have not been dropped, in order."""
        return tuple(sorted((*self.arms, *self.waiting)))


def uniform(path: str, arms: Sequence[int]) -> BinPolicy:
    """Return π = Unif(A): every live arm with the same chance (eq. partitionbasedpolicy)."""
    return BinPolicy(path, tuple(arms), (1 / len(arms),) * len(arms))


@dataclass(frozen=True)
class Release:
    """What to do in each bin, and which cells to report on.

    experiment: as it is after all amendments so far.
    reward_share: how many of the target's people, of ``SHARES``, are asked for their reward, or who
        is in their bin, whether or not it is settled (``whisper``, where others or the past promise
        rewards).
    scale_share: how many people, of ``SHARES``, are asked where they are along an axis
        (``whisper``).
    thresholds (d,): the threshold that they are asked about along each axis, counted from 1; 0 for
        an axis about which nobody is asked. Empty if nobody is asked about any.
    ask (1 + d,): how many people, of ``ASK``, are asked about no axis, and about each axis
        (``whisper``).
    baseline_share: how many of the target's people, of ``baseline.UNIT``, get the baseline's arm;
        as many are asked what the policy brings. 0 where the experiment has no baseline.
    """

    experiment: Experiment
    version: int
    partition: Partition
    bins: tuple[BinPolicy, ...]
    reward_share: int = 0
    ask: tuple[int, ...] = ()
    scale_share: int = 0
    thresholds: tuple[int, ...] = ()
    baseline_share: int = 0

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """A cache for what other modules compute from this release."""
        return {}

    @cached_property
    def policies(self) -> dict[str, BinPolicy]:
        """The policy of each bin, by its path."""
        return {policy.path: policy for policy in self.bins}

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The contested cells, in the order in which a report lists them."""
        return tuple((policy.path, arm) for policy in self.contested for arm in policy.arms)

    @cached_property
    def contested(self) -> tuple[BinPolicy, ...]:
        """The bins where more than one arm is live, in order."""
        return tuple(policy for policy in self.bins if not policy.settled)

    @cached_property
    def positions(self) -> dict[Cell, int]:
        """The index of each contested cell in a report."""
        return {cell: position for position, cell in enumerate(self.cells)}

    def to_table(self) -> dict[str, Any]:
        """Write the release for the wire."""
        amendments = self.experiment.amendments
        return {
            "version": self.version,
            "experiment": self.experiment.to_table(),
            **({"amendments": [each.to_table() for each in amendments]} if amendments else {}),
            **self.partition.to_table(),
            "bins": [
                {
                    "bin": policy.path,
                    "arms": list(policy.arms),
                    "propensities": list(policy.propensities),
                    **({"waiting": list(policy.waiting)} if policy.waiting else {}),
                }
                for policy in self.bins
            ],
            **({"reward_share": self.reward_share} if self.reward_share else {}),
            **({"ask": list(self.ask)} if self.ask else {}),
            **({"scale_share": self.scale_share} if self.scale_share else {}),
            **({"thresholds": list(self.thresholds)} if self.thresholds else {}),
            **({"baseline_share": self.baseline_share} if self.baseline_share else {}),
        }

    @classmethod
    def from_table(cls, table: Any) -> "Release":
        """Read and check a release that came over the wire."""
        known: dict[str, tuple[Any, ...]] = {}

        def shared(values: Any) -> tuple[Any, ...]:
            """Let equal tuples be one: what people of all bins read is then near in memory."""
            return known.setdefault(repr(values), tuple(values))

        try:
            version, bins, share = table["version"], table["bins"], table.get("reward_share", 0)
            first = Experiment.from_table(table["experiment"])
            amendments = amendments_from_tables(table.get("amendments", []))
            experiment = after_amendments(first, amendments)
            levels = experiment.settings.levels_in_sets(experiment)
            partition = Partition.from_table(levels, table["cuts"], table.get("sets", {}))
            partition = replace(partition, scales=_scales(experiment, table.get("scales", {})))
            ask, thresholds = tuple(table.get("ask", ())), tuple(table.get("thresholds", ()))
            scale_share, compared = table.get("scale_share", 0), table.get("baseline_share", 0)
            policies = tuple(
                BinPolicy(
                    entry["bin"],
                    shared(entry["arms"]),
                    shared(entry["propensities"]),
                    tuple(entry.get("waiting", ())),
                )
                for entry in bins
            )
        except ExperimentError as error:
            trouble = f"a release must have an experiment; {error}"
            raise WireError(Rejection.MALFORMED, trouble) from error
        except (AttributeError, KeyError, TypeError) as error:
            raise WireError(
                Rejection.MALFORMED, "a release must have version, experiment, cuts and bins"
            ) from error
        if type(version) is not int or not 1 <= version <= LAST_VERSION:
            rule = f"be a whole number from 1 to {LAST_VERSION}"
            raise malformed("a release's version", rule, repr(version))
        if [policy.path for policy in policies] != list(partition.leaves()):
            raise WireError(Rejection.MALFORMED, "a release must have one entry for each bin")
        for policy in policies:
            _check_policy(policy, arms=len(experiment.arms), retired=experiment.retired)
        most = experiment.settings.most_reward_share(experiment)
        if type(share) is not int or not 0 <= share <= most:
            rule = f"be a whole number from 0 to {most}"
            raise malformed("a release's reward_share", rule, repr(share))
        if not all(type(each) is int for each in (*ask, *thresholds, scale_share)):
            raise malformed(
                "a release's ask, thresholds and scale_share", "be whole numbers", "not"
            )
        check_share(compared, experiment)
        asked = (share, ask, scale_share, thresholds, compared)
        release = cls(experiment, version, partition, policies, *asked)
        experiment.settings.check_release(release)
        return release


def _scales(experiment: Experiment, table: Any) -> dict[int, Knots]:
    numbers = [axis.levels == 0 for axis in experiment.axes]
    return checked_scales(experiment.dimension, numbers, table)


def _check_policy(policy: BinPolicy, *, arms: int, retired: frozenset[int]) -> None:
    named = (*policy.arms, *policy.waiting)
    known = all(type(arm) is int and 0 <= arm < arms for arm in named)
    if not known or not policy.arms or list(policy.live) != sorted(set(named)):
        rule = f"be different and below {arms}"
        raise malformed(f"the arms of bin {policy.path!r}", rule, named)
    if retired.intersection(named):
        raise malformed(f"the arms of bin {policy.path!r}", "not be retired", named)
    if list(policy.arms) != sorted(policy.arms) or (policy.waiting and policy.settled):
        rule = "be in order, and none may wait where only one is on offer"
        raise malformed(f"the arms of bin {policy.path!r}", rule, named)
    chances = policy.propensities
    each_fits = len(chances) == len(policy.arms) and all(
        type(each) is float and 0 < each <= 1 for each in chances
    )
    if not each_fits or not math.isclose(math.fsum(chances), 1, abs_tol=1e-9):
        rule = "be one for each live arm, > 0, and add up to 1"
        raise malformed(f"the propensities of bin {policy.path!r}", rule, chances)
