"""``ldpmab`` on the device: the sums of the paper, with Laplace noise in every contested cell."""

from sottovoce.device.coins import PublicCoins
from sottovoce.device.ldpmab import laplace
from sottovoce.device.method import RandomisedAnswer, Secret, Spend, draw_arm
from sottovoce.shared.release import BinPolicy, Release


def choose(release: Release, policy: BinPolicy, coins: PublicCoins) -> tuple[int, tuple[int, ...]]:
    """Draw a live arm by its propensity."""
    return draw_arm(release, policy), ()


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
    cells = len(release.cells)
    if cells == 0:
        return RandomisedAnswer(())
    epsilon = release.experiment.populations[population].epsilon
    add_noise = laplace.mechanism(2 * cells, epsilon=epsilon)
    spend()
    values = [0.0] * (2 * cells)
    # Whoever has nothing to tell adds 0 to the last cell: the same work.
    position = release.positions.get((secret.path, secret.arm), -1)
    counts = float(position >= 0 and outcome is not None)
    values[position % cells] = counts * (0.0 if outcome is None else outcome)
    values[cells + position % cells] = counts
    return RandomisedAnswer(tuple(add_noise(values)))
