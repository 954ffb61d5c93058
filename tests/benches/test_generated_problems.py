"""What is drawn, with seeds that are no digest of any rules: nothing here is held out."""

from collections import Counter

import numpy as np
import pytest
from benchmarks.generated import FAMILIES, Drawn, Levelled, draw_problem

import sottovoce as sv
from sottovoce.lab.drift import SlowDrift, SuddenDrift
from sottovoce.lab.environments import (
    Environment,
    Exponential,
    Floats,
    draw_people,
    regret_at_random,
)
from sottovoce.lab.missing import Missing
from sottovoce.lab.worlds import PartlyOther


@pytest.fixture
def drawn(number: int) -> Drawn:
    """One of the problems; drawn where it is tested, as each takes a while."""
    return draw_problem("a rehearsal", number)


def law(drawn: Drawn) -> tuple[object, ...]:
    """Everything about a problem that can be seen from outside."""
    worlds = [drawn.environment, *(each.environment for each in drawn.auxiliary)]
    seen: list[object] = [drawn.name, drawn.group, drawn.epsilon, drawn.n]
    for world in worlds:
        assert world is not None
        contexts, means, _ = draw_people(world, np.random.default_rng(1), 20)
        seen += [contexts.tolist(), means.tolist()]
    seen += [(each.users, each.epsilon, each.kappa, each.known) for each in drawn.auxiliary]
    return tuple(seen)


def test_the_same_seed_draws_the_same_problem() -> None:
    before = [law(draw_problem("a rehearsal", number)) for number in range(5)]
    draw_problem.cache_clear()
    assert [law(draw_problem("a rehearsal", number)) for number in range(5)] == before


def test_another_seed_or_number_draws_another_problem() -> None:
    seeds = ("a rehearsal", "another rehearsal")
    drawn = [draw_problem(seed, number) for seed in seeds for number in range(10)]
    assert len({str(law(each)) for each in drawn}) == 20


@pytest.mark.parametrize("number", range(40))
def test_people_of_what_is_drawn_pass_the_checks(drawn: Drawn) -> None:
    for world in (drawn.environment, *(each.environment for each in drawn.auxiliary)):
        assert world is not None
        contexts, means, _ = draw_people(world, np.random.default_rng(0), 2000)
        assert contexts.shape == (2000, drawn.environment.dimension)
        assert means.shape == (2000, drawn.environment.arms)


def test_all_kinds_of_problems_are_drawn() -> None:
    count: Counter[object] = Counter()
    harder = 0
    for drawn in (draw_problem("a rehearsal", number) for number in range(200)):
        kind, _, features, matter, law = drawn.name.split(": ")[1].split(", ")
        d = int(features.split()[0])
        many = drawn.group == "many features"
        assert (7 <= d <= 50) if many else (1 <= d <= 6)
        listed: list[object] = [kind, law, matter, drawn.group, ("arms", drawn.environment.arms)]
        count.update([*listed, *([] if many else [("d", d)])])
        harder += drawn.group in FAMILIES
        count.update(
            quality
            for quality in ("alike", "shifted", "bent", "other")
            if f" {quality}" in drawn.auxiliary_name
        )
        assert 0.5 <= drawn.epsilon <= 8
        assert 10_000 <= drawn.n <= 160_000
        assert regret_at_random(drawn.environment, people=20_000) >= 0.01
    wanted = {
        *("steps", "slopes", "logistic", "bumps", "stripes"),
        *("uniform", "half in a corner", "leaning", "on heaps"),
        *("1 matter", "2 matter", "3 matter"),
        *("no auxiliary data", "auxiliary data of the same rewards"),
        *("auxiliary data of other rewards", "alike", "shifted", "bent", "other"),
        *FAMILIES,
        *(("arms", k) for k in range(2, 6)),
        *(("d", d) for d in range(1, 7)),
    }
    assert {each for each in wanted if count[each] < 5} == set()
    assert set(count) == wanted
    # About half: with a chance of 1/2 each, all but 1 of 45,000 rehearsals have 70 to 130 of 200.
    assert 70 <= harder <= 130


def of_family(family: str) -> list[Drawn]:
    rehearsed = (draw_problem("a rehearsal", number) for number in range(200))
    return [drawn for drawn in rehearsed if drawn.group == family]


def differing(one: Environment, other: Environment, contexts: Floats) -> Floats:
    """Say for whom the best arm is another."""
    best = [world.means(contexts).argmax(axis=1) for world in (one, other)]
    return np.asarray(best[0] != best[1], dtype=np.float64)


def test_levels_are_of_a_feature_that_matters_and_have_all_their_places() -> None:
    for drawn in of_family("levels"):
        world = drawn.environment
        assert isinstance(world, Levelled)
        feature = world.features[world.axis]
        assert isinstance(feature, sv.Categorical)
        places = (np.arange(len(feature.levels)) + 0.5) / len(feature.levels)
        seen = world.contexts(np.random.default_rng(0), 5000)[:, world.axis]
        assert set(seen.round(9)) <= set(np.round(places, 9))
        assert 3 <= len(places) <= 30
        for each in drawn.auxiliary:
            assert isinstance(each.environment, Levelled)
            assert each.environment.order == world.order


def test_a_level_has_the_rewards_of_its_own_piece_of_the_axis() -> None:
    world = Levelled(Exponential(), 0, (2, 0, 1))
    here, there = world.contexts(np.random.default_rng(0), 900), np.random.default_rng(0)
    # The first level is the last third of the axis.
    own = Exponential().contexts(there, 900)[:, 0]
    assert ((here[:, 0] == 0.5 / 3) == (own >= 2 / 3)).all()
    last = Exponential().means(np.array([[2.5 / 3, 0.0]]))
    assert world.means(np.array([[0.5 / 3, 0.0]])) == pytest.approx(last)


def test_rows_that_are_wrong_in_places_are_right_elsewhere() -> None:
    for drawn in of_family("rows wrong in places"):
        world = drawn.auxiliary[0].environment
        assert isinstance(world, PartlyOther)
        contexts = np.random.default_rng(0).random((2000, world.dimension))
        others = differing(drawn.environment, world, contexts)
        assert others[contexts[:, world.axis] >= world.share].sum() == 0
        assert others[contexts[:, world.axis] < world.share].mean() > 0.5
        assert f"wrong in {world.share:.0%}" in drawn.auxiliary_name


def test_drifts_are_sudden_or_slow_and_over_before_the_last_person() -> None:
    drifts = of_family("drift")
    assert {type(drawn.environment) for drawn in drifts} == {SuddenDrift, SlowDrift}
    for drawn in drifts:
        changes = drawn.environment.changes  # type: ignore[attr-defined]
        assert 0 < changes[0] <= changes[-1] <= drawn.n


@pytest.mark.parametrize("number", range(40))
def test_arms_differ_by_the_features_that_matter_and_by_no_others(drawn: Drawn) -> None:
    world, rng = drawn.environment, np.random.default_rng(2)
    if isinstance(world, Missing):  # it has an axis more, which always matters
        world = world.environment
    here = rng.random((200, world.dimension))

    def gaps(contexts: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> object:
        means = world.means(contexts)
        return (means[:, 1:] - means[:, :1]).round(9).tolist()

    felt = 0
    for axis in range(world.dimension):
        there = here.copy()
        there[:, axis] = rng.random(200)
        felt += gaps(there) != gaps(here)
    assert f"{world.dimension} features, " in drawn.name
    assert felt <= int(drawn.name.split(" matter")[0].rsplit(" ", 1)[1])
