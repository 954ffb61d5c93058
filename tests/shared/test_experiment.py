from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from factories import experiment


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon must be finite and > 0; got 0"),
        ({"epsilon": -1}, "epsilon must be finite and > 0; got -1"),
        ({"epsilon": float("nan")}, "epsilon must be finite and > 0; got nan"),
        ({"epsilon": float("inf")}, "epsilon must be finite and > 0; got inf"),
        ({"epsilon": "1"}, "epsilon must be finite and > 0; got '1'"),
        ({"epsilon": 1e-12}, "epsilon must lie between 1e-09 and 1e.06; got 1e-12"),
        ({"arms": ["a"]}, "arms must be at least 2; got 1"),
        ({"arms": ["a", "a"]}, "arms must differ from each other"),
        ({"arms": ["a", ""]}, "arms must be a non-empty, printable string; got ''"),
        ({"arms": "ab"}, "arms must be a list of names; got 'ab'"),
        ({"context": []}, "context features must be at least 1"),
        (
            {"context": None},
            "context must hold Numeric, Ordinal, Categorical or Boolean features; got None",
        ),
        ({"auxiliary": None}, "auxiliary must hold Populations; got None"),
        ({"horizon": 10**17}, "horizon must be at most 2.53; got 1000"),
        ({"context": ["age"]}, "context must hold Numeric, Ordinal, Categorical or Boolean"),
        ({"context": [sv.Numeric("a", 0, 1)] * 2}, "context features must differ"),
        ({"horizon": 0}, "horizon must be a whole number >= 1; got 0"),
        ({"horizon": 1.5}, "horizon must be a whole number >= 1; got 1.5"),
        ({"release_every": 0}, "release_every must be a whole number >= 1; got 0"),
        ({"seed": -1}, "seed must be a whole number >= 0; got -1"),
        ({"seed": True}, "seed must be a whole number >= 0; got True"),
        ({"name": ""}, "name must be a non-empty, printable string"),
        ({"name": "a\x1b[2K\nleft ε = 100"}, "name must be a non-empty, printable string"),
        ({"name": "\ud800"}, "name must be a non-empty, printable string"),
        ({"method": "magic"}, "the method's name must be one of"),
        ({"auxiliary": [1]}, "auxiliary must hold Populations"),
        ({"auxiliary": [sv.Population("target", 1, 10)]}, "populations must differ"),
    ],
)
def test_a_bad_setting_is_refused_with_its_name_rule_and_value(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(sv.ExperimentError, match=message.replace("+", r"\+")):
        experiment(**settings)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: sv.Numeric("age", 90, 18),
            "bounds of 'age' must be finite numbers with low < high",
        ),
        (lambda: sv.Numeric("age", 0, float("inf")), "bounds of 'age' must be finite numbers"),
        (lambda: sv.Numeric("age", -1.7e308, 1.7e308), "bounds of 'age' must be finite numbers"),
        (
            lambda: sv.Numeric("", 0, 1),
            "the name of a feature must be a non-empty, printable string",
        ),
        (lambda: sv.Ordinal("mood", ("low",)), "levels of 'mood' must be at least 2"),
        (lambda: sv.Ordinal("mood", ("low", "low")), "levels of 'mood' must differ"),
        (lambda: sv.Ordinal("mood", 3), "levels of 'mood' must be a list of names; got 3"),  # type: ignore[arg-type]
        (lambda: sv.Ordinal("mood", ("", "low")), "levels of 'mood' must be a non-empty"),
        (lambda: sv.Categorical("city", "abc"), "levels of 'city' must be a list of names"),  # type: ignore[arg-type]
        (lambda: sv.Population("b", 0, 10), "epsilon of population 'b' must be finite and > 0"),
        (lambda: sv.Population("b", 1, -1), "users of population 'b' must be a whole number >= 0"),
        (lambda: sv.Ldpmab("best"), "preset of ldpmab must be 'authors' or 'paper'"),  # type: ignore[arg-type]
        (lambda: sv.Ldpmab(c=0), "c of ldpmab must be finite and > 0; got 0"),
    ],
)
def test_a_bad_part_is_refused_with_its_name_and_rule(build: Any, message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        build()


TOML = """
name = "walking"
arms = ["control", "reminder", "coach"]
epsilon = 1.0
horizon = 20000
release_every = 50
seed = 7
method = { name = "ldpmab", preset = "paper", c = 0.1 }

[[context]]
name = "age"
numeric = [18, 90]

[[context]]
name = "mood"
ordinal = ["low", "middling", "high"]

[[context]]
name = "city"
categorical = ["Rome", "Oslo"]

[[auxiliary]]
name = "clinic-b"
epsilon = 4.0
users = 5000
"""


def test_a_toml_file_and_python_make_the_same_experiment(tmp_path: Path) -> None:
    path = tmp_path / "walking.toml"
    path.write_text(TOML)
    assert sv.Experiment.from_toml(path) == sv.Experiment(
        name="walking",
        arms=["control", "reminder", "coach"],
        context=[
            sv.Numeric("age", 18, 90),
            sv.Ordinal("mood", ("low", "middling", "high")),
            sv.Categorical("city", ("Rome", "Oslo")),
        ],
        epsilon=1,
        horizon=20000,
        release_every=50,
        seed=7,
        method=sv.Ldpmab("paper", c=0.1),
        auxiliary=[sv.Population("clinic-b", 4, 5000)],
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms = [", "must be a readable TOML file"),
        (
            TOML.replace("epsilon = 1.0", ""),
            r"must have arms, context, epsilon; it lacks \['epsilon'\]",
        ),
        (TOML.replace("horizon", "horizons"), r"have only the keys .*; got \['horizons'\]"),
        (
            TOML.replace("ordinal", "ranked"),
            "a context feature must have a name and one of .*'mood'",
        ),
        (TOML.replace("users = 5000", ""), r"it lacks \['users'\]"),
        (TOML.replace("[[context]]", "[[contexts]]"), "contexts"),
        ("context = 3\narms=['a','b']\nepsilon=1", "context must be a list of tables; got 3"),
        (
            TOML.replace('preset = "paper"', 'present = "paper"'),
            r"method ldpmab must have only the keys \['c', 'preset'\]; got \['present'\]",
        ),
    ],
)
def test_a_bad_toml_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(sv.ExperimentError, match=message):
        sv.Experiment.from_toml(path)


def test_a_missing_toml_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sv.ExperimentError, match="must be a readable TOML file"):
        sv.Experiment.from_toml(tmp_path / "none.toml")


def test_any_public_setting_changes_the_fingerprint() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"arms": ["control", "coach"]},
        {"context": [sv.Numeric("age", 18, 91), sv.Numeric("bmi", 15, 45)]},
        {"epsilon": 2},
        {"horizon": 1001},
        {"auxiliary": [sv.Population("b", 1, 10)]},
        {"method": sv.Ldpmab("paper")},
        {"method": sv.Ldpmab(c=3)},
        {"release_every": 1},
        {"seed": 1},
        {"name": "other"},
    ]
    assert len({experiment(**change).fingerprint for change in changes}) == len(changes)


def test_minus_zero_is_zero() -> None:
    zero, minus = (experiment(context=[sv.Numeric("x", low, 1)]) for low in (0.0, -0.0))
    assert zero.fingerprint == minus.fingerprint


def test_the_same_settings_have_the_same_fingerprint() -> None:
    again = experiment(epsilon=1, horizon=np.int64(1000), method="ldpmab")
    assert again == experiment()
    assert again.fingerprint == experiment().fingerprint
    assert sv.Experiment.from_table(again.to_table()).fingerprint == again.fingerprint
