"""What every method must do: its settings, in Python and in files."""

import json
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import ONE_BIT, SETTINGS, Make
from factories import experiment
from sottovoce.shared.methods import (
    MethodSettings,
    method_names,
    register,
    settings_from,
    unregister,
)


def test_every_registered_method_is_in_the_suite() -> None:
    assert {*method_names(), "one_bit"} == SETTINGS.keys()


def test_one_registration_adds_a_method_and_one_call_removes_it() -> None:
    before = method_names()
    with pytest.raises(sv.ExperimentError, match=r"be one of \['whisper', 'ldpmab'\]"):
        experiment(method="one_bit")
    register("one_bit", modules=ONE_BIT)
    assert method_names() == [*before, "one_bit"]
    assert experiment(method="one_bit").settings.name == "one_bit"
    unregister("one_bit")
    assert method_names() == before
    with pytest.raises(sv.ExperimentError, match="the method's name must be one of"):
        experiment(method="one_bit")


def test_settings_are_the_same_after_a_table(table: dict[str, Any], make: Make) -> None:
    settings = settings_from(table)
    assert isinstance(settings, MethodSettings)
    assert settings.name == table["name"]
    written = settings.to_table()
    assert written.items() >= table.items()
    assert settings_from(written) == settings
    assert settings_from(settings) is settings
    walking = make()
    again = sv.Experiment.from_table(json.loads(json.dumps(walking.to_table())))
    assert again == walking
    assert again.fingerprint == walking.fingerprint
    assert settings_from(table["name"]) == settings_from({"name": table["name"]})


def test_settings_are_the_same_after_a_file(
    tmp_path: Path, table: dict[str, Any], make: Make
) -> None:
    walking = make(auxiliary=[])
    entries = walking.to_table()
    entries["method"] = settings_from(table).to_table()
    path = tmp_path / "experiment.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in entries.items()))
    read = sv.Experiment.from_toml(path)
    assert read == walking
    assert read.fingerprint == walking.fingerprint


def toml(value: Any) -> str:
    """Write a value as TOML: JSON, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def test_unknown_keys_are_refused(table: dict[str, Any]) -> None:
    known = sorted(settings_from(table).to_table().keys() - {"name"})
    with pytest.raises(sv.ExperimentError) as caught:
        experiment(method={**table, "colour": "red"})
    assert f"method {table['name']} must have only the keys" in str(caught.value)
    assert "got ['colour']" in str(caught.value)
    assert all(repr(key) in str(caught.value) for key in known)


def test_each_setting_changes_the_fingerprint(table: dict[str, Any], make: Make) -> None:
    others = [each for each in SETTINGS[table["name"]] if {"name": table["name"], **each} != table]
    assert others
    for other in others:
        changed = experiment(method={"name": table["name"], **other})
        assert changed.fingerprint != experiment(method=table).fingerprint
    for name in method_names():
        if name != table["name"]:
            assert experiment(method=name).fingerprint != experiment(method=table).fingerprint


def test_settings_say_what_they_are_in_words(table: dict[str, Any]) -> None:
    settings = settings_from(table)
    assert settings.name in settings.summary
    assert "ε-LDP" in settings.promise
    assert settings.decision_rule.endswith(".")
    assert settings.arms_are_public is bool(table.get("public_arms", False))
