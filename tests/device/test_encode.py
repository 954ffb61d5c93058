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
        ({**GOOD, "age": None}, "feature 'age' must be a finite number; got nothing"),
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
