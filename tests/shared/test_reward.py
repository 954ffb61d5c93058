"""Rewards are counted as their owner says, and durations are read as people write them."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from factories import experiment
from sottovoce.shared.durations import duration
from sottovoce.shared.reward import reward_scale

BOUNDS = st.tuples(
    st.floats(-1e9, 1e9, allow_nan=False), st.floats(1e-3, 1e9, allow_nan=False)
).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(BOUNDS, st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_reward_becomes_a_number_from_0_to_1(
    bounds: tuple[float, float], reward: float
) -> None:
    scale = reward_scale(bounds)
    low, high = bounds
    outcome = scale.outcome(reward)
    assert 0 <= outcome <= 1
    within = min(max(reward, low), high)
    assert scale.mean(outcome) == pytest.approx(within, abs=1e-9 * (abs(low) + high - low))


@pytest.mark.parametrize("setting", [(0, 60), None, "yes/no"])
@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "1", None, [1], 1j])
def test_what_is_no_number_is_no_reward(setting: Any, reward: object) -> None:
    with pytest.raises(sv.RewardError, match="a reward must"):
        reward_scale(setting).outcome(reward)


def test_yes_and_no_may_be_given_as_truth_values() -> None:
    for setting in (None, "yes/no"):
        assert [reward_scale(setting).outcome(each) for each in (True, False)] == [1, 0]
    with pytest.raises(sv.RewardError):
        reward_scale((0, 60)).outcome(True)


def test_without_a_scale_a_reward_beyond_1_is_refused_and_not_shown() -> None:
    with pytest.raises(sv.RewardError) as caught:
        reward_scale(None).outcome(17.25)
    assert "17" not in str(caught.value)
    assert reward_scale((0, 10)).outcome(17.25) == 1


@pytest.mark.parametrize(
    "setting", [(1, 1), (2, 1), (0,), (0, 1, 2), "yes", (0, float("inf")), (0, "1"), 7]
)
def test_a_scale_that_cannot_be_is_refused(setting: object) -> None:
    with pytest.raises(sv.ExperimentError, match="reward must be two numbers"):
        experiment(reward=setting)


def test_an_experiment_keeps_its_scale_through_its_table() -> None:
    counted = experiment(reward=[0, 60], reward_window="7 days")
    again = sv.Experiment.from_table(counted.to_table())
    assert again == counted
    assert again.fingerprint == counted.fingerprint != experiment().fingerprint
    assert again.window == timedelta(days=7)
    assert again.rewards.outcome(30) == 0.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90 min", 5400), ("1 hour", 3600), ("30d", 2_592_000), ("2 weeks", 1_209_600), ("5s", 5)],
)
def test_a_duration_is_read_as_people_write_it(text: str, seconds: int) -> None:
    assert duration(text, what="a time") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["7", "days", "-1 day", "0 days", "7 parsecs", 7, "999999999 w"])
def test_other_durations_are_refused(text: object) -> None:
    with pytest.raises(sv.ExperimentError, match="a time must"):
        duration(text, what="a time")
