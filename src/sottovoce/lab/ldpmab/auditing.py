"""What an audit needs to know of ``ldpmab``: the numbers behind the noise, and its scale."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from sottovoce.device.encode import encode
from sottovoce.device.ldpmab import laplace
from sottovoce.lab.audit.claims import Answer, Exactly, Floats, Person, Scene, Scores
from sottovoce.lab.audit.exact import judge_exponent
from sottovoce.lab.audit.mechanism import report_of
from sottovoce.shared import wire
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.ldpmab.laplace import laplace_scale
from sottovoce.shared.methods import MethodSettings

# Textbook noise is a logarithm of one of 2^53 numbers. Rounding shifts it by a few of them.
_UNITS = 2.0**53
_NEAR = np.arange(-4, 5)


def variants() -> Mapping[str, MethodSettings]:
    """Return the settings to audit: presets differ in the learner only."""
    return {"ldpmab": Ldpmab()}


# --- the law, for the attacker --------------------------------------------------------------------


def log_ratios(scene: Scene, one: Person, other: Person) -> Scores:
    """Return statistics that tell two people apart, for honest noise and for faulty noise.

    0: ln p(report | one)/p(report | other) = Σ(|w − v'| − |w − v|)·ε/4, clipped by its law
    1: in how many more numbers textbook noise in floating point reaches w from v than from v'
    2: both together
    3: how many more numbers are exactly v than are exactly v'
    """
    ours, theirs = (numbers_of(scene, person) for person in (one, other))
    scale = laplace_scale(scene.epsilon)

    def scores(answers: Sequence[Answer]) -> Floats:
        table = payloads(answers, length=len(ours))
        far = np.abs(table - theirs) - np.abs(table - ours)
        likely = far.sum(axis=1) / scale
        differ = ours != theirs
        reached = [
            attainable(table[:, differ], start=each[differ], scale=scale).sum(axis=1)
            for each in (ours, theirs)
        ]
        finer = (reached[0] - reached[1]).astype(np.float64)
        exactly = (table == ours).sum(axis=1) - (table == theirs).sum(axis=1)
        return np.stack((likely, finer, likely + finer, exactly.astype(np.float64)), axis=1)

    return scores


def payloads(answers: Sequence[Answer], *, length: int) -> Floats:
    """Return the numbers of reports, (reports, numbers); each must have so many."""
    reports = [wire.report_from_bytes(each) for each in answers if isinstance(each, bytes)]
    if len(reports) < len(answers) or any(len(each.payload) != length for each in reports):
        raise ExperimentError(must("reports of ldpmab", f"hold {length} numbers", "others"))
    return np.array([each.payload for each in reports], dtype=np.float64)


def attainable(table: Floats, *, start: Floats, scale: float) -> Floats:
    """Say of each number whether start ± scale·ln(u) is just that, for some u = k/2^53.

    Honest noise lives on a grid and reaches such numbers from everywhere alike. Textbook noise in
    floating point does not (Mironov, "On significance of the least significant bits for
    differential privacy", 2012).
    """
    distance = table - start
    centre = np.round(np.exp(-np.abs(distance) / scale) * _UNITS)
    units = np.clip(centre[..., np.newaxis] + _NEAR, 1, _UNITS)
    noise = -scale * np.log(units / _UNITS)
    reached = start[:, np.newaxis] + np.sign(distance)[..., np.newaxis] * noise
    found: Floats = (reached == table[..., np.newaxis]).any(axis=-1).astype(np.float64)
    return found


def numbers_of(scene: Scene, person: Person) -> Floats:
    """Return the numbers of a person before the noise; the mean of them where the arm is drawn."""
    policies = scene.release.policies
    if person.arm is not None or person.context is None:
        return np.array(_before_noise(scene, person)[0])
    experiment = scene.release.experiment
    path = scene.release.partition.find(encode(experiment, person.context))
    policy = policies[path]
    means = [
        chance * np.array(_before_noise(scene, _with_arm(person, experiment.arms[arm]))[0])
        for arm, chance in zip(policy.arms, policy.propensities, strict=True)
    ]
    mean: Floats = np.sum(means, axis=0)
    return mean


def _with_arm(person: Person, arm: str) -> Person:
    return Person(person.context, arm, person.reward, person.logged)


# --- the exact worst ratio ------------------------------------------------------------------------


def worst_exactly(scene: Scene, people: Sequence[Person]) -> Exactly:
    """Return the exponent ‖v − v'‖₁/b of the worst pair, on the grid of the noise.

    Each number of a report has discrete Laplace noise: k steps of the grid come with a probability
    in proportion to exp(−|k|·step/b). The worst ratio of two people is e to this exponent, exactly.
    OpenDP's privacy map says the same or more; the greater of the two counts.
    """
    vectors, most = [], Fraction(0)
    length, epsilon = 0, 0.0
    for person in people:
        values, (length, epsilon) = _before_noise(scene, person)
        vectors.append(values)
    if length == 0:
        return judge_exponent(Fraction(0), epsilon=scene.epsilon, how="nothing is sent")
    measurement, scale, step = _noise_of(length, epsilon)
    for one, other in itertools.combinations(vectors, 2):
        pairs = zip(one, other, strict=True)
        steps = sum(abs(_steps(a, step) - _steps(b, step)) for a, b in pairs)
        exactly = steps * step / Fraction(scale)
        distance = math.fsum(abs(a - b) for a, b in zip(one, other, strict=True))
        most = max(most, exactly, Fraction(measurement.map(distance)))
    how = "the numbers before the noise, its scale and grid, and OpenDP's privacy map"
    return judge_exponent(most, epsilon=scene.epsilon, how=how)


def _steps(value: float, step: Fraction) -> int:
    return round(Fraction(value) / step)


def _before_noise(scene: Scene, person: Person) -> tuple[list[float], tuple[int, float]]:
    """Let a real device make a report, and return what it handed to the noise, and for which ε."""
    handed: list[float] = []
    asked: list[tuple[int, float]] = [(0, 0.0)]

    def instead(length: int, *, epsilon: float) -> Callable[[Sequence[float]], Sequence[float]]:
        asked.append((length, epsilon))

        def keep(values: Sequence[float]) -> Sequence[float]:
            handed.extend(values)
            return [0.0] * len(values)

        return keep

    with _instead(laplace, "mechanism", instead):
        report_of(scene, person)
    return handed, asked[-1]


def _noise_of(length: int, epsilon: float) -> tuple[Any, float, Fraction]:
    """Return the real measurement, and the scale and the step of the grid it was made with."""
    import opendp.prelude as dp

    made: list[tuple[float, int]] = []
    make_laplace = dp.m.make_laplace

    def noted(domain: Any, metric: Any, scale: float, k: int) -> Any:
        made.append((scale, k))
        return make_laplace(domain, metric, scale, k)

    laplace.mechanism.cache_clear()
    with _instead(dp.m, "make_laplace", noted):
        measurement = laplace.mechanism(length, epsilon=epsilon)
    scale, grid = made[-1]
    return measurement, scale, Fraction(2) ** grid


@contextmanager
def _instead(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    """Put something in the place of a function for a while."""
    before = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, before)
