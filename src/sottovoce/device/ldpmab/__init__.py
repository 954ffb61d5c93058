"""``ldpmab`` on the device: the sums of the paper, with Laplace noise in every contested cell."""

import struct

from sottovoce.device.coins import Coins
from sottovoce.device.ldpmab import laplace
from sottovoce.device.method import Prepared, RandomisedAnswer, Secret, Spend, draw_arm
from sottovoce.shared.release import BinPolicy, Release

_KEPT = struct.Struct("<Idi")  # how many cells are contested, ε, and which one is the person's


def choose(release: Release, policy: BinPolicy, coins: Coins) -> tuple[int, tuple[int, ...]]:
    """Draw a live arm by its propensity."""
    return draw_arm(release, policy, coins), ()


def privatise(
    release: Release, secret: Secret, *, population: int, outcome: float | None, spend: Spend
) -> RandomisedAnswer:
    """Return Ṽ of every contested cell, then Ũ of every contested cell.

    V_k = Y·1(X ∈ B)·1(π(X) = k) and U_k = 1(X ∈ B)·1(π(X) = k)   (eq. nonprivatestatistics)
    Ṽ = V + (4/ε)·ξ,  Ũ = U + (4/ε)·ζ                               (eq. privacymechanism)

    Every person adds noise to V and U of every contested cell, whether they are in that cell or
    not: a cell without noise would reveal where the person is not. A person in a settled bin, with
    an arm that is no longer live, or without an outcome has V = U = 0 everywhere, and the same
    noise.
    """
    prepared = prepare(release, secret, population=population, spend=spend)
    return RandomisedAnswer(finish(prepared.kept, outcome=outcome))


def prepare(release: Release, secret: Secret, *, population: int, spend: Spend) -> Prepared:
    """Return which cell the person is in, for there is no noise without the outcome yet."""
    cells = len(release.cells)
    if cells == 0:
        return Prepared(b"")
    epsilon = release.experiment.populations[population].epsilon
    laplace.mechanism(2 * cells, epsilon=epsilon)  # so that nothing is spent if there is none
    spend()
    position = release.positions.get((secret.path, secret.arm), -1)
    return Prepared(_KEPT.pack(cells, epsilon, position))


def finish(kept: bytes, *, outcome: float | None) -> tuple[float, ...]:
    """Return V and U with noise in every cell."""
    if not kept:
        return ()
    cells, epsilon, position = _KEPT.unpack(kept)
    add_noise = laplace.mechanism(2 * cells, epsilon=epsilon)
    values = [0.0] * (2 * cells)
    # Whoever has nothing to tell adds 0 to the last cell: the same work.
    counts = float(position >= 0 and outcome is not None)
    values[position % cells] = counts * (0.0 if outcome is None else outcome)
    values[cells + position % cells] = counts
    return tuple(add_noise(values))
