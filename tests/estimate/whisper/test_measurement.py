"""Answers to estimates: against least squares written out from the table of questions."""

import itertools
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import linalg

from factories import CONTRAST, COUNT, LEVEL, LOGGED_LEVEL, MASS, OUTCOME, RANKED, unit_cube
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import (
    Answers,
    BinEstimate,
    BinShares,
    add_answers,
    bin_shares,
    coefficients,
    estimate,
    invert,
    solve,
)
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.estimate.whisper.tally import mechanism_record
from sottovoce.shared.whisper.cells import CellMechanism, cell_mechanism
from sottovoce.shared.whisper.questions import ANY, MORE, TABLE, TWO, Entry
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset
from support.states import SEEDS, Floats, with_levels


def entry_of(kind: int, *, arms: int) -> Entry:
    """A question of an experiment with so many arms, whether or not they are public."""
    of_so_many = (ANY, TWO if arms == 2 else MORE)
    (entry,) = [each for each in TABLE if each.kind == kind and each.arms in of_so_many]
    return entry


def record_of(mechanism: SignedSubset, *, parts: int) -> Any:
    """What the rules need of a mechanism."""
    return mechanism_record(CellMechanism(mechanism, parts=parts, elsewhere=False))


def sign_of(row: int, level: int) -> float:
    """An entry of SciPy's Hadamard matrix."""
    return float(linalg.hadamard(64)[row, level])


class Told(NamedTuple):
    """The average value/β of the answers to one question, about the whole bin or one slot.

    at: 0 for the whole bin, 1 + z for slot z.
    """

    m: int
    at: int
    answer: float
    variance: float


@dataclass
class Observations:
    """Answers about one bin: of people, with the arm of a cell by arm; and of rewards.

    By the table of questions, rewards have the mean p·(weights · g) of people who were served, and
    p·Σ_k π_k·weights_k·g_k of logged rows.
    """

    people: list[tuple[Told, int | None]] = field(default_factory=list)
    rewards: list[tuple[Told, bool, Floats]] = field(default_factory=list)


def weights_of(kind: int, arms: int, first: int, second: int) -> Floats:
    """What a cell measures, but for the share of the people in it."""
    weights = np.zeros(arms)
    if kind in (CONTRAST, LEVEL):  # f_a - f_b, and f_a + f_b - 1
        weights[first], weights[second] = 1, -1 if kind == CONTRAST else 1
    elif kind == LOGGED_LEVEL:  # (2f_a - 1) + (2f_b - 1)
        weights[first], weights[second] = 2, 2
    elif kind == OUTCOME and arms == 2:  # (2f_a - 1) - (2f_b - 1)
        weights[first], weights[second] = 2, -2
    elif kind in (OUTCOME, RANKED):  # 2f - 1
        weights[first] = 2
    return weights


def random_answers(
    rng: np.random.Generator, state: State, known: Constants, *, questions: int
) -> Observations:
    """Add random answers to a bin, and write down what was added."""
    arms, groups = known.arms, state.mass.shape[1]
    seen = Observations()
    kinds = [CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED, *([LOGGED_LEVEL] if arms == 2 else [])]
    for _ in range(questions):
        m, kind = int(rng.integers(groups)), int(rng.choice(kinds))
        axis = int(rng.integers(-1, known.dimension))
        first, second = map(int, rng.choice(arms, 2, replace=False))
        mechanism = signed_subset(float(rng.choice([0.5, 2.0, 8.0])), int(rng.integers(1, 9)))
        levels = int(known.axes.levels[axis]) if axis >= 0 else 0
        parts = (levels or 2) if axis >= 0 and rng.random() < 0.4 else 1
        row = int(rng.integers(1 << (levels - 1).bit_length())) if levels and parts == 1 else 0
        reports = float(rng.integers(1, 20_000))
        share = state.mass[0, m]
        if kind == COUNT or (kind == OUTCOME and arms > 2):  # a cell for each arm
            share *= known.behaviour[m, first] if known.known[m] else 1 / arms
        scale = share * (1 if kind in (MASS, COUNT) else rng.normal(0, 0.3))
        sums = rng.normal(scale / parts, 1, parts) * mechanism.signal * reports**0.5
        told = Answers(0, m, axis, row, first, second, reports, sums)
        record = record_of(mechanism, parts=parts)
        add_answers(state, known, record, entry_of(kind, arms=arms), told)
        for at, total, variance in parts_told(state, known, mechanism, told, share):
            each = Told(m, at, total / mechanism.signal / reports, variance / reports)
            if kind in (MASS, COUNT):
                seen.people.append((each, first if kind == COUNT else None))
            else:
                logged = kind in (OUTCOME, LOGGED_LEVEL)
                seen.rewards.append((each, logged, weights_of(kind, arms, first, second)))
    return seen


def parts_told(
    state: State, known: Constants, mechanism: SignedSubset, told: Answers, share: float
) -> list[tuple[int, float, float]]:
    """What one answer tells, by the text of the docs: of which slot, the sum, and its variance.

    Where parts are cells, each answer tells of the whole bin, too.
    """
    axis, parts = told.axis, len(told.sums)
    whole = variance_of(mechanism, share, parts=parts)
    listed = [(0, float(told.sums.sum()), whole)] if axis < 0 or parts > 1 else []
    if axis < 0:
        return listed
    slot, levels = int(known.axes.slots[axis]), int(known.axes.levels[axis])
    if not levels:
        difference = told.sums[-1] - (told.sums[0] if parts > 1 else 0)
        return [*listed, (1 + slot, float(difference), whole)]
    for level in range(levels):
        if not state.holds[0, slot + level]:
            continue
        if parts > 1:
            part = share * state.level_mass[0, told.population, slot + level]
            variance = variance_of(mechanism, part, parts=1)
            listed.append((1 + slot + level, float(told.sums[level]), variance))
        else:
            total = sign_of(told.row, level) * float(told.sums[0])
            listed.append((1 + slot + level, total, whole))
    return listed


def variance_of(mechanism: SignedSubset, share: float, *, parts: int) -> float:
    """E[(value/β)²] of a random person: in the bin with chance ``share``, else outside of it.

    Where parts are cells it is that of their sum: those outside are outside of each part, and who
    is in one part is outside of the others.
    """
    outside, inside = mechanism.noise, mechanism.inside
    return share * (inside + (parts - 1) * outside) + (1 - share) * parts * outside


def regression(rows: list[tuple[Floats, float, float]], prior: Floats, at: Floats) -> Any:
    """Bayesian linear regression by least squares: the posterior's mean and covariance.

    prior, at: the precision and the mean before anything is seen.
    rows: what an answer's mean is, as weights; the answer; its variance.
    """
    root = np.linalg.cholesky(prior).T
    design = np.vstack([root, *(weights / variance**0.5 for weights, _, variance in rows)])
    right = np.concatenate([root @ at, [answer / variance**0.5 for _, answer, variance in rows]])
    mean, *_ = np.linalg.lstsq(design, right, rcond=None)
    return mean, np.linalg.inv(design.T @ design)


def one(rows: list[tuple[float, float, float]], *, spread: float, around: float) -> float:
    """The posterior mean of one number."""
    listed = [(np.array([weight]), answer, variance) for weight, answer, variance in rows]
    mean, _ = regression(listed, np.array([[spread**-2]]), np.array([around]))
    return float(mean[0])


def slots_of(known: Constants) -> list[tuple[int, bool]]:
    """Every slot, and whether it is that of a level."""
    return [
        (int(known.axes.slots[axis]) + index, levels > 0)
        for axis, levels in enumerate(known.axes.levels)
        for index in range(max(int(levels), 1))
    ]


def directly(
    seen: Observations, known: Constants, state: State, *, prior: Floats, at: Floats
) -> BinEstimate:
    """All of ``estimate`` again, from the table of questions and the text of the docs."""
    mass = state.mass[0]
    arms, groups, slots = known.arms, len(mass), state.holds.shape[1]
    share, part, rows = np.empty(groups), np.full((groups, slots), 0.5), np.empty((groups, arms))
    for m in range(groups):
        about = [(told, arm) for told, arm in seen.people if told.m == m]
        whole = [(told, arm) for told, arm in about if told.at == 0]
        masses = [(1.0, told.answer, told.variance) for told, arm in whole if arm is None]
        if known.known[m]:
            masses += [
                (known.behaviour[m, arm], told.answer, told.variance)
                for told, arm in whole
                if arm is not None
            ]
        p = one(masses, spread=0.3 * mass[m], around=mass[m])
        share[m] = np.clip(p, mass[m] / 4, min(4 * mass[m], 1))
        for k in range(arms):
            if known.known[m]:
                rows[m, k] = share[m] * known.behaviour[m, k]
            else:
                counts = [(1.0, told.answer, told.variance) for told, arm in whole if arm == k]
                expected = share[m] / arms
                rows[m, k] = np.clip(
                    one(counts, spread=expected, around=expected), 0, min(4 * share[m], 1)
                )
        for slot, is_level in slots_of(known):
            answers = [
                (share[m] if arm is None else rows[m, arm], told.answer, told.variance)
                for told, arm in about
                if told.at == 1 + slot
            ]
            if is_level:  # p·q
                q = state.level_mass[0, m, slot]
                found = one(answers, spread=0.5 * q, around=q) if q else 0.0
                part[m, slot] = np.clip(found, q / 4, 1) if state.holds[0, slot] else 0.0
            elif state.holds[0, slot]:  # upper minus lower half is 2p·(r - 1/2)
                halves = [(2 * p, answer, v) for p, answer, v in answers]
                part[m, slot] = np.clip(0.5 + one(halves, spread=0.2, around=0.0), 0, 1)

    def scaled(m: int, weights: Floats, *, logged: bool) -> Floats:
        scale = rows[m] if logged else np.full(arms, share[m])
        told: Floats = scale * weights
        return told

    mean, covariance = regression(
        [
            (scaled(told.m, weights, logged=logged), told.answer, told.variance)
            for told, logged, weights in seen.rewards
            if told.at == 0
        ],
        prior[0],
        at[0],
    )
    effect, spread = np.zeros((slots, arms)), np.zeros((slots, arms, arms))
    for slot, is_level in slots_of(known):
        if not state.holds[0, slot]:
            continue
        # The mean of an answer is p·((2r - 1)·g + 4r(1 - r)·effect), or p·q·(g + effect), with g
        # as it is estimated.
        answers_of_slot = []
        for told, logged, weights in seen.rewards:
            if told.at == 1 + slot:
                r = part[told.m, slot]
                of_mean, of_effect = (r, r) if is_level else (2 * r - 1, 4 * r * (1 - r))
                measures = scaled(told.m, weights, logged=logged)
                left = told.answer - of_mean * (measures @ mean)
                answers_of_slot.append((of_effect * measures, left, told.variance))
        effect[slot], spread[slot] = regression(answers_of_slot, prior[1 + slot], at[1 + slot])
    return BinEstimate(mean, covariance, effect, spread, BinShares(share, part, rows))


def random_bin(rng: np.random.Generator) -> tuple[State, Constants, Floats, Floats]:
    """One bin of some experiment, with what is thought of it before anyone answers."""
    arms = int(rng.integers(2, 5))
    levels = [int(rng.choice([0, 0, 2, 3, 5])) for _ in range(rng.integers(1, 4))]
    behaviours = tuple(
        tuple(rng.dirichlet(np.ones(arms)).tolist()) if rng.random() < 0.5 else None
        for _ in range(rng.integers(0, 3))
    )
    known = constants(with_levels(*levels, arms=arms, behaviours=behaviours))
    state = initial_state(known)
    state.bias[:] = 0.0  # others are believed as they are
    groups, slots = state.level_mass.shape[1:]
    state.mass[0] = rng.uniform(0.02, 0.9, groups)
    state.level_mass[0] = rng.uniform(0.05, 0.6, (groups, slots))
    state.holds[0] = rng.random(slots) < 0.85
    prior, at = np.empty((1 + slots, arms, arms)), rng.normal(0, 0.2, (1 + slots, arms))
    for index in range(1 + slots):
        root = rng.normal(0, 5, (arms, arms))
        prior[index] = root @ root.T + np.eye(arms)
        state.prior.precision[0, index] = prior[index]
        state.prior.vector[0, index] = prior[index] @ at[index]
    return state, known, prior, at


@pytest.mark.parametrize("questions", [0, 1, 5, 60, 400])
@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_are_those_of_a_bayesian_linear_regression(seed: int, questions: int) -> None:
    rng = np.random.default_rng([seed, questions])
    state, known, prior, at = random_bin(rng)
    seen = random_answers(rng, state, known, questions=questions)
    expected = directly(seen, known, state, prior=prior, at=at)
    found = estimate(state, known, 0)
    for name in ("mean", "covariance", "effect", "effect_covariance"):
        value = getattr(expected, name)
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name
    for name, value in expected.people._asdict().items():
        assert getattr(found.people, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_matrix_is_inverted_as_numpy_does(seed: int, size: int) -> None:
    rng = np.random.default_rng([seed, size])
    root = rng.normal(0, 1, (size, size)) * 10.0 ** rng.uniform(-3, 3)
    matrix = root @ root.T + 1e-3 * np.trace(root @ root.T) * np.eye(size)
    before, inverse = matrix.copy(), np.empty((size, size))
    invert(matrix, inverse)
    assert (matrix == before).all()
    scale = np.abs(np.linalg.inv(matrix)).max()
    assert inverse / scale == pytest.approx(np.linalg.inv(matrix) / scale, rel=1e-8, abs=1e-10)
    mean, covariance, vector = np.empty(size), np.empty((size, size)), rng.normal(0, 1, size)
    solve(matrix, vector, mean, covariance)
    solved = np.linalg.solve(matrix, vector)
    assert mean == pytest.approx(solved, rel=1e-6, abs=1e-9 * np.abs(solved).max())


@pytest.mark.parametrize("upper", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_slot_measures_the_halves_of_a_bin_or_a_level(upper: float) -> None:
    """Counted person by person: halves have g ± effect around their mean, a level g + effect."""
    g, effect = 0.3, -0.2
    # Halves that are g + 2(1 - r)·effect and g - 2r·effect have the mean g, and differ by 2·effect.
    high, low = g + 2 * (1 - upper) * effect, g - 2 * upper * effect
    of_mean, of_effect = coefficients(upper, is_level=False)
    difference = upper * high - (1 - upper) * low
    assert of_mean * g + of_effect * effect == pytest.approx(difference, abs=1e-12)
    of_mean, of_effect = coefficients(upper, is_level=True)
    assert of_mean * g + of_effect * effect == pytest.approx(upper * (g + effect), abs=1e-12)


# --- unbiasedness: people who answer by a real mechanism ------------------------------------------

WORLD = np.array([0.5, 0.2, 0.3])  # the shares of three levels
GAPS = np.array([[0.2, -0.1], [-0.3, 0.3], [0.0, 0.4]])  # g of two arms, for each level
PEOPLE = 40_000


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("kind", [MASS, CONTRAST, LEVEL])
def test_answers_about_levels_are_unbiased(epsilon: float, kind: int) -> None:
    """Over many people, the estimate of every level is right within its own standard error.

    Each of three levels and the whole bin within 6 standard errors: a false alarm in 10^8 tests.
    Values are drawn by the law of the mechanism for one bin that holds everybody.
    """
    rng = np.random.default_rng([int(epsilon), kind])
    known = constants(with_levels(3, epsilon=epsilon))
    state = initial_state(known)
    cells = cell_mechanism(epsilon, 1, parts=3)
    assert cells.parts == (1 if epsilon == 1.0 else 3)
    record, entry = mechanism_record(cells), entry_of(kind, arms=2)
    level = rng.choice(3, PEOPLE, p=WORLD)
    arm = rng.integers(0, 2, PEOPLE)
    outcome = rng.random(PEOPLE) < 0.5 + GAPS[level, arm]
    good = 2.0 * outcome - 1
    values: dict[int, Any] = {MASS: 1.0, LEVEL: good, CONTRAST: good * (1 - 2 * arm)}
    value = np.broadcast_to(values[kind], PEOPLE)
    rows = rng.integers(0, 4, PEOPLE) if cells.parts == 1 else np.zeros(PEOPLE, dtype=int)
    signs = np.array([[sign_of(row, each) for each in range(3)] for row in range(4)])
    for row in np.unique(rows):
        who = rows == row
        if cells.parts == 1:  # one bit: the sign of the value, right with probability (1 + β)/2
            told = value[who] * signs[row, level[who]]
            flips = rng.random(who.sum()) < (1 + cells.mechanism.signal) / 2
            sums = np.array([np.where(flips, told, -told).sum()])
        else:
            sums = sums_of_sets(rng, cells.mechanism, level[who], value[who])
        told_all = Answers(0, 0, 0, int(row), 0, 1, float(who.sum()), sums)
        add_answers(state, known, record, entry, told_all)
    if kind == MASS:
        precision, vector = state.mass_told.precision[0, 0, 1:], state.mass_told.vector[0, 0, 1:]
        expected = WORLD
    else:
        weights = np.array([1.0, -1.0 if kind == CONTRAST else 1.0])
        precision = state.served.precision[0, 0, 1:, 0, 0]
        vector = state.served.vector[0, 0, 1:, 0]
        assert state.served.vector[0, 0, 1:, 1] == pytest.approx(weights[1] * vector)
        expected = WORLD * (GAPS @ weights)
    # By the mechanism's own variance: how far the means are off, in standard errors.
    z = (vector / precision - expected) * np.sqrt(precision)
    assert np.abs(z).max() < 6
    assert precision.min() > 100


def sums_of_sets(
    rng: np.random.Generator, mechanism: SignedSubset, cell: Any, value: Any
) -> Floats:
    """The sums of what people say of each part, by sets of one cell out of four."""
    assert (mechanism.size, mechanism.cells) == (1, 4)
    right = rng.random(len(cell)) < mechanism.contains
    # One of the 2·4 signed cells is their own; otherwise it is any of the others.
    own = 2 * cell + (value > 0)
    other = rng.integers(0, 7, len(cell))
    other = other + (other >= own)
    said = np.where(right, own, other)
    sums = np.bincount(said // 2, weights=2.0 * (said % 2) - 1, minlength=4)
    return sums.astype(np.float64)


def test_before_the_first_report_means_have_a_spread_of_a_quarter_and_effects_of_a_fifth() -> None:
    known = constants(unit_cube(arms=3, d=2))
    found = estimate(initial_state(known), known, 0)
    assert found.mean.tolist() == [0.0] * 3
    assert found.effect.tolist() == [[0.0] * 3] * 2
    assert found.covariance == pytest.approx(np.eye(3) / 16)
    assert found.effect_covariance == pytest.approx(np.broadcast_to(np.eye(3) / 25, (2, 3, 3)))
    assert found.people.share.tolist() == [1.0]
    assert found.people.part.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_people_stay_within_bounds_whatever_comes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = constants(with_levels(0, 0, 4, arms=3, behaviours=(None, (0.5, 0.5, 0.0))))
    state = initial_state(known)
    state.mass[0] = rng.uniform(1e-6, 1, 3)
    for array in (state.mass_told.precision, state.rows_told.precision):
        array[0] = rng.exponential(1e6, array[0].shape)
    for array in (state.mass_told.vector, state.rows_told.vector):
        array[0] = rng.normal(0, 1e7, array[0].shape)
    share, part, rows = bin_shares(state, known, 0)
    assert (share.shape, part.shape, rows.shape) == ((3,), (3, 6), (3, 3))
    expected = state.mass[0]
    assert (share >= expected / 4).all()
    assert (share <= np.minimum(4 * expected, 1)).all()
    assert (part >= 0).all()
    assert (part <= 1).all()
    assert (part[:, 2:] >= 1 / 16).all()  # a quarter of what was expected of four levels
    assert (rows >= 0).all()
    assert (rows <= np.minimum(4 * share[:, None], 1)).all()


# --- logged rows of an experiment with two arms ---------------------------------------------------

MECHANISM = signed_subset(2.0, 4)
REWARDS = np.array([0.7, 0.4])  # of the two arms
SKEWED = np.array([0.8, 0.2])
SHARE = 0.3  # of the people are in the bin
MANY = 5000.0


def mean_value(kind: int, arm: int | None = None) -> float:
    """The mean of what logged rows say about the bin, counted case by case; arm: of the cell."""
    total = 0.0
    for k, y in itertools.product((0, 1), (0, 1)):
        chance = SKEWED[k] * (REWARDS[k] if y else 1 - REWARDS[k])
        good = 2 * y - 1
        values = {OUTCOME: good if k == 0 else -good, LOGGED_LEVEL: good, COUNT: float(k == arm)}
        total += SHARE * chance * values[kind]
    return total


def log(
    state: State, known: Constants, kind: int, *, reports: float, arm: int | None = None
) -> None:
    """Add answers of logged rows that are exactly as they are on average."""
    whole = reports * MECHANISM.signal * mean_value(kind, arm)
    first = 0 if arm is None else arm
    told = Answers(0, 1, -1, 0, first, 1 - first, reports, np.array([whole]))
    record = record_of(MECHANISM, parts=1)
    add_answers(state, known, record, entry_of(kind, arms=2), told)


def of_a_bin(behaviour: tuple[float, float] | None) -> tuple[State, Constants]:
    """A bin with a part of everybody, and no auxiliary population but one that behaves so."""
    known = constants(unit_cube(arms=2, d=1, behaviours=(behaviour,)))
    state = initial_state(known)
    state.bias[:] = 0.0
    state.mass[0] = SHARE
    return state, known


def rows_counted(behaviour: tuple[float, float] | None) -> Floats:
    """What is thought of the rows in the bin with each arm, once MANY have been counted."""
    told = []
    for arm in (0, 1):
        share = SHARE * (0.5 if behaviour is None else behaviour[arm])
        variance = variance_of(MECHANISM, share, parts=1)
        told.append((mean_value(COUNT, arm), variance / MANY))
    if behaviour is None:
        half = SHARE / 2
        return np.array([one([(1.0, *each)], spread=half, around=half) for each in told])
    counts = [(behaviour[arm], *told[arm]) for arm in (0, 1)]
    return np.array(behaviour) * one(counts, spread=0.3 * SHARE, around=SHARE)


@pytest.mark.parametrize("kinds", [(OUTCOME,), (LOGGED_LEVEL,), (OUTCOME, LOGGED_LEVEL)])
@pytest.mark.parametrize("counted", [False, True], ids=["uncounted", "counted"])
@pytest.mark.parametrize("behaviour", [(0.8, 0.2), None], ids=["known", "unknown"])
def test_rows_with_two_arms_tell_of_both_at_once_by_how_often_each_was_tried(
    behaviour: tuple[float, float] | None, counted: bool, kinds: tuple[int, ...]
) -> None:
    """Where the behaviour is not known, rows pass as half and half until they are counted."""
    state, known = of_a_bin(behaviour)
    rows = SHARE * np.array(behaviour or (0.5, 0.5))
    if counted:
        rows = rows_counted(behaviour)
        for arm in (0, 1):
            log(state, known, COUNT, reports=MANY, arm=arm)
    design = {OUTCOME: 2 * rows * [1, -1], LOGGED_LEVEL: 2 * rows}
    variance = variance_of(MECHANISM, SHARE, parts=1) / MANY
    for kind in kinds:
        log(state, known, kind, reports=MANY)
    listed = [(design[kind], mean_value(kind), variance) for kind in kinds]
    mean, covariance = regression(listed, 16 * np.eye(2), np.zeros(2))
    found = estimate(state, known, 0)
    assert found.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert found.covariance == pytest.approx(covariance, rel=1e-9)


@pytest.mark.parametrize("behaviour", [(0.8, 0.2), None], ids=["known", "unknown"])
def test_many_rows_with_two_arms_find_the_rewards_of_both(
    behaviour: tuple[float, float] | None,
) -> None:
    state, known = of_a_bin(behaviour)
    for arm in (0, 1):
        log(state, known, COUNT, reports=1e9, arm=arm)
    for kind in (OUTCOME, LOGGED_LEVEL):
        log(state, known, kind, reports=1e9)
    assert estimate(state, known, 0).mean == pytest.approx(REWARDS - 0.5, abs=1e-4)
