"""Answers to estimates: against least squares written out from the table of questions."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from factories import CONTRAST, COUNT, LEVEL, LOGGED_LEVEL, MASS, OUTCOME, RANKED, unit_cube
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import (
    Answers,
    BinEstimate,
    BinShares,
    add_answers,
    bin_shares,
    estimate,
)
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.estimate.whisper.tally import mechanism_record
from sottovoce.shared.whisper.cells import CellMechanism
from sottovoce.shared.whisper.questions import ANY, MORE, TABLE, TWO, Entry
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset
from support.states import SEEDS, Floats


def entry_of(kind: int, *, arms: int) -> Entry:
    """A question of an experiment with so many arms, whether or not they are public."""
    of_so_many = (ANY, TWO if arms == 2 else MORE)
    (entry,) = [each for each in TABLE if each.kind == kind and each.arms in of_so_many]
    return entry


def record_of(mechanism: SignedSubset, *, halves: bool) -> Any:
    """What the rules need of a mechanism."""
    return mechanism_record(CellMechanism(mechanism, halves=halves, elsewhere=False))


@dataclass
class Observations:
    """Answers about one bin, each as: its index, what its mean is made of, mean, variance.

    The average value/β of the answers to one question has, by the table of questions,
    mean p·(weights · g) of people who were served, and p·Σ_k π_k·weights_k·g_k of logged rows; or
    it is about people alone.
    """

    people: list[tuple[int, int, int | None, float, float]] = field(default_factory=list)
    rewards: list[tuple[int, int, bool, Floats, float, float]] = field(default_factory=list)


def random_answers(
    rng: np.random.Generator, state: State, known: Constants, *, questions: int
) -> Observations:
    """Add random answers to a bin, and write down what was added."""
    arms, groups = known.arms, state.mass.shape[1]
    seen = Observations()
    kinds = [CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED, *([LOGGED_LEVEL] if arms == 2 else [])]
    for _ in range(questions):
        m, kind = int(rng.integers(groups)), int(rng.choice(kinds))
        index = int(rng.integers(1 + known.dimension))
        first, second = map(int, rng.choice(arms, 2, replace=False))
        mechanism = signed_subset(float(rng.choice([0.5, 2.0, 8.0])), int(rng.integers(1, 9)))
        halves = bool(rng.random() < 0.4) and index > 0
        reports = float(rng.integers(1, 20_000))
        share = state.mass[0, m]
        if kind == COUNT or (kind == OUTCOME and arms > 2):  # a cell for each arm
            share *= known.behaviour[m, first] if known.known[m] else 1 / arms
        variance = variance_of(mechanism, share, halves=halves)
        whole, difference = (
            reports * mechanism.signal * rng.normal(scale, (variance / reports) ** 0.5)
            for scale in (share * (1 if kind in (MASS, COUNT) else rng.normal(0, 0.3)), 0.0)
        )
        told = Answers(0, m, index, first, second, reports, whole, difference)
        record = record_of(mechanism, halves=halves)
        add_answers(state, known, record, entry_of(kind, arms=arms), told)
        weights = np.zeros(arms)
        if kind in (CONTRAST, LEVEL):  # f_a - f_b, and f_a + f_b - 1
            weights[first], weights[second] = 1, -1 if kind == CONTRAST else 1
        elif kind == LOGGED_LEVEL:  # (2f_a - 1) + (2f_b - 1)
            weights[first], weights[second] = 2, 2
        elif kind == OUTCOME and arms == 2:  # (2f_a - 1) - (2f_b - 1)
            weights[first], weights[second] = 2, -2
        elif kind in (OUTCOME, RANKED):  # 2f - 1
            weights[first] = 2
        # Where halves are cells, an answer about a feature tells of the whole bin, too.
        parts = [(index, difference if index else whole)]
        if halves:
            parts.append((0, whole))
        for part, total in parts:
            answer = total / mechanism.signal / reports
            if kind in (MASS, COUNT):
                by_arm = first if kind == COUNT else None
                seen.people.append((m, part, by_arm, answer, variance / reports))
            else:
                logged = kind in (OUTCOME, LOGGED_LEVEL)
                seen.rewards.append((m, part, logged, weights, answer, variance / reports))
    return seen


def variance_of(mechanism: SignedSubset, share: float, *, halves: bool) -> float:
    """E[(value/β)²] of a random person: in the bin with chance ``share``, else outside of it.

    Where halves are cells it is that of their sum: each of those outside has two cells.
    """
    cells_outside = 2 if halves else 1
    outside, inside = mechanism.noise, mechanism.inside
    if halves:  # in one half, and so not in the other
        return share * (inside + outside) + (1 - share) * cells_outside * outside
    return share * inside + (1 - share) * outside


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


def directly(
    seen: Observations, known: Constants, *, mass: Floats, prior: Floats, at: Floats
) -> BinEstimate:
    """All of ``estimate`` again, from the table of questions and the text of the docs."""
    arms, d, groups = known.arms, known.dimension, len(mass)
    share, upper, rows = np.empty(groups), np.empty((groups, d)), np.empty((groups, arms))
    for m in range(groups):
        about = [each for each in seen.people if each[0] == m]
        whole = [each for each in about if each[1] == 0]
        masses = [(1.0, answer, v) for _, _, arm, answer, v in whole if arm is None]
        if known.known[m]:
            masses += [
                (known.behaviour[m, arm], answer, v)
                for _, _, arm, answer, v in whole
                if arm is not None
            ]
        p = one(masses, spread=0.3 * mass[m], around=mass[m])
        share[m] = np.clip(p, mass[m] / 4, min(4 * mass[m], 1))
        for k in range(arms):
            if known.known[m]:
                rows[m, k] = share[m] * known.behaviour[m, k]
            else:
                counts = [(1.0, answer, v) for _, _, arm, answer, v in whole if arm == k]
                expected = share[m] / arms
                rows[m, k] = np.clip(
                    one(counts, spread=expected, around=expected), 0, min(4 * share[m], 1)
                )
        for j in range(d):  # upper minus lower half is 2p·(r - 1/2)
            halves = [
                (2 * (share[m] if arm is None else rows[m, arm]), answer, v)
                for _, about_index, arm, answer, v in about
                if about_index == 1 + j
            ]
            upper[m, j] = np.clip(0.5 + one(halves, spread=0.2, around=0.0), 0, 1)

    def scaled(m: int, weights: Floats, *, logged: bool) -> Floats:
        scale = rows[m] if logged else np.full(arms, share[m])
        told: Floats = scale * weights
        return told

    mean, covariance = regression(
        [
            (scaled(m, weights, logged=logged), answer, v)
            for m, index, logged, weights, answer, v in seen.rewards
            if index == 0
        ],
        prior[0],
        at[0],
    )
    slopes = []
    for j in range(d):
        # The mean of an answer is p·((2r - 1)·g + 4r(1 - r)·slope), with g as it is estimated.
        answers = []
        for m, index, logged, weights, answer, v in seen.rewards:
            if index == 1 + j:
                r, told = upper[m, j], scaled(m, weights, logged=logged)
                left = answer - (2 * r - 1) * (told @ mean)
                answers.append((4 * r * (1 - r) * told, left, v))
        slopes.append(regression(answers, prior[1 + j], at[1 + j]))
    return BinEstimate(
        mean,
        covariance,
        np.array([slope for slope, _ in slopes]),
        np.array([each for _, each in slopes]),
        BinShares(share, upper, rows),
    )


@pytest.mark.parametrize("questions", [0, 1, 5, 60, 400])
@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_are_those_of_a_bayesian_linear_regression(seed: int, questions: int) -> None:
    rng = np.random.default_rng([seed, questions])
    arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    behaviours = tuple(
        tuple(rng.dirichlet(np.ones(arms)).tolist()) if rng.random() < 0.5 else None
        for _ in range(rng.integers(0, 3))
    )
    known = constants(unit_cube(arms=arms, d=d, behaviours=behaviours))
    state = initial_state(known)
    state.mass[0] = rng.uniform(0.02, 1, state.mass.shape[1])
    prior, at = np.empty((1 + d, arms, arms)), rng.normal(0, 0.2, (1 + d, arms))
    for index in range(1 + d):
        root = rng.normal(0, 5, (arms, arms))
        prior[index] = root @ root.T + np.eye(arms)
        state.prior.precision[0, index] = prior[index]
        state.prior.vector[0, index] = prior[index] @ at[index]
    seen = random_answers(rng, state, known, questions=questions)
    expected = directly(seen, known, mass=state.mass[0], prior=prior, at=at)
    found = estimate(state, known, 0)
    for name in ("mean", "covariance", "slope", "slope_covariance"):
        value = getattr(expected, name)
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name
    for name, value in expected.people._asdict().items():
        assert getattr(found.people, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_before_the_first_report_means_have_a_spread_of_a_quarter_and_slopes_of_a_fifth() -> None:
    known = constants(unit_cube(arms=3, d=2))
    found = estimate(initial_state(known), known, 0)
    assert found.mean.tolist() == [0.0] * 3
    assert found.slope.tolist() == [[0.0] * 3] * 2
    assert found.covariance == pytest.approx(np.eye(3) / 16)
    assert found.slope_covariance == pytest.approx(np.broadcast_to(np.eye(3) / 25, (2, 3, 3)))
    assert found.people.share.tolist() == [1.0]
    assert found.people.upper.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_people_stay_within_bounds_whatever_comes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = constants(unit_cube(arms=3, d=2, behaviours=(None, (0.5, 0.5, 0.0))))
    state = initial_state(known)
    state.mass[0] = rng.uniform(1e-6, 1, 3)
    for array in (state.mass_told.precision, state.rows_told.precision):
        array[0] = rng.exponential(1e6, array[0].shape)
    for array in (state.mass_told.vector, state.rows_told.vector):
        array[0] = rng.normal(0, 1e7, array[0].shape)
    share, upper, rows = bin_shares(state, known, 0)
    assert (share.shape, upper.shape, rows.shape) == ((3,), (3, 2), (3, 3))
    expected = state.mass[0]
    assert (share >= expected / 4).all()
    assert (share <= np.minimum(4 * expected, 1)).all()
    assert (upper >= 0).all()
    assert (upper <= 1).all()
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
    told = Answers(0, 1, 0, first, 1 - first, reports, whole, 0.0)
    record = record_of(MECHANISM, halves=False)
    add_answers(state, known, record, entry_of(kind, arms=2), told)


def of_a_bin(behaviour: tuple[float, float] | None) -> tuple[State, Constants]:
    """A bin with a part of everybody, and no auxiliary population but one that behaves so."""
    known = constants(unit_cube(arms=2, d=1, behaviours=(behaviour,)))
    state = initial_state(known)
    state.mass[0] = SHARE
    return state, known


def rows_counted(behaviour: tuple[float, float] | None) -> Floats:
    """What is thought of the rows in the bin with each arm, once MANY have been counted."""
    told = []
    for arm in (0, 1):
        share = SHARE * (0.5 if behaviour is None else behaviour[arm])
        variance = variance_of(MECHANISM, share, halves=False)
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
    variance = variance_of(MECHANISM, SHARE, halves=False) / MANY
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
