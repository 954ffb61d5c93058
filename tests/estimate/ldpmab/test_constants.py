"""The constants of both presets, worked out by hand."""

import math

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.estimate.ldpmab.constants import Constants, constants


def of(**settings: object) -> Constants:
    return constants(experiment(**{"horizon": 20_000, "epsilon": 1.0, **settings}))


def test_the_paper_s_constants() -> None:
    paper = of(method=sv.Ldpmab("paper"))
    assert paper.confidence == pytest.approx(9.903487552536127)  # ln 20000, c = 1
    assert paper.warm_up == pytest.approx(98.079066, rel=1e-6)  # ln² 20000
    assert paper.taus[[0, 1, 2, 4]] == pytest.approx([2.828427, 2.0, 1.414214, 0.707107], rel=1e-5)
    assert (paper.band_radius, paper.band_tau) == (2, 0)
    assert (paper.split_when_all, paper.running_sums, paper.clip, paper.tilt) == (
        False,
        False,
        False,
        0,
    )
    assert paper.deepest == 96
    assert of(method=sv.Ldpmab("paper", c=0.5)).confidence == pytest.approx(9.903487552536127 / 2)


def test_the_authors_constants() -> None:
    authors = of(method=sv.Ldpmab("authors"))
    assert authors.confidence == pytest.approx(2 * 14.287712379549449)  # 2·log2 20000
    assert authors.warm_up == 14**2
    assert authors.taus.tolist() == pytest.approx(
        [1, 0.707107, 0.5, 0.353553, 0.25, 0.176777], rel=1e-5
    )
    assert (authors.band_radius, authors.band_tau) == (1, 1)
    assert (authors.split_when_all, authors.running_sums, authors.clip) == (True, True, True)
    assert authors.tilt == 1.2
    # min(log2(40000)·2/4, log2(40000)·2/6) = min(7.64, 5.10)
    assert authors.deepest == 5
    assert of(epsilon=1024.0).deepest == 7  # min(7.64, 11.76)


def test_the_authors_default_is_the_default() -> None:
    assert sv.Ldpmab() == sv.Ldpmab("authors")
    assert of().confidence == of(method="ldpmab").confidence == of(method=sv.Ldpmab()).confidence


def test_a_small_epsilon_counts_for_fewer_users() -> None:
    authors = of(epsilon=0.5)  # n·min(1, ε)² = 5000
    assert authors.confidence == pytest.approx(2 * math.log2(5000))
    assert authors.warm_up == 12**2
    assert authors.deepest == 4  # log2(10000)·2/6 = 4.43
    paper = of(epsilon=0.5, method=sv.Ldpmab("paper"))
    assert paper.confidence == pytest.approx(math.log(20_000))


def test_the_largest_population_sets_n_and_every_one_deepens_the_cap() -> None:
    rows = [sv.Population("rows", 8.0, 100_000)]
    assert of(auxiliary=rows, method=sv.Ldpmab("paper")).confidence == pytest.approx(math.log(1e5))
    assert of(auxiliary=rows).confidence == pytest.approx(2 * math.log2(1e5))
    # rows: min(log2(400000)/2, log2(400000·64)/3) = min(9.30, 8.20)
    assert of(auxiliary=rows).deepest == 8
    empty = [sv.Population(f"{m}", 1.0, 0) for m in range(2)]
    assert of(auxiliary=empty, epsilon=1024.0).deepest == 8  # log2(120000)/2 = 8.44


@pytest.mark.parametrize("preset", ["paper", "authors"])
def test_tiny_experiments_have_constants_too(preset: object) -> None:
    tiny = of(horizon=1, epsilon=1e-3, method=sv.Ldpmab(preset))  # type: ignore[arg-type]
    assert tiny.confidence > 0
    assert tiny.deepest >= 0
