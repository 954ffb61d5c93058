"""A policy release: immutable, versioned, public. The paper's π_t.

A release is all that a device needs: the experiment, the tree, and in each bin the live arms
with the chance of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sottovoce.shared.errors import ExperimentError, Rejection, WireError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition

LAST_VERSION = 2**32 - 1
"""Reports carry the version in four bytes."""

Cell = tuple[str, int]
"""A (bin, arm) pair that is still contested."""


@dataclass(frozen=True, slots=True)
class BinPolicy:
    """The live arms of one bin (the paper's A_s^j) and the chance of each."""

    path: str
    arms: tuple[int, ...]
    propensities: tuple[float, ...]

    @property
    def settled(self) -> bool:
        """One arm left: the people of this bin have nothing to tell."""
        return len(self.arms) == 1


def uniform(path: str, arms: Sequence[int]) -> BinPolicy:
    """Return π = Unif(A): every live arm with the same chance (eq. partitionbasedpolicy)."""
    return BinPolicy(path, tuple(arms), (1 / len(arms),) * len(arms))


def contested_cells(bins: Sequence[BinPolicy]) -> tuple[Cell, ...]:
    """Return the cells of the bins where more than one arm is live, in order."""
    return tuple((each.path, arm) for each in bins if not each.settled for arm in each.arms)


@dataclass(frozen=True)
class Release:
    """What to do in each bin, and which cells to report on."""

    experiment: Experiment
    version: int
    partition: Partition
    bins: tuple[BinPolicy, ...]

    @cached_property
    def policies(self) -> dict[str, BinPolicy]:
        """The policy of each bin, by its path."""
        return {policy.path: policy for policy in self.bins}

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The contested cells, in the order in which a report lists them."""
        return contested_cells(self.bins)

    @cached_property
    def positions(self) -> dict[Cell, int]:
        """Where each contested cell stands in a report."""
        return {cell: position for position, cell in enumerate(self.cells)}

    def to_table(self) -> dict[str, Any]:
        """Write the release for the wire."""
        return {
            "version": self.version,
            "experiment": self.experiment.to_table(),
            "cuts": self.partition.to_table(),
            "bins": [
                {
                    "bin": policy.path,
                    "arms": list(policy.arms),
                    "propensities": list(policy.propensities),
                }
                for policy in self.bins
            ],
        }

    @classmethod
    def from_table(cls, table: Any) -> "Release":
        """Read and check a release that came over the wire."""
        try:
            version, bins = table["version"], table["bins"]
            experiment = _experiment(table["experiment"])
            partition = Partition.from_table(experiment.dimension, table["cuts"])
            policies = tuple(
                BinPolicy(entry["bin"], tuple(entry["arms"]), tuple(entry["propensities"]))
                for entry in bins
            )
        except (KeyError, TypeError) as error:
            raise WireError(
                Rejection.MALFORMED, "a release must have version, experiment, cuts and bins"
            ) from error
        if type(version) is not int or not 1 <= version <= LAST_VERSION:
            rule = f"be a whole number from 1 to {LAST_VERSION}"
            raise WireError(Rejection.MALFORMED, must("a release's version", rule, repr(version)))
        if [policy.path for policy in policies] != list(partition.leaves()):
            raise WireError(Rejection.MALFORMED, "a release must have one entry for each bin")
        for policy in policies:
            _check_policy(policy, arms=len(experiment.arms))
        return cls(experiment, version, partition, policies)


def _experiment(table: Any) -> Experiment:
    try:
        return Experiment.from_table(table)
    except ExperimentError as error:
        raise WireError(
            Rejection.MALFORMED, f"a release must have an experiment; {error}"
        ) from error


def _check_policy(policy: BinPolicy, *, arms: int) -> None:
    known = all(type(arm) is int and 0 <= arm < arms for arm in policy.arms)
    if not known or not policy.arms or list(policy.arms) != sorted(set(policy.arms)):
        rule = f"be different, in order, and below {arms}"
        raise WireError(
            Rejection.MALFORMED, must(f"the arms of bin {policy.path!r}", rule, policy.arms)
        )
    chances = policy.propensities
    positive = all(isinstance(each, float | int) and 0 < each <= 1 for each in chances)
    if (
        len(chances) != len(policy.arms)
        or not positive
        or not math.isclose(math.fsum(chances), 1, abs_tol=1e-9)
    ):
        rule = "be one for each live arm, > 0, and add up to 1"
        raise WireError(
            Rejection.MALFORMED, must(f"the propensities of bin {policy.path!r}", rule, chances)
        )
