"""The one door: the only function through which anything about a person leaves the device.

What goes out is ε-LDP in all that is private about the person, whichever the method. The proof of
each mechanism stands beside its code: ``laplace.py`` and ``subset.py``.
"""

from dataclasses import dataclass

from sottovoce.device import ask, laplace, subset
from sottovoce.device.ask import Secret
from sottovoce.device.ledger import Spends
from sottovoce.shared.check import finite_float
from sottovoce.shared.errors import RewardError, kind_of, must
from sottovoce.shared.method import Ldpmab
from sottovoce.shared.questions import Kind, Question, is_by_arm, reward_mechanism, sheet
from sottovoce.shared.release import Release


@dataclass(frozen=True, slots=True)
class Answer:
    """What leaves the device: public coins and a randomised payload."""

    payload: tuple[float, ...] | bytes
    question: int = 0
    ranking: tuple[int, ...] = ()


def privatise(
    release: Release, secret: Secret, *, population: int, reward: float, ledger: Spends
) -> Answer:
    """Return the ε-LDP answer of one person, and spend ε.

    Where nothing at all is contested, nothing is told and nothing is spent, but by those who are
    asked how it went.
    """
    outcome = finite_float(reward)
    if outcome is None or not 0 <= outcome <= 1:
        raise RewardError(must("a reward", "be a number in [0, 1]", kind_of(reward)))
    if isinstance(release.experiment.settings, Ldpmab):
        return Answer(_noisy_sums(release, secret, population, outcome, ledger))
    question = ask.draw_question(release, population=population, logged=secret.logged)
    payload = _signed_subset(release, secret, question, population, outcome, ledger)
    ranking = secret.ranking if question.kind == Kind.RANKED else ()
    return Answer(payload, question.number(release.experiment.dimension), ranking)


def _noisy_sums(
    release: Release, secret: Secret, population: int, outcome: float, ledger: Spends
) -> tuple[float, ...]:
    """Return Ṽ of every contested cell, then Ũ of every contested cell.

    V_k = Y·1(X ∈ B)·1(π(X) = k) and U_k = 1(X ∈ B)·1(π(X) = k)   (eq. nonprivatestatistics)
    Ṽ = V + (4/ε)·ξ,  Ũ = U + (4/ε)·ζ                               (eq. privacymechanism)

    Every contested cell gets noise in V and in U from every person, whether the person is in that
    cell or not: a cell left out would tell where the person is not. A person in a settled bin, or
    with an arm that is no longer live, has V = U = 0 everywhere and the same noise.
    """
    cells = len(release.cells)
    if cells == 0:
        return ()
    epsilon = release.experiment.populations[population].epsilon
    add_noise = laplace.mechanism(2 * cells, epsilon=epsilon)
    _spend(release, population, ledger)
    values = [0.0] * (2 * cells)
    position = release.positions.get((secret.path, secret.arm))
    if position is not None:
        values[position] = outcome
        values[cells + position] = 1.0
    return tuple(add_noise(values))


def _signed_subset(
    release: Release,
    secret: Secret,
    question: Question,
    population: int,
    outcome: float,
    ledger: Spends,
) -> bytes:
    """Return the packed set for one question (``shared/questions.py`` lists them)."""
    if question.kind == Kind.REWARD:  # everybody is in its one cell
        mechanism = reward_mechanism(release.experiment)
        _spend(release, population, ledger)
        return subset.whisper(mechanism, cell=0, value=2 * outcome - 1)
    by_arm = is_by_arm(question.kind, arms=len(release.experiment.arms))
    cells = sheet(release, population=population, by_arm=by_arm)
    if cells is None:
        return b""
    cell, value = ask.answer(release, cells, question, secret=secret, outcome=outcome)
    _spend(release, population, ledger)
    return subset.whisper(cells.law.mechanism, cell=cell, value=value)


def _spend(release: Release, population: int, ledger: Spends) -> None:
    """Spend ε. The mechanism stands ready by now, and is used only after this.

    A crash from here on wastes budget, never privacy.
    """
    experiment = release.experiment
    ledger.spend(
        experiment.populations[population].epsilon,
        experiment=experiment.fingerprint,
        name=experiment.name,
        release=release.version,
    )
