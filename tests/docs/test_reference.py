"""The reference lists all there is, and nothing else."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.server import metrics
from sottovoce.server.app import ROUTES
from sottovoce.server.openapi import document
from sottovoce.server.settings import ServerSettings
from sottovoce.shared.experiment import Experiment, Population
from support.commands import COMMANDS
from support.paths import ROOT

REFERENCE = ROOT / "docs" / "reference"


def sections(page: str, level: int) -> dict[str, str]:
    """Return the text below each heading of one level."""
    text = (REFERENCE / page).read_text()
    pieces = re.split(rf"^{'#' * level} (.*)$", text, flags=re.MULTILINE)
    below = [re.split(rf"^#{{1,{level}}} ", each, flags=re.MULTILINE)[0] for each in pieces[2::2]]
    return dict(zip(pieces[1::2], below, strict=True))


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of the tables in a text, by the first."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {each[0]: each[1:] for each in cells}


# The command line.


def test_every_command_has_its_section() -> None:
    listed = {name.removeprefix("`sottovoce ").rstrip("`") for name in sections_of_commands()}
    assert listed == set(COMMANDS)


def sections_of_commands() -> dict[str, str]:
    return sections("command-line.md", 2)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_listed_with_its_default(name: str) -> None:
    text = sections_of_commands()[f"`sottovoce {name}`"]
    usage = re.search(rf"^`sottovoce {name}( .*)?`$", text, re.MULTILINE)
    assert usage is not None
    listed = {first: cells[0] for first, cells in rows(text).items() if first.startswith("`--")}
    options = [each for each in COMMANDS[name] if each.names[0].startswith("--")]
    names = {", ".join(f"`{each}`" for each in option.names): option for option in options}
    assert set(listed) == set(names)
    for first, option in names.items():
        if option.required:
            assert listed[first] == "required"
        elif option.is_flag and len(option.names) == 1:
            assert listed[first] == "off"
        elif option.default is not None:
            assert listed[first] == f"`{option.default}`"
    for option in COMMANDS[name]:
        if option not in options:
            assert option.names[0] in usage[0]


# HTTP.


def test_every_address_is_listed_with_its_statuses() -> None:
    settings = ServerSettings(database="sqlite://", key=Path("key"), token="")
    described = {
        f"`{method.upper()} {path}`": set(entry["responses"])
        for path, entries in document(settings)["paths"].items()
        for method, entry in entries.items()
    }
    listed = {}
    for title, text in sections("http.md", 3).items():
        (line,) = re.findall(r"^Status: (.*)$", text, re.MULTILINE)
        listed[title] = set(re.findall(r"\b\d{3}\b", line))
    assert listed == described
    served = {f"`{method} {path}`" for method, path, _ in ROUTES if method != "OPTIONS"}
    assert set(listed) == served


def test_every_metric_is_listed() -> None:
    text = (REFERENCE / "http.md").read_text()
    described = set(re.findall(r"`(sottovoce_\w+)[`{]", text))
    rendered = metrics.render({}).decode()
    named = set(re.findall(r"^# HELP (sottovoce_\w+) ", rendered, re.MULTILINE))
    # A histogram's and a counter's families have further names of their own.
    assert {name for name in named if not name.endswith("_created")} == described


# The experiment file.


def test_every_key_of_an_experiment_is_listed_with_its_default() -> None:
    whole = (REFERENCE / "experiment-file.md").read_text()
    texts = sections("experiment-file.md", 2) | sections("experiment-file.md", 3)
    check_keys(rows(texts["Keys"]), Experiment)
    check_keys(rows(texts["`auxiliary`"]), Population)
    check_keys(rows(texts["`whisper`"]), sv.Whisper)
    check_keys(rows(texts["`ldpmab`"]), sv.Ldpmab)
    kinds = {"`numeric`", "`ordinal`", "`categorical`", "`boolean`"}
    assert kinds | {"`optional`", "`other`"} <= set(rows(texts["`context`"]))
    assert "at most 1,000" in whole


def check_keys(listed: dict[str, list[str]], settings: type) -> None:
    keys = {key.strip("`"): cells for key, cells in listed.items() if key.startswith("`")}
    # What was amended since is in releases, not in the file that an experiment began with.
    settable = [each for each in fields(settings) if each.name not in ("first", "amendments")]
    assert set(keys) == {field.name for field in settable}
    for field in settable:
        default = keys[field.name][1].strip("`").strip('"')
        if field.default is MISSING and field.default_factory is MISSING:
            assert default == "required"
        elif isinstance(field.default, bool):
            assert default == str(field.default).lower()
        elif isinstance(field.default, int | float | str):
            assert default == str(field.default)


# Python.


def test_every_public_name_is_documented() -> None:
    text = (REFERENCE / "python.md").read_text()
    documented = set(re.findall(r"^::: sottovoce\.(\w+)$", text, re.MULTILINE))
    tree = set(re.findall(r"^[│├└─ ]*(\w+) {2,}", text, re.MULTILINE))
    assert documented | tree | {"wire", "SottovoceError"} >= set(sv.__all__)


def test_every_function_of_the_wire_that_is_listed_exists() -> None:
    text = (REFERENCE / "python.md").read_text()
    listed = re.findall(r"^        - (\w+)$", text[text.index("::: sottovoce.shared.wire") :], re.M)
    assert len(listed) > 5
    assert [name for name in listed if not hasattr(sv.wire, name)] == []


@pytest.mark.parametrize("page", ["python.md", "lab.md"])
def test_every_name_that_is_documented_exists(page: str) -> None:
    names = re.findall(r"^::: (sottovoce[\w.]*)$", (REFERENCE / page).read_text(), re.MULTILINE)
    assert names
    for name in names:
        module, _, last = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[last]), last), name
