"""The whole adaptive protocol: many small runs, in which one person's data are one of two.

The adversary sees every release and every report, and decides who comes beside the person: it
always sends people to where the current release is contested. A release follows every report. It
depends on all reports before, so that the person meets other cells in every run. What the adversary
learns of the person must all the same be within the person's budget.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sottovoce.device.device import Device
from sottovoce.estimate.learner import Learner
from sottovoce.lab.audit.attack import Sample, attack
from sottovoce.lab.audit.claims import Person, Scene, Scores, must_know
from sottovoce.lab.audit.tasks import Finding
from sottovoce.lab.people import features_of
from sottovoce.server.extents import extents_of
from sottovoce.shared import wire
from sottovoce.shared.errors import BudgetSpent
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report

Sent = list[tuple[Scene, Report]]


class Participant(Protocol):
    """A person with a device, in one run."""

    def asked(self, release: Release, person: Person) -> list[Report]:
        """Return what the person sends when asked for a report on a release."""


class OneDevice:
    """A person with the real device, which reports once and refuses after that."""

    def __init__(self) -> None:
        self._device: Device | None = None

    def asked(self, release: Release, person: Person) -> list[Report]:
        """Choose and report, if the device is willing."""
        if self._device is None:
            self._device = Device(release, public_arms=True)
        self._device.follow(release)
        return reports_of(self._device, person)


def reports_of(device: Device, person: Person) -> list[Report]:
    """Choose and report, if the device is willing; choose again until the arm is the person's."""
    while device.choose(person.place) != person.arm and person.arm is not None:
        pass
    try:
        return [device.report(reward=person.reward)]
    except BudgetSpent:
        return []


@dataclass(frozen=True, slots=True)
class Game:
    """Play the protocol many times with each of two people.

    tries: how often the person is asked for a report in a run. Somebody else comes before each.
    train, test: how many runs with each person choose the event, and how many are counted.
    """

    method: str
    name: str
    experiment: Experiment
    one: Person
    other: Person
    train: int
    test: int
    tries: int = 2
    participant: Callable[[], Participant] = OneDevice

    bounds = 1

    @property
    def work(self) -> float:
        """About as long as so many reports."""
        return 40.0 * (self.train + self.test)

    def find(self, *, error_rate: float, seed: int) -> Finding:
        """Tell the two people apart by all that is public. The claim is that of one report."""
        table = _Table(self, random.Random(seed))  # noqa: S311 - it chooses people, no noise
        train, test = (
            tuple(table.sample(person, runs) for person in (self.one, self.other))
            for runs in (self.train, self.test)
        )
        found = attack((train[0], train[1]), (test[0], test[1]), error_rate=error_rate)
        return Finding(
            self.method,
            self.name,
            "protocol",
            self.experiment.epsilon,
            found.bound,
            found.bound <= self.experiment.epsilon,
            f"{found.event}: {found.hits[0]} and {found.hits[1]} of {found.runs[0]}",
            2 * (self.train + self.test),
        )


@dataclass(slots=True)
class _Table:
    """Where a game is played."""

    game: Game
    adversary: random.Random
    known: dict[str, Scores] = field(default_factory=dict)

    def sample(self, person: Person, runs: int) -> Sample:
        """Play so many runs with a person, and keep the adversary's statistics."""
        statistics = np.array([self._play(person) for _ in range(runs)])
        return Sample([b""] * runs, statistics)

    def _play(self, person: Person) -> list[float]:
        """Play one run.

        0: how much likelier the person's own reports are from one than from the other
        1: the same of all others' reports, as if they were the person's
        2, 3: how many reports the person sent; the version of the last release
        """
        learner, participant = Learner(self.game.experiment), self.game.participant()
        own: Sent = []
        others: Sent = [self._somebody(learner)]
        for _ in range(self.game.tries):
            release = learner.release()
            for report in participant.asked(release, person):
                own.append((Scene(release), report))
                learner.receive(report)
            others.append(self._somebody(learner))
        ratios = self._log_ratio(own), self._log_ratio(others)
        return [*ratios, float(len(own)), float(learner.release().version)]

    def _somebody(self, learner: Learner) -> tuple[Scene, Report]:
        """Let the adversary send somebody to a contested bin, if there is one."""
        release = learner.release()
        path = self.adversary.choice([each.path for each in release.contested or release.bins])
        device = Device(release, public_arms=True)
        device.choose(within(release, path))
        report = device.report(reward=float(self.adversary.random() < 0.5))
        learner.receive(report)
        return Scene(release), report

    def _log_ratio(self, sent: Sent) -> float:
        return sum(
            float(self._scores(scene)([wire.report_to_bytes(report)])[0, 0])
            for scene, report in sent
        )

    def _scores(self, scene: Scene) -> Scores:
        """Return the method's statistics, worked out once for releases that are alike."""
        release = scene.release
        key = repr((release.bins, release.partition, release.reward_share))
        if key not in self.known:
            method = must_know(release.experiment.settings.name)
            self.known[key] = method.log_ratios(scene, self.game.one, self.game.other)
        return self.known[key]


def within(release: Release, path: str) -> dict[str, Any]:
    """Return a context inside of a bin, as far as anybody can be there."""
    inside = [each.example for each in extents_of(release, path)]
    return features_of(release.experiment, np.array([0.5 if at is None else at for at in inside]))
