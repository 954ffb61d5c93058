"""The cells that a question is about in one release, and the mechanism for so many cells.

A question may be about one feature: in which half of the bin along it is the person? At a large ε
each half is a cell of its own, and everybody is asked about some feature. At a small ε more cells
would add noise. There the value changes its sign in the lower half, so that the answers measure the
difference of the halves, and only some people are asked (of logged rows, more than half).

People who have no cell of their own (their bin is settled, or their logged arm was dropped) answer
too. At a small ε they send noise (the mechanism's null). At a larger one they are in one cell more,
"elsewhere", which nobody reads: naming a cell that nobody reads adds less noise to the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset
from sottovoce.shared.whisper.tuning import (
    FEATURE_SHARE,
    HALVES_WORTH,
    LOGGED_FEATURE_SHARE,
    SHARES,
)


@dataclass(frozen=True, slots=True)
class CellMechanism:
    """The mechanism for some cells, with or without halves and "elsewhere"."""

    mechanism: SignedSubset
    halves: bool
    elsewhere: bool


@lru_cache(maxsize=65536)
def cell_mechanism(epsilon: float, cells: int, *, may_halve: bool) -> CellMechanism:
    """Return the mechanism for so many whole cells: bins, or (bin, arm) pairs."""
    plain = signed_subset(epsilon, cells)
    # Up to a = 3 the best sets hold every cell; beyond, "elsewhere" pays for itself.
    if plain.told <= 3 * plain.other:
        return CellMechanism(plain, halves=False, elsewhere=False)
    whole, halved = signed_subset(epsilon, cells + 1), signed_subset(epsilon, 2 * cells + 1)
    usual = whole.noise + (whole.inside - whole.noise) / cells
    as_halves = 2 * halved.noise + (halved.inside - halved.noise) / cells
    if may_halve and as_halves < HALVES_WORTH * usual:
        return CellMechanism(halved, halves=True, elsewhere=True)
    return CellMechanism(whole, halves=False, elsewhere=True)


def may_halve(experiment: Experiment) -> bool:
    """Say whether halves may be cells: a certificate counts answers about whole bins only."""
    return cast(Whisper, experiment.settings).guarantee != "certified"


def reward_mechanism(experiment: Experiment) -> SignedSubset:
    """Return the mechanism for the one cell of REWARD, in which every person of the target is."""
    return signed_subset(experiment.epsilon, 1)


def feature_share(halves: bool, elsewhere: bool, logged: bool) -> int:
    """Return how many people of SHARES are asked about a feature.

    In a jump-start nobody waits for the arms to be compared, and bins are split by what features
    show. So at a small ε, where one question takes the place of another, most logged rows are asked
    about a feature.
    """
    if halves:
        return SHARES
    return LOGGED_FEATURE_SHARE if logged and not elsewhere else FEATURE_SHARE


@dataclass(frozen=True)
class CellLayout:
    """The cells of one group of questions in one release, in order."""

    bins: tuple[BinPolicy, ...]
    by_arm: bool
    mechanism: CellMechanism

    @cached_property
    def indices(self) -> Mapping[tuple[str, int | None], int]:
        """The index of the whole cell of each bin, or of each (bin, live arm)."""
        if not self.by_arm:
            return {(policy.path, None): index for index, policy in enumerate(self.bins)}
        cells = [(policy.path, arm) for policy in self.bins for arm in policy.live]
        return {cell: index for index, cell in enumerate(cells)}


def cell_layout(release: Release, *, population: int, by_arm: bool) -> CellLayout | None:
    """Lay out the cells for a population; None where everything is settled."""
    key = (CellLayout, population, by_arm)
    if key not in release.derived:
        release.derived[key] = lay_out(
            release.contested, release.experiment, population=population, by_arm=by_arm
        )
    found: CellLayout | None = release.derived[key]
    return found


def lay_out(
    bins: tuple[BinPolicy, ...], experiment: Experiment, *, population: int, by_arm: bool
) -> CellLayout | None:
    """Lay out the cells of some contested bins."""
    cells = sum(len(policy.live) if by_arm else 1 for policy in bins)
    if cells == 0:
        return None
    epsilon = experiment.populations[population].epsilon
    mechanism = cell_mechanism(epsilon, cells, may_halve=may_halve(experiment))
    return CellLayout(bins, by_arm, mechanism)
