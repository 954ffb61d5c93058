"""The named data sets: their counts, with the real files where they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.data.catalogue import DATA_SETS, load
from support.slow import slow_but
from support.tables import data_dir, write

COUNTS: dict[str, tuple[int, dict[str, int]]] = {
    "adult": (41292, {"other countries": 3930}),
    "adult-regions": (
        41292,
        {
            "Asia": 1031,
            "Mexico": 903,
            "Europe": 738,
            "Caribbean": 625,
            "Central America": 300,
            "South America": 170,
            "Canada": 163,
        },
    ),
    "green-taxi": (546937, {"vendor 1": 80665}),
    "green-taxi-street": (609691, {"dispatch": 17909}),
    "jobs-hr": (9643, {"less developed cities": 9515}),
    "flights": (116487, {"JFK": 108539, "LGA": 100776}),
}
LABELS = {
    "adult": {"<=50K": 45222 - 11208, ">50K": 11208},
    "jobs-hr": {"stays": 14381, "looks for a job": 4777},
    "flights": {"early": 131990, "on time": 116604, "late": 77208},
}


@pytest.mark.parametrize("name", slow_but(["adult", "jobs-hr", "flights"], COUNTS))
def test_a_data_set_has_the_counts_it_should_have(name: str) -> None:
    data = load(name, data_dir())
    target, auxiliary = COUNTS[name]
    assert data.name == name
    assert len(data.target) == target
    assert {group: len(sample) for group, sample in data.auxiliary.items()} == auxiliary
    samples = [data.target, *data.auxiliary.values()]
    for sample in samples:
        assert sample.contexts.shape == (len(sample), 3)
        assert ((sample.contexts >= 0) & (sample.contexts <= 1)).all()
    if name in LABELS:
        counts = np.bincount(np.concatenate([each.labels for each in samples]))
        assert dict(zip(data.arms, counts, strict=True)) == LABELS[name]


def test_adult_has_46_columns_before_the_reduction() -> None:
    for reduce in ("components", "supervised"):
        assert load("adult", data_dir(), reduce=reduce).encoded == 46


@pytest.mark.parametrize(("name", "axes"), [("adult", 3), ("jobs-hr", 6)])
def test_three_named_features_can_be_had_instead(name: str, axes: int) -> None:
    data = load(name, data_dir(), plain=True)
    assert len(data.schema) == data.encoded == 3
    assert len(data.features) == data.target.contexts.shape[1] == axes
    assert all(feature.optional == (axes == 6) for feature in data.schema)
    assert len(data.target) == COUNTS[name][0]


def test_named_columns_of_text_can_be_levels_without_an_order() -> None:
    data = load("adult", data_dir(), plain=True, text="levels")
    married, education, age = data.schema
    assert isinstance(married, sv.Categorical)
    assert married.other
    assert len(married.levels) == 7
    assert isinstance(education, sv.Numeric)
    assert isinstance(age, sv.Numeric)
    places = {
        place for level in (*married.levels, "no level") for place in married.positions(level)
    }
    assert set(np.unique(data.target.contexts[:, 0]).tolist()) <= places


@pytest.mark.parametrize("name", slow_but(["adult", "jobs-hr"], COUNTS))
def test_the_axes_of_the_published_table_are_numbers(name: str) -> None:
    for feature in load(name, data_dir()).schema:
        assert feature == sv.Numeric(feature.name, 0, 1)


def applicants(rows: int = 400) -> dict[str, list[Any]]:
    """A made-up file with the columns of stackoverflow_full.csv."""
    rng = np.random.default_rng(0)
    pro = rng.integers(0, 20, rows)
    skills = rng.integers(0, 40, rows)
    return {
        "": list(range(rows)),
        "Age": rng.choice(["<35", ">35"], rows).tolist(),
        "Accessibility": rng.choice(["No", "Yes"], rows).tolist(),
        "EdLevel": rng.choice(["Master", "PhD", "Undergraduate"], rows).tolist(),
        "Employment": rng.integers(0, 2, rows).tolist(),
        "Gender": rng.choice(["Man", "NonBinary", "Woman"], rows, p=[0.8, 0.1, 0.1]).tolist(),
        "MentalHealth": rng.choice(["No", "Yes"], rows).tolist(),
        "MainBranch": rng.choice(["Dev", "NotDev"], rows).tolist(),
        "YearsCode": (pro + rng.integers(0, 5, rows)).tolist(),
        "YearsCodePro": pro.tolist(),
        "Country": rng.choice(["Sweden", "United States of America"], rows, p=[0.8, 0.2]).tolist(),
        "PreviousSalary": rng.lognormal(11, 1, rows).tolist(),
        "HaveWorkedWith": [None if k % 50 == 0 else "C++;Python;Git" for k in range(rows)],
        "ComputerSkills": skills.tolist(),
        "Employed": (skills + rng.normal(0, 4, rows) > 14).astype(int).tolist(),
    }


def test_jobs_are_split_by_country_and_two_genders_are_kept(tmp_path: Path) -> None:
    table = applicants()
    write(tmp_path / "stackoverflow_full.csv", table)
    data = load("jobs", tmp_path)
    rows = list(zip(table["Gender"], table["Country"], strict=True))
    kept = [country for gender, country in rows if gender != "NonBinary"]
    assert data.arms == ("not employed", "employed")
    assert len(data.target) == kept.count("Sweden")
    assert {name: len(sample) for name, sample in data.auxiliary.items()} == {
        "Country: United States of America": kept.count("United States of America")
    }
    assert data.dropped == 400 - len(kept)
    # 11 covariates, as in the paper; the three levels of one of them make two columns more.
    assert data.encoded == 11 + 2


def test_jobs_are_split_by_whatever_has_the_counts_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = applicants()
    kept = [m for m, g in zip(table["MentalHealth"], table["Gender"], strict=True) if g[0] != "N"]
    monkeypatch.setattr("sottovoce.lab.data.jobs.TARGET", kept.count("No"))
    monkeypatch.setattr("sottovoce.lab.data.jobs.AUXILIARY", kept.count("Yes"))
    (tmp_path / "jobs").mkdir()
    write(tmp_path / "jobs" / "stackoverflow_full.csv", table)
    assert list(load("jobs", tmp_path).auxiliary) == ["MentalHealth: Yes"]


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_missing_file_says_what_to_put_where(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        sv.ExperimentError, match=r"data-dir.*SOTTOVOCE_DATA.* be a folder with .*rows"
    ):
        load(name, tmp_path)
    monkeypatch.delenv("SOTTOVOCE_DATA", raising=False)
    with pytest.raises(sv.ExperimentError, match="got none"):
        load(name)
    monkeypatch.setenv("SOTTOVOCE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(sv.ExperimentError, match="nowhere, which has no such file"):
        load(name)


def test_a_file_without_the_right_columns_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "stackoverflow_full.csv", {"Age": [1, 2], "Employed": [0, 1]})
    with pytest.raises(sv.ExperimentError, match="columns of jobs must be among"):
        load("jobs", tmp_path)


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(sv.ExperimentError, match=r"a data set must be one of .*'adult'"):
        load("iris")
