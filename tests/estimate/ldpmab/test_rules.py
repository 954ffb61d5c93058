"""What must hold of the multiple-source estimator, whatever the sums."""

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sottovoce as sv
from factories import experiment
from sottovoce.estimate.ldpmab import rules
from sottovoce.estimate.ldpmab.constants import Constants, constants

SUMS = st.floats(-1e4, 1e4).filter(lambda number: abs(number) > 1e-6)
SOURCES = st.lists(
    st.tuples(st.integers(0, 10**6), SUMS, SUMS, st.floats(0.01, 1024)), min_size=1, max_size=6
)


PAPER = constants(experiment(method=sv.Ldpmab("paper")))
AUTHORS = constants(experiment(method=sv.Ldpmab("authors")))


def weighed(sources: list[tuple[int, float, float, float]]) -> tuple[float, float, float]:
    users, pulls, rewards, epsilons = map(np.array, zip(*sources, strict=True))
    everyone = np.ones(len(users), dtype=bool)
    settings = PAPER._replace(epsilons=epsilons, warm_up=50.0)
    return rules.weigh(users, pulls, rewards, everyone, settings)


@given(SOURCES, st.randoms())
def test_the_estimate_does_not_change_when_populations_are_permuted(
    sources: list[tuple[int, float, float, float]],
    random: Random,
) -> None:
    shuffled = list(sources)
    random.shuffle(shuffled)
    before, after = weighed(sources), weighed(shuffled)
    size = sum(abs(pulls) + abs(rewards) for _, pulls, rewards, _ in sources)
    assert after == pytest.approx(before, rel=1e-12, abs=1e-12 * size)


@given(
    st.integers(50, 10**6),
    st.floats(1e-3, 1).flatmap(lambda share: st.sampled_from([share, -share])),
)
def test_all_weights_become_1_as_epsilon_grows(users: int, share: float) -> None:
    pulls = share * users
    weights = [rules.weight(users, pulls, epsilon, 50.0) for epsilon in (0.01, 1, 10, 100, 1e6)]
    assert weights == sorted(weights)
    assert weights[-1] == 1.0


@given(st.integers(0, 10**6), SUMS, st.floats(0.01, 1024))
@example(49, 1.0, 1.0)
@example(50, 1.0, 1.0)
def test_a_weight_lies_between_0_and_1_and_is_0_before_the_warm_up(
    users: int, pulls: float, epsilon: float
) -> None:
    weight = rules.weight(users, pulls, epsilon, 50.0)
    assert 0 <= weight <= 1
    assert (weight == 0) == (users < 50)


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 10)), min_size=1, max_size=8),
    st.floats(0.001, 3),
    st.sampled_from([PAPER, AUTHORS]),
)
def test_the_arm_with_the_highest_lower_bound_always_stays(
    arms: list[tuple[float, float]], tau: float, settings: Constants
) -> None:
    estimates, radii = map(np.array, zip(*arms, strict=True))
    keep = np.empty(len(arms), dtype=bool)
    rules.eliminate(estimates, radii, tau, settings, keep)
    lower = [f - rules.half_width(r, tau, settings) for f, r in arms]
    assert keep[int(np.argmax(lower))]
    assert all(keep[k] for k in range(len(arms)) if radii[k] == 0)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=8).filter(
        lambda arms: any(live for _, live in arms)
    ),
    st.sampled_from([PAPER, AUTHORS]),
)
def test_chances_are_positive_add_up_and_follow_the_estimates(
    arms: list[tuple[float, bool]], settings: Constants
) -> None:
    estimates, keep = map(np.array, zip(*arms, strict=True))
    chances = np.empty(len(arms))
    rules.tilt(estimates, keep, settings._replace(arms=8), chances)
    assert chances.sum() == pytest.approx(1)
    assert ((chances > 0) == keep).all()
    if settings is PAPER:
        assert np.allclose(chances[keep], 1 / keep.sum())
    else:
        assert chances[keep][int(np.argmax(estimates[keep]))] == chances.max()


def test_the_learner_does_not_care_which_population_is_which() -> None:
    """Three populations with the same ε, their names exchanged: the same decisions."""
    from support.histories import World

    def populations(sizes: list[int]) -> sv.Experiment:
        first, *others = sizes
        auxiliary = [sv.Population(f"aux {m}", 16.0, size) for m, size in enumerate(others)]
        method = sv.Ldpmab("paper", c=0.1)
        return experiment(epsilon=16.0, horizon=first, auxiliary=auxiliary, method=method)

    def learn(order: list[int]) -> sv.Learner:
        rng = np.random.default_rng(3)
        sizes = [600, 400, 500]
        target = populations([sizes[m] for m in order])
        world = World(target, rng.beta(0.3, 0.3, (4, 3)))
        learner = sv.Learner(target)
        for m in rng.integers(3, size=1500).tolist():
            learner.receive(world.message(rng, learner.release(), order.index(m)).report)
        return learner

    one, other = learn([0, 1, 2]), learn([2, 0, 1])
    assert one.release().bins == other.release().bins
    assert one.release().partition == other.release().partition
    assert one.history() == other.history()
    assert len(one.history()) > 3
    for ours, theirs in zip(one.estimates(), other.estimates(), strict=True):
        assert (ours.estimate, ours.radius) == pytest.approx((theirs.estimate, theirs.radius))
