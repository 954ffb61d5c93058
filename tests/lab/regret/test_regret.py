"""What is made of the runs; the figures are made up."""

import io
import math

import pytest
from rich.console import Console

import sottovoce as sv
from sottovoce.lab.means import Mean
from sottovoce.lab.regret.benches import against_paper, on_problems
from sottovoce.lab.regret.cells import Options, RegretCell, as_json, ratios_of, summarise
from sottovoce.lab.regret.tables import paper_tables, problem_tables, summary_lines, warnings


def cell(
    whisper: float, *, group: str = "far", n: int = 1000, world: str = "w", **lost: float
) -> RegretCell:
    """Every mean has a standard error of 3, but for random, which has hardly any."""
    means = {"whisper": Mean(whisper, 12, 16)}
    means |= {name: Mean(mean, 12, 16) for name, mean in lost.items() if name != "random"}
    means["random"] = Mean(lost["random"], 0.1, 10_000)
    return RegretCell(group, world, "", 1.0, n, means)


@pytest.mark.parametrize(
    ("whisper", "worse"),
    [
        (90.0, []),
        (104.0, ["random"]),  # 4 more than random; the standard error is 3
        (102.0, []),
        (84.0, []),  # 4 more than ldpmab; the standard error is √18 = 4.24
        (85.0, ["ldpmab"]),
        (110.0, ["ldpmab", "random"]),
    ],
)
def test_worse_means_by_more_than_the_standard_error_of_the_difference(
    whisper: float, worse: list[str]
) -> None:
    ldpmab = 80.0 if whisper in (84.0, 85.0, 110.0) else 100.0
    assert cell(whisper, ldpmab=ldpmab, random=100.0).worse_than() == worse


def test_one_run_says_nothing() -> None:
    once = RegretCell("g", "w", "", 1, 9, {"whisper": Mean(9, 0, 1), "random": Mean(1, 1, 100)})
    assert once.worse_than() == []
    assert as_json([once])["cells"][0]["regret"]["whisper"]["standard_error"] is None


def test_where_there_is_nothing_to_lose_there_is_no_ratio() -> None:
    alike = cell(0, ldpmab=0, random=0)
    assert alike.nothing_to_lose
    assert alike.ratio("random") is None
    assert summarise([alike]) == []
    assert list(summary_lines([alike])) == []


def test_a_group_has_its_geometric_mean_and_its_worst_cell() -> None:
    cells = [
        cell(20, world="a", ldpmab=80, random=100),
        cell(45, world="b", random=50),
        cell(1, world="a", group="near", random=1000),
    ]
    sums = {(each.group, each.against): each for each in summarise(cells)}
    assert set(sums) == {("far", "ldpmab"), ("far", "random"), ("near", "random")}
    assert sums["far", "random"].geometric_mean == pytest.approx(math.sqrt(0.2 * 0.9))
    assert sums["far", "random"].worst == pytest.approx(0.9)
    assert sums["far", "random"].worst_at == "b, ε = 1, n = 1,000"
    assert sums["far", "ldpmab"].cells == 1
    assert sums["near", "random"].worst == pytest.approx(0.001)
    assert sums["near", "random"].geometric_mean == pytest.approx(0.01)  # no single cell carries it


def test_any_line_can_be_summed_up_against_another() -> None:
    cells = [cell(20, ldpmab=80, random=100), cell(45, world="b", ldpmab=20, random=50)]
    (found,) = ratios_of(cells, "ldpmab", "random")
    assert (found.method, found.against, found.cells) == ("ldpmab", "random", 2)
    assert found.geometric_mean == pytest.approx(math.sqrt(0.8 * 0.4))
    assert found.worst == pytest.approx(0.8)
    assert found.worst_at == "w, ε = 1, n = 1,000"
    assert ratios_of(cells, "ldpmab", "published") == []


def test_the_tables_fit_in_80_columns_and_mark_what_is_worse() -> None:
    name = "slow waves, 4 arms, 3 central features"
    cells = [
        cell(104_000, world=name, n=20_000, ldpmab=90_000, random=100_000),
        cell(50_000, world=name, n=100_000, ldpmab=90_000, random=100_000),
        cell(0, world="all alike", n=20_000, ldpmab=0, random=0),
        cell(0, world="all alike", n=100_000, ldpmab=0, random=0),
    ]
    console = Console(width=80, file=io.StringIO(), record=True)
    sizes = [10_000 * n for n in (1, 2, 4, 6, 8, 12, 16, 24)]
    wide = [cell(0.43 * n, n=n, random=0.41 * n, published=0.2 * n) for n in sizes]
    for table in (*problem_tables(cells), *paper_tables(wide)):
        console.print(table)
    text = console.export_text()
    assert "…" not in text
    assert "1.04 ±0.00 !" in text
    assert "0.50 ±0.00 !" not in text
    assert text.count("0 in all") == 4
    assert list(warnings(cells)) == [
        f"! whisper is worse than {other}: {name}, ε = 1, n = 20,000 (far), {figures}"
        for other, figures in (
            ("ldpmab", "104,000 ± 3 against 90,000 ± 3"),
            ("random", "104,000 ± 3 against 100,000 ± 0"),
        )
    ]
    (fine,) = warnings(cells[1:])
    assert "nowhere worse" in fine


def test_what_cannot_be_measured_is_refused() -> None:
    for methods in ((), ("ldpmab", "ldpmab")):
        with pytest.raises(sv.ExperimentError, match="methods must be different names"):
            against_paper(Options(2, methods))
    with pytest.raises(sv.ExperimentError, match="the method's name must"):
        on_problems(Options(2, ("random",)))
    with pytest.raises(sv.ExperimentError, match=r"reps on the problems must .* >= 2; got 1"):
        on_problems(Options(1, ("ldpmab",)))
