"""Releases with scales and thresholds on the wire, and the numbers of questions about places."""

import json
from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from factories import LOGGED_SCALE, REWARD, SCALE, experiment, uniform
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.partition import Partition
from sottovoce.shared.whisper.questions import Question, most_questions, question_of, questions_of
from sottovoce.shared.whisper.thresholds import THRESHOLDS

MIXED = [
    sv.Numeric("income", 0, 1_000_000, optional=True),  # a number, and whether it is missing
    sv.Categorical("city", ("Rome", "Oslo", "Bern")),
    sv.Ordinal("dose", ("none", "low", "high")),
    sv.Numeric("age", 18, 90),
]
TAIL = [(piece / 32) ** 3 for piece in range(1, 32)]
ASK = (704, 160, 0, 0, 0, 160)


def mixed(**settings: Any) -> sv.Experiment:
    return experiment(**{"context": MIXED, "method": "whisper", **settings})


def scaled() -> sv.Release:
    """One split along a scale; people are asked where they are along the other number."""
    bins = (uniform("0", 0, 1, waiting=(2,)), uniform("1", 2))
    knots = (0.0, *TAIL, 1.0)
    partition = Partition(5, {"": 0}, (0, 0, 3, 0, 0), scales={0: knots})
    return sv.Release(mixed(), 4, partition, bins, 0, ASK, 48, (0, 0, 0, 0, 27))


def with_changes(**changes: Any) -> str:
    """The text of the release with other values of some keys; None leaves a key out."""
    table = json.loads(wire.release_to_json(scaled())) | changes
    return canonical_json({key: each for key, each in table.items() if each is not None}).decode()


def test_a_release_with_scales_survives_the_wire() -> None:
    release = scaled()
    text = wire.release_to_json(release)
    assert wire.release_from_json(text) == release
    table = json.loads(text)
    assert table["scales"] == {"0": TAIL}
    assert (table["scale_share"], table["thresholds"]) == (48, [0, 0, 0, 0, 27])
    # What is not there is left out.
    plain = replace(
        release, scale_share=0, thresholds=(), partition=Partition(5, {"": 0}, (0, 0, 3, 0, 0))
    )
    text = wire.release_to_json(plain)
    assert wire.release_from_json(text) == plain
    assert not {"scales", "thresholds", "scale_share"} & json.loads(text).keys()


@pytest.mark.parametrize(
    "changes",
    [
        {"scale_share": 1},
        {"scale_share": 160},
        {"thresholds": [1, 0, 0, 0, 0]},
        {"thresholds": [27, 0, 0, 0, 1]},
        {"scales": {"0": TAIL, "4": TAIL}},
        {"scales": None},
        {"thresholds": None, "scale_share": None},
    ],
)
def test_what_a_learner_may_ask_is_read(changes: dict[str, Any]) -> None:
    assert wire.release_to_json(wire.release_from_json(with_changes(**changes))) == with_changes(
        **changes
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"scale_share": None},
        {"scale_share": 0},
        {"scale_share": -1},
        {"scale_share": 161},
        {"scale_share": 48.0},
        {"scale_share": True},
        {"scale_share": "48"},
        {"scale_share": [48]},
        {"thresholds": None},
        {"thresholds": []},
        {"thresholds": [0, 0, 0, 0, 0]},
        {"thresholds": [0, 0, 0, 0, 0], "scale_share": None},
        {"thresholds": [0, 0, 0, 0, 0], "scale_share": 0},
        {"thresholds": [0, 0, 0, 0, 28]},
        {"thresholds": [0, 0, 0, 0, -1]},
        {"thresholds": [1, 0, 0, 0]},
        {"thresholds": [1, 0, 0, 0, 1, 1]},
        {"thresholds": [0, 1, 0, 0, 1]},  # whether a number is missing is no number
        {"thresholds": [0, 0, 1, 0, 1]},  # levels without order
        {"thresholds": [0, 0, 0, 1, 1]},  # levels in order
        {"thresholds": [0, 0, 0, 0, 1.0]},
        {"thresholds": [0, 0, 0, 0, True]},
        {"thresholds": [0, 0, 0, 0, "1"]},
        {"thresholds": [0, 0, 0, 0, None]},
        {"thresholds": {"4": 1}},
        {"thresholds": "00001"},
        {"thresholds": 27},
        {"thresholds": True},
        {"scales": {}},
        {"scales": []},
        {"scales": {"1": TAIL}},
        {"scales": {"2": TAIL}},
        {"scales": {"3": TAIL}},
        {"scales": {"5": TAIL}},
        {"scales": {"0": TAIL[:-1]}},
        {"scales": {"0": [*TAIL[:-1], 1.0]}},
        {"scales": {"0": TAIL[::-1]}},
    ],
)
def test_what_no_learner_asks_is_refused(changes: dict[str, Any]) -> None:
    wire.release_from_json(with_changes())
    with pytest.raises(sv.WireError) as caught:
        wire.release_from_json(with_changes(**changes))
    assert caught.value.reason is sv.Rejection.MALFORMED


@pytest.mark.parametrize(
    "more",
    [
        {"scale_share": 48},
        {"thresholds": [1, 0, 0, 0, 0]},
        {"thresholds": [1, 0, 0, 0, 0], "scale_share": 48},
        {"thresholds": [0, 0, 0, 0, 0]},
        {"scales": {"0": TAIL}},
    ],
)
def test_the_other_method_has_no_scales(more: dict[str, Any]) -> None:
    text = wire.release_to_json(sv.Learner(mixed(method="ldpmab")).release())
    wire.release_from_json(text)
    told = canonical_json(json.loads(text) | more).decode()
    with pytest.raises(sv.WireError, match="must be left out for this method") as caught:
        wire.release_from_json(told)
    assert caught.value.reason is sv.Rejection.MALFORMED


def test_thresholds_rise_and_are_closer_together_near_both_ends() -> None:
    tail = [1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768]
    mirrored = [2048 - each for each in reversed(tail)]
    assert [2048 * each for each in THRESHOLDS] == [*tail, 1024, *mirrored]


# --- numbers of questions -------------------------------------------------------------------------

EXPERIMENTS = {
    "mixed": mixed(),
    "audited": mixed(auxiliary=[sv.Population("clinic-b", 2.0, 10)]),
    "two arms": mixed(arms=["a", "b"]),
    "public": mixed(method=sv.Whisper(public_arms=True)),
    "numbers": experiment(method="whisper"),
    "no numbers": mixed(context=MIXED[1:3]),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_number_is_that_of_one_question_or_refused(name: str) -> None:
    asked = EXPERIMENTS[name]
    found: dict[Question, int] = {}
    for number in range(most_questions(asked) + 40):
        try:
            question = question_of(number, asked)
        except sv.ReportRejected:
            continue
        assert question not in found
        found[question] = number
        assert question.number(asked) == number < most_questions(asked)
        assert question.kind in questions_of(asked)
    places = [each for each in found if each.kind in (SCALE, LOGGED_SCALE)]
    numbers = [axis for axis, each in enumerate(asked.axes) if each.levels == 0]
    assert sorted((each.kind, each.axis or 0, each.row) for each in places) == [
        (kind, axis, row) for kind in (SCALE, LOGGED_SCALE) for axis in numbers for row in range(27)
    ]
    kinds = {each.kind for each in found}
    assert kinds == set(questions_of(asked))
    assert (REWARD in kinds) == (name == "audited")
    assert (SCALE in kinds) == (LOGGED_SCALE in kinds) == bool(numbers)


def test_questions_about_places_have_the_numbers_on_the_page() -> None:
    """After eight kinds with P patterns each: 27 for each axis, first of served people."""
    asked = mixed()  # P = 1 + 1 + 1 + 4 + 1 + 1
    assert Question(SCALE, 0, 0).number(asked) == 8 * 9
    assert Question(SCALE, 4, 26).number(asked) == 8 * 9 + 5 * 27 - 1
    assert Question(LOGGED_SCALE, 0, 13).number(asked) == 8 * 9 + 5 * 27 + 13
    assert most_questions(asked) == 8 * 9 + 10 * 27 + 2  # two about all bins


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("kind", [SCALE, LOGGED_SCALE])
def test_nobody_is_asked_where_they_are_along_levels(kind: int, axis: int) -> None:
    number = Question(kind, axis, 3).number(mixed())
    with pytest.raises(sv.ReportRejected, match="be one that its experiment asks") as caught:
        question_of(number, mixed())
    assert caught.value.reason is sv.Rejection.UNKNOWN_QUESTION
