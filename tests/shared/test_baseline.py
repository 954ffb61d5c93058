"""The setting ``baseline``: what it may be, what follows from it, and which releases fit it."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.shared import wire
from sottovoce.shared.amending import amended, draft
from sottovoce.shared.amendment import ADD_ARM, EXTEND_HORIZON, RETIRE_ARM
from sottovoce.shared.baseline import BASELINE, NEITHER, POLICY, baseline_arms, group_of

WHEN = datetime(2026, 3, 1, tzinfo=UTC)


def compared(baseline: Any, **settings: Any) -> sv.Experiment:
    return experiment(**{"method": "whisper", "baseline": baseline, **settings})


def test_it_is_read_from_a_file_and_written_back(tmp_path: Path) -> None:
    text = """
arms = ["control", "coach"]
epsilon = 1.0
baseline = { arm = "control", share = 0.1 }
context = [{ name = "age", numeric = [18, 90] }]
"""
    (tmp_path / "experiment.toml").write_text(text)
    read = sv.Experiment.from_toml(tmp_path / "experiment.toml")
    assert read.baseline == sv.Baseline(0.1, "control")
    assert sv.Experiment.from_table(json.loads(json.dumps(read.to_table()))) == read
    assert read.to_table()["baseline"] == {"share": 0.1, "arm": "control"}
    assert sv.Learner(read).release().baseline_share == 1000


def test_without_it_nothing_is_written_that_was_not_there_before() -> None:
    plain = experiment(method="whisper")
    assert "baseline" not in plain.to_table()
    learner = sv.Learner(plain)
    assert "baseline_share" not in learner.release().to_table()
    saved = json.loads(learner.to_json())
    assert not {"groups", "shares"} & saved.keys()
    assert not [name for name in saved["state"] if name.startswith("gain")]
    assert learner.gain() is None
    assert learner.release().baseline_share == 0


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        ({"arm": "nobody", "share": 0.1}, r"arm of a baseline must be one of \[.*\].*'nobody'"),
        ({"share": 0}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": 1}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": 0.5}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": -0.1}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": float("nan")}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": "0.1"}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": True}, "share of a baseline must be more than 0 and less than 0.5"),
        ({"share": 0.12345}, "share of a baseline must have at most four digits"),
        ({"share": 0.00001}, "share of a baseline must have at most four digits"),
        ({"arm": "control"}, "baseline must have a share"),
        ({"arm": 3, "share": 0.1}, "arm of a baseline must be a non-empty"),
        ({"share": 0.1, "percent": 10}, "baseline must have only the keys"),
        (0.1, "baseline must be a table"),
        ("control", "baseline must be a table"),
    ],
)
def test_what_is_no_baseline_is_told_in_words(baseline: Any, words: str) -> None:
    with pytest.raises(sv.ExperimentError, match=words):
        compared(baseline)


def test_a_method_whose_reports_name_no_group_has_none() -> None:
    with pytest.raises(sv.ExperimentError, match="baseline must be left out with ldpmab"):
        experiment(method="ldpmab", baseline={"share": 0.1})


def test_arms_at_random_are_those_that_are_neither_retired_nor_capped() -> None:
    at_random = compared({"share": 0.1})
    assert compared({"share": 0.1, "arm": "random"}) == at_random
    assert baseline_arms(at_random) == (0, 1, 2)
    new = draft(at_random, ADD_ARM, by="we", made=WHEN, arm="new", cap=0.1)
    with_new = amended(at_random, new)
    assert baseline_arms(with_new) == (0, 1, 2)
    gone = draft(with_new, RETIRE_ARM, by="we", made=WHEN, arm="control")
    assert baseline_arms(amended(with_new, gone)) == (1, 2)
    assert baseline_arms(compared({"share": 0.1, "arm": "reminder"})) == (1,)
    # An arm of that name is that arm.
    named = compared({"share": 0.1, "arm": "random"}, arms=["other", "random"])
    assert baseline_arms(named) == (1,)


def test_the_arm_of_the_baseline_cannot_be_retired() -> None:
    before = compared({"share": 0.1, "arm": "control"})
    gone = draft(before, RETIRE_ARM, by="we", made=WHEN, arm="control")
    with pytest.raises(sv.ExperimentError, match="not be the baseline"):
        amended(before, gone)
    assert amended(before, draft(before, RETIRE_ARM, by="we", made=WHEN, arm="coach")).retired
    longer = amended(before, draft(before, EXTEND_HORIZON, by="we", made=WHEN, horizon=9000))
    assert longer.compared_with == before.compared_with


def test_a_coin_puts_equally_many_in_both_groups() -> None:
    for share in (1, 1000, 4999):
        counts = Counter(group_of(coin, share) for coin in range(10_000))
        assert (counts[POLICY], counts[BASELINE]) == (share, share)
        assert counts[NEITHER] == 10_000 - 2 * share


@pytest.mark.parametrize("share", [None, 0, -1, 1001, 10_000, 0.1, True, "1000"])
def test_a_release_by_which_more_people_get_the_baseline_is_refused(share: Any) -> None:
    release = sv.Learner(compared({"share": 0.1})).release()
    table = json.loads(wire.release_to_json(release))
    assert sv.Release.from_table(table) == release
    table["baseline_share"] = share
    if share is None:
        del table["baseline_share"]
    with pytest.raises(sv.WireError, match="baseline_share must be a whole number from 1 to 1000"):
        sv.Release.from_table(table)
    table["baseline_share"] = 500
    assert sv.Release.from_table(table) == replace(release, baseline_share=500)


def test_a_release_of_an_experiment_without_one_has_no_share() -> None:
    table = json.loads(wire.release_to_json(sv.Learner(experiment(method="whisper")).release()))
    for share in (1, 1000):
        with pytest.raises(sv.WireError, match="baseline_share must be a whole number from 0 to 0"):
            sv.Release.from_table({**table, "baseline_share": share})
