"""Messages, and their parts."""

import pickle

import pytest

import sottovoce as sv
from sottovoce.shared import wire
from sottovoce.shared.errors import ExperimentError, Rejection, WireError, must


def test_a_message_says_what_the_rule_and_what_came() -> None:
    error = ExperimentError(must("epsilon", "be finite and > 0", -1))
    assert str(error) == "epsilon must be finite and > 0; got -1"
    assert error.requirement == "epsilon must be finite and > 0"


def test_a_hint_is_said_with_and_without_what_came() -> None:
    error = WireError(Rejection.NEWER_WIRE, must("the version", "be 1", 2, hint="upgrade"))
    assert str(error) == "the version must be 1; got 2; upgrade"
    assert error.requirement == "the version must be 1; upgrade"


def test_a_message_without_parts_is_its_own_requirement() -> None:
    error = ExperimentError("an experiment must have arms; it has none")
    assert error.requirement == str(error) == "an experiment must have arms; it has none"


def test_an_error_can_go_from_one_process_to_another() -> None:
    with pytest.raises(ExperimentError) as caught:
        sv.Experiment(arms=["a", "b"], context=[sv.Numeric("age", 0, 1)], epsilon=-61.73)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own bytes
    assert str(again) == str(caught.value) == "epsilon must be finite and > 0; got -61.73"
    assert again.requirement == "epsilon must be finite and > 0"


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        (b"61.73", "a report must be a JSON object"),
        (b'{"sottovoce": 61}', "the wire version must be at most 5; upgrade sottovoce"),
        (
            b'{"sottovoce": 5, "kind": "report", "payload": 61.73}',
            "a report's payload must be a list of numbers",
        ),
    ],
)
def test_what_a_server_answers_does_not_hold_what_came(text: bytes, requirement: str) -> None:
    with pytest.raises(WireError) as caught:
        wire.report_from_json(text)
    assert caught.value.requirement == requirement
