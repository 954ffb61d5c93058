"""The one door: the only function through which anything about a person leaves the device.

What it returns is ε-LDP in all that is private about the person, with every method. The proof of
each mechanism is beside its code: ``device/ldpmab/laplace.py`` and ``device/whisper/subset.py``.
"""

from sottovoce.device.ledger import AnyLedger
from sottovoce.device.method import RandomisedAnswer, Secret, device_method
from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import RewardError, kind_of, must
from sottovoce.shared.release import Release


def outcome_of(reward: float | None) -> float | None:
    """Return the outcome as a number; raise RewardError unless it is one in [0, 1] or None."""
    number = finite_float(0.0 if reward is None else reward)  # the same work without an outcome
    if number is None or not 0 <= number <= 1:
        raise RewardError(must("a reward", "be a number in [0, 1]", kind_of(reward)))
    return None if reward is None else number


def privatise(
    release: Release, secret: Secret, *, population: int, reward: float | None, ledger: AnyLedger
) -> RandomisedAnswer:
    """Return the ε-LDP answer of one person, and spend ε.

    A person without an outcome (``reward`` is None) sends the answer of somebody who has nothing to
    tell, by the same mechanism and at the same price: who sent nothing would tell just that.

    If no cell is contested, the answer is empty and costs nothing, unless the person is asked for
    the reward.
    """
    outcome = outcome_of(reward)
    experiment = release.experiment

    def spend() -> None:
        ledger.spend(
            experiment.populations[population].epsilon,
            experiment=experiment.fingerprint,
            name=experiment.name,
            release=release.version,
        )

    return device_method(release).privatise(
        release, secret, population=population, outcome=outcome, spend=spend
    )
