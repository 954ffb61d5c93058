"""Which rows of a custodian's file are taken, which are refused, and how that is told."""

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from factories import clinic
from sottovoce.device.contribute.rows import Columns, Judge, Row
from sottovoce.device.contribute.source import look, reading
from sottovoce.device.contribute.summary import Survey, check_fit, survey
from sottovoce.shared.errors import RowsError
from support.custodians import HEADER, good_rows, write_csv

GOOD = (42, "low", "coach", 1)


def surveyed(path: Path, columns: Columns | None = None, **settings: Any) -> Survey:
    settings = {"on_refusal": ignore, "progress": ignore, **settings}
    return survey(look(path), Judge(clinic(), columns or Columns()), **settings)


def ignore(*what: object) -> None:
    pass


def lines(found: Survey) -> dict[str, tuple[int, ...]]:
    return {reason: refused.lines for reason, refused in found.refused.items()}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("", "low", "coach", 1), "age is missing"),
        (("nan", "low", "coach", 1), "age is not a number"),
        (("inf", "low", "coach", 1), "age is not a number"),
        (("1e999", "low", "coach", 1), "age is not a number"),
        (("4_2", "low", "coach", 1), "age is not a number"),
        (("old", "low", "coach", 1), "age is not a number"),
        ((42, "", "coach", 1), "activity is missing"),
        ((42, "Low", "coach", 1), "activity is not a level of the schema"),
        ((42, "low", "", 1), "arm is missing"),
        ((42, "low", "surgery", 1), "arm is not an arm of the experiment"),
        ((42, "low", "coach", ""), "reward is missing"),
        ((42, "low", "coach", "good"), "reward is not a number"),
        ((42, "low", "coach", 1.5), "reward is not in [0, 1]"),
        ((42, "low", "coach", -0.5), "reward is not in [0, 1]"),
        ((42, "low", "coach", "nan"), "reward is not a number"),
        ((42, "low", "coach"), "has another number of fields than the header"),
        ((42, "low", "coach", 1, 7), "has another number of fields than the header"),
    ],
)
def test_a_row_outside_the_schema_is_refused_by_its_line(
    tmp_path: Path, row: tuple[Any, ...], reason: str
) -> None:
    found = surveyed(write_csv(tmp_path / "rows.csv", [GOOD, row, GOOD]))
    assert (found.rows, found.fitting) == (3, 2)
    assert lines(found) == {reason: (3,)}


def test_lines_are_those_of_an_editor(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "note,age,activity,arm,reward\r\n"  # 1
        "a,42,low,coach,1\r\n"  # 2
        '"b\r\nb\r\nb",old,low,coach,1\r\n'  # 3 to 5
        "\r\n"  # 6
        "c,old,low,coach,1\r\n"  # 7
        '"d\n",42,low,coach,2',  # 8 and 9
        newline="",
    )
    found = surveyed(path)
    assert found.rows == 4
    assert lines(found) == {"age is not a number": (3, 7), "reward is not in [0, 1]": (8,)}


def test_columns_are_found_by_name_in_any_order_and_under_other_names(tmp_path: Path) -> None:
    header = ["Outcome", "extra", "activity", "Age (years)", "Treatment"]
    path = write_csv(tmp_path / "rows.csv", [[0.5, "x", "high", 30, "control"]], header=header)
    columns = Columns("Treatment", "Outcome", {"age": "Age (years)"})
    names = columns.names(clinic())
    with reading(look(path), names) as rows:
        ((line, values),) = rows
    row = Judge(clinic(), columns).read(values)
    assert line == 2
    assert isinstance(row, Row)
    assert (row.context, row.arm, row.reward) == ({"age": 30, "activity": "high"}, "control", 0.5)


def test_missing_columns_are_named_and_the_header_is_not_shown(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", [], header=["Lindqvist", "61.732", "coach", "reward"])
    with pytest.raises(RowsError, match=r"lacks \['age', 'activity', 'arm'\]") as caught:
        surveyed(path)
    assert "Lindqvist" not in str(caught.value)
    assert "61.732" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(renamed={"weight": "kg"}), "weight"),
        (Columns(arm="age"), "different column"),
        (Columns(arm="what"), r"lacks \['what'\]"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(
    tmp_path: Path, columns: Columns, message: str
) -> None:
    with pytest.raises(RowsError, match=message):
        surveyed(write_csv(tmp_path / "rows.csv", [GOOD]), columns)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", [(*GOOD, 50)], header=(*HEADER, "age"))
    with pytest.raises(RowsError, match=r"\['age'\] more than once"):
        surveyed(path)


def test_numbers_outside_the_bounds_are_counted_and_kept(tmp_path: Path) -> None:
    rows = [(17, *GOOD[1:]), (91, *GOOD[1:]), GOOD, (17, "low", "coach", 2)]
    found = surveyed(write_csv(tmp_path / "rows.csv", rows))
    assert found.fitting == 3
    assert found.clamped == {"age": 2}


def test_all_refused_rows_are_counted_and_told_and_the_first_thousand_lines_are_kept(
    tmp_path: Path,
) -> None:
    path = write_csv(tmp_path / "rows.csv", [GOOD, *[("old", *GOOD[1:])] * 1500])
    told: list[tuple[Path, int, str]] = []
    found = surveyed(path, on_refusal=lambda *refusal: told.append(refusal))
    refused = found.refused["age is not a number"]
    assert refused.rows == 1500
    assert refused.lines == tuple(range(3, 1003))
    assert told == [(path, line, "age is not a number") for line in range(3, 1503)]


@pytest.mark.parametrize(
    ("unfit", "most", "fits"),
    [(2, 0.2, True), (3, 0.2, False), (9, 0.9, True), (10, 1.0, False), (0, 0.0, True)],
)
def test_a_file_of_which_too_many_rows_do_not_fit_is_refused(
    tmp_path: Path, unfit: int, most: float, fits: bool
) -> None:
    rows = [("old", *GOOD[1:])] * unfit + [GOOD] * (10 - unfit)
    path = write_csv(tmp_path / "rows.csv", rows)
    found = surveyed(path)
    if fits:
        check_fit(path, found, most_unfit=most)
        return
    reason = rf"{unfit} of 10 do not: {unfit} × age is not a number \(line 2, 3, 4.*\); nothing"
    with pytest.raises(RowsError, match=reason):
        check_fit(path, found, most_unfit=most)


def test_a_file_without_rows_has_none_that_do_not_fit(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", [])
    check_fit(path, surveyed(path), most_unfit=0.0)


@pytest.mark.parametrize(
    ("setting", "value", "reward"),
    [
        (None, "YES", 1.0),
        ("yes/no", "no", 0.0),
        ("yes/no", "True", 1.0),
        ("yes/no", "0.5", 0.5),
        ((0, 60), "31.5", 31.5),
        ((0, 60), "75", 75.0),
        ((0, 60), "yes", None),
        ((-1, 1), "-1.5", -1.5),
        ("yes/no", "1.5", None),
    ],
)
def test_rewards_are_read_as_the_experiment_counts_them(
    setting: Any, value: str, reward: float | None
) -> None:
    judge = Judge(clinic(reward=setting), Columns())
    found = judge.read(("42", "low", "coach", value))
    assert (found.reward if isinstance(found, Row) else None) == reward
    beyond = reward is not None and setting in ((0, 60), (-1, 1)) and abs(reward) in (75.0, 1.5)
    assert judge.clamped == ({"reward": 1} if beyond else {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header row"),
        (b"\n1,2\n", "header row"),
        (b'age,activity,arm,reward\n42,"low,coach,1\n42,low,coach,1\n', "from line 2"),
        (b"age,activity,arm,reward\n42,low,coach,1\n\xff\xfe,low,coach,1\n", "CSV in UTF-8"),
        (b"age,activity,arm,reward\n42,low,coach," + b"1" * 200_000, "from line 2"),
    ],
)
def test_a_file_that_is_no_csv_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(RowsError, match=message) as caught:
        surveyed(path)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.csv.zip"])
def test_other_kinds_of_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RowsError, match="end with one of"):
        look(tmp_path / name)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RowsError, match="can be read; No such file"):
        look(tmp_path / "rows.csv")


def test_a_byte_order_mark_and_gzip_are_read(tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "plain.csv", good_rows(50)).read_bytes()
    (tmp_path / "marked.csv").write_bytes(b"\xef\xbb\xbf" + plain)
    packed = gzip.compress(plain)
    (tmp_path / "packed.csv.gz").write_bytes(packed)
    (tmp_path / "cut.csv.gz").write_bytes(packed[:-20])
    assert surveyed(tmp_path / "marked.csv") == surveyed(tmp_path / "plain.csv")
    assert surveyed(tmp_path / "packed.csv.gz") == surveyed(tmp_path / "plain.csv")
    with pytest.raises(RowsError, match="EOFError"):
        surveyed(tmp_path / "cut.csv.gz")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", good_rows(5))
    source = look(path)
    with path.open("a") as file:
        file.write("42,low,coach,1\n")
    with pytest.raises(RowsError, match="must not change"):
        survey(source, Judge(clinic(), Columns()), on_refusal=ignore, progress=ignore)


def write_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


def test_parquet_rows_are_read_by_kind_and_numbered_from_one(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "rows.parquet",
        other=list("abcdef"),
        age=pa.array([42.0, 20.5, None, float("nan"), 91, 30]),
        activity=pa.array(["low", "high", "low", "low", "high", "?"]).dictionary_encode(),
        arm=["coach"] * 6,
        reward=[True, False, True, True, True, True],
    )
    found = surveyed(path)
    assert (found.rows, found.fitting) == (6, 3)
    assert lines(found) == {
        "age is missing": (3, 4),
        "activity is not a level of the schema": (6,),
    }
    assert found.clamped == {"age": 1}


@pytest.mark.parametrize(
    ("value", "reads"),
    [("2", "2"), (2, "2"), (2.0, "2"), (2.5, None), (True, None), (b"2", None), ([2], None)],
)
def test_levels_may_be_whole_numbers(value: Any, reads: str | None) -> None:
    experiment = clinic(context=[sv.Categorical("ward", ("1", "2", "3"))])
    row = Judge(experiment, Columns()).read([value, "coach", 1])
    assert (row.context["ward"] if isinstance(row, Row) else None) == reads


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        (42, 42),
        ("42", 42),
        (" 42.5 ", 42.5),
        (Decimal("42.5"), 42.5),
        (10**400, None),
        (True, None),
        ([42], None),
        (b"42", None),
        (1j, None),
    ],
)
def test_numbers_may_be_of_several_kinds(value: Any, reads: float | None) -> None:
    row = Judge(clinic(), Columns()).read([value, "low", "coach", Decimal("0.25")])
    assert (row.context["age"] if isinstance(row, Row) else None) == reads


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 this is none")
    with pytest.raises(RowsError, match="must be a Parquet file") as caught:
        surveyed(path)
    assert caught.value.__context__ is None
    write_parquet(path, age=[1] * 9, activity=["low"] * 9, arm=["coach"] * 9)
    with pytest.raises(RowsError, match=r"lacks \['reward'\]"):
        surveyed(path)


GAPS: list[Any] = [
    sv.Numeric("age", 18, 90, optional=True),
    sv.Boolean("smokes", optional=True),
    sv.Categorical("city", ("Rome", "Oslo"), other=True, optional=True),
    sv.Ordinal("activity", ("low", "high"), optional=True),
]


def gaps(**changes: Any) -> sv.Experiment:
    return clinic(context=GAPS, **changes)


def test_an_empty_field_of_an_optional_feature_is_a_missing_value(tmp_path: Path) -> None:
    header = ["age", "smokes", "city", "activity", "arm", "reward"]
    rows = [
        ["", "", "", "", "coach", 1],
        [42, "TRUE", "Rome", "low", "coach", 1],
        [42, "false", "Atlantis", "high", "coach", 0],
        [42, "yes", "Rome", "low", "coach", 1],
        [42, 1, "Rome", "low", "coach", 1],
        ["nan", "true", "Rome", "low", "coach", 1],
        [42, "true", "Rome", "middling", "coach", 1],
        [42, "true", "Rome", "low", "", 1],
    ]
    path = write_csv(tmp_path / "rows.csv", rows, header=header)
    judge = Judge(gaps(), Columns())
    found = survey(look(path), judge, on_refusal=ignore, progress=ignore)
    assert lines(found) == {
        "smokes is not true or false": (5, 6),
        "age is not a number": (7,),
        "activity is not a level of the schema": (8,),
        "arm is missing": (9,),
    }
    with reading(look(path), judge.names) as values:
        first, second, third = (judge.read(next(values)[1]) for _ in range(3))
    assert isinstance(first, Row)
    assert isinstance(second, Row)
    assert isinstance(third, Row)
    assert first.context == dict.fromkeys(["age", "smokes", "city", "activity"])
    assert second.context == {"age": 42, "smokes": True, "city": "Rome", "activity": "low"}
    assert third.context == {"age": 42, "smokes": False, "city": "Atlantis", "activity": "high"}


def test_a_null_of_an_optional_feature_in_parquet_is_a_missing_value(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "rows.parquet",
        age=pa.array([42.0, None, float("nan"), 17]),
        smokes=pa.array([True, None, False, True]),
        city=["Rome", None, "Atlantis", "Oslo"],
        activity=["low", "high", None, "low"],
        arm=["coach"] * 4,
        reward=[1.0, 0.0, 1.0, 1.0],
    )
    judge = Judge(gaps(), Columns())
    found = survey(look(path), judge, on_refusal=ignore, progress=ignore)
    assert (found.rows, found.fitting, found.refused) == (4, 4, {})
    assert found.clamped == {"age": 1}
    with reading(look(path), judge.names) as values:
        contexts = [row.context for _, each in values if isinstance(row := judge.read(each), Row)]
    assert [each["smokes"] for each in contexts] == [True, None, False, True]
    assert [each["age"] for each in contexts] == [42, None, None, 17]


def test_a_gap_of_a_boolean_that_is_not_optional_does_not_fit() -> None:
    judge = Judge(clinic(context=[sv.Boolean("smokes")]), Columns())
    assert judge.read(["", "coach", 1]) == "smokes is missing"
    assert judge.read([None, "coach", 1]) == "smokes is missing"
    assert isinstance(judge.read(["True", "coach", 1]), Row)


@pytest.mark.parametrize("value", [2.5, True, b"Rome", ["Rome"]])
def test_what_is_no_text_is_no_other_level(value: Any) -> None:
    judge = Judge(clinic(context=[sv.Categorical("city", ("1", "2"), other=True)]), Columns())
    assert judge.read([value, "coach", 1]) == "city is not a level of the schema"
    assert isinstance(judge.read([3, "coach", 1]), Row)


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.decimals(),
    st.sampled_from(["low", "high", "coach", "control", "42", "0.5"]),
)  # fmt: skip


@given(st.lists(anything, min_size=4, max_size=4))
def test_what_is_judged_to_fit_a_device_takes(values: list[Any]) -> None:
    row = Judge(clinic(), Columns()).read(values)
    if isinstance(row, Row):
        device = sv.Device(sv.Learner(clinic()).release(), population="clinic-b")
        device.report_logged(row.context, arm=row.arm, reward=row.reward)
    else:
        assert row.split()[0] in HEADER


@given(st.lists(anything, min_size=6, max_size=6))
def test_a_row_with_gaps_that_is_judged_to_fit_a_device_takes(values: list[Any]) -> None:
    row = Judge(gaps(), Columns()).read(values)
    if isinstance(row, Row):
        device = sv.Device(sv.Learner(gaps()).release(), population="clinic-b")
        device.report_logged(row.context, arm=row.arm, reward=row.reward)
    else:
        assert row.split()[0] in ("age", "smokes", "city", "activity", "arm", "reward")
