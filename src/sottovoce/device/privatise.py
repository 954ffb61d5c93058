"""The one door: the only functions through which anything about a person leaves the device.

What they return is ε-LDP in all that is private about the person, with every method. The proof of
each mechanism is beside its code: ``device/ldpmab/laplace.py`` and ``device/whisper/subset.py``.

``privatise`` is for an outcome that is known. For one that is yet to come, ``prepare`` makes all of
the answer but that, and ``finish`` the rest. Together they send what ``privatise`` would send.
"""

from sottovoce.device.ledger import AnyLedger
from sottovoce.device.method import Prepared, RandomisedAnswer, Secret, Spend, device_method
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.methods import method_part
from sottovoce.shared.release import Release


def outcome_of(experiment: Experiment, reward: float | None) -> float | None:
    """Return the outcome as a number in [0, 1], or None; raise RewardError if it is neither."""
    scale = experiment.rewards
    number = scale.outcome(scale.low if reward is None else reward)  # the same work without one
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
    outcome = outcome_of(release.experiment, reward)
    spend = _spending(release, population, ledger)
    return device_method(release).privatise(
        release, secret, population=population, outcome=outcome, spend=spend
    )


def prepare(release: Release, secret: Secret, *, population: int, ledger: AnyLedger) -> Prepared:
    """Return the answer of one person but for the outcome, and spend its ε."""
    spend = _spending(release, population, ledger)
    return device_method(release).prepare(release, secret, population=population, spend=spend)


def finish(
    experiment: Experiment, kept: bytes, *, reward: float | None
) -> tuple[float, ...] | bytes:
    """Return the payload of a prepared answer; a reward of None tells nothing."""
    outcome = outcome_of(experiment, reward)
    method = method_part(experiment.settings.name, "device")
    payload: tuple[float, ...] | bytes = method.finish(kept, outcome=outcome)
    return payload


def _spending(release: Release, population: int, ledger: AnyLedger) -> Spend:
    experiment = release.experiment

    def spend() -> None:
        ledger.spend(
            experiment.populations[population].epsilon,
            experiment=experiment.fingerprint,
            name=experiment.name,
            release=release.version,
        )

    return spend
