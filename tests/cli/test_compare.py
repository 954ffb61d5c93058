"""Methods on a table of one's own, from the command line to the printed figures."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import sottovoce as sv
from sottovoce.cli.commands import app
from sottovoce.lab import Table
from sottovoce.lab.comparison import Effort, as_json, compare
from support.tables import pupils, write

SCHOOLS = ("--label", "grade", "--group", "school", "--target", "north")


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(
        app, ["compare", *map(str, arguments), "--workers", "1"]
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "pupils.csv", pupils(rows=400, classes=4))


def test_a_table_with_groups_is_compared_with_and_without_the_others(path: Path) -> None:
    done = run(path, *SCHOOLS, "--methods", "whisper,linear", "--reps", 2, "--json")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    rows = pupils(rows=400, classes=4)["school"]
    assert figures["people"] == rows.count("north")
    assert figures["auxiliary"] == {"others": len(rows) - rows.count("north")}
    assert len(figures["arms"]) == 4
    assert (figures["epsilon"], figures["epsilon_aux"], figures["reps"]) == (1, 4, 2)
    found = [(row["method"], row["auxiliary"], row["fraction"]) for row in figures["methods"]]
    assert sorted(found) == sorted(
        (method, auxiliary, fraction)
        for method in ("whisper", "linear")
        for auxiliary in (True, False)
        for fraction in (0.25, 1)
    )
    beside = {(each["name"], each["fraction"]): each["reward_mean"] for each in figures["beside"]}
    for row in figures["methods"]:
        assert 0 <= row["reward_mean"] <= 1
        assert row["reward_se"] >= 0
        base = beside["abse (not private)", row["fraction"]]
        assert row["ratio"] == pytest.approx(row["reward_mean"] / base)
    grades = [
        g for g, s in zip(pupils(rows=400, classes=4)["grade"], rows, strict=True) if s[0] == "n"
    ]
    most = max(grades.count(grade) for grade in set(grades))
    assert beside["best single arm", 1] == pytest.approx(most / len(grades))


def test_the_figures_are_printed_for_people_in_80_columns(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # Of two repetitions some pair is equal now and then, and has no standard error to print.
    arguments = (path, *SCHOOLS, "--auxiliary", "each", "--reps", 3, "--out", out)
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "(south)" in done.stdout
    assert "(west), ε_m = 4" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    for method in ("whisper", "ldpmab", "linear", "nn"):
        for how in ("with", "without"):
            (row,) = [line for line in lines if line[:2] == [method, how]]
            assert row[3] == row[6] == "±"
    assert "abse (not private)" in done.stdout
    assert "abse, tuned (not private)" in done.stdout
    assert "best single arm" in done.stdout
    assert "…" not in done.stdout
    assert "fewer than 5 repetitions" in done.stdout
    rows = list(csv.DictReader((out / "compare.csv").read_text().splitlines()))
    assert len(rows) == 2 * 8 + 2 * 3
    # A second time nothing is run, and a file that has changed is not taken for the same.
    before = (out / "compare.jsonl").read_bytes()
    assert run(*arguments).stdout == done.stdout
    assert (out / "compare.jsonl").read_bytes() == before
    write(path, pupils(rows=400, classes=4, seed=1))
    assert "must be a file of this sweep" in str(run(*arguments).exception)


def test_a_small_table_without_groups_has_public_rows_instead(tmp_path: Path) -> None:
    columns = pupils(rows=150, classes=7)
    del columns["school"]
    path = write(tmp_path / "small.csv", columns)
    done = run(path, "--label", "grade", "--public", "0.2", "--methods", "whisper,nn,abse")
    assert done.exit_code == 0, done.output
    assert "120 people, 7 arms, ε = 1\n" in done.stdout
    assert "without" not in done.stdout
    assert "auxiliary" not in done.stdout
    write(tmp_path / "public.csv", {**pupils(rows=200, classes=7, seed=1)})
    options = ("--public", tmp_path / "public.csv", "--methods", "whisper", "--reps", 1, "--json")
    figures = json.loads(run(path, "--label", "grade", *options).stdout)
    assert figures["people"] == 150
    assert figures["epsilon_aux"] is None
    assert [row["significant"] for row in figures["methods"]] == [False, False]


def test_the_diagnosis_of_auxiliary_rows_is_told(path: Path) -> None:
    arguments = (path, *SCHOOLS, "--auxiliary", "each", "--methods", "whisper", "--reps", 2)
    figures = json.loads(run(*arguments, "--json").stdout)
    rows = pupils(rows=400, classes=4)["school"]
    assert figures["heeded"] is None
    sources = figures["diagnosis"]["sources"]
    assert {each["population"]: each["reports"] for each in sources} == {
        school: rows.count(school) for school in ("south", "west")
    }
    for each in sources:
        assert each["effective_users"] == each["expected_users"] > 0
        assert 0 <= each["overlap"] <= 1
    assert figures["diagnosis"]["audit"]["answers"] > 0
    told = run(*arguments).stdout
    assert "effective users" in told
    for each in sources:
        (line,) = [line for line in told.splitlines() if line.split()[:1] == [each["population"]]]
        assert line.split() == [
            each["population"],
            f"{each['reports']}",
            f"{each['effective_users']:,.0f}",
            f"{each['overlap']:.2f}",
            f"{each['exploration']:.2f}",
        ]
    assert "who were asked" in told
    # Of so few people it may warn by chance; then the figures say so, too.
    assert ("Warning" in told) == any(each["harmful"] for each in sources)
    assert "heeded" not in told
    alone = run(path, *SCHOOLS, "--methods", "linear", "--reps", 1)
    assert "effective users" not in alone.stdout


def test_a_warning_is_told_and_people_get_as_much_as_if_they_heeded_it(tmp_path: Path) -> None:
    """At south, the same pupil has the other grade."""
    columns = pupils(rows=8000, classes=2)
    other = {"grade 0": "grade 1", "grade 1": "grade 0"}
    columns["grade"] = [
        other[grade] if school == "south" else grade
        for grade, school in zip(columns["grade"], columns["school"], strict=True)
    ]
    path = write(tmp_path / "misleading.csv", columns)
    arguments = (path, *SCHOOLS, "--auxiliary", "each", "--epsilon", 4, "--methods", "whisper")
    figures = json.loads(run(*arguments, "--reps", 2, "--heed", "--json").stdout)
    (warning,) = figures["diagnosis"]["warnings"]
    assert warning.startswith("south seems to mislead")
    assert all(0 < people < figures["people"] for people in figures["heeded"])
    beside = {(each["name"], each["fraction"]): each["reward_mean"] for each in figures["beside"]}
    (plain,) = [
        each["reward_mean"]
        for each in figures["methods"]
        if each["auxiliary"] and each["fraction"] == 1
    ]
    assert abs(beside["whisper w, heeded", 1] - plain) < 0.1
    told = run(*arguments, "--reps", 1, "--heed").stdout
    assert "Warning: south seems to mislead" in told
    assert "whisper heeded a warning in 1 of 1 repetitions." in told
    assert "whisper w, heeded" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SCHOOLS, "--methods", "linear", "--heed"], "heed must be asked of whisper where there"),
        (["--label", "grade", "--public", "0.1", "--heed"], r"heed must .* got \['whisper wo'"),
        (["--label", "grade"], "give --group and --target for auxiliary rows, or --public"),
        (["--label", "mark", "--public", "0.1"], r"label must be among .*'grade'\]; got \['mark"),
        (["--label", "grade", "--group", "school"], "group and target must be given together"),
        ([*SCHOOLS, "--target", "east"], r"\['north', 'south', 'west'\]; got \['east'\]"),
        ([*SCHOOLS, "--methods", "whisper,magic"], r"different ones of .*; got .*'magic'"),
        ([*SCHOOLS, "--methods", "abse"], "the methods must be different ones of"),
        ([*SCHOOLS, "--epsilon", "-1"], "epsilon must be finite and > 0; got -1"),
        ([*SCHOOLS, "--epsilon-aux", "0"], "epsilon_aux must be finite and > 0; got 0"),
        ([*SCHOOLS, "--reps", "0"], "reps must be a whole number >= 1"),
        ([*SCHOOLS, "--features", "hours,luck"], r"features must be among .* got \['luck'\]"),
        ([*SCHOOLS, "--drop", "luck"], r"drop must be among .* got \['luck'\]"),
        (["--label", "grade", "--public", "2"], "public must be a file, or a share in"),
    ],
)
def test_a_mistake_gets_one_clear_message(path: Path, arguments: list[str], message: str) -> None:
    done = run(path, *arguments)
    assert isinstance(done.exception, sv.ExperimentError)
    with pytest.raises(sv.ExperimentError, match=message):
        raise done.exception


def test_text_in_named_columns_may_be_levels_without_an_order(path: Path) -> None:
    named = [*SCHOOLS, "--features", "hours,subject", "--methods", "whisper", "--reps", "1"]
    ranks, levels = (
        json.loads(run(path, *named, "--json", *more).stdout) for more in ([], ["--text", "levels"])
    )
    assert ranks["features"] == levels["features"] == ["hours", "subject"]
    assert ranks["methods"] != levels["methods"]
    assert run(path, *named, "--text", "words").exit_code == 2


def test_features_with_public_bounds_need_no_other_rows(path: Path) -> None:
    table = Table(
        path, label="grade", features=[sv.Numeric("hours", 0, 20), sv.Numeric("sleep", 4, 12)]
    )
    compared = compare(table, methods=["whisper"], effort=Effort(reps=1, workers=1))
    assert compared.data.features == ("hours", "sleep")
    assert as_json(compared)["people"] == 400


def test_rows_with_gaps_are_kept_as_optional_features(tmp_path: Path) -> None:
    columns = pupils(rows=400, classes=4)
    columns["sleep"] = [None if row % 5 == 0 else x for row, x in enumerate(columns["sleep"])]
    columns["subject"] = [None if row % 7 == 0 else x for row, x in enumerate(columns["subject"])]
    path = write(tmp_path / "gaps.csv", columns)
    arguments = (path, *SCHOOLS, "--features", "sleep,subject", "--methods", "whisper", "--json")
    refused = run(*arguments, "--reps", 1)
    assert "80 in column 'sleep', 58 in column 'subject'" in str(refused.exception)
    done = run(*arguments, "--reps", 1, "--nulls", "keep")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["features"] == ["sleep", "sleep is missing", "subject"]
    assert figures["dropped"] == 0
    assert figures["people"] == columns["school"].count("north")


def test_the_command_explains_itself() -> None:
    done = run("--help")
    assert done.exit_code == 0
    assert "sottovoce compare pupils.csv" in " ".join(done.stdout.split())
