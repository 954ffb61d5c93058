"""An audit: all tasks of some methods, on several cores, with one error rate for all of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import joblib

from sottovoce.lab.audit.adaptive import Game
from sottovoce.lab.audit.baselines import Gradients
from sottovoce.lab.audit.cases import (
    HIGH,
    LOW,
    Pair,
    crowds_of,
    experiment_of,
    pairs_of,
    release_of,
)
from sottovoce.lab.audit.claims import Mechanism, Person, Scene, auditing_of
from sottovoce.lab.audit.mechanism import RealDevice, report_of
from sottovoce.lab.audit.tasks import Attack, Exact, Finding, NoClaim, Randomness, Task
from sottovoce.lab.methods import BASELINES
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.methods import MethodSettings, method_names, settings_from

NOT_PRIVATE = ("abse",)
"""Baselines that claim nothing."""

OnFinding = Callable[[Finding, int, int], None]
"""Called with each finding as it comes, and how many there are of how many."""


@dataclass(frozen=True, slots=True)
class Length:
    """How many reports of each person choose an event, and how many are counted.

    sharp: the same, for pairs that nearly reach the claim. numbers: for sharp pairs of a method
        whose reports are numbers: only a few of these reports are as telling as can be.
    games: runs of the protocol.
    """

    usual: tuple[int, int] = (3_000, 7_000)
    sharp: tuple[int, int] = (10_000, 25_000)
    numbers: tuple[int, int] = (40_000, 400_000)
    games: tuple[int, int] = (300, 2_000)


FULL = Length()
QUICK = Length((1_500, 3_500), (2_500, 7_500), (5_000, 20_000), (100, 400))


def audit(
    tasks: Sequence[Task],
    *,
    error_rate: float,
    seed: int = 0,
    workers: int = -1,
    progress: OnFinding = lambda finding, done, of: None,
) -> list[Finding]:
    """Do all tasks, and return what they found, in their order.

    error_rate: the chance that anything correct is flagged in the whole audit. It is shared out
        over all bounds (Bonferroni).
    """
    if not 0 < error_rate < 1:
        raise ExperimentError(must("the error rate", "lie in (0, 1)", error_rate))
    each = error_rate / max(1, sum(task.bounds for task in tasks))
    # The longest first, so that no core waits for one task at the end.
    order = sorted(range(len(tasks)), key=lambda index: -tasks[index].work)
    run = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    found: dict[int, Finding] = {}
    jobs = (joblib.delayed(_find)(i, tasks[i], each, seed + i) for i in order)
    for index, finding in run(jobs):
        found[index] = finding
        progress(finding, len(found), len(tasks))
    return [found[index] for index in range(len(tasks))]


def _find(index: int, task: Task, error_rate: float, seed: int) -> tuple[int, Finding]:
    return index, task.find(error_rate=error_rate, seed=seed)


def known_methods() -> list[str]:
    """Return all that can be audited by name."""
    return [*method_names(), *BASELINES]


def tasks_of(
    methods: Sequence[str], epsilons: Sequence[float], *, length: Length = FULL
) -> list[Task]:
    """Return the tasks of an audit of this package's own methods and baselines."""
    for epsilon in epsilons:
        check.epsilon(epsilon)
    known = known_methods()
    if strange := [name for name in methods if name not in known]:
        raise ExperimentError(must("a method to audit", f"be one of {known}", strange))
    tasks: list[Task] = []
    for name in methods:
        if name in NOT_PRIVATE:
            tasks.append(NoClaim(name))
            continue
        for epsilon in epsilons:
            made = _baseline if name in BASELINES else _method
            tasks += made(name, epsilon, length)
    return tasks


def external_tasks(
    mechanism: Mechanism, method: str, epsilons: Sequence[float], *, length: Length = FULL
) -> list[Task]:
    """Return the tasks for another mechanism, with the releases of a method.

    People who are served have no arm yet: a mechanism of somebody's own need not know how to draw
    one that the audit wants.
    """
    tasks: list[Task] = []
    for epsilon in epsilons:
        pairs = [
            replace(pair, one=_without_arm(pair.one), other=_without_arm(pair.other))
            for pair in pairs_of(settings_from(method), check.epsilon(epsilon))
        ]
        tasks += [_attack("external", pair, mechanism, length) for pair in pairs]
        tasks.append(Randomness("external", pairs[0], mechanism))
    return tasks


def _without_arm(person: Person) -> Person:
    return person if person.logged else replace(person, arm=None)


def _method(name: str, epsilon: float, length: Length) -> Iterator[Task]:
    """Yield all that is looked at in a method with devices, in each of its variants."""
    method = auditing_of(name)
    variants = {name: settings_from(name)} if method is None else method.variants()
    for variant, settings in variants.items():
        pairs = [*pairs_of(settings, epsilon)]
        if method is not None:
            for what, scene, people in crowds_of(settings, epsilon):
                yield Exact(variant, what, scene, people)
        for pair in pairs:
            yield _attack(variant, pair, RealDevice(), length)
        yield Randomness(variant, pairs[0], RealDevice())
        if method is not None:
            yield _game(variant, settings, epsilon, length)


def _attack(method: str, pair: Pair, mechanism: Mechanism, length: Length) -> Attack:
    train, test = length.sharp if pair.sharp else length.usual
    if _sends_numbers(pair.scene, pair.one):
        # Two arms differ in four numbers, and nothing can differ in more; outcomes differ in one.
        arms = pair.sharp and pair.one.arm != pair.other.arm
        train, test = length.numbers if arms else length.usual
    return Attack(method, pair, mechanism, pair.scene.epsilon, train, test)


def _game(variant: str, settings: MethodSettings, epsilon: float, length: Length) -> Game:
    """Return a game between people whose arms and outcomes differ, as far as these are private."""
    experiment = replace(experiment_of(settings, epsilon), release_every=1, horizon=20)
    arms = (None, None) if settings.arms_are_public else ("a", "b")
    one, other = Person(LOW, arms[0], 1.0), Person(LOW, arms[1], 0.0 if arms[0] is None else 1.0)
    train, test = length.games
    return Game(variant, "a person among others", experiment, one, other, train, test)


def _baseline(name: str, epsilon: float, length: Length) -> Iterator[Task]:
    """Yield all that is looked at in a baseline with reports."""
    scene = Scene(
        release_of(experiment_of(settings_from("whisper"), epsilon), cuts={}, contested="")
    )
    people = {
        "context and outcome": (Person(HIGH, "a", 0.0), Person(LOW, "a", 1.0)),
        "arm a or b": (Person(HIGH, "a", 0.0), Person(HIGH, "b", 0.0)),
        "reward 1 or 0": (Person(HIGH, "a", 1.0), Person(HIGH, "a", 0.0)),
    }
    for index, (what, (one, other)) in enumerate(people.items()):
        pair = Pair(what, scene, one, other, sharp=index == 0)
        train, test = (length.sharp[0], 2 * length.sharp[1]) if pair.sharp else length.usual
        yield Attack(name, pair, Gradients(name), epsilon, train, test)


def _sends_numbers(scene: Scene, person: Person) -> bool:
    return not isinstance(report_of(scene, person).payload, bytes)
