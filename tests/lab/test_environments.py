from typing import Any

import numpy as np
import pytest
from scipy import stats

import sottovoce as sv
from sottovoce.lab.environments import (
    Environment,
    Exponential,
    Shifted,
    Slope,
    Symmetric,
    behaviour,
    regret_at_random,
)

WORLDS: list[Environment] = [
    Exponential(),
    Exponential(arms=5, dimension=1),
    Exponential(printed=True),
    Symmetric(),
    Slope(),
    Shifted(Exponential(dimension=3), 1.5),
    Shifted(Symmetric(), 0.2, authors=True),
]


@pytest.mark.parametrize("world", WORLDS)
def test_contexts_and_means_have_their_shapes_and_lie_in_the_unit_interval(
    world: Environment,
) -> None:
    contexts = world.contexts(np.random.default_rng(0), 1000)
    means = world.means(contexts)
    assert contexts.shape == (1000, world.dimension)
    assert means.shape == (1000, world.arms)
    for values in (contexts, means):
        assert values.min() >= 0
        assert values.max() <= 1


def test_the_exponential_model_is_the_formula() -> None:
    x = np.array([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])
    for printed, centres in ((True, (1 / 3, 2 / 3, 1)), (False, (1 / 4, 1 / 2, 3 / 4))):
        means = Exponential(printed=printed).means(x)
        for k, centre in enumerate(centres):
            e = np.exp(-2 * 9 * (x[:, 0] - centre) ** 2)
            assert means[:, k] == pytest.approx(2 * e / (1 + e))


def test_the_symmetric_model_has_a_pyramid_in_each_quarter() -> None:
    means = Symmetric().means(np.array([[0.25, 0.25], [0.25, 0.75], [0.5, 0.3], [0.125, 0.25]]))
    assert means == pytest.approx(np.array([[0, 1], [1, 0], [0.5, 0.5], [0.25, 0.75]]))


def test_random_arms_lose_what_was_measured_before() -> None:
    assert regret_at_random(Exponential()) * 80_000 == pytest.approx(33_072, rel=0.01)


@pytest.mark.parametrize(("gamma", "d"), [(0.2, 2), (1.0, 2), (2.0, 2), (1.0, 1), (3.0, 3)])
def test_shifted_contexts_have_the_density_they_claim(gamma: float, d: int) -> None:
    # False-alarm rate 1e-9 for each; the seed is fixed, so it passes or fails for good.
    world = Shifted(Exponential(dimension=d), gamma)
    contexts = world.contexts(np.random.default_rng(0), 20_000)
    # ‖x - 1/2‖∞ = R/2 with P(R < r) = r^(d+γ); its direction is uniform on the cube's surface.
    radius = 2 * np.abs(contexts - 0.5).max(axis=1)
    assert stats.kstest(radius, lambda r: r ** (d + gamma)).pvalue > 1e-9
    for axis in range(d):
        assert stats.kstest(contexts[:, axis], 1 - contexts[:, axis]).pvalue > 1e-9
    uniform = np.random.default_rng(1).random((400_000, d))
    assert world.density(uniform).mean() == pytest.approx(1, abs=0.01)


def test_the_authors_draw_their_contexts_from_another_density() -> None:
    worlds = [Shifted(Symmetric(), 1.0, authors=authors) for authors in (False, True)]
    radii = [
        2 * np.abs(w.contexts(np.random.default_rng(0), 20_000) - 0.5).max(axis=1) for w in worlds
    ]
    assert stats.kstest(radii[1], lambda r: r**4).pvalue > 1e-9  # u^(1/(d(γ+1)))
    assert stats.kstest(radii[0], lambda r: r**3).pvalue > 1e-9  # u^(1/(d+γ))


@pytest.mark.parametrize("kappa", [0.0, 0.2, 1.0])
def test_a_behaviour_policy_explores_as_much_as_kappa_says(kappa: float) -> None:
    policy = behaviour(4, kappa)
    assert policy.sum() == pytest.approx(1)
    assert 4 * policy.min() == pytest.approx(kappa)


@pytest.mark.parametrize("kappa", [-0.1, 1.1, float("nan")])
def test_a_kappa_outside_the_unit_interval_is_refused(kappa: Any) -> None:
    with pytest.raises(sv.ExperimentError, match="kappa must lie in"):
        behaviour(3, kappa)
