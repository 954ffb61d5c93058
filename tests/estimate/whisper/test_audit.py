"""The audit: what was promised beside what was delivered, and how many are asked for it."""

import math

import numpy as np
import pytest

import sottovoce as sv
from factories import unit_cube, whispering
from sottovoce.estimate.diagnosis import Audit
from sottovoce.estimate.whisper.audit import add_rewards, forecast, is_clear, reward_share
from sottovoce.estimate.whisper.constants import Constants, constants
from sottovoce.estimate.whisper.state import State, initial_state
from sottovoce.estimate.whisper.step import step
from support.slow import slow_but
from support.states import audit_of, believing, set_audit


def forecast_of(state: State) -> list[float]:
    """What is expected of the first bin: its share of the people, its policy, arms at random."""
    return [float(array[0]) for array in state.forecast]


def test_the_forecast_of_a_bin_is_that_of_its_two_arms_and_of_all() -> None:
    known = constants(unit_cube(arms=3, behaviours=(None,)))
    state = initial_state(known)
    assert forecast_of(state) == [1, 0, 0]
    mean = np.array([0.3, -0.1, 0.2])
    state.pair[0] = [2, 1]
    forecast(state, known, 0, 0.25, mean)
    assert forecast_of(state) == pytest.approx([0.25, (0.2 - 0.1) / 2, 0.4 / 3])
    state.pair[0] = [0, 0]  # settled
    forecast(state, known, 0, 0.75, mean)
    assert forecast_of(state) == pytest.approx([0.75, 0.3, 0.4 / 3])


def test_where_arms_are_public_the_forecast_is_that_of_all_live_arms() -> None:
    """Everybody there gets one of the live arms, each as often as any: not the best two alone."""
    for public_arms, expected in ((False, (0.1 + 0.05) / 2), (True, (0.1 + 0.05 - 0.3) / 3)):
        known = constants(unit_cube(arms=3, behaviours=(None,), public_arms=public_arms))
        state = believing(known, [0.1, 0.05, -0.3], deviation=0.3, users=1.0)
        step(state, known)
        assert state.live[0].all()
        assert forecast_of(state) == pytest.approx([1.0, expected, -0.15 / 3], abs=1e-6)


def test_an_audit_weighs_leaves_by_their_people_and_leaves_out_what_was_split() -> None:
    known = constants(unit_cube(arms=3, behaviours=(None,)))
    state = initial_state(known)
    state.totals[0].nodes = 3
    state.tree.child[:3] = [1, 1, 2]
    state.forecast.share[:3] = [1.0, 0.3, 0.1]
    state.forecast.policy[:3] = [9.0, 0.2, -0.2]
    state.forecast.at_random[:3] = [9.0, 0.0, 0.1]
    add_rewards(state, 8.0, -2.0)
    # (0.3·0.2 - 0.1·0.2)/0.4 = 0.1 and 0.01/0.4 = 0.025, of 8 people each.
    assert audit_of(state) == pytest.approx([8, -1, 0.8, 0.2])
    state.forecast.policy[2] = 0.2
    add_rewards(state, 2.0, 4.0)
    assert audit_of(state) == pytest.approx([10, 1, 0.8 + 2 * 0.2, 0.25])


# --- how many are asked ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", slow_but([1.0], [0.5, 1.0, 8.0]))
def test_an_audit_is_clear_when_it_holds_or_falls_short(epsilon: float) -> None:
    known = constants(whispering(epsilon=epsilon))
    rng = np.random.default_rng(int(10 * epsilon))
    seen = set()
    for answers in [0, 1, 99, 100, 101, *rng.integers(2, 100, 200), *rng.integers(100, 9999, 600)]:
        promised, at_random = rng.uniform(0.3, 0.8, 2)
        error = 1 / (2 * math.tanh(epsilon / 2) * math.sqrt(answers)) if answers else math.inf
        doubt = rng.choice([-1, 1]) * rng.choice([0.1, 1.2, 1.3, 2.4, 2.49, 2.51, 2.6, 6.0])
        delivered = (promised + at_random) / 2 + (doubt * error if answers else 0.0)
        expected = Audit(int(answers), delivered, promised, at_random, error)
        state = initial_state(known)
        means = (delivered, promised, at_random)
        set_audit(state, answers, *(answers * (mean - 0.5) for mean in means))
        assert is_clear(state, known) == (expected.holds or expected.falls_short)
        seen.add((answers >= 100, expected.holds, expected.falls_short))
    few, unclear = (False, False, False), (True, False, False)
    assert seen == {few, unclear, (True, True, False), (True, False, True)}


def settled_in(known: Constants, eighths: int) -> State:
    """A state whose bins are settled for so many eighths of the people; the rest is contested."""
    state = initial_state(known)
    state.totals[0].nodes, state.totals[0].contested = 5, 2
    state.tree.child[:5] = [1, 3, 2, 3, 4]
    state.contested[:2] = [2, 4]
    # Two bins were split, and nobody is counted in them, whatever their pair was.
    state.forecast.share[:5] = [0.8, 0.5, (8 - eighths) / 16, eighths / 8, (8 - eighths) / 16]
    state.pair[:5] = [[1, 1], [0, 1], [0, 1], [1, 1], [1, 0]]
    return state


CLEAR = (10_000.0, 2000.0, 0.0, 0.0)  # answers 0.2 above what was promised


@pytest.mark.parametrize(
    ("eighths", "asked"), [(0, 24), (2, 24), (4, 24), (5, 24), (6, 72), (7, 120), (8, 144)]
)
def test_the_more_people_are_in_settled_bins_the_more_are_asked_until_it_is_clear(
    eighths: int, asked: int
) -> None:
    """Of 160, in steps of 24: by how much those in settled bins outnumber the others."""
    known = constants(unit_cube(behaviours=(None,)))
    state = settled_in(known, eighths)
    assert reward_share(state, known) == max(asked, 96)  # until promises were checked
    state.totals[0].checked = 1
    assert reward_share(state, known) == asked
    state.forecast.share[:5] /= 3  # shares need not add up to one
    assert reward_share(state, known) == asked
    set_audit(state, *CLEAR)
    assert reward_share(state, known) == 24
    state.totals[0].audit_delivered *= -1  # it is as clear that it went badly
    assert reward_share(state, known) == 24


@pytest.mark.parametrize("eighths", [0, 4, 8])
def test_nobody_is_asked_where_there_are_no_auxiliary_populations(eighths: int) -> None:
    known = constants(unit_cube())
    state = settled_in(known, eighths)
    assert reward_share(state, known) == 0
    set_audit(state, *CLEAR)
    assert reward_share(state, known) == 0


def test_a_step_makes_a_new_release_when_only_the_share_of_those_asked_changes() -> None:
    known = constants(unit_cube(behaviours=(None,)))
    state = settled_in(known, 8)
    totals = state.totals[0]
    totals.contested = 0  # no bin is looked at, so that nothing else changes
    assert totals.reward_share == 24
    for release, asked, told in ((2, 144, 0), (2, 144, 0), (3, 24, 1), (3, 24, 1), (4, 144, 0)):
        set_audit(state, *(told * each for each in CLEAR))
        step(state, known)
        assert (totals.release, totals.reward_share, totals.events) == (release, asked, 0)


def test_releases_say_how_many_are_asked() -> None:
    assert sv.Learner(whispering()).release().reward_share == 24
    assert sv.Learner(whispering(auxiliary=[])).release().reward_share == 0
