"""Settings and releases of whisper that are refused, and those that survive the wire."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment, whispering
from factories import grown as ldpmab_grown
from sottovoce.shared import wire
from sottovoce.shared.experiment import canonical_json
from support.whispers import each_setting, send


@pytest.mark.parametrize(
    "behaviour",
    [
        (-0.1, 0.6, 0.5),
        (0.5, 0.4, 0.2),
        (0.5, 0.5, 1e-6),
        (float("nan"), 0.5, 0.5),
        (float("inf"), 0.5, 0.5),
        ("0.5", 0.25, 0.25),
        (True, 0, 0),
        (None, 0.5, 0.5),
        (),
        "abc",
        0.5,
        {0: 1.0},
    ],
)
def test_behaviour_that_cannot_be_is_refused(behaviour: Any) -> None:
    with pytest.raises(
        sv.ExperimentError, match="behaviour of population 'b' must be numbers >= 0 that add up"
    ):
        sv.Population("b", 1.0, 10, behaviour)


@pytest.mark.parametrize("behaviour", [(1.0,), (0.5, 0.5), (0.25,) * 4])
def test_behaviour_has_a_chance_for_each_arm(behaviour: tuple[float, ...]) -> None:
    with pytest.raises(sv.ExperimentError, match="must have one chance for each of 3 arms"):
        whispering(auxiliary=[sv.Population("b", 1.0, 10, behaviour)])


def test_behaviour_that_can_be_is_kept() -> None:
    for behaviour in ([0, 0, 1], (0.1, 0.2, 0.7), [1 / 3] * 3):
        kept = whispering(auxiliary=[sv.Population("b", 1.0, 10, behaviour)])
        assert sv.Experiment.from_table(json.loads(json.dumps(kept.to_table()))) == kept
        assert kept.auxiliary[0].behaviour == tuple(behaviour)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"guarantee": "certain"}, "the guarantee of whisper must be 'regret' or 'certified'"),
        ({"guarantee": None}, "the guarantee of whisper must be"),
        ({"delta": 0}, r"delta of whisper must lie in \(0, 1\); got 0"),
        ({"delta": 1}, r"delta of whisper must lie in \(0, 1\); got 1"),
        ({"delta": -0.1}, "delta of whisper must lie in"),
        ({"delta": float("nan")}, "delta of whisper must lie in"),
        ({"delta": "0.1"}, "delta of whisper must lie in"),
        ({"delta": True}, "delta of whisper must lie in"),
        ({"public_arms": 1}, "public_arms of whisper must be true or false; got 1"),
        ({"public_arms": "no"}, "public_arms of whisper must be true or false"),
        ({"public_arms": None}, "public_arms of whisper must be true or false"),
        (
            {"public_arms": True, "guarantee": "certified"},
            "must have private arms for its certified guarantee",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        sv.Whisper(**settings)
    with pytest.raises(sv.ExperimentError, match=message):
        experiment(method={"name": "whisper", **settings})


def test_settings_of_the_other_method_are_refused() -> None:
    for method in ({"name": "whisper", "c": 1.0}, {"name": "ldpmab", "delta": 0.1}):
        with pytest.raises(sv.ExperimentError, match="have only the keys"):
            experiment(method=method)


def wired(bins: list[dict[str, Any]], *, public: bool = False) -> sv.Release:
    """A release of one split as it comes over the wire."""
    table = sv.Learner(whispering(public_arms=public)).release().to_table()
    table |= {"cuts": {"": 0}, "sottovoce": 3, "kind": "release"}
    table["bins"] = [{"bin": str(side), **entry} for side, entry in enumerate(bins)]
    return wire.release_from_json(canonical_json(table).decode())


GOOD = {"arms": [1], "propensities": [1.0]}


@pytest.mark.parametrize(
    "entry",
    [
        {"arms": [0, 1], "propensities": [0.0, 1.0]},
        {"arms": [0, 1], "propensities": [-0.5, 1.5]},
        {"arms": [0, 1], "propensities": [0.25, 0.75]},
        {"arms": [0, 1], "propensities": [0.5, 0.5 + 1e-10]},
        {"arms": [0, 1], "propensities": [0.5]},
        {"arms": [0, 1], "propensities": ["0.5", "0.5"]},
        {"arms": [0, 1, 2], "propensities": [1 / 3] * 3},
        {"arms": [1, 0], "propensities": [0.5, 0.5]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [1]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [2, 2]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [3]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [-1]},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": None},
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": "2"},
        {"arms": [1], "propensities": [1.0], "waiting": [2]},
        {"arms": [1], "propensities": [0.5]},
        {"arms": [], "propensities": []},
        {"arms": [], "propensities": [], "waiting": [0, 1]},
        {"arms": [0, 0], "propensities": [0.5, 0.5]},
        {"arms": [0, True], "propensities": [0.5, 0.5]},
    ],
)
def test_a_release_that_no_learner_makes_is_refused(entry: dict[str, Any]) -> None:
    wired([GOOD, {"arms": [0, 2], "propensities": [0.5, 0.5], "waiting": [1]}])
    with pytest.raises(sv.WireError) as caught:
        wired([GOOD, entry])
    assert caught.value.reason is sv.Rejection.MALFORMED


def asking(share: Any, **settings: Any) -> str:
    """The text of a first release, with another share of people who are asked for their reward."""
    release = sv.Learner(whispering(**settings)).release()
    table = json.loads(wire.release_to_json(release)) | {"reward_share": share}
    return canonical_json(table).decode()


@pytest.mark.parametrize("share", [0, 1, 24, 159, 160])
def test_how_many_are_asked_for_their_reward_survives_the_wire(share: int) -> None:
    release = replace(sv.Learner(whispering()).release(), reward_share=share)
    assert wire.release_from_json(wire.release_to_json(release)) == release
    if share:
        assert wire.release_from_json(asking(share)) == release
    # Nothing is said where nobody is asked.
    told = json.loads(wire.release_to_json(release))
    assert told.get("reward_share") == (share or None)


def test_a_learner_asks_some_for_their_reward_where_there_are_auxiliary_populations() -> None:
    for settings in ({}, {"public_arms": True}, {"guarantee": "certified"}, {"arms": 2}):
        assert sv.Learner(whispering(**settings)).release().reward_share == 24
        alone = sv.Learner(whispering(auxiliary=[], **settings)).release()
        assert alone.reward_share == 0
        assert "reward_share" not in json.loads(wire.release_to_json(alone))
        assert wire.release_from_json(wire.release_to_json(alone)) == alone
    assert ldpmab_grown().release().reward_share == 0


@pytest.mark.parametrize("share", [-1, 161, 10**30, 1.5, 24.0, True, "24", None, [24], {}])
def test_a_release_that_asks_an_impossible_share_is_refused(share: Any) -> None:
    with pytest.raises(sv.WireError, match="reward_share must be a whole number from 0 to 160"):
        wire.release_from_json(asking(share))


@pytest.mark.parametrize("share", [1, 24, 160, -1, True, False, "0", 0.0])
def test_a_release_that_asks_where_there_is_nothing_to_check_is_refused(share: Any) -> None:
    """Without auxiliary populations, or with the other method, nobody has promised anything."""
    ldpmab = json.loads(wire.release_to_json(ldpmab_grown().release()))
    assert ldpmab["experiment"]["auxiliary"]
    for text in (asking(share, auxiliary=[]), json.dumps(ldpmab | {"reward_share": share})):
        with pytest.raises(sv.WireError, match="must be a whole number from 0 to 0") as caught:
            wire.release_from_json(text)
        assert caught.value.reason is sv.Rejection.MALFORMED


def test_a_share_of_nobody_is_left_out() -> None:
    with pytest.raises(sv.WireError, match="canonical form"):
        wire.release_from_json(asking(0))


@pytest.mark.parametrize(
    "entry",
    [
        {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [2]},
        {"arms": [0, 1, 2], "propensities": [0.5, 0.25, 0.25]},
        {"arms": [0, 1, 2], "propensities": [0.0, 0.5, 0.5]},
    ],
)
def test_public_arms_are_all_on_offer_with_equal_chances(entry: dict[str, Any]) -> None:
    wired([GOOD, {"arms": [0, 1, 2], "propensities": [1 / 3] * 3}], public=True)
    with pytest.raises(
        sv.WireError, match=r"offer all live arms, with equal chances|be one for each"
    ):
        wired([GOOD, entry], public=True)


@each_setting
def test_every_release_of_a_learner_survives_the_wire(settings: dict[str, Any]) -> None:
    learner = sv.Learner(whispering(**settings))
    for release in send(learner, random.Random(0), 600, target_only="guarantee" in settings):
        assert wire.release_from_json(wire.release_to_json(release)) == release
