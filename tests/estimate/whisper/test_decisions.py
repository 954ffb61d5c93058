"""Losses, evidence, and which arms are compared, which are dropped, and when a bin is split."""

import itertools
import math
from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, stats

import sottovoce as sv
from factories import unit_cube
from sottovoce.estimate.whisper import decisions
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.measurement import BinEstimate, estimate
from sottovoce.estimate.whisper.publish import certificates_of
from sottovoce.estimate.whisper.state import State, arrays_of, initial_state
from sottovoce.estimate.whisper.step import step
from support.states import SEEDS, Floats, believing, events_of, with_levels


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
    assert decisions.expected_loss(gap, deviation) == pytest.approx(expected, rel=1e-6, abs=1e-15)


def test_the_expected_loss_falls_with_the_gap_and_is_never_negative() -> None:
    # Up to 38 standard deviations: beyond, it is less than the smallest number with all its digits.
    losses = [decisions.expected_loss(z / 20, 1.0) for z in range(-100, 760)]
    assert all(after < before for before, after in itertools.pairwise(losses))
    assert min(losses) > 0
    assert decisions.expected_loss(1.0, 1e-3) == 0


@pytest.mark.parametrize("flips", [0, 1, 2, 7, 50, 333, 5000])
def test_evidence_is_a_martingale_for_a_fair_coin_and_a_supermartingale_for_less(
    flips: int,
) -> None:
    for wins in sorted({0, flips // 3, flips // 2, 2 * flips // 3, flips}):
        losses = flips - wins
        now = decisions.evidence(wins, losses)
        up = math.exp(decisions.evidence(wins + 1, losses) - now)
        down = math.exp(decisions.evidence(wins, losses + 1) - now)
        assert (up + down) / 2 == pytest.approx(1, rel=1e-11)
        for chance in (0.49, 0.3, 0.0):
            assert chance * up + (1 - chance) * down < 1
    assert decisions.evidence(0, 0) == pytest.approx(0, abs=1e-15)


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
            if 2 * wins > flip and decisions.evidence(wins, flip - wins) >= needed:
                crossed += count
            else:
                ways[wins] = count
    assert sum(ways.values()) + crossed == 2**flips
    assert delta / 10 < crossed / 2**flips <= delta


def test_evidence_is_never_for_the_arm_that_has_fewer_votes() -> None:
    assert all(
        decisions.evidence(wins, wins + more) <= 1e-12 for wins in (0, 5, 400) for more in (0, 9)
    )


@pytest.mark.parametrize("arms", [2, 3, 7])
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_the_allowances_of_all_comparisons_add_up_to_delta(arms: int, delta: float) -> None:
    known = constants(unit_cube(arms=arms, guarantee="certified", delta=delta))
    # All arms may be equally good: any of them dropped for any other is an error, in each node.
    nodes = 20_000
    pairs = arms * (arms - 1)
    state = initial_state(known)
    total = 0.0
    for place in range(1, nodes + 1):
        state.place[0] = place
        total += pairs * decisions.allowance(state, known, 0, 0, arms - 1)
    assert delta * (1 - 1 / nodes) < total <= delta


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_arm_meets_the_one_that_is_hardest_to_tell_from_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arms = int(rng.integers(2, 7))
    mean, root = rng.normal(0, 0.1, arms), rng.normal(0, 0.1, (arms, arms))
    covariance = root @ root.T + 1e-6 * np.eye(arms)
    live = np.flatnonzero(rng.random(arms) < 0.7)
    live = live if len(live) else np.array([0])
    best = max(live, key=lambda arm: mean[arm])

    def chance_to_be_better(arm: int) -> float:
        weights = np.zeros(arms)
        weights[arm], weights[best] = 1, -1
        spread = (weights @ covariance @ weights) ** 0.5
        return float(stats.norm.cdf(weights @ mean / spread))

    rivals = [int(arm) for arm in live if arm != best]
    expected = max(rivals, key=chance_to_be_better) if rivals else best
    is_live = np.isin(np.arange(arms), live)
    caps = np.full(arms, 0.5)
    assert decisions.choose_pair(is_live, mean, covariance, caps) == (int(best), int(expected))


def varies_along(
    state: State, known: Constants, found: BinEstimate, contrast: Floats, axis: int
) -> tuple[float, float]:
    """How much a gap varies along an axis: as estimated, and what the noise of it adds."""
    first, levels = int(known.axes.slots[axis]), int(known.axes.levels[axis])
    seen = doubt = 0.0
    for slot in np.arange(first, first + max(levels, 1))[
        state.holds[0, first : first + max(levels, 1)]
    ]:
        r = found.people.part[0, slot]
        scale = r if levels else 4 / 3 * 4 * r * (1 - r)
        seen += scale * float(contrast @ found.effect[slot]) ** 2
        doubt += scale * float(contrast @ found.effect_covariance[slot] @ contrast)
    return seen, doubt


def wins_along(
    known: Constants, found: BinEstimate, contrast: Floats, axis: int, gap: float
) -> float:
    """What a person gains in expectation who gets the arm that loses wherever it wins."""
    first, levels = int(known.axes.slots[axis]), int(known.axes.levels[axis])
    if levels:
        gaps = gap + found.effect[first : first + levels] @ contrast
        return float(found.people.part[0, first : first + levels] @ np.maximum(-gaps, 0))
    steep, r = abs(float(contrast @ found.effect[first])), found.people.part[0, first]
    # The mean, over a line from gap - 2·steep to gap + 2·steep, of what is below 0.
    below = max(2 * steep - gap, 0.0)
    return 4 * r * (1 - r) * (below / (4 * steep)) * below / 2 if below else 0.0


def never_asked(state: State) -> float:
    """5 % of what a bin of this size varies by before anything is known; of many axes, of two."""
    edges = state.tree.edges[0]
    total = 2 * 0.05 * sum((0.2 * (high - low)) ** 2 for low, high in edges)
    return float(total * min(1, 2 / len(edges)))


def by_the_documents(
    state: State, known: Constants, found: BinEstimate
) -> tuple[set[int], int | None]:
    """What must become of the one bin: the arms to drop, the axis to split it along.

    An arm goes when (users to come)·E[loss] ≤ (users so far)·gap, unless it wins a reward or more
    in a part of the bin. Then the bin is split there. Otherwise it is split when, for all rivals
    that stay, the variance of the gap is below 0.3 of what varies inside of the bin. While nobody
    is served, an effect counts only with what its square is above its variance. Of many axes or
    levels, the one that varies most must be known from the others.
    """
    best = int(np.argmax(np.where(state.live[0], found.mean, -np.inf)))
    to_come = max(known.horizon - state.totals[0].target, 1)
    dropped, fine = set(), True
    turns: int | None = None
    along: dict[tuple[int, int], tuple[float, float]] = {}  # of what stays, by arm and axis
    rest = never_asked(state)
    for k in map(int, np.flatnonzero(state.live[0])):
        if k == best:
            continue
        contrast = np.zeros(known.arms)
        contrast[best], contrast[k] = 1, -1
        gap = float(contrast @ found.mean)
        variance = float(contrast @ found.covariance @ contrast)
        axes = [varies_along(state, known, found, contrast, j) for j in range(known.dimension)]
        inside = sum(seen + doubt for seen, doubt in axes) + rest
        law = stats.norm(gap, (variance + inside) ** 0.5)
        loss = -law.expect(lambda x: x, ub=0.0) if law.cdf(0) > 1e-250 else 0.0
        if state.totals[0].served and to_come * loss <= gap * state.totals[0].paid:
            wins = [
                to_come * wins_along(known, found, contrast, j, gap) for j in range(known.dimension)
            ]
            if max(wins) > 1:
                turns = int(np.argmax(wins))
                along |= {(k, j): each for j, each in enumerate(axes)}
            else:
                dropped.add(k)
            continue
        along |= {(k, j): each for j, each in enumerate(axes)}
        seen = sum(max(seen - doubt, 0.0) for seen, doubt in axes)
        varies = inside if state.totals[0].served else seen + rest
        fine = fine and variance < 0.3 * (varies + 2 * rest)
    if turns is not None:
        return dropped, turns
    if not fine or not along:
        return dropped, None
    return dropped, known_axis(state, known, along, rest)


def known_axis(
    state: State,
    known: Constants,
    along: dict[tuple[int, int], tuple[float, float]],
    rest: float,
) -> int | None:
    """The axis along which some gap varies most, if it is known from the others or they are few."""
    (_, axis), (seen, own) = max(along.items(), key=lambda each: each[1][0] + 0.3 * each[1][1])
    doubts = max(sum(along[k, j][1] for j in range(known.dimension)) for k, _ in along)
    slots, levels = state.holds.shape[1], max(int(known.axes.levels[axis]), 1)
    many = max(0.0, 1 - 2 / slots)
    if rest > many * doubts:
        return axis
    needed = many * 0.5 * (doubts - own) + 0.5 * max(0.0, 1 - 2 / levels) * own
    return axis if seen + rest > needed and state.relevance[axis] >= 0.8 * many else None


@pytest.mark.parametrize("seed", range(90))
def test_arms_are_dropped_and_bins_are_split_when_the_documents_say_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arms, d = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    levels = [0] * d if seed < 50 else [int(rng.choice([0, 3, 4])) for _ in range(d)]
    known = constants(with_levels(*levels, arms=arms))
    slots = int(known.axes.slots[-1])
    state = believing(
        known,
        rng.normal(0, rng.choice([0.01, 0.1, 0.4]), arms).tolist(),
        deviation=float(rng.choice([0.005, 0.03, 0.1])),
        effect=rng.normal(0, rng.choice([0.01, 0.1]), (slots, arms)),
        effect_deviation=float(rng.choice([0.01, 0.05])),
        served=int(rng.integers(2)),
        users=float(rng.choice([100, 3000, 9990, 20_000])),
    )
    state.relevance[:] = rng.choice([0.1, 1.0], d)
    for axis, count in enumerate(levels):
        if count:
            first = int(known.axes.slots[axis])
            state.level_mass[0, :, first : first + count] = rng.dirichlet(np.ones(count) * 3)
    found = estimate(state, known, 0)
    dropped, split_along = by_the_documents(state, known, found)
    step(state, known)
    events = events_of(state)
    assert {event.arm for event in events if event.axis < 0} == dropped
    axes = [event.axis for event in events if event.axis >= 0]
    assert axes == ([] if split_along is None else [split_along])
    assert {k for k in range(arms) if not state.live[0, k]} == dropped
    assert state.live[0].any()
    for event in events:
        if event.axis < 0:
            assert event.statistic >= event.boundary
            assert state.live[0, event.winner]
    pair = decisions.choose_pair(state.live[0], found.mean, found.covariance, known.caps)
    assert tuple(state.pair[0]) == pair
    assert state.totals[0].release == (2 if events or state.pair[0].max() > 1 else 1)


# --- which axis, and which levels -----------------------------------------------------------------


def many_axes(d: int, *, steep: float, doubt: float) -> State:
    """A bin in which the last of d axes is steep, and all are known as well as each other."""
    known = constants(unit_cube(arms=2, d=d))
    effect = np.zeros((d, 2))
    effect[-1] = [steep / 2, -steep / 2]
    return believing(
        known, [0.0, 0.0], deviation=0.001, effect=effect, effect_deviation=doubt, users=100.0
    )


@pytest.mark.parametrize(
    ("d", "steep", "splits"),
    [
        (1, 0.0, True),
        (2, 0.0, True),  # of two axes, neither has to be known from the other
        (2, 0.05, True),
        (12, 0.0, False),  # of many, nobody knows which
        (
            12,
            0.2,
            True,
        ),  # what is seen, 4/3·0.04, is more than what is in doubt along eleven others
    ],
)
def test_a_split_waits_for_the_axis_to_be_known_where_there_are_many(
    d: int, steep: float, splits: bool
) -> None:
    state = many_axes(d, steep=steep, doubt=0.05)
    known = constants(unit_cube(arms=2, d=d))
    found = estimate(state, known, 0)
    axis, against = decisions.axis_to_split(state, known, 0, state.live[0], found, 0)
    assert (axis >= 0) == splits
    if splits:
        assert against == 1
        assert axis == (d - 1 if steep else 0)
    step(state, known)
    assert state.totals[0].nodes == (3 if splits else 1)


@pytest.mark.parametrize(("relevance", "splits"), [(0.72, True), (0.6, False)])
def test_of_many_axes_one_that_hardly_matters_is_not_split_along(
    relevance: float, splits: bool
) -> None:
    """Relevant enough is 0.8, times the share of axes that are not expected to matter: 10 of 12."""
    state = many_axes(12, steep=0.4, doubt=0.05)
    state.relevance[-1] = relevance
    step(state, constants(unit_cube(arms=2, d=12)))
    assert state.totals[0].nodes == (3 if splits else 1)


def test_where_nothing_is_left_to_be_learned_of_any_axis_a_split_is_a_guess() -> None:
    state = many_axes(12, steep=0.0, doubt=0.01)  # 12·4/3·2·0.01² is less than 5 % of the prior
    step(state, constants(unit_cube(arms=2, d=12)))
    assert state.totals[0].nodes == 3


@pytest.mark.parametrize("seed", range(40))
def test_levels_are_divided_between_the_two_sets_that_differ_most(seed: int) -> None:
    """By brute force: the best of all 2^(L-1) - 1 ways to divide the levels that a bin holds."""
    rng = np.random.default_rng(seed)
    levels = int(rng.integers(3, 9))
    known = constants(with_levels(0, levels, arms=3))
    effect = rng.normal(0, 0.1, (1 + levels, 3))
    state = believing(known, [0.0] * 3, effect=effect)
    held = rng.random(levels) < 0.8
    held[rng.choice(levels, 2, replace=False)] = True
    state.holds[0, 1:] = held
    state.level_mass[0, :, 1:] = rng.dirichlet(np.ones(levels) * rng.choice([1, 10]))
    found = estimate(state, known, 0)
    best, arm = map(int, rng.choice(3, 2, replace=False))
    upper = decisions.divide_levels(state, known, 0, found, 1, best, arm)
    gaps = effect[1:, best] - effect[1:, arm]
    shares = found.people.part[0, 1:]

    def between(chosen: set[int]) -> float:
        others = set(np.flatnonzero(held)) - chosen
        a, b = (sum(shares[each] for each in some) for some in (chosen, others))
        x, y = (
            sum(shares[each] * gaps[each] for each in some) / total
            for some, total in ((chosen, a), (others, b))
        )
        return float(a * b / (a + b) * (x - y) ** 2)

    here = [int(each) for each in np.flatnonzero(held)]
    ways = [{here[0], *some} for n in range(len(here) - 1) for some in combinations(here[1:], n)]
    assert len(ways) == 2 ** (len(here) - 1) - 1
    chosen = set(np.flatnonzero(upper[1:]).tolist())
    assert not upper[0]
    assert chosen < set(here)
    assert chosen
    assert between(chosen) == pytest.approx(max(map(between, ways)), rel=1e-9)
    # The upper set is where the first arm is better.
    assert min(gaps[each] for each in chosen) > max(gaps[each] for each in set(here) - chosen)


def test_levels_with_no_gap_between_them_are_divided_all_the_same() -> None:
    known = constants(with_levels(4))
    state = believing(known, [0.0, 0.0])
    found = estimate(state, known, 0)
    upper = decisions.divide_levels(state, known, 0, found, 0, 0, 1)
    assert 0 < upper.sum() < 4


def test_an_arm_that_is_best_for_one_level_is_kept_for_it() -> None:
    known = constants(with_levels(4))
    effect = np.array([[0.1, -0.1], [0.1, -0.1], [0.1, -0.1], [-0.3, 0.3]])
    state = believing(known, [0.15, -0.15], deviation=0.005, effect=effect, users=3000.0)
    step(state, known)
    (event,) = events_of(state)
    assert (event.axis, event.arm) == (0, -1)
    assert state.upper[0].tolist() == [True, True, True, False]
    mean = np.linalg.solve(state.prior.precision[1, 0], state.prior.vector[1, 0])
    assert mean[1] > mean[0]  # the one level is the lower part


def test_an_arm_goes_just_when_it_is_paid_for() -> None:
    known = constants(unit_cube(arms=2, d=1))
    people, gap, deviation = 3000.0, 0.1, 0.03
    state = believing(known, [gap, 0.0], deviation=deviation, users=people)
    variance = 2 * deviation**2 + (4 / 3) * 2 * 0.001**2 + 2 * 0.05 * 0.2**2
    loss = -stats.norm(gap, variance**0.5).expect(lambda x: x, ub=0.0)
    price = (known.horizon - people) * loss / gap
    for paid, goes in [(0.99 * price, False), (1.01 * price, True)]:
        state = believing(known, [gap, 0.0], deviation=deviation, users=people)
        state.totals[0].paid = paid
        step(state, known)
        assert state.live[0].tolist() == [True, not goes]


@pytest.mark.parametrize(("steep", "split"), [(0.2, True), (0.14, False)])
def test_an_arm_that_is_best_in_a_part_of_a_bin_is_not_dropped_there(
    steep: float, split: bool
) -> None:
    known = constants(unit_cube(arms=2, d=2))
    state = believing(
        known,
        [0.15, -0.15],  # a gap of 0.3: at the edge of the bin, it is 0.3 - 2·0.2 or 0.3 - 2·0.14
        deviation=0.005,
        effect=np.array([[0.0, 0.0], [steep / 2, -steep / 2]]),
        effect_deviation=0.005,
        served=1,
        users=3000.0,
    )
    step(state, known)
    (event,) = events_of(state)
    assert (event.axis, event.arm) == ((1, -1) if split else (-1, 1))
    assert state.live[0].tolist() == [True, split]


def test_no_arm_is_dropped_while_nobody_is_served() -> None:
    known = constants(unit_cube(arms=3))
    hopeless = [0.4, -0.4, -0.45]
    waiting = believing(known, hopeless, served=0)
    step(waiting, known)
    assert waiting.live[0].all()
    assert not [event for event in events_of(waiting) if event.axis < 0]
    served = believing(known, hopeless, served=1)
    step(served, known)
    assert served.live[0].tolist() == [True, False, False]
    assert served.pair[0].tolist() == [0, 0]
    totals = served.totals[0]
    assert (totals.contested, totals.events, totals.release, totals.served) == (0, 2, 2, 0)


@pytest.mark.parametrize(
    ("announced", "came", "people", "drops"),
    [
        ((1000, 500), 1400, 0, False),  # the next step may be all logged rows again
        ((1000, 500), 1401, 0, True),  # fewer than a step's are left: people are in the next one
        ((1000, 500), 1500, 0, True),
        ((1000, 500), 1400, 60, False),  # of 1400 reports, 60 were of people who came early
        ((0,), 1500, 0, False),  # nothing was announced: nobody knows when it ends
        ((), 1500, 0, False),
    ],
)
def test_arms_are_dropped_when_the_announced_rows_have_come(
    announced: tuple[int, ...], came: int, people: int, drops: bool
) -> None:
    known = constants(
        sv.Experiment(
            arms=["a", "b", "c"],
            context=[sv.Numeric("x", 0, 1), sv.Numeric("y", 0, 1)],
            epsilon=1.0,
            horizon=10_000,
            auxiliary=[sv.Population(f"{m}", 1.0, users) for m, users in enumerate(announced)],
            release_every=100,
        )
    )
    state = believing(known, [0.4, -0.4, -0.45], served=0)
    state.totals[0].reports, state.totals[0].target = came, people
    step(state, known)
    assert state.live[0].all() == (not drops)


def test_a_settled_bin_stays_as_it_is() -> None:
    known = constants(unit_cube())
    state = believing(known, [0.4, -0.4])
    step(state, known)
    before = [array.copy() for _, array in arrays_of(state)]
    for _ in range(3):
        state.totals[0].served = 10
        step(state, known)
    state.totals[0].served = 0
    after = [array for _, array in arrays_of(state)]
    assert all((old == new).all() for old, new in zip(before, after, strict=True))


def test_nobody_to_come_is_still_one_person() -> None:
    known = constants(unit_cube(horizon=100))
    state = believing(known, [0.001, 0.0], deviation=0.3, users=1000.0)
    step(state, known)
    # 1000 users have paid 0.001 each, which is more than one person can lose.
    assert state.live[0].tolist() == [True, False]


@pytest.mark.parametrize(("wins", "proved"), [(0, False), (12, False), (400, True)])
def test_with_certificates_an_arm_goes_only_when_it_is_proved_to_lose(
    wins: int, proved: bool
) -> None:
    known = constants(unit_cube(arms=3, guarantee="certified", delta=0.1))
    state = believing(known, [0.4, -0.4, -0.45])
    state.votes[0, 0, 1], state.votes[0, 1, 0] = wins, wins // 4
    step(state, known)
    assert state.live[0].tolist() == [True, not proved, True]
    certificates = certificates_of(state, known, ["a", "b", "c"])
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
    known = constants(unit_cube(guarantee="certified"))
    state = believing(known, [0.001, 0.0], deviation=0.2)
    state.votes[0, 0, 1] = 1000
    step(state, known)
    assert state.live[0].all()


def test_an_arm_that_lacks_the_proof_is_compared_until_it_has_it_and_no_bin_is_split() -> None:
    """The second is hardest to tell from the first; the third should go."""
    mean, steep = [0.4, 0.399, -0.4], np.array([[0.0, 0.05, 0.0], [0.0, 0.0, 0.0]])
    for certified, pair, live, nodes in (
        (True, [0, 2], [True, True, True], 1),
        (False, [0, 1], [True, True, False], 3),
    ):
        known = constants(unit_cube(arms=3, guarantee="certified" if certified else "regret"))
        state = believing(known, mean, effect=steep)
        step(state, known)
        assert state.pair[0].tolist() == pair
        assert state.live[0].tolist() == live
        assert state.totals[0].nodes == nodes
