"""The learner against a literal transcription of the paper's equations."""

from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.estimate.history import Elimination, Split
from support.histories import World
from support.literal import Literal, LiteralAlgorithm2, LiteralAuthors
from support.slow import slow_but

HISTORIES = 500
TOLERANCE = 1e-9


def transcription(kind: type, experiment: sv.Experiment, *, c: float) -> Any:
    return kind(
        K=len(experiment.arms),
        d=experiment.dimension,
        epsilon=[population.epsilon for population in experiment.populations],
        n=[population.users for population in experiment.populations],
        c=c,
    )


def bin_of(path: str) -> tuple[int, ...]:
    return tuple(map(int, path))


def agree(learner: sv.Learner, literal: Any, *, compare_numbers: bool = True) -> None:
    release = learner.release()
    ours = {bin_of(policy.path): policy for policy in release.bins if not policy.settled}
    assert {B: list(policy.arms) for B, policy in ours.items()} == literal.contested()
    for B in ours:
        path = "".join(map(str, B))
        assert list(release.partition.box(path)) == literal.box[B]
    if not compare_numbers:
        return
    contested = {policy.path for policy in release.contested}
    cells = [cell for cell in learner.estimates() if cell.live and cell.path in contested]
    for cell, (path, k) in zip(cells, release.cells, strict=True):
        if cell.radius is None:  # too few users to say, and nothing is decided
            assert literal.r(bin_of(path), k) == 0
            continue
        assert cell.estimate == pytest.approx(
            literal.f(bin_of(path), k), abs=TOLERANCE, rel=TOLERANCE
        )
        assert cell.radius == pytest.approx(
            literal.r(bin_of(path), k), abs=TOLERANCE, rel=TOLERANCE
        )


def play(seed: int, *, kind: type, c: float, users: int, **settings: Any) -> tuple[sv.Learner, Any]:
    """One random history through both, compared after every report."""
    rng = np.random.default_rng(seed)
    world = World.random(rng, users=users, **settings)
    experiment = world.experiment
    learner, literal = sv.Learner(experiment), transcription(kind, experiment, c=c)
    authors = kind is LiteralAuthors
    releases = [learner.release()]
    reported: set[int] = set()

    def axis(B: tuple[int, ...], longest: list[int]) -> int:
        chosen = learner.release().partition.cuts.get("".join(map(str, B)))
        if chosen is None:  # a settled bin, which the learner leaves as it is
            return longest[0]
        assert chosen in longest
        return chosen

    everyone = [
        m for m, population in enumerate(experiment.populations) for _ in range(population.users)
    ]
    for count, population in enumerate(map(int, rng.permutation(everyone)), start=1):
        # One in five is late: their device holds an older release.
        release = releases[-1]
        if rng.random() < 0.2:
            release = releases[int(rng.integers(len(releases)))]
        message = world.message(rng, release, population)
        standing = set(learner.release().cells)
        learner.receive(message.report)
        literal.user(
            message.population,
            {
                (bin_of(path), k): pair
                for (path, k), pair in message.values.items()
                if (path, k) in standing
            },
        )
        reported.add(message.population)
        stepped = count % experiment.release_every == 0
        if stepped:
            literal.step(axis, reported) if authors else literal.step(axis)
            reported.clear()
        if learner.release().version != releases[-1].version:
            releases.append(learner.release())
        # Between two steps the authors' sums of sums are not defined; their policy shows them.
        agree(learner, literal, compare_numbers=not authors)
        if authors and stepped:
            for policy in learner.release().bins:
                if not policy.settled:
                    ours, theirs = policy.propensities, literal.pi(bin_of(policy.path))
                    assert ours == pytest.approx(theirs, abs=TOLERANCE)
    return learner, literal


@pytest.mark.parametrize("part", slow_but([0], range(10)))
def test_the_learner_agrees_with_the_equations_over_random_histories(part: int) -> None:
    events: list[type] = []
    late = dropped = several = 0
    for seed in range(part, HISTORIES, 10):
        c = float(np.random.default_rng(seed).choice([0.003, 0.03, 0.3]))
        learner, _ = play(seed, kind=Literal, c=c, users=80, method=sv.Ldpmab("paper", c=c))
        events += [type(dated.event) for dated in learner.history()]
        late += learner.status().late_reports
        dropped += learner.status().dropped_cells
        several += len(learner.experiment.populations) > 1
    # The histories are worth comparing only if much happens in them.
    assert events.count(Elimination) > 50
    assert events.count(Split) > 50
    assert late > 100
    assert dropped > 100
    assert several > 20


@pytest.mark.parametrize("part", slow_but(range(1), range(5)))
def test_the_authors_preset_agrees_with_its_transcription(part: int) -> None:
    events: list[type] = []
    for seed in range(part, 100, 5):
        c = float(np.random.default_rng(seed).choice([0.001, 0.01, 0.1]))
        learner, _ = play(
            seed,
            kind=LiteralAuthors,
            c=c,
            users=300,
            release_every=10,
            method=sv.Ldpmab("authors", c=c),
        )
        events += [type(dated.event) for dated in learner.history()]
    assert events.count(Elimination) > 3
    assert events.count(Split) > 10


@pytest.mark.parametrize("part", range(2))
def test_with_no_auxiliary_population_algorithm_3_is_algorithm_2(part: int) -> None:
    events = 0
    for seed in range(part, 100, 2):
        settings = {"auxiliary": [], "method": sv.Ldpmab("paper", c=0.03)}
        learner, _ = play(seed, kind=LiteralAlgorithm2, c=0.03, users=80, **settings)
        events += len(learner.history())
    assert events > 100
