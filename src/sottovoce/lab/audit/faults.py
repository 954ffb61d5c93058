"""Devices that are broken on purpose, one fault each, to see that an audit catches them.

Each is a small wrapper around the real device. The real device's code stays as it is. Each case has
the length of run that suffices.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from secrets import SystemRandom

import numpy as np

from sottovoce.device.device import Device
from sottovoce.device.draws import OperatingSystem
from sottovoce.lab.audit.adaptive import Game, OneDevice, reports_of
from sottovoce.lab.audit.cases import LOW, Pair, experiment_of, release_of
from sottovoce.lab.audit.claims import Answer, Mechanism, Person, Scene
from sottovoce.lab.audit.mechanism import report_of
from sottovoce.lab.audit.tasks import Attack, Randomness, Task
from sottovoce.lab.ldpmab.auditing import numbers_of
from sottovoce.lab.whisper.auditing import in_place_of_the_operating_system
from sottovoce.shared import wire
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.ldpmab.laplace import laplace_scale
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.whisper import Whisper
from sottovoce.shared.whisper.questions import Kind, Question


class Faulty(ABC):
    """Makes one report at a time, with ``one_report``."""

    @abstractmethod
    def one_report(self, scene: Scene, person: Person) -> Report | None:
        """Return a report with a fault; None where nothing is sent."""

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Return so many independent reports of the same person."""
        made = (self.one_report(scene, person) for _ in range(count))
        return [b"" if each is None else wire.report_to_bytes(each) for each in made]


def _numbers(scene: Scene, person: Person) -> tuple[Report, list[float], list[float]]:
    """Return a real report with its numbers, and the numbers before the noise."""
    report = report_of(scene, person)
    return report, [float(each) for each in report.payload], numbers_of(scene, person).tolist()


class OnlyWhereHit(Faulty):
    """Noise only in the cells that were hit: the fault of the paper's published code."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Leave the noise out of every cell that the person is not in."""
        report, noisy, true = _numbers(scene, person)
        half = len(true) // 2
        hit = [true[half + position % half] != 0 for position in range(len(true))]
        payload = tuple(n if h else t for n, t, h in zip(noisy, true, hit, strict=True))
        return replace(report, payload=payload)


class OneCellMissed(Faulty):
    """The loop over cells ends one too early: the last number has no noise."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Leave the noise out of the last number."""
        report, noisy, true = _numbers(scene, person)
        return replace(report, payload=(*noisy[:-1], true[-1]))


class HalvedScale(Faulty):
    """Noise of scale 2/ε, as if only one of two sums were sent."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Halve the noise of every number."""
        report, noisy, true = _numbers(scene, person)
        payload = tuple((n + t) / 2 for n, t in zip(noisy, true, strict=True))
        return replace(report, payload=payload)


class DoubledOdds(Faulty):
    """The same for sets: a device that takes 2ε for ε."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Send the set of an experiment with twice the ε, where sets have the same form."""
        release = scene.release
        louder = replace(release.experiment, epsilon=2 * release.experiment.epsilon)
        twin = Scene(replace(release, experiment=louder), scene.population)
        made = report_of(twin, person)
        return replace(report_of(scene, person), payload=made.payload, question=made.question)


class FloatingPoint(Faulty):
    """Textbook Laplace noise, of a logarithm in floating point, from good randomness."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Add noise of the right scale, with the wrong low bits."""
        report, _, true = _numbers(scene, person)
        scale, draws = laplace_scale(scene.epsilon), SystemRandom()
        units = np.array([1.0 - draws.random() for _ in true])
        signs = np.array([draws.choice((-1.0, 1.0)) for _ in true])
        noise = signs * (-scale * np.log(units))
        return replace(report, payload=tuple((np.array(true) + noise).tolist()))


class ByTheOutcome(Faulty):
    """The question is drawn by the outcome: people who were lucky are asked nothing else."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Draw again, once, if somebody with a good outcome got a rare question."""
        report = report_of(scene, person)
        if person.reward == 1.0 and report.question:
            return report_of(scene, person)
        return report


class GroupByTheOutcome(Faulty):
    """The coin of a group is drawn by the outcome: the lucky ones are in the baseline group."""

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Draw again, once, if somebody with a good outcome is not in that group."""
        number = Question(Kind.BASELINE_REWARD).number(scene.release.experiment)
        report = report_of(scene, person)
        if person.reward == 1.0 and report.question != number:
            return report_of(scene, person)
        return report


class RowsLeftOut(Faulty):
    """A custodian who sends nothing for rows that do not fit."""

    def one_report(self, scene: Scene, person: Person) -> Report | None:
        """Leave such a row out."""
        return None if person.context is None else report_of(scene, person)


class Mersenne(OperatingSystem):
    """A generator that begins from the same seed in every process."""

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311 - this is the fault

    def chance(self, numerator: int, denominator: int) -> bool:
        """Return true with probability numerator/denominator."""
        return self._random.randrange(denominator) < numerator

    def chance_of_bits(self, numerator: int, count: int) -> bool:
        """Return true with probability numerator/2^count."""
        return self._random.getrandbits(count) < numerator

    def below(self, limit: int) -> int:
        """Return each of 0, …, limit − 1 with the same probability."""
        return self._random.randrange(limit)

    def bits(self, count: int) -> int:
        """Return each of 0, …, 2^count − 1 with the same probability."""
        return self._random.getrandbits(count)


class Seeded(Faulty):
    """A device whose noise comes from such a generator. Each process by itself looks honest."""

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Return so many reports, with the noise of a generator that has just begun."""
        draws = Mersenne()
        with in_place_of_the_operating_system(draws):
            return super().reports(scene, person, count)

    def one_report(self, scene: Scene, person: Person) -> Report:
        """Return a report; the fault is in the generator."""
        return report_of(scene, person)


class Forgetful(OneDevice):
    """A device whose ledger is empty again after every restart."""

    def asked(self, release: Release, person: Person) -> list[Report]:
        """Report with a new device each time."""
        return reports_of(Device(release, public_arms=True), person)


class Repeating(OneDevice):
    """A device that makes a new report of the same outcome when it sends again: it counts twice."""

    def __init__(self) -> None:
        super().__init__()
        self._done = False

    def asked(self, release: Release, person: Person) -> list[Report]:
        """Report once, twice over."""
        if self._done:
            return []
        self._done = True
        return [
            report
            for _ in range(2)
            for report in reports_of(Device(release, public_arms=True), person)
        ]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and the task that catches it."""

    name: str
    task: Task


def faults(epsilon: float = 1.0) -> Iterator[Fault]:
    """Yield every fault, with a run that is long enough to catch it."""
    sums = Scene(release_of(experiment_of(Ldpmab(), epsilon), cuts={}, contested=""))
    sets = Scene(release_of(experiment_of(Whisper(), epsilon), cuts={}, contested=""))
    row_a, row_b = (Person(LOW, arm, 1.0, logged=True) for arm in ("a", "b"))
    good, bad = Person(LOW, "a", 1.0), Person(LOW, "a", 0.0)
    rows = Pair("logged: arm a or b", sums, row_a, row_b)
    rewards = Pair("reward 1 or 0", sets, good, bad)
    groups = release_of(experiment_of(Whisper(), epsilon, baseline=True), cuts={}, contested="")
    compared = Pair("with a baseline: reward 1 or 0", Scene(groups), good, bad)
    fit = Pair("logged: a row or one that does not fit", sets, row_a, Person(None, logged=True))

    def broken(name: str, pair: Pair, mechanism: Mechanism, reports: int) -> Fault:
        return Fault(name, Attack(name, pair, mechanism, epsilon, reports, reports))

    yield broken("noise only in the cells that were hit", rows, OnlyWhereHit(), 500)
    yield broken("halved scale", rows, HalvedScale(), 10_000)
    yield broken("halved scale, of sets: twice the ε", rewards, DoubledOdds(), 5_000)
    yield broken("one cell missed", rows, OneCellMissed(), 500)
    yield Fault("a seeded generator", Randomness("a seeded generator", rewards, Seeded()))
    yield broken("floating-point Laplace", rows, FloatingPoint(), 3_000)
    yield broken("a question drawn by the outcome", rewards, ByTheOutcome(), 10_000)
    yield broken("a group drawn by the outcome", compared, GroupByTheOutcome(), 10_000)
    yield broken("rows left out", fit, RowsLeftOut(), 500)
    experiment = replace(experiment_of(Whisper(), epsilon), release_every=1, horizon=20)
    for name, participant in (
        ("a report counted twice", Repeating),
        ("a ledger that resets", Forgetful),
    ):
        game = Game(name, "a person among others", experiment, good, bad, 300, 1500)
        yield Fault(name, replace(game, tries=3, participant=participant))
