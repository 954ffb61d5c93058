"""What an audit needs to know of ``whisper``: its law, and how to follow every draw of a device."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import cast

import numpy as np

from sottovoce.device.draws import OPERATING_SYSTEM, OperatingSystem
from sottovoce.device.encode import encode
from sottovoce.device.groups import draw_coin
from sottovoce.device.method import Secret
from sottovoce.device.whisper.answer import answer_of_everybody, true_answer
from sottovoce.lab.audit.attack import without_nonce
from sottovoce.lab.audit.claims import Answer, Exactly, Floats, Person, Scene, Scores
from sottovoce.lab.audit.exact import Law, judge, worst_ratio
from sottovoce.lab.audit.mechanism import chosen, report_of
from sottovoce.shared import wire
from sottovoce.shared.baseline import BASELINE, NEITHER, POLICY, group_of
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.report import Report
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.cells import cell_layout, one_cell_mechanism
from sottovoce.shared.whisper.questions import EVERYBODY, question_of, questions_of
from sottovoce.shared.whisper.subset import SignedSubset, unpack

# Of more sides than this, a coin is not followed side by side.
MANY_SIDES = 100


def variants() -> Mapping[str, MethodSettings]:
    """Return the settings whose reports differ."""
    return {
        "whisper": Whisper(),
        "whisper, certified": Whisper(guarantee="certified"),
        "whisper, public arms": Whisper(public_arms=True),
    }


# --- the law, for the attacker --------------------------------------------------------------------


def log_ratios(scene: Scene, one: Person, other: Person) -> Scores:
    """Return ln P(report | one)/P(report | other), by the definition of the mechanism."""

    @lru_cache(maxsize=100_000)
    def ratio(message: bytes) -> float:
        report = wire.report_from_bytes(message)
        return math.log(_weight(scene, report, one)) - math.log(_weight(scene, report, other))

    def scores(answers: Sequence[Answer]) -> Floats:
        return np.array([[ratio(without_nonce(each))] for each in answers]).reshape(-1, 1)

    return scores


def _weight(scene: Scene, report: Report, person: Person) -> float:
    """Return how often a person sends the set of a report, relative to somebody who is null."""
    release = scene.release
    experiment = release.experiment
    question = question_of(report.question, experiment)
    entry = questions_of(experiment)[question.kind]
    if not isinstance(report.payload, bytes):
        raise ExperimentError(must("a report of whisper", "hold a packed set", "numbers"))
    if entry.cells == EVERYBODY:
        mechanism = one_cell_mechanism(experiment, scene.population)
        secret, outcome, _ = next(_secrets(scene, person, report.ranking))
        cell, value = answer_of_everybody(experiment, question, secret=secret, outcome=outcome)
        return _weight_of_set(mechanism, report.payload, cell, value)
    layout = cell_layout(
        release, population=scene.population, by_arm=entry.by_arm, settled=entry.settled
    )
    if layout is None:
        return 1.0
    weights = [
        chance
        * _weight_of_set(
            layout.mechanism(question.axis).mechanism,
            report.payload,
            *true_answer(release, layout, question, secret=secret, outcome=outcome),
        )
        for secret, outcome, chance in _secrets(scene, person, report.ranking)
    ]
    return math.fsum(weights)


def _secrets(
    scene: Scene, person: Person, ranking: tuple[int, ...]
) -> Iterator[tuple[Secret, float | None, float]]:
    """Yield what the device may hold of a person, and with which probability."""
    experiment = scene.release.experiment
    if person.context is None:
        nowhere = (0.5,) * experiment.dimension
        yield Secret(nowhere, scene.release.partition.find(nowhere), 0, logged=True), None, 1.0
        return
    point = encode(experiment, person.context)
    path = scene.release.partition.find(point)
    policy = scene.release.policies[path]
    arms = dict(zip(policy.arms, policy.propensities, strict=True))
    if person.arm is not None:
        arms = {experiment.arms.index(person.arm): 1.0}
    elif ranking:
        arms = {min(policy.arms, key=ranking.index): 1.0}
    for arm, chance in arms.items():
        yield Secret(point, path, arm, logged=person.logged), person.reward, chance


def _weight_of_set(
    mechanism: SignedSubset, payload: bytes, cell: int | None, value: float
) -> float:
    """Return (1 + σ)/2·a/Z, and so on (docs/explanation/mechanism.md); 1 for null."""
    if cell is None:
        return 1.0
    a = mechanism.told / mechanism.other
    z = 1 + mechanism.size / (2 * mechanism.cells) * (a - 1)
    held = unpack(mechanism, payload)[cell]
    plus, minus = (a if held == sign else 1.0 for sign in (1, -1))
    return ((1 + value) / 2 * plus + (1 - value) / 2 * minus) / z


# --- every draw, for the exact law ----------------------------------------------------------------


def worst_exactly(scene: Scene, people: Sequence[Person]) -> Exactly:
    """Follow every draw of a real device for each person, and compare the laws of their reports."""
    worst = worst_ratio([exact_law(scene, person) for person in people])
    return judge(
        worst, epsilon=scene.epsilon, how="every draw of the device followed, in fractions"
    )


def exact_law(scene: Scene, person: Person) -> Law:
    """Return everything that a person may send, but for the nonce, and how often.

    An arm that is private is drawn before the draws are followed: the law is that of a person with
    this arm. A public ranking is part of what is followed.
    """
    law: Law = {}
    untried: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while untried:
        draws = Following(*untried.pop())
        report = _followed(scene, person, draws)
        message = without_nonce(wire.report_to_bytes(report))
        law[message] = law.get(message, Fraction(0)) + draws.probability
        untried += draws.untried
    return law


def _followed(scene: Scene, person: Person, draws: "Following") -> Report:
    if person.logged or scene.release.experiment.settings.arms_are_public:
        with in_place_of_the_operating_system(draws):
            return report_of(scene, person)
    coin = None
    if scene.release.baseline_share and scene.population == 0:
        with in_place_of_the_operating_system(draws):
            coin = side_of(draw_coin(), scene.release.baseline_share)
    device = chosen(scene, person, coin=coin)
    with in_place_of_the_operating_system(draws):
        return device.report(reward=person.reward)


def side_of(coin: int, share: int) -> int:
    """Follow the coin of a group to where it matters, and return a side in that group."""
    return (share, 2 * share, 0)[(BASELINE, NEITHER, POLICY).index(group_of(coin, share))]


class Following(OperatingSystem):
    """Randomness that goes one way, and notes every other way that it might have gone."""

    def __init__(self, way: tuple[int, ...], probability: Fraction) -> None:
        self.probability = probability
        self.untried: list[tuple[tuple[int, ...], Fraction]] = []
        self._way = way
        self._made = 0

    def _pick(self, shares: Mapping[int, Fraction] | range) -> int:
        """Take a pick, each with its share; all of a range have the same."""
        if self._made == len(self._way):
            ways = (
                {pick: Fraction(1, len(shares)) for pick in shares}
                if isinstance(shares, range)
                else {pick: share for pick, share in shares.items() if share}
            )
            (first, share), *others = ways.items()
            self.untried += [((*self._way, pick), self.probability * s) for pick, s in others]
            self._way = (*self._way, first)
            self.probability *= share
        self._made += 1
        return self._way[self._made - 1]

    def chance(self, numerator: int, denominator: int) -> bool:
        """Return both, each with its probability."""
        yes = Fraction(numerator, denominator)
        if not 0 <= yes <= 1:
            raise ExperimentError(must("a probability", "lie in [0, 1]", yes))
        return bool(self._pick({1: yes, 0: 1 - yes}))

    def chance_of_bits(self, numerator: int, count: int) -> bool:
        """Return both, for a draw of so many bits."""
        return self.chance(numerator, 2**count)

    def below(self, limit: int) -> int:
        """Return each of 0, …, limit − 1; of many, a coin that is followed where it is compared."""
        if limit > MANY_SIDES:
            return cast(int, Coin(self, [0, limit]))
        return self._pick(range(limit))

    def bits(self, count: int) -> int:
        """Return each of 0, …, 2^count − 1."""
        return self._pick(range(2**count))


class Coin:
    """A coin with many sides: what is followed is whether it is at least a bound, or below it.

    The sides between two bounds all ask the same question, and need not be told apart. Whoever
    uses a coin in another way than to move it and to compare it gets a TypeError.
    """

    __slots__ = ("_draws", "_moved", "_sides")
    __eq__ = __bool__ = __hash__ = None  # type: ignore[assignment]

    def __init__(self, draws: Following, sides: list[int], moved: int = 0) -> None:
        """Take a list of the lowest side that is left and the end, shared by all moved copies."""
        self._draws, self._sides, self._moved = draws, sides, moved

    def __ge__(self, bound: int) -> bool:
        low, high = self._sides
        middle = min(max(bound - self._moved, low), high)
        above = self._draws.chance(high - middle, high - low)
        self._sides[:] = (middle, high) if above else (low, middle)
        return above

    def __add__(self, by: int) -> "Coin":
        return Coin(self._draws, self._sides, self._moved + by)

    def __sub__(self, by: int) -> "Coin":
        return self + -by

    __radd__ = __add__


@contextmanager
def in_place_of_the_operating_system(draws: OperatingSystem) -> Iterator[None]:
    """Let the device draw from something else for a while. The device's code stays as it is."""
    names = [name for name in vars(OperatingSystem) if not name.startswith("_")]
    if strange := [name for name in names if name not in vars(type(draws))]:
        raise ExperimentError(must("an audit", "know every kind of draw", strange))
    for name in names:
        setattr(OPERATING_SYSTEM, name, getattr(draws, name))
    try:
        yield
    finally:
        for name in names:
            delattr(OPERATING_SYSTEM, name)
