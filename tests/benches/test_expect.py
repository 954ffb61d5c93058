"""The figures of what to expect, and the rule that is fitted to them."""

import pytest
from benchmarks.expect import PEOPLE, Cell, cell_of, fit, grid, measured

from sottovoce.shared.whisper import tuning
from sottovoce.shared.whisper.outlook import expected_share


def test_the_grid_has_each_cell_once_and_one_thing_changes_at_a_time() -> None:
    cells = list(grid())
    assert len(set(cells)) == len(cells) == 280
    assert {cell.varied for cell in cells} == {"features", "arms", "levels"}
    assert {cell.n for cell in cells if not cell.rows} == set(PEOPLE)


@pytest.mark.parametrize(
    "cell", [Cell("features", 5, 1.0, 100), Cell("arms", 3, 2.0, 100, 50, 4.0)], ids=str
)
def test_a_cell_survives_json(cell: Cell) -> None:
    row = {**cell.to_table(), "share": 0.5, "standard_error": 0.1, "reps": 2}
    assert cell_of(row) == cell
    assert cell.experiment.horizon == 100
    assert [each.users for each in cell.experiment.auxiliary] == [50] * bool(cell.rows)


def test_a_measured_cell_says_what_share_of_random_is_lost() -> None:
    (row,) = measured([Cell("levels", 3, 8.0, 20_000)], reps=2, workers=1)
    assert 0 < row["share"] < 0.5
    assert row["standard_error"] >= 0
    assert row["reps"] == 2


def test_a_fit_finds_the_powers_that_made_the_shares() -> None:
    rows = [
        {**cell.to_table(), "share": expected_share(cell.experiment)}
        for cell in grid()
        if not cell.rows
    ]
    found = fit(rows)
    assert found.pop("root mean square error") == pytest.approx(0, abs=1e-6)
    assert found == pytest.approx({name: getattr(tuning, name) for name in found}, rel=1e-3)
