"""The cells that a question is about in one release, and the mechanism for so many cells.

A question may be about one axis of the contexts. It is then a public ±1 function of it, or it has a
cell for each part of the bin:

    a number, or levels in order   which half of the bin is the person in?
    levels without order           which level does the person have?

At a large ε each part is a cell of its own. At a small ε more cells would add noise. There the
value changes its sign: in the lower half, so that the answers measure the difference of the halves;
or where the row of a Hadamard matrix has a minus for the person's level. Rows are orthogonal, so
that over all rows the answers measure each level by itself (``pattern_sign``).

People who have no cell of their own (their bin is settled, or their logged arm was dropped) answer
too. At a small ε they send noise (the mechanism's null). At a larger one they are in one cell more,
"elsewhere", which nobody reads: naming a cell that nobody reads adds less noise to the others.

Where settled bins have cells, too, everybody has one, and there is no "elsewhere".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset
from sottovoce.shared.whisper.tuning import HALVES_WORTH


@dataclass(frozen=True, slots=True)
class CellMechanism:
    """The mechanism for some whole cells; parts: into how many cells each is divided."""

    mechanism: SignedSubset
    parts: int
    elsewhere: bool


@lru_cache(maxsize=65536)
def cell_mechanism(epsilon: float, cells: int, *, parts: int) -> CellMechanism:
    """Return the mechanism for so many whole cells: bins, or (bin, arm) pairs.

    parts: how many parts each has along the axis of the question, which become cells if that pays.
    """
    plain = signed_subset(epsilon, cells)
    # Up to a = 3 the best sets hold every cell; beyond, "elsewhere" pays for itself.
    if plain.told <= 3 * plain.other:
        return CellMechanism(plain, parts=1, elsewhere=False)
    whole, divided = signed_subset(epsilon, cells + 1), signed_subset(epsilon, parts * cells + 1)
    usual = whole.noise + (whole.inside - whole.noise) / cells
    if parts == 2:  # the variance of the whole
        worth = 2 * divided.noise + (divided.inside - divided.noise) / cells < HALVES_WORTH * usual
    else:  # the variance of one level
        worth = divided.noise + (divided.inside - divided.noise) / (parts * cells) < usual
    if parts > 1 and worth:
        return CellMechanism(divided, parts=parts, elsewhere=True)
    return CellMechanism(whole, parts=1, elsewhere=True)


def all_bins_mechanism(epsilon: float, bins: int) -> CellMechanism:
    """Return the mechanism for questions in which every bin has a cell, settled or not."""
    return CellMechanism(signed_subset(epsilon, bins), parts=1, elsewhere=False)


def parts_of(experiment: Experiment, axis: int | None) -> int:
    """Return how many parts a bin may have as cells along an axis.

    A certificate counts answers about whole bins only, and has no use for parts.
    """
    if axis is None or cast(Whisper, experiment.settings).guarantee == "certified":
        return 1
    return slots_of(experiment).levels[axis] or 2


def one_cell_mechanism(experiment: Experiment, population: int) -> SignedSubset:
    """Return the mechanism for one cell in which everybody of a population is."""
    return signed_subset(experiment.populations[population].epsilon, 1)


@dataclass(frozen=True)
class CellLayout:
    """The cells of one group of questions in one release, in order."""

    bins: tuple[BinPolicy, ...]
    by_arm: bool
    whole: int
    experiment: Experiment
    population: int
    settled: bool

    def mechanism(self, axis: int | None) -> CellMechanism:
        """Return the mechanism for a question about an axis, or about none."""
        epsilon = self.experiment.populations[self.population].epsilon
        if self.settled:
            return all_bins_mechanism(epsilon, self.whole)
        return cell_mechanism(epsilon, self.whole, parts=parts_of(self.experiment, axis))

    @property
    def halves(self) -> CellMechanism:
        """The mechanism for axes with an order, or for no axis if there are none.

        Where it divides bins into halves, nobody is asked about no axis: each answer tells both.
        """
        ordered = [
            axis for axis, levels in enumerate(slots_of(self.experiment).levels) if not levels
        ]
        return self.mechanism(ordered[0] if ordered else None)

    @cached_property
    def indices(self) -> Mapping[tuple[str, int | None], int]:
        """The index of the whole cell of each bin, or of each (bin, live arm)."""
        if not self.by_arm:
            return {(policy.path, None): index for index, policy in enumerate(self.bins)}
        cells = [(policy.path, arm) for policy in self.bins for arm in policy.live]
        return {cell: index for index, cell in enumerate(cells)}


def cell_layout(
    release: Release, *, population: int, by_arm: bool, settled: bool = False
) -> CellLayout | None:
    """Lay out the cells for a population; None where everything is settled.

    settled: whether settled bins have a cell, too.
    """
    key = (CellLayout, population, by_arm, settled)
    if key not in release.derived:
        bins = release.bins if settled else release.contested
        release.derived[key] = lay_out(
            bins, release.experiment, population=population, by_arm=by_arm, settled=settled
        )
    found: CellLayout | None = release.derived[key]
    return found


def lay_out(
    bins: tuple[BinPolicy, ...],
    experiment: Experiment,
    *,
    population: int,
    by_arm: bool,
    settled: bool = False,
) -> CellLayout | None:
    """Lay out the cells of some bins."""
    cells = sum(len(policy.live) if by_arm else 1 for policy in bins)
    if cells == 0:
        return None
    return CellLayout(bins, by_arm, cells, experiment, population, settled)
