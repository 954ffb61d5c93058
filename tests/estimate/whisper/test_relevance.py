"""Which axes matter: evidence against SciPy's densities, and how often each axis is asked about."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from factories import unit_cube
from sottovoce.estimate.whisper.constants import constants
from sottovoce.estimate.whisper.measurement import estimate
from sottovoce.estimate.whisper.relevance import ask_about, log_evidence
from sottovoce.estimate.whisper.smoothing import smooth
from sottovoce.estimate.whisper.split import split
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.estimate.whisper.step import step
from support.states import SEEDS, Floats, with_levels

ALL = 1024  # shares of axes in a release


@pytest.mark.parametrize("arms", [2, 3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_evidence_is_a_ratio_of_two_densities(seed: int, arms: int) -> None:
    """Of the estimate J⁻¹h, which is normal around the effect with the covariance J⁻¹."""
    rng = np.random.default_rng([seed, arms])
    root = rng.normal(0, 1, (arms, arms + 2)) * 10 ** rng.uniform(0, 2)
    precision, square = root @ root.T, 0.2**2 * rng.uniform(0.01, 1)
    covariance = np.linalg.inv(precision)
    told = stats.multivariate_normal(cov=covariance).rvs(random_state=rng) + rng.normal(0, 0.1)
    matters = stats.multivariate_normal(cov=covariance + square * np.eye(arms)).logpdf(told)
    does_not = stats.multivariate_normal(cov=covariance).logpdf(told)
    found = log_evidence(precision, precision @ told, square)
    assert found == pytest.approx(matters - does_not, rel=1e-7, abs=1e-8)


def test_evidence_of_contrasts_alone_is_that_of_the_difference() -> None:
    """Answers that compare two arms have no inverse; they are normal in the difference."""
    variance, square, told = 0.003, 0.2**2, 0.11
    contrast = np.array([1.0, -1.0, 0.0])
    precision = np.outer(contrast, contrast) / variance
    expected = stats.norm(0, (variance + 2 * square) ** 0.5).logpdf(told)
    expected -= stats.norm(0, variance**0.5).logpdf(told)
    assert log_evidence(precision, contrast * told / variance, square) == pytest.approx(expected)


def test_nothing_told_is_no_evidence() -> None:
    assert log_evidence(np.zeros((3, 3)), np.zeros(3), 0.04) == 0


def tell(
    state: State, node: int, slot: int, effect: Floats, *, many: float, level: bool = False
) -> None:
    """Let many people tell of an effect, as it is on average, in halves or levels as expected."""
    share, arms = state.mass[node, 0], len(effect)
    part = state.level_mass[node, 0, slot] if level else 1.0
    contrast = np.eye(arms) - 1 / arms
    state.served.precision[node, 0, 1 + slot] = many * contrast
    state.served.vector[node, 0, 1 + slot] = many * share * part * contrast @ effect


def world(levels: list[int], matters: int, *, many: float, steep: float = 0.1) -> State:
    """Three bins in which one axis matters and all others are asked about in vain."""
    known = constants(with_levels(*levels, arms=3))
    state = initial_state(known)
    split(state, known, 0, levels.index(0), estimate(state, known, 0))
    for node, axis in itertools.product(range(3), range(len(levels))):
        first, count = int(known.axes.slots[axis]), max(levels[axis], 1)
        for slot in range(first, first + count):
            sign = 1 if (slot - first) % 2 else -1
            effect = steep * sign * np.array([1.0, -1.0, 0.0]) * (axis == matters)
            tell(state, node, slot, effect, many=many, level=levels[axis] > 0)
    smooth(state, known)
    return state


CONTEXTS = [[0, 0, 0], [0, 4, 0], [0, 0, 0, 0, 5, 3], [0] * 12]
MATTERING = [(levels, axis) for levels in CONTEXTS for axis in (0, len(levels) - 1)]


@pytest.mark.parametrize(("levels", "axis"), MATTERING)
def test_an_axis_that_matters_wins_and_the_others_fall(levels: list[int], axis: int) -> None:
    few = min(1.0, 2 / len(levels))  # two axes are expected to matter
    others = np.ones(len(levels) - 1)
    before = np.full(len(levels), 1.0)
    for many in (1e2, 1e3, 1e4, 1e6):
        found = world(levels, axis, many=many).relevance
        others = np.delete(found, axis)
        assert (others <= np.delete(before, axis)).all()
        assert (found > 0).all()
        assert (found <= 1).all()
        before = found
    assert found[axis] == pytest.approx(1)
    # What stays of the others is 5 % of what is thought of any axis at first.
    assert others == pytest.approx(0.05 * few, rel=0.05)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_before_anyone_answers_two_axes_are_expected_to_matter(d: int) -> None:
    known = constants(unit_cube(d=d))
    state = initial_state(known)
    assert state.relevance.tolist() == [1.0] * d  # until somebody has told something
    smooth(state, known)
    chance = min(1, 2 / d)
    left = chance + (1 - chance) * 0.05 * chance
    assert state.relevance == pytest.approx([left] * d)


@pytest.mark.parametrize("d", [1, 2])
def test_where_there_are_no_more_axes_than_are_expected_to_matter_all_do(d: int) -> None:
    """In an exclusive or, for one, neither of two axes shows anything by itself."""
    known = constants(unit_cube(d=d))
    state = initial_state(known)
    for axis in range(d):
        tell(state, 0, axis, np.zeros(known.arms), many=1e6)
    smooth(state, known)
    assert state.relevance == pytest.approx([1.0] * d)


def test_evidence_of_all_bins_adds_up() -> None:
    """An effect that no single bin shows for certain is seen by all of them together."""

    def odds(state: State) -> float:
        least = 0.05 * 2 / 3
        matters = (state.relevance[0] - least) / (1 - least)
        return float(special.logit(matters))

    known = constants(unit_cube(d=3, arms=2))
    effect, found = np.array([0.12, -0.12]), []
    for told in ([0], [1], [2], [0, 1, 2]):
        state = initial_state(known)
        split(state, known, 0, 1, estimate(state, known, 0))
        for node in told:
            tell(state, node, 0, effect, many=300.0 / state.mass[node, 0] ** 2)
        smooth(state, known)
        found.append(odds(state))
    prior = np.log(2)  # two of three axes are expected to matter
    assert found[-1] - prior == pytest.approx(sum(found[:3]) - 3 * prior, rel=1e-6)
    assert min(found) > prior + 0.1


@pytest.mark.parametrize("levels", CONTEXTS)
def test_relevance_is_a_share_of_what_an_effect_may_be(levels: list[int]) -> None:
    """Of the root's prior variance, and of the part of it that parts of bins expect anew."""
    state = world(levels, 0, many=1e3)
    known = constants(with_levels(*levels, arms=3))
    for axis, relevance in enumerate(state.relevance):
        first = int(known.axes.slots[axis])
        for slot in range(first, first + max(levels[axis], 1)):
            expected = np.eye(3) / (0.2**2 * relevance)
            assert state.prior.precision[0, 1 + slot] == pytest.approx(expected)
    # With 10^10 times as many answers as anyone could give, nothing is left but that.
    state = world(levels, 0, many=1e12)
    for axis in range(1, len(levels)):
        slot = int(known.axes.slots[axis])
        expected = 0.5 * 0.05 * 0.2**2 * state.relevance[axis]
        assert state.effect_variance[1, slot] == pytest.approx(expected, rel=1e-3)


# --- who is asked about what ----------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 7, 40, 300])
@pytest.mark.parametrize("seed", range(5))
def test_everybody_is_asked_about_no_axis_or_about_one_in_proportion(seed: int, d: int) -> None:
    rng = np.random.default_rng([seed, d])
    known = constants(unit_cube(d=d))
    state = initial_state(known)
    varies = rng.exponential(1.0, d) ** rng.choice([1, 4])
    ask_about(state, known, varies)
    assert state.ask.sum() == ALL
    assert (state.ask >= 0).all()
    weights = varies**1.5 / (varies**1.5).sum()
    # 10 % for each axis in question, up to 90 %.
    share = min(0.1 / (weights**2).sum(), 0.9)
    assert np.abs(state.ask[1:] - ALL * share * weights).max() <= 1 + 1e-3 * ALL
    assert state.ask[0] >= 0.1 * ALL


@pytest.mark.parametrize(("levels", "effects"), [(3, 2), (4, 3), (6, 5), (12, 11)])
def test_the_more_levels_an_axis_has_the_more_people_are_asked(levels: int, effects: int) -> None:
    """Levels differ from their mean: all but one of the differences are unknown."""
    known = constants(with_levels(levels, 0, arms=2))
    state = initial_state(known)
    ask_about(state, known, np.array([1.0, 0.0]))  # the number makes no difference
    assert state.ask[1] == pytest.approx(ALL * min(0.1 * effects, 0.9), abs=2)
    ask_about(state, known, np.array([1.0, 1.0]))  # as many are asked about either
    in_question = 1 / (0.25 / effects + 0.25)
    assert state.ask[1] == state.ask[2]
    assert state.ask[0] == pytest.approx(ALL * (1 - min(0.1 * in_question, 0.9)), abs=3)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_at_first_all_axes_are_asked_about_alike(d: int) -> None:
    known = constants(unit_cube(d=d))
    state = initial_state(known)
    assert state.ask.sum() == ALL
    assert set(state.ask[1:].tolist()) == {ALL // (2 * d)}
    ask_about(state, known, np.zeros(d))  # nothing varies, as far as anybody knows
    assert state.ask.sum() == ALL
    assert len(set(state.ask[1:].tolist())) == 1


def test_after_smoothing_people_are_asked_about_what_matters() -> None:
    levels = [0, 0, 0, 4]
    state, known = world(levels, 3, many=1e4), constants(with_levels(0, 0, 0, 4, arms=3))
    contested(state)
    state.totals[0].reports, state.totals[0].smoothed = 1000, 0
    before = int(state.totals[0].release)
    step(state, known)
    assert state.ask.sum() == ALL
    assert state.ask[4] > 5 * state.ask[1:4].max()
    assert state.totals[0].release == before + 1  # people must come to know


def test_between_two_times_of_smoothing_nobody_is_asked_anything_else() -> None:
    state, known = world([0, 4], 1, many=1e4), constants(with_levels(0, 4, arms=3))
    contested(state)
    state.totals[0].reports = state.totals[0].smoothed = 1000
    before = state.ask.copy()
    step(state, known)
    assert (state.ask == before).all()


def contested(state: State) -> None:
    """Make both parts contested bins."""
    state.contested[:2], state.totals[0].contested = [1, 2], 2
    state.live[1:3] = True
    state.pair[1:3] = [0, 1]
    state.forecast.share[:3] = state.mass[:3, 0]


def test_relevance_follows_what_an_axis_is_worth() -> None:
    """The steeper along an axis, the more relevant it is found to be."""
    found = [world([0] * 6, 5, many=1e3, steep=steep).relevance[5] for steep in (0, 0.05, 0.1)]
    assert found == sorted(found)
    assert found[0] < 0.05 < 0.9 < found[2]
