"""Adaptively Binned Successive Elimination, without privacy.

V. Perchet and P. Rigollet, "The multi-armed bandit problem with covariates", Annals of Statistics
41(2), 2013, 693-721 (arXiv:1110.6084): Policy 1 (successive elimination), Policy 3 (ABSE), and the
numbers (2.1), (5.1), (5.2) that they run by. The formulas stand beside the code below.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sottovoce.lab.baselines.checks import make_positive
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment

if TYPE_CHECKING:
    from sottovoce.lab.driver import CompiledPolicy

PUBLISHED = 2 * math.sqrt(2)
"""The factor of (2.1)."""

MOST_AXES = 10
"""A split makes 2^d bins."""


@dataclass(frozen=True, slots=True)
class Abse:
    """Bins that split in 2^d when their time is up, and successive elimination in each.

    Every live bin pulls its live arms in turn. After each full round s it drops the arms whose mean
    is below the best by more than 2·U(s, n|B|^d). After ℓ_B rounds with two arms or more left, a
    bin of depth below k_0 splits, and its children begin anew with the arms that are left.

    constant: the factor of the radius, U(τ, T) = constant·√(loḡ(T/τ)/τ), loḡ x = max(ln x, 1).
        Published: 2√2, the default, with which the proof goes through.
    lipschitz, smoothness: L and β of the class of reward functions, which the paper takes as known;
        β is at most 1. Chosen here: 1 and 1, for rewards in [0, 1] on a cube of side 1.

    The published constants are cautious: the radius 2U is below 1, so that anything can be dropped
    at all, only after some hundred pulls of an arm, while ℓ_B splits bins long before. With d = 3
    and 200,000 people it drops next to nothing, and does no better than arms at random. ``TUNED``
    has constants that were chosen on simulated worlds.

    Departs from the paper: nothing known. Where its Policy 1 tests before a round and its text
    after, the text is followed. Points on a boundary go to the upper bin. ``release_every`` has no
    part in it: it is not private, and learns from each person at once. It ignores ε and auxiliary
    data.
    """

    privacy_note: ClassVar[str] = (
        "Not private: abse sees the context, the arm and the outcome of everybody."
    )

    constant: float = PUBLISHED
    lipschitz: float = 1.0
    smoothness: float = 1.0

    def __post_init__(self) -> None:
        make_positive(self, "constant", "lipschitz", "smoothness", of="abse")
        if self.smoothness > 1:
            raise ExperimentError(must("smoothness of abse", "lie in (0, 1]", self.smoothness))

    def __call__(self, experiment: Experiment) -> "CompiledPolicy":
        """Begin a run."""
        # Compiled code is loaded only where something is played.
        from sottovoce.lab.baselines.abse_bins import AbsePolicy

        if experiment.dimension > MOST_AXES:
            rule = f"be at most {MOST_AXES} for abse, where a split makes 2^d bins"
            raise ExperimentError(must("d", rule, experiment.dimension))
        return AbsePolicy(experiment, self)

    def radius(self, pulls: int, people: float) -> float:
        """U(τ, T) of (2.1)."""
        return self.constant * math.sqrt(max(math.log(people / pulls), 1.0) / pulls)

    def deepest(self, *, arms: int, dimension: int, people: int) -> int:
        """k_0 of (5.1): the least k with 2^-k <= (K·ln K/n)^(1/(d+2β)); 0 for a tiny n."""
        finest = (arms * math.log(arms) / people) ** (1 / (dimension + 2 * self.smoothness))
        return max(0, math.ceil(-math.log2(finest)))

    def rounds(self, depth: int, *, dimension: int, people: int) -> int:
        """ℓ_B of (5.2): the least ℓ with U(ℓ, n|B|^d) <= 2·c_0·|B|^β, c_0 = 2·L·d^(β/2)."""
        side = 2.0**-depth
        c_0 = 2 * self.lipschitz * dimension ** (self.smoothness / 2)
        here = people * side**dimension
        bound = 2 * c_0 * side**self.smoothness
        # U goes down with ℓ: double until it is small enough, then halve the gap.
        low, high = 0, 1
        while self.radius(high, here) > bound:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self.radius(middle, here) > bound:
                low = middle
            else:
                high = middle
        return high


TUNED = Abse(constant=0.5, lipschitz=0.05)
"""With 0.5, 2U(τ, T) = √(loḡ(T/τ)/τ): Hoeffding's bound for the difference of two means of τ pulls,
wrong with probability τ/T. L = 0.05 lets bins wait until that bound can tell arms apart.

Of constant 2√2, 1, 0.5, 0.35, 0.25 and L = 1, 0.3, 0.1, 0.05, 0.02, on six simulated worlds with
d = 2 and 3 and n = 40,000: it loses 0.10 of what arms at random lose, the published constants 0.98.
Others come as low (0.35 and 0.05: 0.07), but drop a good arm sooner.
"""
