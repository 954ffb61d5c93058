"""People who whisper to a learner, drawn from a seed."""

import random
from collections.abc import Callable
from typing import Any

import pytest

import sottovoce as sv
from factories import (
    CONTRAST,
    COUNT,
    LEVEL,
    LOGGED_LEVEL,
    LOGGED_SCALE,
    MASS,
    OUTCOME,
    RANKED,
    SCALE,
)
from sottovoce.device.draws import OperatingSystem
from sottovoce.device.method import Secret
from sottovoce.device.whisper.answer import told_of_place, true_answer
from sottovoce.device.whisper.subset import whisper
from sottovoce.shared import wire
from sottovoce.shared.whisper.cells import cell_layout, one_cell_mechanism
from sottovoce.shared.whisper.questions import Question, questions_of
from sottovoce.shared.whisper.thresholds import THRESHOLDS

DIMENSION = 2


def number(kind: int, axis: int | None = None) -> int:
    """The number of a question on the wire, if no axis has levels: 1 + d for each kind."""
    return kind * (1 + DIMENSION) + (0 if axis is None else 1 + axis)


class Seeded(OperatingSystem):
    """Randomness of a device that can be replayed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def chance(self, numerator: int, denominator: int) -> bool:
        return self._rng.randrange(denominator) < numerator

    def below(self, limit: int) -> int:
        return self._rng.randrange(limit)

    def bits(self, count: int) -> int:
        return self._rng.getrandbits(count)


def truth(point: tuple[float, ...], arm: int) -> float:
    """Mean rewards: which arm is best depends on the first feature, and a little on the second."""
    x, y = point
    return (0.2 + 0.6 * x, 0.8 - 0.6 * x, 0.45 + 0.1 * y)[arm]


def anywhere(rng: random.Random, axis: int) -> float:
    """Where someone is along an axis along which people are uniform."""
    return rng.random()


def told_place(
    rng: random.Random,
    release: sv.Release,
    *,
    population: int = 0,
    logged: bool = False,
    place: Callable[[random.Random, int], float] = anywhere,
) -> sv.Report:
    """The report of someone at random who is asked where they are.

    place: draws a position on an axis.
    """
    axis = rng.choice([axis for axis, each in enumerate(release.thresholds) if each])
    asked = Question(LOGGED_SCALE if logged else SCALE, axis, release.thresholds[axis] - 1)
    mechanism = one_cell_mechanism(release.experiment, population)
    value = told_of_place(place(rng, axis), THRESHOLDS[asked.row])
    payload = whisper(mechanism, cell=0, value=value, draws=Seeded(rng))
    named = asked.number(release.experiment)
    return sv.Report(wire.release_id(release), population, rng.randbytes(16), payload, named)


def person(
    rng: random.Random,
    release: sv.Release,
    *,
    population: int = 0,
    logged: bool = False,
    question: int | None = None,
    means: Callable[[tuple[float, ...], int], float] = truth,
) -> sv.Report:
    """The report of someone at random, on some question that is open to them."""
    settings = release.experiment.settings
    assert isinstance(settings, sv.Whisper)
    if question is None and release.scale_share and rng.random() < release.scale_share / 160:
        return told_place(rng, release, population=population, logged=logged)
    public, arms = settings.public_arms, len(release.experiment.arms)
    point = (rng.random(), rng.random())
    path = release.partition.find(point)
    policy = release.policies[path]
    ranking = tuple(rng.sample(range(arms), arms)) if public and not logged else ()
    if logged:
        arm = rng.randrange(arms)
    else:
        arm = min(policy.arms, key=ranking.index) if public else rng.choice(policy.arms)
    outcome = float(rng.random() < means(point, arm))
    kind = None if question is None else question // 3
    if kind is None:
        kinds = [RANKED, MASS] if public else [CONTRAST, LEVEL, MASS]
        if logged:
            kinds = [OUTCOME, COUNT, LOGGED_LEVEL] if arms == 2 else [OUTCOME, COUNT]
        kind = rng.choices(kinds, [8, *[1] * (len(kinds) - 1)])[0]
    by_arm = questions_of(release.experiment)[kind].by_arm
    layout = cell_layout(release, population=population, by_arm=by_arm)
    if question is None:
        must_halve = layout is not None and layout.halves.parts == 2
        axis = rng.randrange(2) if must_halve or rng.random() < 0.5 else None
        question = number(kind, axis)
    payload = b""
    if layout is not None:
        asked = Question(kind, question % 3 - 1 if question % 3 else None)
        secret = Secret(point, path, arm, logged=logged, ranking=ranking)
        cell, value = true_answer(release, layout, asked, secret=secret, outcome=outcome)
        mechanism = layout.mechanism(asked.axis).mechanism
        payload = whisper(mechanism, cell=cell, value=value, draws=Seeded(rng))
    return sv.Report(
        wire.release_id(release),
        population,
        rng.randbytes(16),
        payload,
        question,
        ranking if kind == RANKED else (),
    )


def tell_places(
    learner: sv.Learner,
    rng: random.Random,
    *,
    place: Callable[[random.Random, int], float] = anywhere,
    population: int = 1,
    most: int = 4000,
) -> None:
    """Let rows, or people of the target, tell where they are until nobody is asked any more.

    population: whose they are; where there is no other, the target's.
    """
    for _ in range(most):
        if not (release := learner.release()).scale_share:
            return
        whose = min(population, len(release.experiment.populations) - 1)
        report = told_place(rng, release, population=whose, logged=whose > 0, place=place)
        learner.receive(report)
    raise AssertionError("it goes on to ask where people are")


def send(
    learner: sv.Learner, rng: random.Random, count: int, *, target_only: bool = False
) -> list[sv.Release]:
    """Let people of all populations report, served ones and logged ones; return all releases."""
    releases = [learner.release()]
    for _ in range(count):
        population = 0 if target_only else rng.choice([0, 0, 0, 1, 2])
        logged = population > 0 and rng.random() < 0.5
        learner.receive(person(rng, learner.release(), population=population, logged=logged))
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
    return releases


SETTINGS: list[dict[str, Any]] = [
    {},
    {"epsilon": 1.0},
    {"epsilon": 2.0, "guarantee": "certified"},
    {"public_arms": True},
    {"public_arms": True, "epsilon": 2.0},
    {"arms": 2},
    {"arms": 2, "epsilon": 1.0},
]
each_setting = pytest.mark.parametrize(
    "settings",
    SETTINGS,
    ids=lambda each: " ".join(f"{key}={value}" for key, value in each.items()) or "default",
)
