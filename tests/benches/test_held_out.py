"""Nobody can choose the problems of the last check, and each look at them is written down.

No test looks at the problems of the rules as they are: the digest is made up here.
"""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import generated, rules
from benchmarks.generated import draw_problem
from benchmarks.held_out import Look, look, main, place_of, shares, tables
from rich.console import Console

import sottovoce as sv
from sottovoce.lab.means import Mean
from sottovoce.lab.regret.cells import Options, RegretCell
from support.slow import slow_but

PACKAGE = Path(sv.__file__).parent


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of all sources that can be changed."""
    copy = tmp_path / "sottovoce"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.sql"))
    return copy


@pytest.fixture
def rehearsal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the rules have another digest; at first one that says what it is."""

    def pretend(digest: str) -> None:
        monkeypatch.setattr(rules, "rules_digest", lambda: digest)

    pretend("a rehearsal")
    return pretend


def constant_in(package: Path, room: str) -> tuple[Path, str, str]:
    """Find a number that is given a name in a room: its file, the line, and another line."""
    for path in sorted(package.glob(room)):
        for line in path.read_text().splitlines():
            name, equals, value = line.partition(" = ")
            number = value.split("#")[0].strip()
            if equals and name.isupper() and number.replace(".", "").isdigit():
                return path, line, f"{name} = {float(number) * 1.01}"
    raise AssertionError(f"no constant in {room}")


@pytest.mark.parametrize(
    "room",
    slow_but(
        ["shared/**/*.py"],
        [
            *("shared/**/*.py", "estimate/**/*.py", "lab/baselines/*.py"),
            *("lab/problems.py", "lab/drift.py"),
        ],
    ),
)
def test_a_changed_constant_draws_other_problems(elsewhere: Path, room: str) -> None:
    before = rules.rules_digest(elsewhere)
    assert before == rules.rules_digest()
    path, line, changed = constant_in(elsewhere, room)
    path.write_text(path.read_text().replace(line, changed))
    after = rules.rules_digest(elsewhere)
    assert after != before
    names = [
        [draw_problem(digest, number).name for number in range(8)] for digest in (before, after)
    ]
    assert names[0] != names[1]


def test_a_changed_draw_draws_other_problems(tmp_path: Path) -> None:
    draw = tmp_path / "generated.py"
    shutil.copy(generated.__file__, draw)
    assert rules.rules_digest(draw=draw) == rules.rules_digest()
    path, line, changed = constant_in(tmp_path, "generated.py")
    path.write_text(path.read_text().replace(line, changed))
    assert rules.rules_digest(draw=draw) != rules.rules_digest()


def test_a_statement_that_moves_to_another_branch_draws_other_problems(elsewhere: Path) -> None:
    digests = []
    for source in ("if a:\n    b()\n    c()\n", "if a:\n    b()\nelse:\n    c()\n"):
        (elsewhere / "shared" / "new.py").write_text(source)
        digests.append(rules.rules_digest(elsewhere))
    assert digests[0] != digests[1]


def test_comments_docstrings_and_layout_draw_nothing_new(elsewhere: Path) -> None:
    before = rules.rules_digest(elsewhere)
    for path in (elsewhere / "estimate").rglob("*.py"):
        text = path.read_text().replace('"""', '"""Indeed: ', 1).replace(" = ", "  =  ")
        path.write_text(f"# Nobody reads this.\n\n{text}\n\n# Nor this.\n")
    assert rules.rules_digest(elsewhere) == before


def test_what_is_no_rule_draws_nothing_new(elsewhere: Path) -> None:
    before = rules.rules_digest(elsewhere)
    for room in ("server", "cli"):
        for path in (elsewhere / room).rglob("*.py"):
            path.write_text("x = 1\n")
    assert rules.rules_digest(elsewhere) == before


def test_a_method_takes_no_part_where_it_refuses_the_number_of_features() -> None:
    for number in range(40):
        place = place_of("a rehearsal", number)
        methods = ["whisper", "linear", "nn"]
        if place.environment.dimension <= 10:
            methods.append("abse (not private)")
        assert list(place.settings) == methods


def test_a_group_without_a_method_has_no_share_of_it() -> None:
    means = {"whisper": Mean(20, 3, 9), "linear": Mean(50, 3, 9), "random": Mean(100, 1, 9)}
    many = RegretCell("many features", "w", "", 1.0, 1000, means)
    assert list(shares([many])["all"]) == ["whisper", "linear"]
    shown = Console(width=120, file=io.StringIO(), record=True)
    for table in tables(Look([many], {"share_of_random": shares([many])})):
        shown.print(table)
    assert "0.20 ±0.01" in (text := shown.export_text())
    assert text.count("–") == 6  # nn and abse: of the problem, of its group and of all


def run(record: Path, *arguments: str) -> None:
    given = ["--reps", "2", "--problems", "2", "--workers", "1", "--record", str(record)]
    main([*given, *arguments])


@pytest.mark.slow
def test_each_look_is_recorded_and_none_is_repeated_silently(
    tmp_path: Path, rehearsal: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "looks.jsonl"
    run(record)
    output = capsys.readouterr().out
    (first,) = map(json.loads, record.read_text().splitlines())
    assert first["rules"] == "a rehearsal"
    assert (first["look"], first["again"], first["reps"], first["problems"]) == (1, False, 2, 2)
    assert first["command"] == "python -m benchmarks.held_out --reps 2 --problems 2"
    assert set(first) >= {"date", "version"}
    shares = first["share_of_random"]["all"]
    assert list(shares) == ["whisper", "linear", "nn", "abse (not private)"]
    for each in shares.values():
        assert each["problems"] == 2
        assert 0 <= each["mean"] <= max(each["worst"], 0.01)
    assert f"{shares['whisper']['mean']:.2f}, {shares['whisper']['worst']:.2f}" in output

    with pytest.raises(SystemExit) as refused:
        run(record)
    assert refused.value.code == 2
    message = capsys.readouterr().err
    assert "no longer held out" in message
    assert "give --again" in message
    assert len(record.read_text().splitlines()) == 1

    run(record, "--again", "--json")
    printed = json.loads(capsys.readouterr().out)
    rehearsal("another rehearsal")
    run(record)
    looks = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(each["look"], each["again"], each["rules"]) for each in looks] == [
        (1, False, "a rehearsal"),
        (2, True, "a rehearsal"),
        (3, False, "another rehearsal"),
    ]
    assert printed == looks[1]
    assert looks[1]["share_of_random"] == first["share_of_random"]  # the same, bit for bit
    assert looks[2]["share_of_random"] != first["share_of_random"]


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), ("[1]\n", "no rules"), ("{\n", "Expecting")]
)
def test_what_is_no_record_is_refused_before_any_run(
    tmp_path: Path, content: str | None, why: str, rehearsal: object
) -> None:
    record = tmp_path / "nowhere" / "looks.jsonl"
    if content is not None:
        record.parent.mkdir()
        record.write_text(content)
    with pytest.raises(sv.ExperimentError, match=f"must be the record of all looks.*{why}.*root"):
        look(Options(2), problems=1, record=record)


@pytest.mark.parametrize(("reps", "problems"), [(1, 3), (3, 0)])
def test_what_cannot_be_measured_is_refused(tmp_path: Path, reps: int, problems: int) -> None:
    with pytest.raises(sv.ExperimentError, match="must be a whole number >="):
        look(Options(reps), problems=problems, record=tmp_path / "looks.jsonl")
