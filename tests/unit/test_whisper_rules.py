"""The rules of ``whisper`` against computations that share nothing with them but the arrays."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

import sottovoce as sv
from sottovoce.estimate.whisper import answers, rules
from sottovoce.estimate.whisper.board import Board, begin, roomy
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.policy import certificates_of
from sottovoce.shared.subset import SignedSubset, signed_subset

Floats = NDArray[np.float64]

CONTRAST, LEVEL, MASS, OUTCOME, COUNT, RANKED = range(6)
NODES, CONTESTED, EVENTS, RELEASE, REPORTS, SERVED = range(6)
SEEDS = range(12)


def experiment(
    *,
    arms: int = 2,
    d: int = 2,
    horizon: int = 10_000,
    behaviours: tuple[tuple[float, ...] | None, ...] = (),
    **settings: Any,
) -> sv.Experiment:
    return sv.Experiment(
        arms=[f"arm {k}" for k in range(arms)],
        context=[sv.Numeric(f"x{j}", 0, 1) for j in range(d)],
        epsilon=1.0,
        horizon=horizon,
        auxiliary=[
            sv.Population(f"aux {m}", 2.0, 100, behaviour) for m, behaviour in enumerate(behaviours)
        ],
        method=sv.Whisper(**settings),
    )


@dataclass
class Estimate:
    """What ``answers.estimate`` writes, with room for it."""

    mean: Floats
    covariance: Floats
    slope: Floats
    slope_covariance: Floats
    share: Floats
    upper: Floats


def estimated(board: Board, known: Constants, node: int = 0) -> Estimate:
    k, d, groups = known.arms, known.dimension, board.mass.shape[1]
    found = Estimate(
        mean=np.full(k, np.nan),
        covariance=np.full((k, k), np.nan),
        slope=np.full((d, k), np.nan),
        slope_covariance=np.full((d, k, k), np.nan),
        share=np.full(groups, np.nan),
        upper=np.full((groups, d), np.nan),
    )
    answers.estimate(board, known, node, *vars(found).values())
    return found


# --- estimates ------------------------------------------------------------------------------------


@dataclass
class Observations:
    """Answers about one bin, each as: its place, what its mean is made of, mean, variance.

    The average value/β of the answers to one question has, by the table in shared/questions.py,
    mean p·(weights · g) or p·π_k·(weights · g), or is about people alone.
    """

    people: list[tuple[int, int, int | None, float, float]] = field(default_factory=list)
    rewards: list[tuple[int, int, int | None, Floats, float, float]] = field(default_factory=list)


def random_answers(
    rng: np.random.Generator, board: Board, known: Constants, *, questions: int
) -> Observations:
    """Fold random answers into a bin, and write down what was folded."""
    arms, groups = known.arms, board.mass.shape[1]
    seen = Observations()
    for _ in range(questions):
        m, kind = int(rng.integers(groups)), int(rng.integers(6))
        place = int(rng.integers(1 + known.dimension))
        first, second = map(int, rng.choice(arms, 2, replace=False))
        mechanism = signed_subset(float(rng.choice([0.5, 2.0, 8.0])), int(rng.integers(1, 9)))
        halves = bool(rng.random() < 0.4) and place > 0
        reports = float(rng.integers(1, 20_000))
        share = board.mass[0, m]
        if kind in (OUTCOME, COUNT):
            share *= known.behaviour[m, first] if known.known[m] else 1 / arms
        variance = variance_of(mechanism, share, halves=halves)
        whole, difference = (
            reports * mechanism.signal * rng.normal(scale, (variance / reports) ** 0.5)
            for scale in (share * (1 if kind in (MASS, COUNT) else rng.normal(0, 0.3)), 0.0)
        )
        answers.fold(
            board,
            known,
            0,
            m,
            kind,
            place,
            first,
            second,
            reports,
            whole,
            difference,
            mechanism.signal,
            mechanism.noise,
            mechanism.inside,
            halves,
        )
        weights = np.zeros(arms)
        if kind in (CONTRAST, LEVEL):  # f_a - f_b, and f_a + f_b - 1
            weights[first], weights[second] = 1, -1 if kind == CONTRAST else 1
        elif kind in (OUTCOME, RANKED):  # 2f - 1
            weights[first] = 2
        # Where halves are cells, an answer about a feature tells of the whole bin, too.
        parts = [(place, difference if place else whole)]
        if halves:
            parts.append((0, whole))
        for at, total in parts:
            answer = total / mechanism.signal / reports
            by_arm = first if kind in (OUTCOME, COUNT) else None
            if kind in (MASS, COUNT):
                seen.people.append((m, at, by_arm, answer, variance / reports))
            else:
                seen.rewards.append((m, at, by_arm, weights, answer, variance / reports))
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
) -> Estimate:
    """All of ``answers.estimate`` again, from the table of questions and the text of the docs."""
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
                for _, at_place, arm, answer, v in about
                if at_place == 1 + j
            ]
            upper[m, j] = np.clip(0.5 + one(halves, spread=0.2, around=0.0), 0, 1)

    def scaled(m: int, arm: int | None) -> float:
        return float(share[m] if arm is None else rows[m, arm])

    mean, covariance = regression(
        [
            (scaled(m, arm) * weights, answer, v)
            for m, place, arm, weights, answer, v in seen.rewards
            if place == 0
        ],
        prior[0],
        at[0],
    )
    slopes = []
    for j in range(d):
        # The mean of an answer is p·((2r - 1)·g + 4r(1 - r)·slope), with g as it is estimated.
        answers = []
        for m, place, arm, weights, answer, v in seen.rewards:
            if place == 1 + j:
                r, p = upper[m, j], scaled(m, arm)
                left = answer - p * (2 * r - 1) * (weights @ mean)
                answers.append((p * 4 * r * (1 - r) * weights, left, v))
        slopes.append(regression(answers, prior[1 + j], at[1 + j]))
    return Estimate(
        mean,
        covariance,
        np.array([slope for slope, _ in slopes]),
        np.array([each for _, each in slopes]),
        share,
        upper,
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
    known = constants(experiment(arms=arms, d=d, behaviours=behaviours))
    board = begin(known)
    board.mass[0] = rng.uniform(0.02, 1, board.mass.shape[1])
    prior, at = np.empty((1 + d, arms, arms)), rng.normal(0, 0.2, (1 + d, arms))
    for place in range(1 + d):
        root = rng.normal(0, 5, (arms, arms))
        prior[place] = root @ root.T + np.eye(arms)
        board.prior_info[0, place] = prior[place]
        board.prior_lean[0, place] = prior[place] @ at[place]
    seen = random_answers(rng, board, known, questions=questions)
    expected = directly(seen, known, mass=board.mass[0], prior=prior, at=at)
    found = estimated(board, known)
    for name, value in vars(expected).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_before_the_first_report_means_have_a_spread_of_a_quarter_and_slopes_of_a_fifth() -> None:
    known = constants(experiment(arms=3, d=2))
    found = estimated(begin(known), known)
    assert found.mean.tolist() == [0.0] * 3
    assert found.slope.tolist() == [[0.0] * 3] * 2
    assert found.covariance == pytest.approx(np.eye(3) / 16)
    assert found.slope_covariance == pytest.approx(np.broadcast_to(np.eye(3) / 25, (2, 3, 3)))
    assert found.share.tolist() == [1.0]
    assert found.upper.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_people_stay_within_bounds_whatever_comes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = constants(experiment(arms=3, d=2, behaviours=(None, (0.5, 0.5, 0.0))))
    board = begin(known)
    board.mass[0] = rng.uniform(1e-6, 1, 3)
    for array in (board.mass_info, board.count_info):
        array[0] = rng.exponential(1e6, array[0].shape)
    for array in (board.mass_lean, board.count_lean):
        array[0] = rng.normal(0, 1e7, array[0].shape)
    share, upper, rows = np.empty(3), np.empty((3, 2)), np.empty((3, 3))
    answers.shares(board, known, 0, share, upper, rows)
    expected = board.mass[0]
    assert (share >= expected / 4).all()
    assert (share <= np.minimum(4 * expected, 1)).all()
    assert (upper >= 0).all()
    assert (upper <= 1).all()
    assert (rows >= 0).all()
    assert (rows <= np.minimum(4 * share[:, None], 1)).all()


@pytest.mark.parametrize(
    ("arms", "logged", "expected"), [(2, False, 0.25), (2, True, 0.125), (4, True, 0.03125)]
)
def test_a_noisier_report_is_worth_less(arms: int, logged: bool, expected: float) -> None:
    known = constants(experiment(arms=arms))
    assert answers.worth(known, 2.0, 8.0, logged) == pytest.approx(expected)


# --- losses and evidence --------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [-0.3, -0.01, 0.0, 0.004, 0.1, 0.5])
@pytest.mark.parametrize("deviation", [0.003, 0.05, 0.3])
def test_the_expected_loss_is_an_integral(gap: float, deviation: float) -> None:
    density = stats.norm(gap, deviation).pdf
    low, high = gap - 40 * deviation, min(0.0, gap + 40 * deviation)
    expected = 0.0
    if low < 0:
        pieces = np.linspace(low, high, 9)
        expected = sum(
            integrate.quad(lambda x: -x * density(x), a, b, epsabs=1e-16)[0]
            for a, b in itertools.pairwise(pieces)
        )
    assert rules.expected_loss(gap, deviation) == pytest.approx(expected, rel=1e-6, abs=1e-15)


def test_the_expected_loss_falls_with_the_gap_and_is_never_negative() -> None:
    # Up to 38 standard deviations: beyond, it is less than the smallest number with all its digits.
    losses = [rules.expected_loss(z / 20, 1.0) for z in range(-100, 760)]
    assert all(after < before for before, after in itertools.pairwise(losses))
    assert min(losses) > 0
    assert rules.expected_loss(1.0, 1e-3) == 0


@pytest.mark.parametrize("flips", [0, 1, 2, 7, 50, 333, 5000])
def test_evidence_is_a_martingale_for_a_fair_coin_and_a_supermartingale_for_less(
    flips: int,
) -> None:
    for wins in sorted({0, flips // 3, flips // 2, 2 * flips // 3, flips}):
        losses = flips - wins
        now = rules.evidence(wins, losses)
        up = math.exp(rules.evidence(wins + 1, losses) - now)
        down = math.exp(rules.evidence(wins, losses + 1) - now)
        assert (up + down) / 2 == pytest.approx(1, rel=1e-11)
        for chance in (0.49, 0.3, 0.0):
            assert chance * up + (1 - chance) * down < 1
    assert rules.evidence(0, 0) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("delta", [0.4, 0.05, 0.003])
def test_a_fair_coin_ever_proves_something_with_a_chance_of_at_most_delta(delta: float) -> None:
    # Exactly, in whole numbers: how many of the 2^flips ways have crossed by then.
    flips, needed = 300, math.log(1 / delta)
    ways = {0: 1}
    crossed = 0
    for flip in range(1, flips + 1):
        after: dict[int, int] = {}
        crossed *= 2
        for wins, count in ways.items():
            for more in (wins, wins + 1):
                after[more] = after.get(more, 0) + count
        ways = {}
        for wins, count in after.items():
            if 2 * wins > flip and rules.evidence(wins, flip - wins) >= needed:
                crossed += count
            else:
                ways[wins] = count
    assert sum(ways.values()) + crossed == 2**flips
    assert delta / 10 < crossed / 2**flips <= delta


def test_evidence_is_never_for_the_arm_that_has_fewer_votes() -> None:
    assert all(
        rules.evidence(wins, wins + more) <= 1e-12 for wins in (0, 5, 400) for more in (0, 9)
    )


@pytest.mark.parametrize("arms", [2, 3, 7])
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_the_allowances_of_all_comparisons_add_up_to_delta(arms: int, delta: float) -> None:
    known = constants(experiment(arms=arms, guarantee="certified", delta=delta))
    # All arms may be equally good: any of them dropped for any other is an error, in each node.
    nodes = 20_000
    pairs = arms * (arms - 1)
    total = sum(pairs * rules.allowance(known, node) for node in range(nodes))
    assert delta * (1 - 1 / nodes) < total <= delta


# --- which arms are compared, dropped and cut -----------------------------------------------------


def noted(board: Board) -> list[list[float]]:
    rows: list[list[float]] = board.events[: board.totals[EVENTS]].tolist()
    return rows


def believing(
    known: Constants,
    mean: list[float],
    *,
    deviation: float = 0.01,
    slope: Floats | None = None,
    slope_deviation: float = 0.001,
    served: int = 1,
    users: float = 5000.0,
) -> Board:
    """A board that believes so of its one bin."""
    board = begin(known)
    identity = np.eye(known.arms)
    board.prior_info[0, 0] = identity / deviation**2
    board.prior_lean[0, 0] = np.array(mean) / deviation**2
    board.prior_info[0, 1:] = identity / slope_deviation**2
    if slope is not None:
        board.prior_lean[0, 1:] = slope / slope_deviation**2
    board.totals[REPORTS], board.totals[SERVED] = int(users), served
    board.experience[:] = users
    return board


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_arm_meets_the_one_that_is_hardest_to_tell_from_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arms = int(rng.integers(2, 7))
    known = constants(experiment(arms=arms))
    board = begin(known)
    mean, root = rng.normal(0, 0.1, arms), rng.normal(0, 0.1, (arms, arms))
    covariance = root @ root.T + 1e-6 * np.eye(arms)
    live = np.flatnonzero(rng.random(arms) < 0.7)
    live = live if len(live) else np.array([0])
    board.live[0] = np.isin(np.arange(arms), live)
    best = max(live, key=lambda arm: mean[arm])

    def chance_to_be_better(arm: int) -> float:
        weights = np.zeros(arms)
        weights[arm], weights[best] = 1, -1
        spread = (weights @ covariance @ weights) ** 0.5
        return float(stats.norm.cdf(weights @ mean / spread))

    rivals = [int(arm) for arm in live if arm != best]
    assert rules.choose_pair(board, known, 0, mean, covariance) == best
    expected = max(rivals, key=chance_to_be_better) if rivals else best
    assert board.pair[0].tolist() == [best, expected]


def decisions(board: Board, known: Constants) -> tuple[set[int], int | None]:
    """What the documents say must become of the one bin: the arms to drop, the axis to cut.

    An arm goes when (users to come)·E[loss] ≤ (users so far)·gap; the bin is cut when, for all
    rivals that stay, the variance of the gap is below 0.3 of what varies inside of the bin.
    """
    found = estimated(board, known)
    best = int(np.argmax(np.where(board.live[0], found.mean, -np.inf)))
    to_come = max(known.horizon - board.experience[1], 1)
    dropped, fine, axis = set(), True, (0, -1.0)
    for k in np.flatnonzero(board.live[0]):
        if k == best:
            continue
        contrast = np.zeros(known.arms)
        contrast[best], contrast[k] = 1, -1
        gap = float(contrast @ found.mean)
        variance = float(contrast @ found.covariance @ contrast)
        squares = [(contrast @ slope) ** 2 for slope in found.slope]
        variances = [contrast @ each @ contrast for each in found.slope_covariance]
        fresh = 2 * 0.05 * sum((0.2 * (high - low)) ** 2 for low, high in board.edges[0])
        mixing = [4 * r * (1 - r) for r in found.upper[0]]
        squares = [each * part for each, part in zip(squares, mixing, strict=True)]
        variances = [each * part for each, part in zip(variances, mixing, strict=True)]
        inside = 4 / 3 * (sum(squares) + sum(variances)) + fresh
        law = stats.norm(gap, (variance + inside) ** 0.5)
        loss = -law.expect(lambda x: x, ub=0.0) if law.cdf(0) > 1e-250 else 0.0
        if board.totals[SERVED] and to_come * loss <= gap * board.experience[0]:
            dropped.add(int(k))
            continue
        fine = fine and variance < 0.3 * inside
        # The feature along which some gap varies most; what is dropped has no say.
        varies = [a + 0.3 * b for a, b in zip(squares, variances, strict=True)]
        axis = max(axis, *((-j, float(each)) for j, each in enumerate(varies)), key=lambda x: x[1])
    open_still = len(dropped) < board.live[0].sum() - 1
    return dropped, -axis[0] if fine and open_still else None


@pytest.mark.parametrize("seed", range(60))
def test_arms_are_dropped_and_bins_are_cut_when_the_documents_say_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    known = constants(experiment(arms=arms, d=d))
    board = believing(
        known,
        rng.normal(0, rng.choice([0.01, 0.1, 0.4]), arms).tolist(),
        deviation=float(rng.choice([0.005, 0.03, 0.1])),
        slope=rng.normal(0, rng.choice([0.01, 0.1]), (d, arms)),
        slope_deviation=float(rng.choice([0.01, 0.05])),
        served=int(rng.integers(2)),
        users=float(rng.choice([100, 3000, 9990, 20_000])),
    )
    dropped, axis = decisions(board, known)
    rules.step(board, known)
    events = noted(board)
    assert {int(row[4]) for row in events if row[3] < 0} == dropped
    assert [int(row[3]) for row in events if row[3] >= 0] == ([] if axis is None else [axis])
    assert {k for k in range(arms) if not board.live[0, k]} == dropped
    assert board.live[0].any()
    for row in events:
        if row[3] < 0:
            assert row[6] >= row[7]
            assert board.live[0, int(row[5])]
    assert board.totals[RELEASE] == (2 if events or board.pair[0].max() > 1 else 1)


def test_no_arm_is_dropped_while_nobody_is_served() -> None:
    known = constants(experiment(arms=3))
    hopeless = [0.4, -0.4, -0.45]
    waiting = believing(known, hopeless, served=0)
    rules.step(waiting, known)
    assert waiting.live[0].all()
    assert not [row for row in noted(waiting) if row[3] < 0]
    served = believing(known, hopeless, served=1)
    rules.step(served, known)
    assert served.live[0].tolist() == [True, False, False]
    assert served.pair[0].tolist() == [0, 0]
    assert served.totals[[CONTESTED, EVENTS, RELEASE, SERVED]].tolist() == [0, 2, 2, 0]


def test_a_settled_bin_stays_as_it_is() -> None:
    known = constants(experiment())
    board = believing(known, [0.4, -0.4])
    rules.step(board, known)
    before = [array.copy() for array in board]
    for _ in range(3):
        board.totals[SERVED] = 10
        rules.step(board, known)
    board.totals[SERVED] = 0
    assert all((old == new).all() for old, new in zip(before, board, strict=True))


def test_nobody_to_come_is_still_one_person() -> None:
    known = constants(experiment(horizon=100))
    board = believing(known, [0.001, 0.0], deviation=0.3, users=1000.0)
    rules.step(board, known)
    # 1000 users have paid 0.001 each, which is more than one person can lose.
    assert board.live[0].tolist() == [True, False]


@pytest.mark.parametrize(("wins", "proved"), [(0, False), (12, False), (400, True)])
def test_with_certificates_an_arm_goes_only_when_it_is_proved_to_lose(
    wins: int, proved: bool
) -> None:
    known = constants(experiment(arms=3, guarantee="certified", delta=0.1))
    board = believing(known, [0.4, -0.4, -0.45])
    board.ballots[0, 0, 1], board.ballots[0, 1, 0] = wins, wins // 4
    rules.step(board, known)
    assert board.live[0].tolist() == [True, not proved, True]
    certificates = certificates_of(board, known, ["a", "b", "c"])
    assert len(certificates) == proved
    for certificate in certificates:
        # δ·6/π² of the first node, shared by the six ordered pairs of three arms.
        assert certificate.delta is not None
        assert certificate.delta == pytest.approx(0.1 * 6 / math.pi**2 / 6)
        assert certificate.boundary == pytest.approx(-math.log(certificate.delta))
        assert certificate.statistic == pytest.approx(evidence_again(wins, wins // 4))
        assert certificate.statistic >= certificate.boundary
        assert (certificate.dropped, certificate.winner, certificate.path) == ("b", "a", "")
        assert certificate.release == 2


def evidence_again(wins: int, losses: int) -> float:
    """log of the mean over λ = 1, 1/2, … 1/2048 of exp(λ(w - l))/cosh(λ)^(w + l)."""
    rates = 0.5 ** np.arange(12)
    logs = rates * (wins - losses) - (wins + losses) * np.log(np.cosh(rates))
    return float(np.logaddexp.reduce(logs) - math.log(12))


def test_proof_alone_drops_no_arm() -> None:
    known = constants(experiment(guarantee="certified"))
    board = believing(known, [0.001, 0.0], deviation=0.2)
    board.ballots[0, 0, 1] = 1000
    rules.step(board, known)
    assert board.live[0].all()


# --- cuts -----------------------------------------------------------------------------------------


def random_cut(seed: int) -> tuple[Board, Constants, Estimate, int, int]:
    """A bin somewhere in the tree that is cut along some axis."""
    rng = np.random.default_rng(seed)
    arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    known = constants(experiment(arms=arms, d=d, behaviours=(None,)))
    board = begin(known)
    node = 0
    for _ in range(int(rng.integers(0, 4))):
        board = roomy(board, known)
        rules.cut(board, known, node, int(rng.integers(d)), *vars(estimated(board, known)).values())
        node = int(board.totals[NODES]) - 1 - int(rng.integers(2))
    board.live[node] = rng.random(arms) < 0.8
    board.live[node, :2] = True
    for array in (board.mass_info, board.info, board.logged_info):
        array[node] = 0.0
    board.mass_info[node] = rng.exponential(1e4, board.mass_info[node].shape)
    board.mass_lean[node] = board.mass_info[node] * rng.normal(0, 0.1, board.mass_lean[node].shape)
    board.logged_info[node] = rng.exponential(1e3, board.logged_info[node].shape)
    board.logged_lean[node] = rng.normal(0, 1e2, board.logged_lean[node].shape)
    found, axis = estimated(board, known, node), int(rng.integers(d))
    rules.cut(board, known, node, axis, *vars(found).values())
    return board, known, found, node, axis


@pytest.fixture(params=range(20))
def cutting(request: pytest.FixtureRequest) -> Any:
    return random_cut(request.param)


def test_a_cut_loses_nobody(cutting: Any) -> None:
    board, _, found, node, axis = cutting
    lower = board.child[node]
    assert lower == board.totals[NODES] - 2
    halves = board.mass[lower : lower + 2]
    assert halves.sum(axis=0) == pytest.approx(found.share, rel=1e-12)
    part = np.clip(found.upper[:, axis], 0.01, 0.99)
    assert halves[1] == pytest.approx(found.share * part, rel=1e-12)
    assert (halves > 0).all()
    assert (halves <= 1).all()


def test_the_halves_of_a_bin_have_its_mean_together_and_twice_its_slope_between_them(
    cutting: Any,
) -> None:
    board, known, found, node, axis = cutting
    lower = board.child[node]
    means, spreads = [], []
    for half in (lower, lower + 1):
        covariance = np.linalg.inv(board.prior_info[half, 0])
        spreads.append(covariance)
        means.append(covariance @ board.prior_lean[half, 0])
    # Of those who told: only logged rows did, each arm's by the square of its share of the people.
    rows = np.empty(board.logged_info.shape[1:4:2])
    answers.shares(board, known, node, found.share.copy(), found.upper.copy(), rows)
    told = (rows**2 * board.logged_info[node, :, 0]).sum(axis=1)
    r = (told * found.upper[:, axis]).sum() / told.sum()
    assert (1 - r) * means[0] + r * means[1] == pytest.approx(found.mean, abs=1e-9)
    assert means[1] - means[0] == pytest.approx(2 * found.slope[axis], abs=1e-9)
    # The variance of g + away·slope, with the two independent.
    for away, spread in zip((-2 * r, 2 * (1 - r)), spreads, strict=True):
        expected = found.covariance + away**2 * found.slope_covariance[axis]
        assert spread == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_halves_are_right_when_only_a_lopsided_population_has_told() -> None:
    """Nine tenths of its people are in the upper half, and the target's people are not known."""
    known = constants(experiment(arms=2, d=1, behaviours=((0.5, 0.5),)))
    board = begin(known)
    truth = np.array(
        [0.3, -0.3]
    )  # g in the upper half; in the lower half it is the other way round
    many = 1e7
    board.count_info[0, 1] = many
    board.count_lean[0, 1, 0], board.count_lean[0, 1, 1] = many * 0.5, many * 0.5 * 0.8
    board.logged_info[0, 1] = many
    board.logged_lean[0, 1, 0] = many * (0.9 - 0.1) * truth
    board.logged_lean[0, 1, 1] = many * (0.9 + 0.1) * truth
    found = estimated(board, known)
    assert found.mean == pytest.approx(0.8 * truth, abs=1e-3)
    assert found.upper[:, 0] == pytest.approx([0.5, 0.9], abs=1e-3)
    assert found.slope[0] == pytest.approx(truth, abs=1e-2)
    rules.cut(board, known, 0, 0, *vars(found).values())
    for half, sign in ((1, -1), (2, 1)):
        mean = np.linalg.solve(board.prior_info[half, 0], board.prior_lean[half, 0])
        assert mean == pytest.approx(sign * truth, abs=2e-2)


def test_where_everybody_is_in_one_half_nothing_varies_between_halves() -> None:
    known = constants(experiment(arms=2, d=2))
    board = begin(known)
    board.mass_info[0, 0] = 1e6
    board.mass_lean[0, 0] = [1e6, 1e6, 0.0]  # all in the upper half along the first feature
    board.info[0, 0] = 1e6 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    board.lean[0, 0, 0] = [4e5, -4e5]
    board.lean[0, 0, 1] = [4e5, -4e5]  # and so the difference is the whole
    found = estimated(board, known)
    assert found.mean[0] - found.mean[1] == pytest.approx(0.4, abs=1e-3)
    assert found.upper[0, 0] == pytest.approx(1, abs=1e-3)
    assert found.slope[0] == pytest.approx([0.0, 0.0], abs=0.02)
    assert rules.mixing(found.upper[0, 0]) < 1e-3


def test_the_halves_of_a_bin_tile_it(cutting: Any) -> None:
    board, known, _, node, axis = cutting
    lower = board.child[node]
    low, high = board.edges[node, axis]
    assert board.axis[node] == axis
    assert board.middle[node] == (low + high) / 2
    assert board.edges[lower, axis].tolist() == [low, (low + high) / 2]
    assert board.edges[lower + 1, axis].tolist() == [(low + high) / 2, high]
    for j in range(known.dimension):
        for half in (lower, lower + 1):
            if j != axis:
                assert board.edges[half, j].tolist() == board.edges[node, j].tolist()
    for half in (lower, lower + 1):
        assert board.depth[half] == board.depth[node] + 1
        assert board.child[half] == half
        assert board.middle[half] == math.inf
        assert board.live[half].tolist() == board.live[node].tolist()
        assert not board.info[half].any()
        assert not board.ballots[half].any()
    assert noted(board)[-1][2:4] == [node, axis]


def test_slopes_of_a_half_are_expected_to_be_like_those_of_the_whole(cutting: Any) -> None:
    board, known, found, node, axis = cutting
    live = np.flatnonzero(board.live[node])
    for half in (board.child[node], board.child[node] + 1):
        for j in range(known.dimension):
            second = [found.slope[j, k] ** 2 + found.slope_covariance[j, k, k] for k in live]
            expected = float(np.mean(second)) * (0.5 if j == axis else 1.0)
            edge = board.edges[half, j, 1] - board.edges[half, j, 0]
            expected = 0.95 * expected + 0.05 * (0.2 * edge) ** 2
            assert np.linalg.inv(board.prior_info[half, 1 + j]) == pytest.approx(
                expected * np.eye(known.arms)
            )
            assert not board.prior_lean[half, 1 + j].any()


def test_no_bin_is_cut_more_than_forty_times() -> None:
    known = constants(experiment(d=1))
    board = believing(known, [0.0, 0.0], slope=np.array([[0.2, -0.2]]))
    board.depth[0] = 40
    rules.step(board, known)
    assert board.totals[NODES] == 1
    board.depth[0] = 39
    rules.step(board, known)
    assert board.totals[NODES] == 3


@pytest.mark.parametrize(("excess", "nodes"), [(0.995, 3), (1.005, 1)])
def test_a_bin_is_cut_when_its_variance_is_below_a_share_of_what_varies_inside(
    excess: float, nodes: int
) -> None:
    known = constants(experiment(d=1))
    slope_deviation = 0.05
    # For the gap of two arms: twice the variance of a slope, over a straight line; and 5 % of what
    # a bin of that size varies by that nobody knows anything of.
    inside = 4 / 3 * 2 * slope_deviation**2 + 0.05 * 2 * 0.2**2
    deviation = (excess * 0.3 * inside / 2) ** 0.5
    board = believing(
        known, [0.0, 0.0], deviation=deviation, slope_deviation=slope_deviation, served=0
    )
    rules.step(board, known)
    assert board.totals[NODES] == nodes


def test_a_step_never_runs_out_of_room() -> None:
    known = constants(experiment(d=1))
    board = begin(known)
    for _ in range(9):
        for position in range(board.totals[CONTESTED]):
            node = board.contested[position]
            board.prior_info[node, 0] = np.eye(2) * 1e8
            board.prior_lean[node, 0] = 0.0
        board = roomy(board, known)
        rules.step(board, known)
    assert board.totals[NODES] == 2**10 - 1
    assert board.totals[CONTESTED] == 2**9
    leaves = [n for n in range(board.totals[NODES]) if board.child[n] == n]
    assert sorted(board.contested[: 2**9].tolist()) == leaves
    assert board.mass[leaves, 0].sum() == pytest.approx(1)
