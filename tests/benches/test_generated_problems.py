"""What is drawn, with seeds that are no digest of any rules: nothing here is held out."""

from collections import Counter

import numpy as np
import pytest
from benchmarks.generated import Drawn, draw_problem

from sottovoce.lab.environments import draw_people, regret_at_random


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
    for drawn in (draw_problem("a rehearsal", number) for number in range(150)):
        kind, _, _, matter, law = drawn.name.split(": ")[1].split(", ")
        listed: list[object] = [kind, law, matter, drawn.group]
        listed += [("arms", drawn.environment.arms), ("d", drawn.environment.dimension)]
        count.update(listed)
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
        *(("arms", k) for k in range(2, 6)),
        *(("d", d) for d in range(1, 7)),
    }
    assert {each for each in wanted if count[each] < 5} == set()
    assert set(count) == wanted


@pytest.mark.parametrize("number", range(40))
def test_arms_differ_by_the_features_that_matter_and_by_no_others(drawn: Drawn) -> None:
    world, rng = drawn.environment, np.random.default_rng(2)
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
