"""The device in Python and the one in TypeScript do the same, byte for byte."""

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sottovoce.shared import wire
from support.node import JS, built
from vectors import cases as cases_
from vectors import third
from vectors.make import COMMITTED, committed, made, packed
from vectors.stream import given_below

# Other seeds gave 60,000 refusals and 6,600 cases without a difference.
SEED = 20261119
GENERATED = {"grown": 3, "built": 70, "count": 2400, "spoiled": 1500, "of_each": 6}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory.getbasetemp().parent)


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(COMMITTED.read_bytes()))
    return found


def compared(node: str, path: Path) -> str:
    run = [node, "test/run_vectors.js", str(path)]
    done = subprocess.run(run, cwd=JS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_vectors_that_are_kept_are_those_that_the_command_makes() -> None:
    assert json.loads(gzip.decompress(packed(committed()))) == read()


def test_both_devices_agree_in_the_vectors_that_are_kept(node: str) -> None:
    assert compared(node, COMMITTED).startswith("400 cases")


def test_both_devices_agree_in_others_that_are_made_anew(node: str, tmp_path: Path) -> None:
    """2,400 cases over every kind of feature, and 1,500 releases with something wrong."""
    vectors = made(SEED, **GENERATED)
    path = tmp_path / "vectors.json.gz"
    path.write_bytes(packed(vectors))
    assert compared(node, path).startswith("2400 cases")


def test_the_vectors_cover_what_they_should() -> None:
    vectors = made(1, grown=1, built=60, count=800, spoiled=0, of_each=0)
    releases = [json.loads(each) for each in vectors["releases"]]
    features = [each for release in releases for each in release["experiment"]["context"]]
    for kind in ("numeric", "ordinal", "categorical", "boolean"):
        assert {bool(each.get("optional")) for each in features if kind in each} == {True, False}
    for key in ("sets", "scales", "amendments", "reward_share", "scale_share"):
        assert {key in release for release in releases} == {True, False}
    methods = [release["experiment"]["method"] for release in releases]
    assert {each["name"] for each in methods} == {"whisper", "ldpmab"}
    for key in ("half_life", "public_arms"):
        assert {bool(each.get(key)) for each in methods if each["name"] == "whisper"} == {
            True,
            False,
        }
    assert max(len(release["bins"]) for release in releases) > 128
    assert {each["kind"] for each in vectors["cases"]} == set(cases_.KINDS)
    told = [each["gives"] for each in vectors["cases"] if each["gives"].get("report")]
    experiments = {each["release"]: each for each in vectors["cases"]}
    assert len(told) > 500
    assert len(experiments) > 50
    assert {each.get("key") is None for each in vectors["cases"] if each["kind"] == "decision"} == {
        True,
        False,
    }
    assert {len(each["spent"]) for each in told} == {0, 1}


def test_a_third_device_from_the_page_alone_gives_the_same() -> None:
    vectors, seen = made(2, grown=0, built=30, count=700, spoiled=0, of_each=0), 0
    for case in vectors["cases"]:
        text = vectors["releases"][case["release"]]
        release = json.loads(text)
        if "amendments" in release or release["experiment"]["method"]["name"] != "whisper":
            continue
        found, seen = third.outcome(case, text), seen + 1
        assert found == {key: case["gives"][key] for key in found}
    assert seen > 300


def test_a_device_draws_from_the_operating_system_as_a_stream_says() -> None:
    """With the module ``secrets`` as it is, and the bytes below it from the stream."""
    vectors = read()
    releases = [wire.release_from_json(text) for text in vectors["releases"]]
    for case in vectors["cases"]:
        found = cases_.outcome(case, releases[case["release"]], drawing=given_below)
        assert found == case["gives"]
