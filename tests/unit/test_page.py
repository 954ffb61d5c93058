"""The status page: what it says, and that names cannot say more."""

import json
import math
import re
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server import learning
from sottovoce.server.page import render
from sottovoce.server.words import bins_of, place, spell, ticks
from sottovoce.shared.release import BinPolicy
from support.examples import grown
from support.pages import page_of, release_of

AGE, BMI = sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)
ACTIVITY = sv.Ordinal("activity", ("low", "middling", "high"))


def standing_of(learner: sv.Learner) -> dict[str, Any]:
    standing: dict[str, Any] = json.loads(learning.standing_of(learner))
    return standing


def test_a_new_experiment_has_a_page() -> None:
    release = release_of(name="walking", auxiliary=[sv.Population("clinic-b", 4.0, 0)])
    page = page_of(release)
    assert "walking · Sottovoce" in page.titles
    for words in (
        release.experiment.fingerprint,
        "ε = 1",
        "of 1,000 expected",
        "clinic-b",
        "ε = 4",
        "none expected",
        "up to date",
        "not known yet",
        "None so far.",
        "Nothing about any single person is here.",
    ):
        assert words in page.text
    assert ("meta", {"http-equiv": "refresh", "content": "3"}) in page.tags


@pytest.mark.parametrize("part", ["status", "estimates", "certificates", "history", "diagnosis"])
def test_any_part_of_the_standing_may_be_missing(part: str) -> None:
    learner = grown()
    standing = standing_of(learner)
    empty = {**standing, part: type(standing[part])()}
    del standing[part]
    assert page_of(learner.release(), standing).words == page_of(learner.release(), empty).words


def test_figures_of_a_learner() -> None:
    learner = grown()
    status = learner.status()
    page = page_of(learner.release(), standing_of(learner), stored=1400, learned=400)
    assert status.settled_bins > 0
    assert status.contested_cells > 0
    for words in (
        "1,400",
        "1,000",
        "400 learned",
        f"{status.bins - status.settled_bins} still compared",
        f"{status.reports['clinic-b']:,}",
    ):
        assert words in page.words


def test_estimates_have_their_interval_as_a_bar() -> None:
    cells = [
        {"path": "", "arm": "control", "estimate": 0.25, "radius": 0.125},
        {"path": "", "arm": "coach", "estimate": -0.5, "radius": 2.0},
        {"path": "0", "arm": "coach", "estimate": 0.75, "radius": 0.0},  # of another release
    ]
    page = page_of(release_of(), {"estimates": cells})
    assert page.words.count("not known yet") == 1
    for words in ("0.25 ± 0.12", "−0.50 ± 2.00"):
        assert words in page.words
    assert "0.75" not in page.text
    bars = [given["d"] for tag, given in page.tags if (given.get("class") or "")[:4] == "line"]
    assert bars == ["M12.5 8H37.5M25.0 2V14", "M0.0 8H100.0M0.0 2V14"]


def test_more_reports_than_expected_fill_the_bar_and_no_more() -> None:
    page = page_of(release_of(horizon=10), {"status": {"reports": {"target": 25}}})
    assert "25" in page.words
    assert "of 10 expected" in page.words
    assert ("rect", {"class": "done", "width": "100.00", "height": "10"}) in page.tags


NASTY = ("<script>alert('arm')</script>", "\"quoted\" & 'co'", "</title></svg><img src=x>")


@pytest.mark.parametrize("features", [1, 2, 3])
def test_names_are_never_markup(features: int) -> None:
    context = [
        sv.Categorical("<script>feature</script>", NASTY),
        sv.Numeric('"><script>', 0, 1),
        sv.Ordinal("</style>", NASTY),
    ]
    settings = {
        "name": "<script>name</script>",
        "arms": NASTY,
        "context": context[:features],
        "auxiliary": [sv.Population("<script>population", 1.0, 1)],
    }
    release = release_of([(0,), (0, 1, 2), (2,)], cuts={"": 0, "0": 0}, **settings)
    standing = {
        "status": {"reports": {"<script>population": 1}},
        "estimates": [{"path": "01", "arm": NASTY[0], "estimate": 0.5, "radius": 0.1}],
        "certificates": [
            {
                "release": 2,
                "path": "1",
                "dropped": NASTY[0],
                "winner": NASTY[1],
                "statistic": 2.0,
                "boundary": 1.0,
                "delta": 0.01,
            }
        ],
        "history": [
            {"reports": 5, "kind": "Elimination", "path": "1", "arms": [0]},
            {"reports": 3, "kind": "Split", "path": "", "axis": 0},
        ],
    }
    page = page_of(release, standing)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in page.tags)
    assert [tag for tag, _ in page.tags].count("style") == 1
    for name in ("<script>name</script>", "<script>population", *NASTY):
        assert name in page.text
    assert not any(name.startswith("on") for _, given in page.tags for name in given)


def test_a_browser_would_run_and_load_nothing() -> None:
    text = render(release_of(), {}, stored=0, learned=0)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "http:" not in text
    assert "https:" not in text
    assert "style=" not in text  # the policy would refuse it


def test_two_features_are_drawn_with_a_tip_for_each_bin() -> None:
    release = release_of([(2,), (0, 1), (1,)], cuts={"": 0, "1": 1})
    release = sv.Release(
        release.experiment,
        3,
        release.partition,
        (release.bins[0], BinPolicy("10", (0, 1), (0.25, 0.75), (2,)), release.bins[2]),
    )
    cell = {"path": "10", "arm": "reminder", "estimate": 0.625, "radius": 0.125}
    page = page_of(release, {"estimates": [cell]})
    assert page.count("rect", "k2") == page.count("rect", "k1") == page.count("rect", "open") == 1
    assert page.count("circle", "ring") == 1  # coach waits
    assert page.titles[1:] == [
        "age 18–54: coach",
        "age 54–90, bmi 15–30: not decided yet\n"
        "control: 25%, not known yet\n"
        "reminder: 75%, 0.62 ± 0.12\n"
        "coach: waits, not known yet",
        "age 54–90, bmi 30–45: reminder",
    ]
    for words in ("age", "bmi", "20", "40", "3 coach", "2 reminder"):  # axes and labels
        assert words in page.words


def test_neighbours_that_agree_have_one_label() -> None:
    cuts = {"": 0, "0": 1, "1": 1, "10": 0}
    page = page_of(release_of([(1,), (1,), (1,), (1,), (0, 1)], cuts=cuts))
    assert page.words.count("2 reminder") == 2  # the left half, and the lower right quarter


def test_one_feature_is_a_strip() -> None:
    page = page_of(release_of([(0,), (1, 2)], cuts={"": 0}, context=[AGE]))
    assert page.titles[1] == "age 18–54: control"
    assert page.count("svg", "map") == page.count("rect", "open") == 1


def test_three_features_are_told_in_words() -> None:
    context = [AGE, BMI, ACTIVITY]
    release = release_of([(2,), (0, 1), (1,)], cuts={"": 0, "0": 1}, context=context)
    page = page_of(release)
    assert page.count("svg", "map") == 0
    for words in ("age 18–54, bmi 15–30", "age 18–54, bmi 30–45", "age 54–90"):
        assert words in page.words


def deep(bins: int) -> dict[str, int]:
    leaves, cuts = [""], {}
    while len(leaves) < bins:
        path = leaves.pop(0)
        cuts[path] = len(path) % 2
        leaves += [path + "0", path + "1"]
    return cuts


def test_a_large_tree_is_drawn_whole_and_its_tables_are_cut_short() -> None:
    page = page_of(release_of(cuts=deep(2000)))
    assert page.count("rect", "open") == 2000
    assert page.count("tbody", "bin") == 40
    assert "The 40 largest of 2,000 bins." in page.text
    page = page_of(release_of(cuts=deep(2000), context=[AGE, BMI, ACTIVITY]))
    assert "The 200 largest of 2,000 bins." in page.text


def test_more_arms_than_colours_are_told_apart_by_numbers() -> None:
    arms = [f"arm {k}" for k in range(12)]
    page = page_of(release_of([(9,), tuple(range(12))], cuts={"": 0}, arms=arms))
    assert "10 arm 9" in page.words
    assert "12 arms" in page.words


def test_decisions_are_told_newest_first_with_their_reasons() -> None:
    release = release_of([(2,), (0, 1, 2)], cuts={"": 0}, context=[AGE], method="whisper")
    certificate = {
        "release": 3,
        "path": "0",
        "dropped": "control",
        "winner": "coach",
        "statistic": 7.25,
        "boundary": 6.5,
        "delta": None,
    }
    history = [
        {"reports": 1000, "kind": "Split", "path": "", "axis": 0},
        {"reports": 2000, "kind": "Elimination", "path": "0", "arms": [0, 1]},
        {"reports": 3000, "kind": "Split", "path": "01", "axis": 0},  # of a release to come
    ]
    told = page_of(release, {"history": history, "certificates": [certificate]}).words
    start = told.index("after 3,000 reports")
    assert told[start : start + 6] == [
        "after 3,000 reports",
        "a part of age 18–54: cut by age",
        "after 2,000 reports",
        "age 18–54: dropped control and reminder; coach is better, 7.25 ≥ 6.5",
        "after 1,000 reports",
        "everyone: cut by age into 18–54 and 54–90",
    ]
    alone = page_of(release, {"certificates": [{**certificate, "delta": 0.01}]}).words
    assert alone[alone.index("release 3") + 1].endswith("wrong with chance at most 0.01")


def test_only_the_last_decisions_are_told() -> None:
    history = [{"reports": n, "kind": "Split", "path": "", "axis": 0} for n in range(1, 31)]
    page = page_of(release_of(cuts={"": 0}), {"history": history})
    assert [word for word in page.words if word.startswith("after ")] == [
        f"after {n} reports" for n in range(30, 10, -1)
    ]


def test_weaker_privacy_is_said() -> None:
    page = page_of(release_of(method=sv.Whisper(public_arms=True)))
    assert page.count("span", "warn") == 1
    assert "its arm is public" in page.text
    assert page_of(release_of(method="whisper")).count("span", "warn") == 0


@pytest.mark.parametrize(
    ("feature", "low", "high", "words"),
    [
        (AGE, 0.0, 0.5, "18–54"),
        (AGE, 0.015625, 0.03125, "19.125–20.25"),
        (sv.Numeric("temperature", -10, 35), 0.0, 0.5, "−10 to 12.5"),
        (sv.Numeric("income", 0, 120_000), 0.25, 0.5, "30000–60000"),
        (sv.Numeric("tiny", 0, 1e-9), 0.5, 1.0, "5e−10–1e−09"),
        (sv.Numeric("huge", 0, 1e300), 0.0, 0.5, "0–5e+299"),
        (ACTIVITY, 0.0, 0.5, "low"),
        (ACTIVITY, 0.5, 1.0, "middling or high"),
        (ACTIVITY, 0.25, 0.5, "at no level"),
        (sv.Categorical("region", tuple("abcdefgh")), 0.0, 0.5, "a, b, c or d"),
        (
            sv.Categorical("region", tuple("abcdefghijklmnop")),
            0.0,
            0.5,
            "a, b, c, d, e, f or 2 others",
        ),
    ],
)
def test_edges_in_words(
    feature: sv.Numeric | sv.Ordinal | sv.Categorical, low: float, high: float, words: str
) -> None:
    assert spell(feature, low, high) == words


@pytest.mark.parametrize("levels", range(2, 14))
def test_a_bin_says_the_levels_that_the_device_puts_there(levels: int) -> None:
    feature = sv.Ordinal("level", tuple(f"level {i}" for i in range(levels)))
    release = release_of(cuts=dict.fromkeys(deep(16), 0), context=[feature])
    found = {
        path: [name for name in feature.levels if release.partition.find([at(name)]) == path]
        for at in [feature.position]
        for path in release.partition.leaves()
    }
    bins = bins_of(release)
    assert math.fsum(each.size for each in bins) == pytest.approx(1)
    for each in bins:
        names = found[each.policy.path]
        assert each.size == pytest.approx(len(names) / levels)
        assert re.findall(r"level \d+", each.words.removeprefix("level ")) == names


def test_a_cut_that_leaves_no_level_out_is_not_mentioned() -> None:
    release = release_of(cuts={"": 0, "1": 0, "11": 0}, context=[ACTIVITY, AGE])
    assert [each.words for each in bins_of(release)] == [
        "activity low",
        "activity middling",
        "activity high",
        "activity at no level",
    ]
    assert page_of(release).count("rect", "open") == 3  # the last is empty
    assert place(release, "") == "everyone"


@pytest.mark.parametrize(
    ("low", "high"),
    [(18, 90), (0, 1), (-1e308, 7e307), (0, 5e-324), (1e15, 1e15 + 1), (-3e-7, 1e-7), (0, 0.3)],
)
def test_axes_have_a_few_ticks_inside(low: float, high: float) -> None:
    feature = sv.Numeric("number", low, high)
    places = [at for at, _ in ticks(feature, most=10)]
    assert 2 <= len(places) <= 9
    assert all(0 <= at <= 1 for at in places)
    assert places == sorted(places)
    spell(feature, 0.0, 0.5)


def test_levels_that_would_run_into_each_other_are_left_out() -> None:
    feature = sv.Categorical("region", tuple(f"region {i}" for i in range(100)))
    assert len(ticks(feature, most=10)) == 10
    assert len(ticks(ACTIVITY, most=10)) == 3
