"""The one door: the only function through which anything about a person leaves the device.

Every contested cell of the release gets noise in V and in U from every person, whether the person
is in that cell or not: a cell left out would tell where the person is not.
"""

from sottovoce.device import laplace
from sottovoce.device.ledger import Spends
from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import RewardError, kind_of, must
from sottovoce.shared.release import Release


def privatise(
    release: Release, *, population: int, path: str, arm: int, reward: float, ledger: Spends
) -> tuple[float, ...]:
    """Return Ṽ of every contested cell, then Ũ of every contested cell, and spend ε.

    V_k = Y·1(X ∈ B)·1(π(X) = k) and U_k = 1(X ∈ B)·1(π(X) = k)   (eq. nonprivatestatistics)
    Ṽ = V + (4/ε)·ξ,  Ũ = U + (4/ε)·ζ                               (eq. privacymechanism)

    A person in a settled bin, or with an arm that is no longer live, has V = U = 0 everywhere
    and the same noise. Where nothing at all is contested, nothing is sent and nothing is spent.
    """
    outcome = finite_float(reward)
    if outcome is None or not 0 <= outcome <= 1:
        raise RewardError(must("a reward", "be a number in [0, 1]", kind_of(reward)))
    cells = len(release.cells)
    if cells == 0:
        return ()
    experiment = release.experiment
    epsilon = experiment.populations[population].epsilon
    add_noise = laplace.mechanism(2 * cells, epsilon=epsilon)
    # The mechanism stands ready, and the ledger comes before its use: a crash from here on
    # wastes budget, never privacy.
    ledger.spend(
        epsilon,
        experiment=experiment.fingerprint,
        name=experiment.name,
        release=release.version,
    )
    values = [0.0] * (2 * cells)
    position = release.positions.get((path, arm))
    if position is not None:
        values[position] = outcome
        values[cells + position] = 1.0
    return tuple(add_noise(values))
