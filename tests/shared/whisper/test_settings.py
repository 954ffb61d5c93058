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
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.whisper.questions import Question, question_of
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
    table |= {"cuts": {"": 0}, "sottovoce": 5, "kind": "release"}
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


def with_ask(ask: Any, **settings: Any) -> str:
    """The text of a first release with other shares of axes; None leaves them out."""
    table = json.loads(wire.release_to_json(sv.Learner(whispering(**settings)).release()))
    assert sum(table.pop("ask")) == 1024
    return canonical_json(table | ({} if ask is None else {"ask": ask})).decode()


@pytest.mark.parametrize(
    "ask", [[1023, 0, 1], [1023, 1, 0], [0, 1024, 0], [0, 512, 512], [704, 160, 160]]
)
def test_how_many_are_asked_about_each_axis_survives_the_wire(ask: list[int]) -> None:
    release = wire.release_from_json(with_ask(ask))
    assert release.ask == tuple(ask)
    assert wire.release_to_json(release) == with_ask(ask)


@pytest.mark.parametrize(
    "ask",
    [
        None,
        [],
        [1024],
        [512, 512],
        [704, 160, 80, 80],
        [1024, 0, 0],  # nobody is asked about an axis
        [704, 160, 161],
        [704, 160, 159],
        [1024, 160, -160],
        [-1, 1024, 1],
        [0, 0, 0],
        [1023, True, False],
        [1023, 1, False],
        [704.0, 160.0, 160.0],
        [704, 160, 160.0],
        ["704", "160", "160"],
        [[704], [160], [160]],
        [None, 512, 512],
        "abc",
        {"704": 160},
        {},
        704,
        True,
    ],
)
def test_a_release_with_impossible_shares_of_axes_is_refused(ask: Any) -> None:
    wire.release_from_json(with_ask([704, 160, 160]))
    with pytest.raises(sv.WireError) as caught:
        wire.release_from_json(with_ask(ask))
    assert caught.value.reason is sv.Rejection.MALFORMED


@pytest.mark.parametrize("ask", [[704, 160, 160], [0, 1024, 0], [0], [0, 0, 0]])
def test_the_other_method_asks_about_no_axis(ask: list[int]) -> None:
    text = wire.release_to_json(ldpmab_grown().release())
    assert "ask" not in json.loads(text)
    told = canonical_json(json.loads(text) | {"ask": ask}).decode()
    rule = "a release's ask, scales, thresholds and scale_share must be left out for this method"
    with pytest.raises(sv.WireError, match=rule) as caught:
        wire.release_from_json(told)
    assert caught.value.reason is sv.Rejection.MALFORMED


def test_the_other_method_knows_no_sets() -> None:
    context = [sv.Categorical("city", ("Rome", "Oslo", "Bern"))]
    table = sv.Learner(experiment(context=context)).release().to_table()
    bins = [{"bin": path, "arms": [0, 1], "propensities": [0.5, 0.5]} for path in "01"]
    table |= {"cuts": {"": 0}, "bins": bins}
    assert sv.Release.from_table(table).partition.levels == ()
    with pytest.raises(sv.WireError, match="for each bin that is split by levels, and no other"):
        sv.Release.from_table(table | {"sets": {"": [1]}})
    # With whisper it is the other way round.
    asking = sv.Learner(experiment(context=context, method="whisper")).release().to_table()
    asking |= {"cuts": {"": 0}, "bins": bins, "sets": {"": [1]}}
    assert sv.Release.from_table(asking).partition.sets == {"": {1}}
    del asking["sets"]
    with pytest.raises(sv.WireError, match="for each bin that is split by levels"):
        sv.Release.from_table(asking)


def levels_of(*counts: int) -> list[sv.Categorical]:
    """Features with so many levels each."""
    names = tuple(f"level {number}" for number in range(max(counts)))
    return [sv.Categorical(f"x{j}", names[:count]) for j, count in enumerate(counts)]


def test_an_experiment_with_more_questions_than_two_bytes_number_is_refused() -> None:
    """Eight kinds ask about each pattern, two about 27 thresholds of each axis, two just once."""
    for counts in ([1000] * 8, [1024] * 7 + [1000], [513] * 8):
        with pytest.raises(sv.ExperimentError, match="reports number their questions in two bytes"):
            experiment(context=levels_of(*counts), method="whisper")
        # Levels in order take one question each kind, and the other method asks none.
        assert experiment(context=levels_of(*counts)).dimension == len(counts)
        ordinal = [sv.Ordinal(each.name, each.levels) for each in levels_of(*counts)]
        assert experiment(context=ordinal, method="whisper").dimension == len(counts)
    most = levels_of(*[1024] * 7, 512, 256, 64, 32, 16, 8, 8, 4, 4, 4)
    allowed = experiment(context=most, method="whisper")
    last = Question(11).number(allowed)
    assert last == 2**16 - 1
    with pytest.raises(sv.ExperimentError, match="in two bytes"):
        experiment(context=[*most, sv.Numeric("number", 0, 1)], method="whisper")
    report = sv.Report(bytes(12), 0, bytes(16), b"", last, ())
    assert wire.report_from_bytes(wire.report_to_bytes(report)).question == last


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_device_reports_on_1000_levels(epsilon: float) -> None:
    """The set is no longer than the cells make it: 1,000 levels of two bins, and elsewhere."""
    public = experiment(context=levels_of(1000, 3), epsilon=epsilon, method="whisper")
    table = sv.Learner(public).release().to_table()
    two = {"arms": [0, 1], "propensities": [0.5, 0.5], "waiting": [2]}
    table |= {
        "cuts": {"": 0},
        "sets": {"": list(range(0, 1000, 2))},
        "bins": [{"bin": path, **two} for path in "01"],
        "ask": [24, 900, 100],
        "sottovoce": 5,
        "kind": "release",
    }
    release = wire.release_from_json(canonical_json(table).decode())
    rows = set()
    for level in (0, 1, 500, 999) * 5:
        device = sv.Device(release)
        context = {"x0": f"level {level}", "x1": "level 2"}
        device.choose(context)
        point = ((level + 0.5) / 1000, 2.5 / 3)
        assert release.partition.find(point) == str((level + 1) % 2)
        data = wire.report_to_bytes(device.report(reward=1.0))
        assert len(data) < 64
        question = question_of(wire.report_from_bytes(data).question, public)
        rows |= {question.row} if question.axis == 0 else set()
        assert question.row < 1024
    # At a small ε rows are drawn below 1024: 10 or more in vain once in 10^20 runs.
    assert len(rows) > 3 if epsilon == 1.0 else rows == {0}


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
