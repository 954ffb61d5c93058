"""Experiments with every kind of feature, and releases that real learners have grown for them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sottovoce as sv
from factories import Purse
from sottovoce.device.encode import encode
from sottovoce.shared import wire
from sottovoce.shared.amending import draft
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.release import BinPolicy, uniform
from sottovoce.shared.schema import Feature
from sottovoce.shared.whisper.caps import caps_of, share_of
from vectors.stream import Stream, given

ARMS = ("control", "reminder", "coach", "game", "thé")
NAMES = ("age", "bmi", "wert", "x y", "ü", "n0", 'q"u', "o'c", "Ω", "é🙂", "last", "k")
WORDS = ("low", "mid", "high", "top", "ä", "🙂", "it's", 'a"b', "back\\slash", "end")


def feature(draws: random.Random, name: str) -> Feature:
    """A feature of any kind."""
    optional = draws.random() < 0.35
    kind = draws.randrange(4)
    if kind == 0:
        low, high = draws.choice([(0, 1), (18, 90), (-2.5, 7.25), (0.1, 0.3), (-1e9, 1e17)])
        return sv.Numeric(name, low, high, optional=optional)
    if kind == 3:
        return sv.Boolean(name, optional=optional)
    levels = tuple(draws.sample(WORDS, draws.choice([2, 2, 3, 4, 5, 9])))
    if kind == 1:
        return sv.Ordinal(name, levels, optional=optional)
    return sv.Categorical(name, levels, optional=optional, other=draws.random() < 0.4)


def experiment(draws: random.Random) -> sv.Experiment:
    """Any experiment with ``whisper``, or now and then with ``ldpmab``."""
    arms = draws.choice([2, 2, 3, 3, 4, 5])
    names = draws.sample(NAMES, draws.choice([1, 2, 2, 3, 4, 6]))
    settings: dict[str, Any] = draws.choice(
        [{}, {}, {}, {"guarantee": "certified", "delta": 0.1}, {"public_arms": True}]
    )
    if not settings and draws.random() < 0.2:
        settings = {"half_life": draws.choice([500, 10_000])}
    share = 1 / arms
    auxiliary = [
        sv.Population("clinic-b", 4.0, 100, (share,) * arms),
        sv.Population("clinic-ç", 2.5, 100),
    ][: draws.choice([0, 1, 2, 2])]
    return sv.Experiment(
        arms=ARMS[:arms],
        context=[feature(draws, name) for name in names],
        epsilon=draws.choice([0.5, 1.0, 1.0, 1.0986122886681098, 2.0, 4.0, 8.0, 70.0]),
        horizon=draws.choice([2000, 4000]),
        auxiliary=auxiliary,
        method=sv.Ldpmab() if draws.random() < 0.06 else sv.Whisper(**settings),
        release_every=25,
        seed=draws.randrange(2**53),
        name=draws.choice(["walking", "schlaf – ε", "o'clock"]),
        reward=draws.choice([None, None, None, "yes/no", (0, 60), (-1.5, 2)]),
        reward_window=draws.choice([None, None, "7 days", "90 min"]),
    )


def context(draws: random.Random, experiment: sv.Experiment) -> dict[str, Any]:
    """Somebody at random, mostly with all their features."""
    found: dict[str, Any] = {}
    for each in experiment.context:
        if each.optional and draws.random() < 0.3:
            if draws.random() < 0.5:
                found[each.name] = None
            continue
        match each:
            case sv.Numeric():
                width = each.high - each.low
                places = [0.0, 1.0, 0.5, 0.25, draws.random(), draws.random(), -0.5, 1.5]
                found[each.name] = each.low + draws.choice(places) * width
            case sv.Boolean():
                found[each.name] = draws.random() < 0.5
            case sv.Ordinal() | sv.Categorical():
                other = isinstance(each, sv.Categorical) and each.other and draws.random() < 0.2
                found[each.name] = "Atlantis" if other else draws.choice(each.levels)
    return found


def reward(draws: random.Random, experiment: sv.Experiment) -> Any:
    """An outcome, or none."""
    scale = experiment.rewards
    if draws.random() < 0.15:
        return None
    if (scale.low, scale.high) == (0.0, 1.0):
        return draws.choice([0, 1, True, False, 0.5, 0.3, draws.random()])
    return draws.choice([scale.low, scale.high, scale.mean(0.3), scale.high + 7])


def grown(draws: random.Random, about: sv.Experiment, reports: int) -> list[sv.Release]:
    """Releases of a learner with clear answers; then with the ε that the experiment has."""
    clear = replace(
        about, epsilon=20.0, auxiliary=[replace(a, epsilon=20.0) for a in about.auxiliary]
    )
    learner = sv.Learner(clear)
    releases = [learner.release()]
    if about.settings.name != "whisper":
        return [replace(releases[0], experiment=about)]
    best = draws.sample(range(len(about.arms)), 2)
    with given(Stream(f"grown {draws.random()}")):
        for _ in range(reports):
            release = learner.release()
            population = draws.randrange(len(clear.populations))
            name = clear.populations[population].name
            device = sv.Device(release, population=name, ledger=Purse(), public_arms=True)
            who = context(draws, clear)
            logged = population > 0 and draws.random() < 0.8
            arm = draws.choice(clear.arms) if logged else device.choose(who)
            good = clear.arms.index(arm) == best[encode(clear, who)[0] < 0.5]
            told = clear.rewards.mean(float(draws.random() < (0.95 if good else 0.1)))
            if logged:
                learner.receive(device.report_logged(who, arm=arm, reward=told))
            else:
                learner.receive(device.report(reward=told))
            if learner.release().version > releases[-1].version:
                releases.append(learner.release())
    kept = [releases[0], *draws.sample(releases, min(3, len(releases))), releases[-1]]
    return [replace(each, experiment=about) for each in kept]


def amended(draws: random.Random, release: sv.Release) -> sv.Release | None:
    """The release after some amendments, by a learner that has seen nothing."""
    learner = sv.Learner(release.experiment)
    private = not release.experiment.settings.arms_are_public
    whisper = release.experiment.settings.name == "whisper"
    steps: Sequence[tuple[str, dict[str, Any]]] = [
        ("extend horizon", {"horizon": 9000}),
        ("add arm", {"arm": "quiz", **({"cap": 0.1} if private and whisper else {})}),
        ("add arm", {"arm": "sōng"}),
        ("retire arm", {"arm": release.experiment.arms[0]}),
        ("pause", {}),
        ("resume", {}),
        ("stop", {}),
    ]
    for number, (kind, about) in enumerate(steps[: draws.randrange(1, len(steps) + 1)]):
        made = datetime(2026, 3, 1, 9, number, tzinfo=UTC)
        learner.amend(draft(learner.experiment, kind, by="Ada ♥", made=made, **about))
    return learner.release()


def varied(draws: random.Random, release: sv.Release) -> Iterator[sv.Release]:
    """The same with other shares, thresholds and scales, as far as devices take that."""
    table = wire.table_from_json(wire.release_to_json(release), kind="release")
    d = release.experiment.dimension
    numbers = [axis for axis, each in enumerate(release.experiment.axes) if each.levels == 0]
    if release.experiment.settings.most_reward_share(release.experiment):
        table["reward_share"] = draws.choice([24, 80, 160])
    rest = 1024 - (some := draws.choice([0, 300, 700]))
    table["ask"] = [some, *[rest // d] * (d - 1), rest - rest // d * (d - 1)]
    for key in ("scale_share", "thresholds"):
        table.pop(key, None)
    if numbers and draws.random() < 0.6:
        table["scale_share"] = draws.choice([20, 100])
        table["thresholds"] = [draws.randrange(1, 28) * (axis in numbers) for axis in range(d)]
    if numbers and draws.random() < 0.5:
        tail = [0.9 * (i / 32) ** draws.choice([2, 3]) + 0.01 for i in range(1, 32)]
        table["scales"] = {str(draws.choice(numbers)): sorted(set(tail))}
    try:
        yield wire.release_from_json(canonical_json(table).decode())
    except sv.WireError:
        return


def built(draws: random.Random, release: sv.Release) -> sv.Release:
    """A release of the same experiment with any tree and any arms."""
    about, settings = release.experiment, release.experiment.settings
    levels = settings.levels_in_sets(about)
    partition = replace(release.partition, cuts={}, sets={}, levels=levels if any(levels) else ())
    for _ in range(draws.choice([0, 1, 3, 8, 30, 200])):
        path, axis = draws.choice(list(partition.leaves())), draws.randrange(about.dimension)
        if len(path) > 40:
            continue
        sets = dict(partition.sets)
        if levels[axis]:
            left = sorted(partition.places(path, axis))
            if len(left) < 2:
                continue
            sets[path] = frozenset(draws.sample(left, draws.randrange(1, len(left))))
        partition = replace(partition.cut(path, axis=axis), sets=sets)
    policies = tuple(_offered(draws, about, path) for path in partition.leaves())
    return replace(release, partition=partition, bins=policies)


def _offered(draws: random.Random, about: sv.Experiment, path: str) -> BinPolicy:
    arms = [arm for arm in range(len(about.arms)) if arm not in about.retired]
    live = sorted(draws.sample(arms, draws.choice([1, 2, 2, len(arms)])))
    if len(live) == 1 or about.settings.arms_are_public:
        return uniform(path, live)
    if about.settings.name != "whisper":
        chances = [draws.random() + 0.01 for _ in live]
        return BinPolicy(path, tuple(live), tuple(each / sum(chances) for each in chances))
    caps = caps_of(about)
    first, second = sorted(draws.sample(live, 2))
    shares = share_of(caps, first, second), share_of(caps, second, first)
    waiting = tuple(arm for arm in live if arm not in (first, second))
    return BinPolicy(path, (first, second), shares, waiting)


def releases(
    draws: random.Random, *, worlds: int, built_for: int = 0, reports: int = 250
) -> list[sv.Release]:
    """Releases of so many experiments: grown, varied and amended; and of others, built."""
    found: list[sv.Release] = []
    for _ in range(built_for):
        first = sv.Learner(experiment(draws)).release()
        some = [first, later] if (later := amended(draws, first)) else [first]
        some = [built(draws, each) for each in some]
        if first.experiment.settings.name == "whisper":
            some += [other for each in some for other in varied(draws, each)]
        found += some
    for _ in range(worlds):
        own = grown(draws, experiment(draws), reports)
        if own[0].experiment.settings.name == "whisper":
            own += [other for each in own for other in varied(draws, each)]
        later = amended(draws, own[0])
        found += own if later is None else [*own, later]
    texts = dict.fromkeys(wire.release_to_json(each) for each in found)
    return [wire.release_from_json(text) for text in texts]
