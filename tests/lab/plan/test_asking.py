"""What no plan can be made of is told in words, with what to do."""

from typing import Any

import pytest

import sottovoce as sv
from sottovoce.lab.plan import asking
from sottovoce.shared.errors import ExperimentError


def experiment(**settings: Any) -> sv.Experiment:
    usual: dict[str, Any] = {"epsilon": 1.0, "horizon": 5000}
    return sv.Experiment(
        arms=["control", "coach"], context=[sv.Numeric("age", 18, 90)], **{**usual, **settings}
    )


def test_an_effect_is_in_the_unit_of_the_rewards() -> None:
    assert asking.effect_of(experiment(), None) == 0.1
    assert asking.effect_of(experiment(), 0.25) == 0.25
    assert asking.effect_of(experiment(reward=[0, 60]), 6) == 0.1
    assert asking.effect_of(experiment(reward=[0, 60]), 60) == 1


@pytest.mark.parametrize("effect", [0, -0.1, 1.5, float("nan"), float("inf")])
def test_effects_of_nothing_and_beyond_the_range_are_refused(effect: float) -> None:
    with pytest.raises(
        ExperimentError, match=r"effect must lie above 0 and be at most 1, the whole"
    ):
        asking.effect_of(experiment(), effect)
    with pytest.raises(ExperimentError, match="at most 60, the whole range of rewards"):
        asking.effect_of(experiment(reward=[0, 60]), 61)


def test_a_baseline_is_an_arm_or_arms_at_random() -> None:
    assert asking.baseline_of(experiment(), None) == 0
    assert asking.baseline_of(experiment(), "coach") == 1
    assert asking.baseline_of(experiment(), "random") is None
    with pytest.raises(
        ExperimentError, match=r"baseline must be one of \['control', 'coach'\], or"
    ):
        asking.baseline_of(experiment(), "couch")


@pytest.mark.parametrize(
    ("text", "a_day"),
    [("500/day", 500), ("20/hour", 480), ("3,000/week", 3000 / 7), ("1.5 / days", 1.5)],
)
def test_a_traffic_is_people_in_a_time(text: str, a_day: float) -> None:
    assert asking.people_a_day(text) == pytest.approx(a_day)


@pytest.mark.parametrize(
    "text", ["500", "many/day", "500/fortnight", "0/day", "-3/day", "/day", ""]
)
def test_a_traffic_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ExperimentError, match="traffic must"):
        asking.people_a_day(text)


def test_people_are_those_who_come_in_time_or_those_of_the_file() -> None:
    assert asking.people_of(experiment(), None, None, None) == 5000
    assert asking.people_of(experiment(), 700, None, None) == 700
    assert asking.people_of(experiment(), None, 500.0, 30) == 15_000
    assert asking.people_of(experiment(), 700, 500.0, 30) == 700


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((100_000, 10.0, 30), r"100,000 people must come within 30 days; got 300; at 10 a day 300"),
        ((None, 0.001, None), r"5,000 people must come within 36,525 days.*no plan can meet that"),
        ((None, 0.01, 3), "traffic must bring somebody within the days"),
        ((None, None, 30), "days must come with a traffic; got days alone; say --traffic"),
        ((None, 10.0, 0), "days must be more than 0"),
        ((0, None, None), "people must be a whole number >= 1"),
    ],
)
def test_traffic_that_no_plan_can_meet_is_refused(given: tuple[Any, Any, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        asking.people_of(experiment(), *given)


def test_rows_of_others_are_counted_with_their_own_epsilon() -> None:
    (others,) = asking.auxiliary_of(experiment(), "20,000@4").auxiliary
    assert (others.users, others.epsilon) == (20_000, 4)
    (others,) = asking.auxiliary_of(experiment(), "500").auxiliary
    assert (others.users, others.epsilon) == (500, 1)
    assert asking.auxiliary_of(experiment(), None).auxiliary == ()


@pytest.mark.parametrize("text", ["many", "500@", "@4", "500@four", "-3"])
def test_rows_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ExperimentError, match="auxiliary must be a number of rows"):
        asking.auxiliary_of(experiment(), text)


def test_a_plan_takes_the_baseline_of_its_file() -> None:
    declared = experiment(baseline={"arm": "coach", "share": 0.2})
    assert asking.baseline_of(declared, None) == 1
    assert asking.baseline_of(declared, "control") == 0
    assert asking.share_of_group(declared) == 0.2
    assert asking.baseline_of(experiment(baseline={"share": 0.2}), None) is None
    assert asking.share_of_group(experiment()) == 0.1
