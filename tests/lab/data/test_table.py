from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.data.playing import play
from sottovoce.lab.data.sample import DataSet, Deck
from sottovoce.lab.data.table import Table
from sottovoce.lab.simulation import Auxiliary, simulate
from support.tables import pupils, write

SPLIT: dict[str, Any] = {"label": "grade", "group": "school", "target": "north"}


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return write(tmp_path / "pupils.csv", pupils())


def same(left: DataSet, right: DataSet) -> bool:
    return left.target.contexts.tobytes() == right.target.contexts.tobytes()


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("classes", [3, 5, 7])
def test_a_table_becomes_a_data_set(tmp_path: Path, classes: int, ending: str) -> None:
    table = pupils(classes=classes)
    path = write(tmp_path / f"pupils{ending}", table)
    data = Table(path, **SPLIT).load()
    schools = np.array(table["school"])
    assert data.name == "pupils"
    assert data.arms == tuple(f"grade {k}" for k in range(classes))
    assert len(data.target) == (schools == "north").sum()
    assert {name: len(each) for name, each in data.auxiliary.items()} == {
        "others": (schools != "north").sum()
    }
    labels = [data.arms[k] for k in data.target.labels]
    assert labels == [g for g, s in zip(table["grade"], schools, strict=True) if s == "north"]
    for sample in (data.target, *data.auxiliary.values()):
        assert sample.contexts.shape == (len(sample), 3)
        assert ((sample.contexts >= 0) & (sample.contexts <= 1)).all()


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    sets = [
        Table(write(tmp_path / f"pupils{ending}", pupils()), **SPLIT).load()
        for ending in (".csv", ".csv.gz", ".parquet")
    ]
    for each in sets[1:]:
        assert np.allclose(each.target.contexts, sets[0].target.contexts)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_are_found(csv: Path, delimiter: str) -> None:
    other = csv.with_name("other.csv")
    other.write_text(csv.read_text().replace(",", delimiter))
    assert same(Table(other, **SPLIT).load(), Table(csv, **SPLIT).load())


@pytest.mark.parametrize("reduce", ["components", "supervised", "columns"])
@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_there_are_as_many_axes_as_asked_for(csv: Path, dimensions: int, reduce: Any) -> None:
    data = Table(csv, **SPLIT, dimensions=dimensions, reduce=reduce).load()
    assert data.target.contexts.shape[1] == len(data.features) == dimensions
    assert data.encoded == (dimensions if reduce == "columns" else 3 + 4 + 1)


def test_the_columns_that_say_most_can_be_found(csv: Path) -> None:
    assert set(Table(csv, **SPLIT, reduce="columns").load().features) == {
        "hours",
        "sleep",
        "subject",
    }


def test_no_value_of_the_target_moves_the_reduction(tmp_path: Path) -> None:
    before = pupils()
    north = [school == "north" for school in before["school"]]
    after = {name: list(values) for name, values in before.items()}
    for row in np.flatnonzero(north)[10:]:
        after["hours"][row] = 1e6 + row
        after["sleep"][row] *= -1
        after["subject"][row] = "latin"
        after["grade"][row] = "grade 2"
    for settings in (
        {"reduce": "components"},
        {"reduce": "supervised"},
        {"reduce": "columns"},
        {"features": ["subject"]},
    ):
        one, two = (
            Table(write(tmp_path / "x.parquet", table), **SPLIT, **settings).load()
            for table in (before, after)
        )
        assert (one.auxiliary["others"].contexts == two.auxiliary["others"].contexts).all()
        assert (one.target.contexts[:10] == two.target.contexts[:10]).all()
        assert not same(one, two)


def test_auxiliary_groups_can_be_each_on_its_own_or_named(csv: Path) -> None:
    each = Table(csv, **SPLIT, auxiliary="each").load()
    assert list(each.auxiliary) == ["south", "west"]
    named = Table(csv, **SPLIT, auxiliary={"far": ["west"]}).load()
    assert len(named.auxiliary["far"]) == len(each.auxiliary["west"])
    several = Table(csv, label="grade", group="school", target=["north", "west"]).load()
    assert len(several.target) == len(each.target) + len(each.auxiliary["west"])


@pytest.mark.parametrize("target", [2, "2", 2.0])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_group_may_be_a_number(tmp_path: Path, target: Any, ending: str) -> None:
    table = pupils()
    path = write(tmp_path / f"pupils{ending}", table)
    data = Table(path, label="grade", group="floor", target=target).load()
    assert len(data.target) == table["floor"].count(2)
    truth = Table(path, label="grade", group="boards", target=True).load()
    assert len(truth.target) == table["boards"].count(True)


def test_a_label_may_be_a_number(tmp_path: Path) -> None:
    path = write(tmp_path / "pupils.csv", pupils())
    data = Table(path, label="floor", group="school", target="north").load()
    assert data.arms == ("0", "1", "2", "3", "4")


def test_columns_are_chosen_left_out_and_taken_as_levels(csv: Path) -> None:
    assert Table(csv, **SPLIT, columns=["hours", "sleep", "floor"]).load().encoded == 3
    assert Table(csv, **SPLIT, drop=["subject"]).load().encoded == 4
    assert Table(csv, **SPLIT, categorical=["floor"]).load().encoded == 2 + 4 + 1 + 5
    assert Table(csv, **SPLIT, levels={"subject": tuple("abcdefg")}).load().encoded == 3 + 7 + 1


def test_a_column_without_a_name_is_a_row_number(csv: Path) -> None:
    lines = csv.read_text().splitlines()
    numbered = csv.with_name("pupils.csv")
    numbered.write_text("\n".join([f",{lines[0]}", *(f"{k},{x}" for k, x in enumerate(lines[1:]))]))
    assert Table(numbered, **SPLIT).load().encoded == 3 + 4 + 1


def test_plain_features_take_an_axis_each(csv: Path) -> None:
    data = Table(csv, **SPLIT, features=["hours", "subject", "boards"]).load()
    assert data.features == ("hours", "subject", "boards")
    assert len(np.unique(data.target.contexts[:, 1])) == 4


def test_dates_and_times_are_numbers(tmp_path: Path) -> None:
    days = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(600)]
    path = write(tmp_path / "pupils.csv", {**pupils(), "born": days})
    assert Table(path, **SPLIT).load().encoded == 3 + 4 + 1 + 1


def test_without_a_group_the_reduction_needs_public_data(tmp_path: Path, csv: Path) -> None:
    with pytest.raises(sv.ExperimentError, match="fitted on rows that are not the target's"):
        Table(csv, label="grade").load()
    public = {name: v for name, v in pupils(seed=1).items() if name != "grade"}
    other = write(tmp_path / "public.parquet", public)
    data = Table(csv, label="grade", drop=["school"], public=other, reduce="components").load()
    assert len(data.target) == 600
    assert not data.auxiliary
    with pytest.raises(sv.ExperimentError, match="'components' where the fitting rows have no"):
        Table(csv, label="grade", public=other).load()
    labelled = write(tmp_path / "labelled.csv", pupils(seed=1))
    assert Table(csv, label="grade", public=labelled).load().features[0].startswith("direction")
    bounds = [sv.Numeric("hours", 0, 20), sv.Numeric("sleep", 4, 12)]
    assert len(Table(csv, label="grade", features=bounds).load().target) == 600


def test_a_share_of_the_target_may_be_public_and_is_not_played(csv: Path) -> None:
    data = Table(csv, label="grade", public=0.1).load()
    assert len(data.target) == 540
    assert same(data, Table(csv, label="grade", public=0.1).load())


def test_a_made_up_table_is_played_by_whisper(csv: Path) -> None:
    data = Table(csv, **SPLIT).load()
    arms, other, n = len(data.arms), data.auxiliary["others"], len(data.target)
    result = simulate(
        Deck(data.target, arms),
        epsilon=16,
        n=n,
        seed=0,
        auxiliary=[Auxiliary(len(other), 16, Deck(other, arms))],
    )
    assert 0 < n - result.regret[-1] <= n


def test_whisper_is_told_what_the_axes_of_a_table_are(csv: Path) -> None:
    subject = sv.Categorical("subject", ("art", "music", "physics", "sport"))
    hours = sv.Numeric("hours", 0, 20)
    data = Table(csv, **SPLIT, features=[hours, subject, sv.Boolean("boards")]).load()
    assert data.schema == (hours, subject, sv.Boolean("boards"))
    for result in (play(data, epsilon=8, seed=0), play(data, epsilon=8, epsilon_aux=8, seed=0)):
        assert result.experiment.context == data.schema
        assert [axis.ordered for axis in result.experiment.axes] == [True, False, True]


def test_text_becomes_ranks_or_levels_without_an_order(csv: Path) -> None:
    options: dict[str, Any] = {**SPLIT, "features": ["hours", "subject", "boards"]}
    ranks = Table(csv, **options).load()
    assert ranks.schema == tuple(sv.Numeric(name, 0, 1) for name in options["features"])
    levels = Table(csv, **options, text="levels").load()
    subjects = ("art", "music", "physics", "sport")
    assert levels.schema == (
        sv.Numeric("hours", 0, 1),
        sv.Categorical("subject", subjects, other=True),
        sv.Boolean("boards"),
    )
    assert (levels.target.contexts[:, 0] == ranks.target.contexts[:, 0]).all()
    found = Table(csv, **SPLIT, reduce="columns", text="levels").load()
    assert "Categorical" in {type(feature).__name__ for feature in found.schema}
    assert same(Table(csv, **SPLIT, text="levels").load(), Table(csv, **SPLIT).load())
    with pytest.raises(sv.ExperimentError, match="text must be one of ranks, levels; got 'words'"):
        Table(csv, **SPLIT, text="words")  # type: ignore[arg-type]


# Bad input: each says which column, and how many.


def spoil(name: str, change: dict[int, Any]) -> dict[str, list[Any]]:
    table = pupils()
    table[name] = [change.get(row, value) for row, value in enumerate(table[name])]
    return table


def test_missing_values_are_refused_dropped_or_kept(tmp_path: Path) -> None:
    table = spoil("sleep", {3: None, 5: None})
    table["subject"][7] = None
    for ending in (".csv", ".parquet"):
        path = write(tmp_path / f"gaps{ending}", table)
        with pytest.raises(
            sv.ExperimentError, match="got 2 in column 'sleep', 1 in column 'subject'"
        ):
            Table(path, **SPLIT).load()
        dropped = Table(path, **SPLIT, nulls="drop").load()
        assert dropped.dropped == 3
        assert len(dropped.target) + len(dropped.auxiliary["others"]) == 597
        kept = Table(path, **SPLIT, nulls="keep").load()
        assert kept.dropped == 0
        assert len(kept.target) + len(kept.auxiliary["others"]) == 600
    nameless = spoil("grade", dict.fromkeys(range(9)))
    path = write(tmp_path / "nameless.parquet", nameless)
    assert Table(path, **SPLIT, nulls="keep").load().dropped == 9
    empty = {**pupils(), "sleep": [None] * 600}
    with pytest.raises(sv.ExperimentError, match="600 in column 'sleep'"):
        Table(write(tmp_path / "empty.parquet", empty), **SPLIT, nulls="drop").load()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_named_columns_with_gaps_become_optional_features(tmp_path: Path, ending: str) -> None:
    table = spoil("sleep", {3: None, 5: None})
    table["subject"][7] = None
    path = write(tmp_path / f"gaps{ending}", table)
    names = ["hours", "sleep", "subject"]
    data = Table(path, **SPLIT, features=names, nulls="keep").load()
    assert data.features == ("hours", "sleep", "sleep is missing", "subject")
    assert data.encoded == 3
    samples = [data.target, *data.auxiliary.values()]
    contexts = np.concatenate([sample.contexts for sample in samples])
    assert len(contexts) == 600
    missing = contexts[contexts[:, 2] == 0.75]
    assert missing[:, 1].tolist() == [0.0, 0.0]
    assert (np.delete(contexts[:, 2], np.flatnonzero(contexts[:, 2] == 0.75)) == 0.25).all()
    assert len(np.unique(contexts[:, 3])) == 5
    # The reductions are as they were: a gap is the mean, or no level.
    assert len(Table(path, **SPLIT, nulls="keep").load().features) == 3
    told = Table(path, **SPLIT, nulls="keep", reduce="columns", dimensions=2).load()
    assert len(told.features) == 2 + ("sleep is missing" in told.features)
    without = Table(path, **SPLIT, features=names, nulls="drop").load()
    assert without.features == ("hours", "sleep", "subject")
    assert data.schema[1] == sv.Numeric("sleep", 0, 1, optional=True)


def test_an_optional_feature_of_a_schema_may_be_missing_whatever_is_done_with_gaps(
    tmp_path: Path,
) -> None:
    table = spoil("sleep", {3: None, 5: None})
    path = write(tmp_path / "gaps.parquet", table)
    sleep, boards = sv.Numeric("sleep", 4, 12, optional=True), sv.Boolean("boards")
    for nulls in ("refuse", "drop", "keep"):
        data = Table(path, label="grade", features=[sleep, boards], nulls=nulls).load()
        assert data.features == ("sleep", "sleep is missing", "boards")
        assert len(data.target) == 600
        assert (data.target.contexts[[3, 5], :2] == (0.0, 0.75)).all()
        expected = [0.75 if value else 0.25 for value in table["boards"]]
        assert data.target.contexts[:, 2].tolist() == expected
    plain = sv.Numeric("sleep", 4, 12)
    kept = Table(path, label="grade", features=[plain, boards], nulls="keep").load()
    assert same(kept, data)
    with pytest.raises(sv.ExperimentError, match="got 2 in column 'sleep'"):
        Table(path, label="grade", features=[plain, boards]).load()


def test_gaps_in_public_rows_alone_count_too(tmp_path: Path) -> None:
    path = write(tmp_path / "whole.csv", pupils())
    public = write(tmp_path / "gaps.csv", spoil("sleep", {3: None}))
    options: dict[str, Any] = {"label": "grade", "features": ["sleep"], "nulls": "keep"}
    data = Table(path, **options, public=public).load()
    assert data.features == ("sleep", "sleep is missing")
    assert (data.target.contexts[:, 1] == 0.25).all()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_infinities_are_refused(tmp_path: Path, ending: str) -> None:
    table = spoil("hours", {1: float("inf"), 2: float("-inf"), 9: float("inf")})
    with pytest.raises(sv.ExperimentError, match="'hours' must hold finite numbers; got 3"):
        Table(write(tmp_path / f"x{ending}", table), **SPLIT).load()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("name", ["hours", "floor"])
def test_numbers_with_text_among_them_are_refused(tmp_path: Path, ending: str, name: str) -> None:
    path = write(tmp_path / f"x{ending}", spoil(name, {1: "many", 2: "few"}))
    with pytest.raises(sv.ExperimentError, match=f"column '{name}' must hold numbers only.*2 rows"):
        Table(path, **SPLIT).load()
    assert Table(path, **SPLIT, categorical=[name]).load()


def test_levels_some_of_which_look_like_numbers_are_levels(tmp_path: Path) -> None:
    doors = [("2", "3", "4", "5more")[k % 4] for k in range(600)]
    path = write(tmp_path / "x.csv", {**pupils(), "floor": doors})
    assert Table(path, **SPLIT).load().encoded == 2 + 4 + 1 + 4


def test_a_label_needs_two_classes_and_two_rows_of_each(tmp_path: Path) -> None:
    def refused(table: dict[str, list[Any]], match: str) -> None:
        with pytest.raises(sv.ExperimentError, match=match):
            Table(write(tmp_path / "x.parquet", table), **SPLIT).load()

    refused({**pupils(), "grade": ["A"] * 600}, "at least 2 classes; got 1 in 600 rows")
    refused({**pupils(), "grade": list(range(600))}, "got 600 in 600 rows, 600 of them with a")
    refused({**pupils(), "grade": [k // 2 for k in range(600)]}, "at most 255 classes")
    refused(spoil("grade", {0: "Z"}), "2 rows or more of each; got 4 in 600 rows, 1 of them")
    north = [k for k, school in enumerate(pupils()["school"]) if school == "north"]
    refused(spoil("grade", dict.fromkeys(north, "A")), "2 classes in the target group; got 1 in")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"label": "mark"}, r"label must be among the columns of pupils.csv.*got \['mark'\]"),
        ({"group": "town"}, r"group must be among the columns.*got \['town'\]"),
        ({"columns": ["hours", "iq"]}, r"columns must be among.*got \['iq'\]"),
        ({"features": ["iq"]}, r"features must be among.*got \['iq'\]"),
        ({"drop": ["iq"]}, r"drop must be among.*got \['iq'\]"),
        ({"categorical": ["iq"]}, r"categorical must be among.*got \['iq'\]"),
        ({"target": "east"}, r"target must be values of column 'school'.*got \['east'\]"),
        ({"target": []}, "target must be values of column 'school'"),
        ({"auxiliary": {"far": "east"}}, r"group 'far' must be values of column.*\['east'\]"),
        ({"auxiliary": {"here": "north"}}, r"rows must belong to one group each; got \d+ in"),
        ({"auxiliary": "all"}, "auxiliary must be None, 'each' or a mapping"),
        ({"target": ["north", "south", "west"]}, "auxiliary group 'others' must have rows; got 0"),
        (
            {"target": ["north", "south", "west"], "auxiliary": "each"},
            "auxiliary groups must have rows; got 0",
        ),
        ({"columns": ["grade", "hours"]}, "leave out the label"),
        ({"columns": ["hours", "hours"]}, "covariates must differ"),
        ({"columns": []}, "at least one column"),
        ({"dimensions": 9}, "dimensions must be at most the 8 encoded columns"),
        ({"dimensions": 6, "reduce": "columns"}, "dimensions must be at most the 5 columns"),
        ({"dimensions": 0}, "dimensions must be a whole number >= 1"),
        ({"reduce": "magic"}, "reduce must be one of components, supervised, columns"),
        ({"nulls": "ignore"}, "nulls must be 'refuse', 'drop' or 'keep'"),
        ({"features": []}, "features must be a list of columns"),
        ({"features": "hours"}, "features must be a list of columns"),
        ({"drop": "hours"}, "drop must be a list of columns"),
        ({"target": None}, "group and target must be given together"),
        ({"group": None, "target": None, "auxiliary": "each"}, "auxiliary must go with a group"),
        ({"public": 1.5}, r"public must be a file, or a share in \(0, 1\)"),
        ({"public": "nowhere.csv"}, "nowhere.csv: no file"),
    ],
)
def test_settings_that_cannot_be_are_refused(csv: Path, settings: Any, match: str) -> None:
    with pytest.raises(sv.ExperimentError, match=match):
        Table(csv, **{**SPLIT, **settings}).load()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("absent.csv", None, "must be a file; got .*absent.csv: no file"),
        ("table.xlsx", b"", "must end in one of .csv, .csv.gz, .parquet"),
        ("empty.csv", b"", "must be a sound CSV file"),
        ("heading.csv", b"a,b,c\n", "must have rows; got 0"),
        ("ragged.csv", b"a,b,c\n1,2,3\n1,2\n", "must be a sound CSV file"),
        ("latin.csv", b"a,b,c\nM\xfcnchen,2,3\n", "must be a sound CSV file"),
        ("twice.csv", b"a,b,a\n1,2,3\n", r"must differ; got \['a'\] twice"),
        ("no.parquet", b"PAR1 or not", "must be a sound Parquet file"),
        ("no.csv.gz", b"not packed", "must be a sound CSV file"),
    ],
)
def test_files_that_are_no_tables_are_refused(
    tmp_path: Path, name: str, content: bytes | None, match: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(sv.ExperimentError, match=match):
        Table(tmp_path / name, label="a", group="b", target="x").load()


def test_a_folder_and_lists_in_a_column_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(sv.ExperimentError, match="must be a file"):
        Table(tmp_path / "folder.csv", **SPLIT).load()
    table = {**pupils(), "floor": [[1, 2]] * 600}
    with pytest.raises(sv.ExperimentError, match="'floor' must hold numbers, text"):
        Table(write(tmp_path / "x.parquet", table), **SPLIT).load()
