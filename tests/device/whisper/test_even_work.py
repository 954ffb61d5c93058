"""Everybody's report takes the same draws, in the same order and from the same ranges."""

import itertools
import secrets
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

import sottovoce as sv
from factories import ARMS, experiment, four_bins, uniform, unit_cube
from sottovoce.device.method import Secret
from sottovoce.device.whisper.answer import part_and_sign, true_answer
from sottovoce.device.whisper.subset import whisper
from sottovoce.shared.partition import Partition
from sottovoce.shared.whisper.cells import cell_layout
from sottovoce.shared.whisper.questions import Kind, Question, question_of, questions_of
from sottovoce.shared.whisper.subset import SignedSubset, signed_subset, unpack
from sottovoce.shared.wire import report_from_bytes, report_to_bytes

VALUES = (-1.0, 1.0, 0.0, -0.0, 0.3, 5e-324, -1 + 2**-53)
# A set that holds one cell, some, half, most, and all; more picks than one draw makes.
SIZES = [(1, 1), (2, 1), (5, 2), (6, 3), (7, 6), (9, 9), (200, 101), (300, 280), (700, 300)]
COINS = list(itertools.product([False, True], repeat=3))


class Counting:
    """Randomness that notes what it is asked for; its coins fall as they are told to."""

    def __init__(self, coins: tuple[bool, ...], *, first: bool) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._coins = list(coins)
        self._first = first

    def chance(self, numerator: int, denominator: int) -> bool:
        self.asked.append(("chance", numerator, denominator))
        return self._coins.pop(0)

    def chance_of_bits(self, numerator: int, count: int) -> bool:
        # The numerator is the person's value: all that may differ.
        assert 0 <= numerator <= 2**count
        self.asked.append(("chance of bits", count))
        return self._coins.pop(0)

    def below(self, limit: int) -> int:
        self.asked.append(("below", limit))
        return 0 if self._first else limit - 1

    def bits(self, count: int) -> int:
        self.asked.append(("bits", count))
        return 0 if self._first else 2**count - 1


def asked(
    mechanism: SignedSubset, cell: int | None, value: float, coins: tuple[bool, ...], first: bool
) -> tuple[tuple[Any, ...], ...]:
    draws: Any = Counting(coins, first=first)
    data = whisper(mechanism, cell=cell, value=value, draws=draws)
    assert len(unpack(mechanism, data)) == mechanism.cells
    return tuple(draws.asked)


def may_fall(coins: tuple[bool, ...], mechanism: SignedSubset) -> bool:
    """A set that holds every cell holds the person's own: its third coin falls one way."""
    return coins[2] or mechanism.size < mechanism.cells


@pytest.mark.parametrize(("cells", "size"), SIZES)
def test_the_draws_are_the_same_whatever_the_cell_the_value_and_the_coins(
    cells: int, size: int
) -> None:
    mechanism = signed_subset(1.0, cells, size=size)
    ways = {
        asked(mechanism, cell, value, coins, first)
        for cell in (None, 0, cells // 2, cells - 1)
        for value in VALUES
        for coins in COINS
        for first in (False, True)
        if may_fall(coins, mechanism)
    }
    (way,) = ways
    kinds = [each[0] for each in way]
    assert kinds[:3] == ["chance of bits", "chance", "chance"]
    assert kinds[-1] == "bits"
    assert set(kinds[3:-1]) <= {"below"}


@pytest.mark.parametrize(("cells", "size"), SIZES)
def test_both_coins_of_the_odds_are_drawn_with_their_odds(cells: int, size: int) -> None:
    mechanism = signed_subset(1.0, cells, size=size)
    way = asked(mechanism, 0, 0.3, (True, True, True), True)
    truth, rest = size * mechanism.told, (2 * cells - size) * mechanism.other
    assert way[1:3] == (("chance", truth, truth + rest), ("chance", size, 2 * cells - size))


def test_picks_have_one_more_than_the_smaller_side_of_the_set() -> None:
    for size in (2, 5):
        way = asked(signed_subset(1.0, 7, size=size), None, 0.0, (True, True, True), True)
        assert way[3:] == (("below", 7 * 6 * 5), ("bits", size))


# --- whole calls of a device ----------------------------------------------------------------------

YOUNG, OLD = {"age": 20, "bmi": 20}, {"age": 80, "bmi": 20}  # contested, and settled
REWARDS = (None, 0.0, 0.3, 0.5, 1.0)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every draw that the operating system is asked for; each falls on the same share."""
    asked: list[tuple[str, int]] = []

    def randbelow(limit: int) -> int:
        asked.append(("below", limit))
        return limit // 3

    def randbits(count: int) -> int:
        asked.append(("bits", count))
        return (1 << count) // 3

    monkeypatch.setattr(secrets, "randbelow", randbelow)
    monkeypatch.setattr(secrets, "randbits", randbits)
    return asked


@pytest.mark.parametrize("public_arms", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_a_choice_and_a_report_take_the_same_draws_for_everybody(
    drawn: list[tuple[str, int]], epsilon: float, public_arms: bool
) -> None:
    release = four_bins(epsilon=epsilon, public_arms=public_arms)
    seen = set()
    for context, reward in itertools.product((YOUNG, OLD), REWARDS):
        device = sv.Device(release, public_arms=public_arms)
        drawn.clear()
        device.choose(context)
        device.report(reward=reward)
        seen.add(tuple(drawn))
    assert len(seen) == 1
    assert len(drawn) >= 8


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_an_answer_about_all_bins_takes_the_same_draws_and_steps_for_everybody(
    drawn: list[tuple[str, int]], epsilon: float
) -> None:
    """Settled or not, and with an outcome or without."""
    release = four_bins(epsilon=epsilon, reward_share=160)
    layout = cell_layout(release, population=0, by_arm=False, settled=True)
    assert layout is not None
    seen, ways = set(), set()
    for context, reward in itertools.product((YOUNG, OLD), REWARDS):
        device = sv.Device(release)
        drawn.clear()
        device.choose(context)
        report = device.report(reward=reward)
        assert question_of(report.question, release.experiment).kind == Kind.BIN_REWARD
        seen.add(tuple(drawn))
    for policy, outcome in itertools.product(release.bins, (None, 0.0, 1.0)):
        for kind in (Kind.BIN_REWARD, Kind.BIN_MASS):
            point = tuple((low + high) / 2 for low, high in release.partition.box(policy.path))
            secret = Secret(point, policy.path, policy.arms[0])
            answer = partial(true_answer, release, layout, Question(kind))
            answer(secret=secret, outcome=outcome)  # the first time, what is kept is worked out
            ways.add((kind, steps_of(answer, secret=secret, outcome=outcome)))
    assert len(seen) == 1
    assert len(ways) == 2  # one for each question


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_a_logged_row_takes_the_same_draws_as_any_other(
    drawn: list[tuple[str, int]], epsilon: float
) -> None:
    release = four_bins(epsilon=epsilon)
    seen = set()
    for context, arm, reward in itertools.product((YOUNG, OLD), ARMS, (0.0, 0.3, 1.0)):
        drawn.clear()
        sv.Device(release, population="clinic-b").report_logged(context, arm=arm, reward=reward)
        seen.add(tuple(drawn))
    drawn.clear()
    sv.Device(release, population="clinic-b").report_nothing_logged()
    seen.add(tuple(drawn))
    assert len(seen) == 1


# --- levels ---------------------------------------------------------------------------------------

CITIES = ("Rome", "Oslo", "Bern", "Kyiv", "Lima")


def cities(*, epsilon: float) -> sv.Release:
    """Bins that are sets of cities: two contested ones and a settled one; the city may be missing.

    Almost everybody is asked about the city.
    """
    public = experiment(
        context=[sv.Numeric("age", 18, 90), sv.Categorical("city", CITIES, optional=True)],
        epsilon=epsilon,
        method="whisper",
        auxiliary=[sv.Population("clinic-b", epsilon, 10)],
    )
    sets = {"": frozenset({1, 2, 5}), "0": frozenset({4})}
    partition = Partition(2, {"": 1, "0": 1}, (0, 6), sets)
    bins = (uniform("00", 0, 2), uniform("01", 1), uniform("1", 0, 1))
    return sv.Release(public, 1, partition, bins, 0, (12, 12, 1000))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_every_level_takes_the_same_draws(drawn: list[tuple[str, int]], epsilon: float) -> None:
    release = cities(epsilon=epsilon)
    served, logged = set(), set()
    for city, reward in itertools.product((*CITIES, None), REWARDS):
        context = {"age": 30, "city": city}
        device = sv.Device(release)
        drawn.clear()
        device.choose(context)
        question = device.report(reward=reward).question
        assert question_of(question, release.experiment).axis == 1
        served.add(tuple(drawn))
        for arm in ARMS:
            drawn.clear()
            sv.Device(release, population="clinic-b").report_logged(
                context, arm=arm, reward=0.0 if reward is None else reward
            )
            logged.add(tuple(drawn))
    drawn.clear()
    sv.Device(release, population="clinic-b").report_nothing_logged()
    logged.add(tuple(drawn))
    assert len(served) == len(logged) == 1
    # The row is drawn where levels are no cells.
    assert (("below", 8) in drawn) == (epsilon == 0.5)


def steps_of(function: Callable[..., Any], *arguments: Any, **more: Any) -> tuple[Any, ...]:
    """Every line of the package that a call runs, in order."""
    seen: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if "sottovoce" not in frame.f_code.co_filename:
            return None
        seen.append((frame.f_code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments, **more)
    finally:
        sys.settrace(before)
    return tuple(seen)


@pytest.mark.parametrize("levels", [3, 6, 1024])
def test_the_part_and_the_sign_of_every_level_take_the_same_steps(levels: int) -> None:
    for row in (0, 1, levels - 1):
        ways = {
            steps_of(part_and_sign, (level + 0.5) / levels, 0.5, levels, row)
            for level in range(levels)
        }
        (way,) = ways
        assert {name for name, _ in way} >= {"part_and_sign", "pattern_sign"}


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_true_answer_of_every_level_takes_the_same_steps(epsilon: float) -> None:
    """Also where the bin is settled, and where there is nothing to tell."""
    release = cities(epsilon=epsilon)
    layout = cell_layout(release, population=0, by_arm=False)
    assert layout is not None
    row = 5 if layout.mechanism(1).parts == 1 else 0
    for _ in range(2):  # the first time, what is kept is worked out
        ways = set()
        for level, outcome in itertools.product(range(6), (None, 0.0, 1.0)):
            point = (0.3, (level + 0.5) / 6)
            secret = Secret(point, release.partition.find(point), 1)
            asked = Question(Kind.MASS, 1, row)
            answer = partial(true_answer, release, layout, asked)
            ways.add(steps_of(answer, secret=secret, outcome=outcome))
    assert len(ways) == 1


@pytest.mark.parametrize("arms", [2, 3])
def test_every_question_of_the_largest_context_has_a_number_that_fits(arms: int) -> None:
    largest = unit_cube(arms=arms, d=1000, behaviours=(None,))
    for kind in questions_of(largest):
        number = Question(kind, 999).number(largest)
        report = sv.Report(bytes(12), 0, bytes(16), b"", number, ())
        assert report_from_bytes(report_to_bytes(report)).question == number


@pytest.mark.parametrize("cuts", [{"0" * depth: depth % 2 for depth in range(97)}])
def test_a_device_gets_no_release_that_would_slow_it_down(cuts: dict[str, int]) -> None:
    """It is refused when it is read: nobody chooses by it, and no ε is spent."""
    table = {**four_bins().to_table(), "cuts": cuts}
    with pytest.raises(sv.WireError, match="at most 96 splits deep"):
        sv.Release.from_table(table)
