"""Files of logged trials: anybody's columns, and those of the Open Bandit Dataset."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import sottovoce as sv
from sottovoce.cli.commands import app
from sottovoce.lab.logs.reading import Columns, estimated_propensities, range_of, read_log
from sottovoce.shared.errors import ExperimentError
from support.tables import write
from support.trials import Trial

OWN = Columns(arm="arm", reward="minutes", propensity="chance", reward_range=(0, 60))


def trial(rows: int = 400, seed: int = 0, **more: Any) -> dict[str, list[Any]]:
    """A trial of two arms, whose chances depend on the city."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["a", "b", "c"], rows)
    chance = np.where(city == "a", 0.3, 0.6)
    coach = rng.random(rows) < chance
    return {
        "age": rng.integers(18, 90, rows).tolist(),
        "city": city.tolist(),
        "arm": np.where(coach, "coach", "control").tolist(),
        "minutes": rng.integers(0, 61, rows).tolist(),
        "chance": np.where(coach, chance, 1 - chance).round(6).tolist(),
        **more,
    }


def open_bandit(rows: int = 300, seed: int = 0) -> dict[str, list[Any]]:
    """Rows as the Open Bandit Dataset has them."""
    rng = np.random.default_rng(seed)
    return {
        "": list(range(rows)),
        "timestamp": ["2019-11-24 00:00:20.800947+00:00"] * rows,
        "item_id": rng.integers(0, 4, rows).tolist(),
        "position": rng.integers(1, 4, rows).tolist(),
        "click": (rng.random(rows) < 0.1).astype(int).tolist(),
        "propensity_score": [0.25] * rows,
        "user_feature_0": rng.choice(["81ce123cbb5bd8ce818f60fb3586bba5", "cef3390ed299c09"], rows),
        "user_feature_1": rng.integers(0, 3, rows).tolist(),
        "user-item_affinity_0": rng.integers(0, 2, rows).tolist(),
    }


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["compare", *map(str, arguments)])


def test_a_log_has_features_rewards_and_propensities_as_its_file_does(tmp_path: Path) -> None:
    table = trial()
    log = read_log([write(tmp_path / "trial.csv", table)], OWN)
    assert log.arms == ("coach", "control")
    assert [log.arms[k] for k in log.chosen] == table["arm"]
    assert log.rewards == pytest.approx(np.array(table["minutes"]) / 60)
    assert log.propensities == pytest.approx(np.array(table["chance"]))
    low, high = min(table["age"]), max(table["age"])
    assert log.schema == (sv.Numeric("age", low, high), sv.Categorical("city", ("a", "b", "c")))
    age, city = log.schema
    for row, point in enumerate(log.contexts[:50]):
        device = (*age.positions(table["age"][row]), *city.positions(table["city"][row]))
        assert tuple(point) == pytest.approx(device)


def test_missing_values_become_optional_features(tmp_path: Path) -> None:
    table = trial()
    table["age"][3], table["city"][5] = None, None
    log = read_log([write(tmp_path / "trial.csv", table)], OWN)
    assert [feature.optional for feature in log.schema] == [True, True]
    assert log.contexts[3, :2].tolist() == [0.0, 0.75]
    assert log.contexts[5, 2] == pytest.approx(3.5 / 4)


def test_several_files_are_one_log(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{seed}.csv", trial(seed=seed)) for seed in (0, 1)]
    log = read_log(paths, OWN)
    assert len(log) == 800
    assert log.rewards[400:] == pytest.approx(np.array(trial(seed=1)["minutes"]) / 60)


def test_the_open_bandit_layout_is_known_by_its_columns(tmp_path: Path) -> None:
    table = open_bandit()
    paths = [write(tmp_path / f"{n}.csv", open_bandit(seed=n)) for n in (0, 1)]
    log = read_log(paths, Columns())
    assert [feature.name for feature in log.schema] == [
        "position",
        "user_feature_0",
        "user_feature_1",
    ]
    assert len(log) == 600
    assert log.arms == ("0", "1", "2", "3")
    assert log.rewards[:300].tolist() == table["click"]
    assert set(log.propensities.tolist()) == {0.25}


def test_propensities_that_are_not_given_are_estimated_or_assumed(tmp_path: Path) -> None:
    path = write(tmp_path / "trial.csv", trial(rows=6000))
    given: dict[str, Any] = {
        "arm": "arm",
        "reward": "minutes",
        "reward_range": (0, 60),
        "features": ["city"],
    }
    true = read_log([path], OWN).propensities
    estimated = read_log([path], Columns(**given))
    assert estimated.source == "estimated from the features"
    assert estimated.propensities == pytest.approx(true, abs=0.06)
    shares = read_log([path], Columns(**given, behaviour="shares"))
    assert len(set(shares.propensities.round(9).tolist())) == 2
    uniform = read_log([path], Columns(**given, behaviour="uniform"))
    assert set(uniform.propensities.tolist()) == {0.5}


def test_estimated_propensities_are_near_the_true_ones() -> None:
    """Of three arms, along one number, on which the logarithms of the odds are nearly lines."""
    log = Trial().log(np.random.default_rng(0), 20_000)
    found = estimated_propensities(log.chosen, 3, log.contexts, log.schema)
    assert np.abs(found - log.propensities).mean() < 0.03


@pytest.mark.parametrize(
    ("change", "columns", "words"),
    [
        ({"chance": [0.0] * 400}, {}, "above 0 in every row"),
        ({"chance": [2.0] * 400}, {}, "be at most 1"),
        ({"arm": ["coach"] * 400}, {}, r"at least two arms.*brought \d"),
        ({}, {"reward_range": None}, r"say what counts as 0 and as 1, such as --reward-range 0,60"),
        ({"minutes": [None] + [1] * 399}, {}, "1 rows without"),
        ({}, {"arm": "who"}, "be among the columns"),
        ({}, {"features": ["arm"]}, "be no arm, reward or propensity"),
        ({}, {"behaviour": "uniform"}, "left out where propensities are given"),
        ({"age": [30] * 400}, {}, "have at least two values"),
        ({"city": [f"c{n}" for n in range(400)]}, {}, "have 2 to 64 levels"),
    ],
)
def test_what_cannot_be_is_told_in_words(
    tmp_path: Path, change: dict[str, Any], columns: dict[str, Any], words: str
) -> None:
    path = write(tmp_path / "trial.csv", trial(**change))
    settings = {name: getattr(OWN, name) for name in OWN.__slots__}
    with pytest.raises(ExperimentError, match=words):
        read_log([path], Columns(**{**settings, **columns}))


def test_a_table_that_is_no_log_is_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "trial.csv", trial())
    said = str(run(path).exception)
    assert "a log must have --arm and --reward, or the columns item_id, click" in said
    both = run(path, "--label", "arm", "--arm", "arm")
    assert "come without --label" in str(both.exception)
    beside = run(path, "--arm", "arm", "--reward", "minutes", "--group", "city")
    assert "come with --label" in str(beside.exception)


def test_a_range_is_two_numbers() -> None:
    assert range_of("0,60") == (0, 60)
    with pytest.raises(ExperimentError, match="two numbers with a comma"):
        range_of("60")


def test_a_log_is_compared_on_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path / "trial.csv", trial(rows=600))
    options = ("--arm", "arm", "--reward", "minutes", "--propensity", "chance")
    more = ("--reward-range", "0,60", "--methods", "whisper", "--reps", 1)
    done = run(path, *options, *more, "--json")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["rows"] == 600
    names = [each["name"] for each in figures["policies"]]
    assert names[0] == "whisper"
    assert {"best single arm", "the log's own policy", "always coach"} <= set(names)
    for each in figures["policies"]:
        if each["values"] is not None:
            dr = each["values"]["dr"]
            assert dr["low"] < dr["value"] < dr["high"]
            assert 15 < dr["value"] < 45
    shown = run(path, *options, *more)
    assert "always coach" in shown.stdout
    assert max(map(len, shown.stdout.splitlines()[2:12])) <= 80
