"""Hard pairs of people and hostile releases, for any method.

A release is hostile if it is made to single somebody out: a deep branch around one person, one
contested bin among settled ones, many arms. A device follows every release that has the right form.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sottovoce.estimate.learner import Learner
from sottovoce.lab.audit.claims import Person, Scene
from sottovoce.shared.baseline import Baseline
from sottovoce.shared.errors import SottovoceError
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release, uniform
from sottovoce.shared.scale import STRETCHES, Knots
from sottovoce.shared.schema import Categorical, Feature, Numeric

LOW, HIGH = {"x": 0.0}, {"x": 1.0}
FEW, MANY = ("a", "b"), tuple("abcdefgh")
DEEP = 30

NUMBER = (Numeric("x", 0, 1),)
MIXED = (Categorical("city", tuple("pqrs")), Numeric("x", 0, 1, optional=True))
# In order, p and q are below the middle. In sets, p and r stay and q and s go up.
CITIES: Mapping[str, int] = {"": 0}
UP: Mapping[str, frozenset[int]] = {"": frozenset({1, 3})}
# The scale of a long tail: half of the people are below 1/8.
TAIL: Mapping[int, Knots] = {0: tuple((piece / STRETCHES) ** 3 for piece in range(STRETCHES + 1))}
NEAR, FAR = {"x": 0.124}, {"x": 0.126}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two people whom a scene makes easy to tell apart.

    sharp: whether the claim is nearly reached, so that a long run shows how tight it is.
    """

    name: str
    scene: Scene
    one: Person
    other: Person
    sharp: bool = False


def experiment_of(
    settings: MethodSettings,
    epsilon: float,
    *,
    arms: Sequence[str] = FEW,
    sources: bool = False,
    context: Sequence[Feature] = NUMBER,
    baseline: bool = False,
) -> Experiment:
    """Return a small experiment.

    sources: whether there are auxiliary populations with other ε. baseline: whether there is one,
        and many people are in its groups.
    """
    known = tuple(1 / len(arms) for _ in arms)
    auxiliary = (
        Population("known", epsilon / 2, 100, known),
        Population("unknown", epsilon * 2, 100),
    )
    return Experiment(
        arms=arms,
        context=context,
        epsilon=epsilon,
        horizon=1000,
        auxiliary=auxiliary if sources else (),
        method=settings,
        baseline=Baseline(0.2, arms[0]) if baseline else None,
        name="audit",
    )


def release_of(
    experiment: Experiment,
    *,
    cuts: Mapping[str, int],
    contested: str,
    scales: Mapping[int, Knots] | None = None,
) -> Release:
    """Return a release in which bins whose path begins so are contested, and others settled.

    The rest is as in the first release of the method's learner, which suits every method. Where
    the method asks people where they are, some are asked, for the first release asks them.
    """
    levels = experiment.settings.levels_in_sets(experiment)
    sets = {path: UP[path] for path, axis in cuts.items() if levels[axis]}
    partition = Partition(experiment.dimension, dict(cuts), levels if any(levels) else (), sets)
    partition = replace(partition, scales=scales or {})
    every, first = range(len(experiment.arms)), Learner(experiment).release()
    share = experiment.settings.most_reward_share(experiment) // 2

    def made(most: int) -> Release:
        bins = tuple(
            _offer(path, every, most=most) if path.startswith(contested) else uniform(path, [0])
            for path in partition.leaves()
        )
        return replace(first, partition=partition, bins=bins, reward_share=share)

    release = made(len(every))
    try:
        experiment.settings.check_release(release)
    except SottovoceError:  # a method that offers two arms at a time
        release = made(2)
        experiment.settings.check_release(release)
    return release


def _offer(path: str, arms: Sequence[int], *, most: int) -> BinPolicy:
    on_offer, waiting = tuple(arms[:most]), tuple(arms[most:])
    return BinPolicy(path, on_offer, (1 / len(on_offer),) * len(on_offer), waiting)


def _deep() -> dict[str, int]:
    """Return the cuts of a branch that ends in a tiny bin around 0."""
    return {"0" * depth: 0 for depth in range(DEEP)}


def _flat(levels: int) -> dict[str, int]:
    """Return the cuts of 2^levels bins of equal width."""
    paths = [""]
    cuts: dict[str, int] = {}
    for _ in range(levels):
        cuts |= dict.fromkeys(paths, 0)
        paths = [path + side for path in paths for side in "01"]
    return cuts


def pairs_of(settings: MethodSettings, epsilon: float) -> Iterator[Pair]:
    """Yield the pairs to audit for one method and one ε, as far as it knows such releases."""
    first = None if settings.arms_are_public else "a"
    good, bad = Person(LOW, first, 1.0), Person(LOW, first, 0.0)
    silent = Person(LOW, first, None)
    row, other_row = Person(LOW, "a", 1.0, logged=True), Person(LOW, "b", 1.0, logged=True)
    unfit = Person(None, logged=True)

    small = experiment_of(settings, epsilon)
    for scene in _scenes(small, cuts={}, contested=""):
        yield Pair("reward 1 or 0", scene, good, bad, sharp=True)
        yield Pair("reward 1 or none came", scene, good, silent)
        yield Pair("logged: arm a or b", scene, row, other_row, sharp=True)
        yield Pair("logged: a row or one that does not fit", scene, row, unfit)
    for scene in _scenes(small, cuts={"": 0}, contested="0"):
        yield Pair("contested or settled bin", scene, good, Person(HIGH, None, 1.0))
        yield Pair("settled bin: reward or none", scene, *_settled())
    for scene in _scenes(small, cuts={"": 0}, contested=""):
        yield Pair("one bin or the other", scene, good, Person(HIGH, first, 1.0))
    for scene in _scenes(small, cuts={"": 0}, contested="nowhere"):
        yield Pair("everything is settled", scene, *_settled())

    near, far_up = Person(NEAR, first, 1.0), Person(FAR, first, 1.0)
    for scene in _scenes(small, cuts={"": 0}, contested="", scales=TAIL):
        yield Pair("one half of a scale or the other", scene, near, far_up)

    outside = Person(HIGH, "a", 1.0, logged=True)
    beside = Person({"x": 2.0 ** -(DEEP - 4)}, "b", 0.0, logged=True)
    for scene in _scenes(small, cuts=_deep(), contested="0" * DEEP):
        yield Pair("deep branch: inside or outside", scene, row, outside)
    for scene in _scenes(small, cuts=_deep(), contested="0" * (DEEP - 6)):
        yield Pair("deep branch: both contested", scene, row, beside)
    for scene in _scenes(small, cuts=_flat(6), contested="000000"):
        yield Pair("one contested bin of 64", scene, row, other_row)
    for scene in _scenes(experiment_of(settings, epsilon, arms=MANY), cuts={}, contested=""):
        yield Pair("eight arms: logged a or h", scene, row, Person(LOW, "h", 1.0, logged=True))

    crowded = experiment_of(settings, epsilon, sources=True)
    far = Person(HIGH, "b", 0.0, logged=True)
    for scene in _scenes(crowded, cuts={"": 0}, contested=""):
        yield Pair("with sources: reward 1 or 0", scene, good, bad)
        yield Pair("with sources: one bin or the other", scene, good, Person(HIGH, first, 1.0))
        yield Pair("source with ε/2: arm a or b", replace(scene, population=1), row, other_row)
        yield Pair("source with 2ε: two bins", replace(scene, population=2), row, far)

    # Some are asked about settled bins, too, where they have a cell each.
    for scene in _scenes(crowded, cuts={"": 0}, contested="0"):
        yield Pair("with sources: contested or settled bin", scene, good, Person(HIGH, None, 1.0))
    for scene in _scenes(crowded, cuts={"": 0}, contested="nowhere"):
        yield Pair("with sources: settled bins, 1 or 0", scene, *_in_two_settled_bins())

    # Some get the baseline's arm. Who they are is public, and what it brings them is not.
    if settings.measures_gain:
        compared = experiment_of(settings, epsilon, baseline=True)
        for scene in _scenes(compared, cuts={"": 0}, contested="0"):
            yield Pair("with a baseline: reward 1 or 0", scene, good, bad)
            yield Pair("with a baseline: reward 1 or none came", scene, good, silent)
        for scene in _scenes(compared, cuts={"": 0}, contested="nowhere"):
            yield Pair("with a baseline: settled bins, 1 or 0", scene, *_in_two_settled_bins())

    mixed = experiment_of(settings, epsilon, context=MIXED)
    person, *others = (
        Person({"city": city, "x": x}, first, 1.0)
        for city, x in (("p", 0.75), ("s", 0.75), ("r", 0.75), ("p", None))
    )
    names = "level p or s", "level p or r", "a number or a missing one"
    for scene in _scenes(mixed, cuts=CITIES, contested=""):
        for name, other in zip(names, others, strict=True):
            yield Pair(name, scene, person, other)


def _scenes(
    experiment: Experiment,
    *,
    cuts: Mapping[str, int],
    contested: str,
    scales: Mapping[int, Knots] | None = None,
) -> Iterator[Scene]:
    """Yield the scene with such a release, if the method follows such releases."""
    try:
        release = release_of(experiment, cuts=cuts, contested=contested, scales=scales)
    except SottovoceError:
        return
    yield Scene(release)


def _in_two_settled_bins() -> tuple[Person, Person]:
    return Person(LOW, None, 1.0), Person(HIGH, None, 0.0)


def _settled() -> tuple[Person, Person]:
    return Person(HIGH, None, 1.0), Person(HIGH, None, None)


def crowds_of(
    settings: MethodSettings, epsilon: float
) -> Iterator[tuple[str, Scene, list[Person]]]:
    """Yield scenes that are small enough for exact laws, with people worth a comparison."""
    first, second = (None, None) if settings.arms_are_public else FEW
    people = [Person(LOW, first, reward) for reward in (1.0, 0.0, 0.3, None)]
    people += [Person(LOW, second, 1.0), Person(HIGH, None, 1.0)]
    rows = [Person(LOW, "a", 1.0, True), Person(LOW, "b", 1.0, True), Person(LOW, "a", 0.0, True)]
    beyond = [Person(HIGH, "b", 1.0, True), Person(None, logged=True)]
    small = experiment_of(settings, epsilon)
    half_settled = Scene(release_of(small, cuts={"": 0}, contested="0"))
    yield "served", half_settled, people
    yield "logged rows", half_settled, [*rows, *beyond]
    crowded = experiment_of(settings, epsilon, sources=True)
    sources = release_of(crowded, cuts={}, contested="")
    for scene in _scenes(crowded, cuts={"": 0}, contested="0"):
        settled = [Person(HIGH, None, reward) for reward in (1.0, 0.0, None)]
        yield "served, with sources", scene, [*people, *settled]
    if settings.measures_gain:
        compared = experiment_of(settings, epsilon, baseline=True)
        for scene in _scenes(compared, cuts={"": 0}, contested="0"):
            yield "served, with a baseline", scene, people
    far_row = Person(HIGH, "a", 1.0, True)
    yield "rows of a source with ε/2", Scene(sources, 1), [*rows, far_row]
    for scene in _scenes(small, cuts={"": 0}, contested="0", scales=TAIL):
        halves = [Person(at, None, reward) for at in (NEAR, FAR) for reward in (1.0, None)]
        yield "a split on a scale", scene, [*halves, *people]
    mixed = release_of(experiment_of(settings, epsilon, context=MIXED), cuts=CITIES, contested="")
    yield (
        "levels and missing values",
        Scene(mixed),
        [
            Person({"city": city, "x": x}, first, reward)
            for city, x, reward in (
                *((city, 0.75, 1.0) for city in "pqrs"),
                ("p", None, 1.0),
                ("s", 0.25, 0.0),
                ("q", None, None),
            )
        ],
    )
