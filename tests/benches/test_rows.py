"""Rewards with and without auxiliary rows: what is measured, and what is flagged."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.row_tables import MADE, TABLES, in_bins, limits, swapped
from benchmarks.rows import Pairs, Played, as_json, as_table, flagged, heading, main, measure

from sottovoce.lab.data.sample import DataSet, Sample
from support.tables import data_dir


def data_set(*, rows: int = 400, turned: bool = False) -> DataSet:
    """Two classes by the first axis; the rows have them the other way round if they are turned."""
    contexts = np.random.default_rng(0).random((2 * rows, 2))
    labels = (contexts[:, 0] > 0.5).astype(np.int64)
    target, others = Sample(contexts[:rows], labels[:rows]), contexts[rows:]
    told = 1 - labels[rows:] if turned else labels[rows:]
    return DataSet("made up", ("no", "yes"), ("x", "y"), target, {"others": Sample(others, told)})


def pairs(without: tuple[float, float], helped: tuple[float, float]) -> Pairs:
    """Three pairs of runs with a little luck, the same with and without rows."""
    luck = np.array([[-0.001], [0.0], [0.001]])
    return Pairs(1.0, 4.0, np.array(without) + luck, np.array(helped) + luck)


def test_rows_that_cost_more_than_a_hundredth_are_flagged_at_both_times() -> None:
    assert not pairs((0.6, 0.7), (0.591, 0.8)).loses
    assert pairs((0.6, 0.7), (0.589, 0.8)).loses
    assert pairs((0.6, 0.7), (0.65, 0.689)).loses
    assert pairs((0.6, 0.7), (0.5, 0.6)).difference(0).mean == pytest.approx(-0.1)
    assert pairs((0.6, 0.7), (0.5, 0.6)).difference(0).standard_error == pytest.approx(0, abs=1e-9)


def test_a_run_that_learns_nothing_more_is_flagged_if_there_is_more_to_learn() -> None:
    # Without rows the last three quarters of the people get (4 · 0.7 - 0.6) / 3 = 0.733.
    assert pairs((0.6, 0.7), (0.72, 0.72)).stuck
    assert not pairs((0.6, 0.7), (0.72, 0.73)).stuck
    assert not pairs((0.6, 0.7), (0.74, 0.74)).stuck
    assert pairs((0.6, 0.7), (0.58, 0.57)).flags == "LOSES STUCK"


def test_bins_have_their_lower_bound_and_say_so() -> None:
    bins = in_bins(np.array([-1.0, 0.0, 4.9, 5.0, 99.0]), (0, 5))
    assert bins.codes.tolist() == [0, 1, 1, 2, 2]
    assert bins.levels == ("below 0", "0 to 5", "5 and more")


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_swapped_rows_have_the_next_class_and_people_keep_theirs(share: float) -> None:
    data = data_set(rows=4000)
    for region in (False, True):
        wrong = swapped(data, share, region=region)
        before, after = data.auxiliary["others"], wrong.auxiliary["others"]
        changed = before.labels != after.labels
        assert changed.mean() == pytest.approx(share, abs=0.03)
        assert wrong.target is data.target
        assert (after.contexts == before.contexts).all()
        inside = before.contexts[:, 0] < share
        assert (changed == inside).all() == region
        again = swapped(data, share, region=region).auxiliary["others"]
        assert (again.labels == after.labels).all()


def test_limits_tell_rows_that_mislead_from_rows_that_help() -> None:
    good, bad = limits(data_set(rows=4000)), limits(data_set(rows=4000, turned=True))
    assert good.own > 0.95
    assert good.rows > 0.95
    assert bad.rows < 0.05
    assert good.one_arm == pytest.approx(0.5, abs=0.05)


def test_pairs_have_the_same_people_and_everything_is_written_down() -> None:
    data, seeds = data_set(), range(3, 5)
    played = measure("made up", data, seeds=seeds, epsilons=[8.0])
    assert [(each.epsilon, each.epsilon_aux) for each in played.pairs] == [(8.0, 1.0), (8.0, 4.0)]
    first, second = played.pairs
    assert first.without.shape == first.helped.shape == (2, 2)
    assert (first.without == second.without).all()
    assert not (first.helped == second.helped).all()
    written = json.loads(json.dumps(as_json(played, seeds=seeds)))
    assert written["rows"] == {"others": 400}
    assert written["seeds"] == [3, 4]
    assert np.allclose(written["pairs"][0]["with"], first.helped)
    heeded = measure("made up", data, seeds=seeds, epsilons=[8.0], heed=True)
    assert (heeded.pairs[0].without == first.without).all()
    assert as_table(played).row_count == 2
    assert heading(played).startswith("made up: 400 people, 400 rows, 2 arms; one arm 0.5")


def test_what_is_flagged_is_said_in_a_sentence() -> None:
    data = data_set()
    bad = Played("bad", data, limits(data), (pairs((0.6, 0.7), (0.5, 0.6)),))
    fine = Played("fine", data, limits(data), (pairs((0.6, 0.7), (0.7, 0.75)),))
    (line,) = flagged([bad, fine])
    assert line.startswith("LOSES: bad, ε = 1, ε_m = 4: -0.1000")


def test_every_table_can_be_named_and_others_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["--list"])
    assert capsys.readouterr().out.split() == list(TABLES)
    with pytest.raises(SystemExit):
        main(["--tables", "iris"])
    with pytest.raises(SystemExit):
        main(["--tables", "adult", "--data-dir", str(tmp_path)])
    assert "adult.parquet" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["adult/marriage/sex", "adult/occupation/sex"])
def test_a_made_table_has_many_arms_and_rows_with_another_law(name: str) -> None:
    data = MADE[name](data_dir())
    assert len(data.arms) >= 5
    found = limits(data)
    assert found.own > found.one_arm + 0.03
    assert found.rows < found.own - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_every_made_table_has_five_arms_or_more_and_features_that_tell(name: str) -> None:
    data = MADE[name](data_dir())
    assert len(data.arms) >= 5
    assert limits(data).own > limits(data).one_arm
