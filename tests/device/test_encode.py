from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.device.encode import encode

SCHEMA = sv.Experiment(
    arms=["a", "b"],
    context=[
        sv.Numeric("age", 20, 100),
        sv.Ordinal("mood", ("low", "middling", "high")),
        sv.Categorical("city", ("Rome", "Oslo")),
    ],
    epsilon=1,
)
GOOD = {"age": 40, "mood": "high", "city": "Rome"}


def test_numbers_are_scaled_and_levels_sit_in_the_middle_of_their_share() -> None:
    assert encode(SCHEMA, GOOD) == pytest.approx((0.25, 5 / 6, 0.25))


@pytest.mark.parametrize(("age", "position"), [(-5, 0), (20, 0), (100, 1), (1e300, 1), (60, 0.5)])
def test_numbers_out_of_range_are_clamped(age: float, position: float) -> None:
    assert encode(SCHEMA, {**GOOD, "age": age})[0] == position


@pytest.mark.parametrize("age", [np.float32(60), np.int64(60), 60.0])
def test_any_kind_of_real_number_will_do(age: Any) -> None:
    assert encode(SCHEMA, {**GOOD, "age": age})[0] == 0.5


class Odd(float):
    """A number of somebody else's, whose error shows what it is."""

    def __float__(self) -> float:
        raise ValueError(f"HIGH {self!r}")


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({**GOOD, "age": Odd(40)}, "feature 'age' must be a finite number; got another number"),
        (
            {"age": 40, "mood": "high"},
            r"have the features .* and no other; it lacks \['city'\] and has 0",
        ),
        ({**GOOD, "iban": "IT60"}, "and no other; it lacks none and has 1 unknown"),
        ({**GOOD, "age": float("nan")}, "feature 'age' must be a finite number; got NaN"),
        (
            {**GOOD, "age": float("inf")},
            "feature 'age' must be a finite .*; got an infinite number",
        ),
        ({**GOOD, "age": 10**400}, "feature 'age' must be a finite number; got another number"),
        ({**GOOD, "age": "40"}, "feature 'age' must be a finite number; got a str"),
        ({**GOOD, "age": True}, "feature 'age' must be a finite number; got a bool"),
        (
            {**GOOD, "age": None},
            "feature 'age' must be a finite number; got nothing; say optional=True in the schema",
        ),
        ({**GOOD, "mood": "HIGH"}, "feature 'mood' must be one of the .*; got an unknown level"),
        ({**GOOD, "city": 3}, "feature 'city' must be one of the .*; got another number"),
        ([40, "high", "Rome"], "a context must map feature names to values; got list"),
    ],
)
def test_a_bad_context_is_refused_without_showing_it(context: Any, message: str) -> None:
    with pytest.raises(sv.ContextError, match=message) as caught:
        encode(SCHEMA, context)
    for raw in ("IT60", "iban", "HIGH"):
        assert raw not in str(caught.value)


GAPS = sv.Experiment(
    arms=["a", "b"],
    context=[
        sv.Numeric("income", 0, 100, optional=True),
        sv.Boolean("smokes"),
        sv.Categorical("city", ("Rome", "Oslo"), other=True, optional=True),
    ],
    epsilon=1,
)


def test_an_optional_feature_may_be_absent_or_nothing_or_nan() -> None:
    there = {"income": 50, "smokes": True, "city": "Oslo"}
    assert encode(GAPS, there) == (0.5, 0.25, 0.75, 0.375)
    missing = (0.0, 0.75, 0.75, 0.875)
    assert encode(GAPS, {"smokes": True}) == missing
    assert encode(GAPS, {"smokes": True, "income": None, "city": None}) == missing
    nan = float("nan")
    assert encode(GAPS, {"smokes": True, "income": nan, "city": nan}) == missing
    assert encode(GAPS, {**there, "city": "Atlantis"})[-1] == 0.625


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({}, r"have the features \['smokes'\], may have \['income', 'city'\] and no other; it lac"),
        ({"smokes": True, "iban": "IT60"}, "it lacks none and has 1 unknown"),
        ({"smokes": 1}, "'smokes' must be True or False; got another number"),
        ({"smokes": None}, "'smokes' must be True or False; got nothing; say optional=True"),
        ({"smokes": True, "city": 60}, "'city' must be one of the schema's levels; got another"),
    ],
)
def test_what_is_not_optional_has_to_be_there(context: Any, message: str) -> None:
    with pytest.raises(sv.ContextError, match=message) as caught:
        encode(GAPS, context)
    assert "60" not in str(caught.value)


def test_a_device_takes_people_with_gaps() -> None:
    learner = sv.Learner(GAPS)
    for context in ({"smokes": True}, {"smokes": False, "income": 3, "city": "Rome"}):
        device = sv.Device(learner.release())
        assert device.choose(context) in ("a", "b")
        learner.receive(device.report(reward=1.0))
    assert learner.status().reports == {"target": 2}
