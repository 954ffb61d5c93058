"""The table on real data: what is made of rewards (made up here), and the way from end to end."""

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli.commands import app
from sottovoce.lab import DataSet, Sample, Table, play, reward_at
from sottovoce.lab.data.catalogue import DATA_SETS
from sottovoce.lab.reproduce.real import run as table
from sottovoce.lab.reproduce.real.cases import (
    Case,
    Player,
    Rewards,
    as_setting,
    gather,
    make_cases,
    mean_rewards,
    players,
)
from sottovoce.lab.reproduce.real.comparison import (
    TableCell,
    behind,
    is_better,
    judge,
    make_cells,
    mean_ratios,
    paper_rank_sums,
    rank_sums_at,
    read_paper,
    relative,
)
from sottovoce.lab.reproduce.run import Options
from sottovoce.lab.sweeps import Run
from support.tables import data_dir, pupils, write

WHISPER, LINEAR, NN = (Player(name, auxiliary=True) for name in ("whisper", "linear", "nn"))
HALF = np.full(6, 0.5)
SPREAD = np.array([0.60, 0.62, 0.64, 0.66, 0.68, 0.70])
BUDGETS = [(1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (2.0, 4.0)]


def cell(dataset: str, *, fraction: float = 1.0, abse: Any = HALF, **rewards: Any) -> TableCell:
    """Rewards of players with auxiliary data."""
    made = {Player(name, auxiliary=True): np.array(values) for name, values in rewards.items()}
    return TableCell(dataset, 1.0, 4.0, fraction, judge(made, abse=np.array(abse)))


# Ratios, ranks and tests.


def test_a_ratio_is_that_of_the_means_and_its_error_that_of_the_pairs() -> None:
    # (0.6 + 0.8)/(0.5 + 0.5); the residuals ∓0.1 have a standard deviation of 0.1·√2.
    ratio, error = relative(np.array([0.6, 0.8]), np.array([0.5, 0.5]))
    assert (ratio, error) == pytest.approx((1.4, 0.2))
    # Not the mean of the ratios, which would be 1.5; and luck that both have does not count.
    assert relative(np.array([0.4, 0.8]), np.array([0.2, 0.8])) == pytest.approx(
        (1.2, np.std([0.4 - 0.24, 0.8 - 0.96], ddof=1) / np.sqrt(2) / 0.5)
    )
    assert relative(np.array([0.6, 0.9]), np.array([0.4, 0.6])) == pytest.approx((1.5, 0))
    skewed = relative(np.array([0.6, 0.6, 0.9]), np.array([0.4, 0.4, 0.7]))
    assert skewed[0] == pytest.approx(2.1 / 1.5)
    assert relative(np.array([0.5]), np.array([0.5])) == (1.0, None)
    assert relative(np.array([0.6, 0.8]), np.zeros(2)) == (None, None)


def test_the_best_is_bold_and_grey_if_it_beats_every_other_one() -> None:
    clear = cell("a", whisper=SPREAD + 0.1, linear=SPREAD, nn=SPREAD - 0.1)
    assert [(e.rank, e.best, e.significant) for e in clear.entries] == [
        (1, True, True),
        (2, False, False),
        (3, False, False),
    ]
    # Better than linear in every pair, but than nn in the mean alone.
    mixed = SPREAD + np.array([0.11, 0.12, 0.13, 0.14, 0.15, -0.6])
    unclear = cell("a", whisper=SPREAD + 0.1, linear=SPREAD, nn=mixed)
    whisper = unclear.of(WHISPER)
    assert whisper is not None
    assert whisper.best
    assert not whisper.significant
    assert not any(entry.significant for entry in unclear.entries)


def test_equals_share_the_mean_of_their_ranks_and_none_of_them_is_grey() -> None:
    tied = cell("a", whisper=SPREAD, linear=SPREAD[::-1], nn=SPREAD - 0.3)
    assert [entry.rank for entry in tied.entries] == [1.5, 1.5, 3]
    assert [entry.best for entry in tied.entries] == [True, True, False]
    assert not any(entry.significant for entry in tied.entries)


def test_one_player_alone_is_not_significantly_better_than_others() -> None:
    (entry,) = cell("a", whisper=SPREAD).entries
    assert entry.best
    assert not entry.significant


@pytest.mark.parametrize(
    ("differences", "better"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], True),  # p = 1/32
        ([0.1, 0.2, 0.3, 0.4], False),  # p = 1/16
        ([-0.1, 0.2, 0.3, 0.4, 0.5], False),  # p = 2/32
        ([-0.1, 0.2, 0.3, 0.4, 0.5, 0.6], True),  # p = 2/64
        ([0.1, -0.2, -0.3, -0.4, -0.5, -0.6], False),
        ([0.0] * 6, False),
        ([0.0, 0.0, 0.1, 0.2, 0.3, 0.4], False),
        ([0.1] * 20, True),
    ],
)
def test_signed_ranks_are_compared_from_one_side(differences: list[float], better: bool) -> None:
    others = np.linspace(0.3, 0.4, len(differences))
    assert is_better(others + np.array(differences), others) is better


def test_ranks_are_added_up_over_the_cells_of_a_fraction() -> None:
    cells = [
        cell("a", whisper=SPREAD, linear=SPREAD - 0.1, nn=SPREAD - 0.2),
        cell("b", whisper=SPREAD - 0.1, linear=SPREAD, nn=SPREAD),
        cell("a", fraction=0.25, whisper=SPREAD - 0.2, linear=SPREAD, nn=SPREAD - 0.1),
    ]
    assert rank_sums_at(cells, 1.0) == {WHISPER: 1 + 3, LINEAR: 2 + 1.5, NN: 3 + 1.5}
    assert rank_sums_at(cells, 0.25) == {WHISPER: 3, LINEAR: 1, NN: 2}
    means = mean_ratios(cells[:2])
    assert means[WHISPER] == pytest.approx((0.65 + 0.55) / 2 / 0.5)


def test_it_is_said_where_whisper_is_behind() -> None:
    cells = [
        cell("flights", whisper=[0.6, 0.6], linear=[0.5, 0.5], nn=[0.7, 0.62], abse=[0.5, 0.5]),
        cell("adult", fraction=0.25, whisper=HALF, linear=HALF, nn=HALF),
    ]
    assert behind(cells) == [
        "whisper w is below nn w in flights (1, 4) at t = n: 1.200 against 1.320"
    ]


# What is run.


def test_runs_that_serve_several_cells_are_made_once() -> None:
    ranked = players(("whisper", "ldpmab", "linear", "nn"), auxiliary=True)
    cases = make_cases(["adult"], ranked, BUDGETS)
    # abse and its tuned twin; each method at two ε without, at four pairs with auxiliary data.
    assert len(cases) == len(set(cases)) == 2 + 4 * (2 + 4)
    rng = np.random.default_rng(0)
    values = {(case, f): rng.random(3) for case in cases for f in (0.25, 1.0)}
    cells = make_cells(["adult"], ranked, BUDGETS, Rewards(values, {"adult": 9}, {"adult": 0.7}))
    without = Player("nn", auxiliary=False)
    entries = [cell.of(without) for cell in cells if (cell.epsilon, cell.fraction) == (1, 0.25)]
    assert len(entries) == 2
    assert len({entry and entry.reward for entry in entries}) == 1
    base = values[Case("adult", "abse (not private)"), 0.25].mean()
    expected = values[Case("adult", "nn", 1.0), 0.25].mean() / base
    assert all(entry and entry.ratio == pytest.approx(expected) for entry in entries)


def test_the_runs_of_a_sweep_are_sorted_by_case_and_repetition() -> None:
    cases = [Case("a", "nn", 1.0), Case("a", "nn", 2.0)]
    runs = [
        Run(k, r, {"n/4": k + r / 10, "n": 10 * k + r / 10, "people": 8, "best arm": 0.5})
        for r in (1, 0)
        for k in (1, 0)
    ]
    rewards = gather(cases, runs)
    assert rewards.rewards[cases[1], 0.25].tolist() == [1, 1.1]
    assert rewards.rewards[cases[1], 1.0].tolist() == [10, 10.1]
    assert (rewards.people, rewards.best_arm) == ({"a": 8}, {"a": 0.5})


def test_methods_are_known_and_different() -> None:
    for methods in (["whisper", "abse"], ["nn", "nn"], []):
        with pytest.raises(sv.ExperimentError, match="the methods must be different ones of"):
            players(methods, auxiliary=True)


# One run on a data set.


@pytest.fixture
def people() -> DataSet:
    rng = np.random.default_rng(0)

    def sample(rows: int) -> Sample:
        contexts = rng.random((rows, 2))
        return Sample(contexts, (3 * contexts[:, 0]).astype(np.int64))

    return DataSet("thirds", ("a", "b", "c"), ("x", "y"), sample(900), {"o": sample(300)})


def test_paired_runs_have_the_same_people_in_the_same_order(people: DataSet) -> None:
    # What abse does follows from who comes when alone: it is not private, and asks no one else.
    runs = [
        play(people, method="abse", epsilon=epsilon, epsilon_aux=aux, seed=seed).regret.tolist()
        for epsilon, aux, seed in [(1, None, 5), (2, None, 5), (1, 4, 5), (1, None, 6)]
    ]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0] != runs[3]


def test_auxiliary_data_is_played_with_its_own_budget(people: DataSet) -> None:
    budgets: list[Any] = [3.0, [3.0], {"o": 3.0}]
    for each in budgets:
        experiment = play(people, epsilon=1, epsilon_aux=each, seed=0, n=60).experiment
        assert [(p.users, p.epsilon) for p in experiment.auxiliary] == [(300, 3.0)]
        assert (experiment.horizon, experiment.release_every) == (60, 1)
    assert play(people, epsilon=1, seed=0).experiment.auxiliary == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 901}, "n must be at most the 900 people of thirds's target; got 901"),
        ({"n": 0}, "n must be a whole number >= 1"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
        ({"epsilon_aux": {"x": 1.0}}, r"epsilon_aux must name each auxiliary population, \['o'\]"),
        ({"epsilon_aux": [1.0, 2.0]}, "epsilon_aux must have a number for each"),
        ({"epsilon_aux": 0}, "epsilon_aux of 'o' must be finite and > 0; got 0"),
    ],
)
def test_a_run_that_cannot_be_is_refused(
    people: DataSet, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        play(people, **{"epsilon": 1, "seed": 0, **settings})


def test_auxiliary_data_that_is_not_there_is_not_played(people: DataSet) -> None:
    alone = DataSet("alone", people.arms, people.features, people.target, {})
    with pytest.raises(sv.ExperimentError, match="alone has no auxiliary populations; got 4"):
        play(alone, epsilon=1, epsilon_aux=4, seed=0)


def test_the_reward_of_the_first_people_is_found_between_releases() -> None:
    result: Any = SimpleNamespace(people=np.array([100, 200]), regret=np.array([30.0, 40.0]))
    assert reward_at(result, 200) == pytest.approx(1 - 40 / 200)
    assert reward_at(result, 150) == pytest.approx(1 - 35 / 150)
    assert reward_at(result, 50) == pytest.approx(1 - 15 / 50)
    for t in (0, 201):
        with pytest.raises(sv.ExperimentError, match=r"t must lie in \(0, 200\]"):
            reward_at(result, t)


def test_a_task_reads_its_table_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "pupils.csv", pupils(rows=300))
    table = Table(
        path,
        label="grade",
        group="school",
        target="north",
        features=[sv.Numeric("hours", 0, 20), "sleep"],
    )
    setting = as_setting(Case("pupils", "whisper", 1.0, 4.0), {"table": repr(table)})
    figures = mean_rewards(setting, 3, table=table)
    data = table.load()
    result = play(data, epsilon=1.0, epsilon_aux=4.0, seed=3)
    n = len(data.target)
    assert figures["n"] == pytest.approx(1 - result.regret[-1] / n)
    assert figures["n/4"] == reward_at(result, n / 4)
    assert figures["people"] == n
    assert figures["best arm"] == np.bincount(data.target.labels).max() / n


# From end to end.

HEADING = "epsilon,epsilon_aux,dataset,fraction,ldpmab_w,ldpmab_wo,linear_w,linear_wo,nn_w,nn_wo"
PAPER = f"""{HEADING}
1,1,jobs,0.25,0.801,0.797,0.786,0.794,0.800,0.795
1,1,jobs,1.0,0.694,0.690,0.684,0.690,0.700,0.695
"""


def test_the_ranks_of_the_paper_are_added_up_too(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text(PAPER)
    sums = paper_rank_sums(read_paper(path))
    assert [sums[0.25][Player("ldpmab", each)] for each in (True, False)] == [1, 3]
    assert [sums[1.0][Player("ldpmab", each)] for each in (True, False)] == [3, 4.5]


def applicants(folder: Path, rows: int = 500) -> None:
    """A made-up file of the data set ``jobs``."""
    rng = np.random.default_rng(0)
    skills = rng.integers(0, 40, rows)
    write(
        folder / "stackoverflow_full.csv",
        {
            "Age": rng.choice(["<35", ">35"], rows).tolist(),
            "Accessibility": rng.choice(["No", "Yes"], rows).tolist(),
            "EdLevel": rng.choice(["Master", "PhD"], rows).tolist(),
            "Employment": rng.integers(0, 2, rows).tolist(),
            "Gender": rng.choice(["Man", "Woman"], rows).tolist(),
            "MentalHealth": rng.choice(["No", "Yes"], rows).tolist(),
            "MainBranch": rng.choice(["Dev", "NotDev"], rows).tolist(),
            "YearsCode": rng.integers(0, 20, rows).tolist(),
            "YearsCodePro": rng.integers(0, 20, rows).tolist(),
            "Country": rng.choice(["Sweden", "United States of America"], rows).tolist(),
            "PreviousSalary": rng.lognormal(11, 1, rows).tolist(),
            "ComputerSkills": skills.tolist(),
            "Employed": (skills + rng.normal(0, 4, rows) > 14).astype(int).tolist(),
        },
    )


def test_the_table_is_made_from_end_to_end(tmp_path: Path) -> None:
    applicants(tmp_path)
    (tmp_path / "paper.csv").write_text(PAPER)
    out = tmp_path / "out"
    arguments = [
        *("reproduce", "table", "--datasets", "jobs", "--data-dir", str(tmp_path)),
        *("--published", str(tmp_path / "paper.csv"), "--reps", "2", "--workers", "1"),
        *("--out", str(out)),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert f"{out / 'table.md'}\n" in done.stdout
    assert "rank sums, t = n: " in done.stdout
    assert "rank sums, paper, t = n: nn w 1," in done.stdout
    assert "With fewer than 5 repetitions nothing can be significant" in done.stdout
    assert " is below " in done.stdout or "whisper w is nowhere below" in done.stdout
    rows = list(csv.DictReader((out / "table.csv").read_text().splitlines()))
    ranked = [row for row in rows if row["rank"]]
    assert len(ranked) == 4 * 2 * 8
    assert {row["significant"] for row in ranked} == {"0"}
    beside = {(row["method"], row["fraction"]): row for row in rows if not row["rank"]}
    assert len(beside) == 3 * 2
    assert all("not private" in name for name, _ in beside if name.startswith("abse"))
    for row in ranked:
        base = float(beside["abse (not private)", row["fraction"]]["reward_mean"])
        assert float(row["ratio"]) == pytest.approx(float(row["reward_mean"]) / base, abs=1e-4)
    at = [row for row in ranked if (row["epsilon"], row["fraction"]) == ("1", "0.25")]
    without = [row["reward_mean"] for row in at if row["auxiliary"] == "wo"]
    assert without[:4] == without[4:]
    (first,) = [row for row in at if row["paper"] == "0.801"]
    assert [first[key] for key in ("method", "auxiliary", "epsilon_aux")] == ["ldpmab", "w", "1"]
    assert "<sub>0.801</sub>" in (out / "table.md").read_text()
    assert (out / "table.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "table.svg").stat().st_size > 10_000
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    assert len(files["table.jsonl"].splitlines()) == 1 + 26 * 2
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "jobs,adlt"], r"datasets must be some of \['adult'.*'jobs'\]; got \['adlt"),
        (["--datasets", "jobs,adult"], r"be a folder with adult/adult.parquet .* no such file"),
        (["--published", "synthetic.csv"], r"columns epsilon, .*nn_wo; it has no column dataset"),
        (["--published", "nowhere.csv"], "must be a CSV of the paper's real-data table"),
        (["--reps", "0"], "reps must be a whole number >= 1"),
    ],
)
def test_a_mistake_is_told_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stackoverflow_full.csv").touch()
    (tmp_path / "synthetic.csv").write_text("experiment,model,epsilon,epsilon_aux\n")
    if "--datasets" not in arguments:
        arguments = [*arguments, "--datasets", "jobs"]
    done = CliRunner().invoke(app, ["reproduce", "table", "--data-dir", ".", *arguments])
    assert isinstance(done.exception, sv.ExperimentError)
    with pytest.raises(sv.ExperimentError, match=message):
        raise done.exception
    assert not (tmp_path / "out").exists()


def test_the_data_sets_of_the_table_have_a_file_each() -> None:
    assert set(table.DEFAULT) <= set(DATA_SETS)


def test_a_real_data_set(tmp_path: Path) -> None:
    """People who stay in their job are 83 % of the target, and abse gets half of them right."""
    options = Options(1, tmp_path, None, 1, "joblib")
    made = table.reproduce_table(options, datasets=["jobs-hr"], data_dir=data_dir())
    assert [path.name for path in made.paths] == [f"table.{e}" for e in ("csv", "md", "png", "svg")]
    rows = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    best = {r["fraction"]: r for r in rows if r["method"] == "best single arm"}
    assert float(best["1"]["reward_mean"]) == pytest.approx(0.832, abs=0.001)
    assert 1.4 < float(best["1"]["ratio"]) < 1.8


def test_abse_is_called_not_private_wherever_it_is_shown() -> None:
    arguments = ["simulate", "--n", "200", "--reps", "1", "--method"]
    assert "Not private: abse sees" in CliRunner().invoke(app, [*arguments, "abse"]).stdout
    assert "Not private" not in CliRunner().invoke(app, [*arguments, "linear"]).stdout
