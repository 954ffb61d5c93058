"""The real device as a mechanism: a fresh device for each report, and the whole report as bytes."""

from dataclasses import dataclass

from sottovoce.device.device import Device
from sottovoce.lab.audit.claims import Answer, Person, Scene
from sottovoce.shared import wire
from sottovoce.shared.baseline import BASELINE, group_of
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.report import Report

_TRIES = 10_000


@dataclass(frozen=True, slots=True)
class RealDevice:
    """The device of this package, as it is."""

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Return so many independent reports of the same person."""
        return [wire.report_to_bytes(report_of(scene, person)) for _ in range(count)]


def report_of(scene: Scene, person: Person) -> Report:
    """Let a new device make one report."""
    if not person.logged:
        return chosen(scene, person).report(reward=person.reward)
    device = new_device(scene)
    if person.context is None or person.arm is None or person.reward is None:
        return device.report_nothing_logged()
    return device.report_logged(person.context, arm=person.arm, reward=person.reward)


def new_device(scene: Scene, *, coin: int | None = None) -> Device:
    """Return a device that has done nothing yet, and agrees to whatever the scene asks for.

    coin: the one that decides on a group, if it has been drawn.
    """
    device = Device(scene.release, population=scene.population_name, public_arms=True)
    if coin is not None:
        device._coins.group(lambda: coin)  # it stays until a report is made
    return device


def in_baseline_group(scene: Scene, coin: int) -> bool:
    """Say whether a coin puts a person in the baseline group."""
    return group_of(coin, scene.release.baseline_share) == BASELINE


def chosen(scene: Scene, person: Person, *, coin: int | None = None) -> Device:
    """Return a device that has just chosen for a person who is served.

    If the person's arm is given, devices are made until one draws that arm. Where there is a
    baseline, that is the arm of the policy: who gets the baseline's arm is public.

    coin: the public coin that decides on a group; without one, the device draws it.
    """
    wanted = None if coin is not None and in_baseline_group(scene, coin) else person.arm
    for _ in range(_TRIES):
        device = new_device(scene, coin=coin)
        if device.choose(person.place) == wanted or wanted is None:
            return device
    raise ExperimentError(must("an arm to audit", "be on offer in the person's bin", "another"))
