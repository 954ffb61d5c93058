"""The status page: what it says, and that names cannot say more."""

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

import sottovoce as sv
from factories import grown
from sottovoce.estimate.history import Certificate
from sottovoce.estimate.learner import Status
from sottovoce.estimate.method import CellEstimate
from sottovoce.server.diagnosis import DiagnosisSummary, SourceSummary
from sottovoce.server.extents import Extent
from sottovoce.server.formatting import bins_of, describe_extent, describe_path, scales_of, ticks
from sottovoce.server.page import render
from sottovoce.server.status import Event, ExperimentStatus, Snapshot
from sottovoce.shared.errors import StoreDamaged
from sottovoce.shared.release import BinPolicy
from support.pages import page_of, release_of

AGE, BMI = sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)
ACTIVITY = sv.Ordinal("activity", ("low", "middling", "high"))


def status_of(**reports: int) -> Status:
    return Status(
        release=3,
        reports=reports,
        late_reports=0,
        dropped_cells=0,
        bins=1,
        settled_bins=0,
        contested_cells=3,
    )


def test_a_new_experiment_has_a_page() -> None:
    release = release_of(name="walking", auxiliary=[sv.Population("clinic-b", 4.0, 0)])
    page = page_of(release)
    assert "walking · Sottovoce" in page.titles
    for words in (
        release.experiment.short,
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
def test_any_part_of_the_snapshot_may_be_missing(part: str) -> None:
    learner = grown()
    whole = Snapshot.of(learner)
    table = json.loads(whole.to_json())
    del table[part]
    part_is_missing = Snapshot.from_json(json.dumps(table))
    assert part_is_missing == structs.replace(whole, **{part: getattr(Snapshot(), part)})
    assert page_of(learner.release(), snapshot=part_is_missing).words


def test_a_snapshot_reads_back_as_it_was_written() -> None:
    whole = Snapshot.of(grown())
    assert whole.history
    assert whole.diagnosis
    assert Snapshot.from_json(whole.to_json()) == whole


@pytest.mark.parametrize("text", ["", "{", "[]", '{"status": {}}', '{"estimates": [{"path": 1}]}'])
def test_a_snapshot_that_is_damaged_is_refused(text: str) -> None:
    with pytest.raises(StoreDamaged, match="a learner's snapshot must be as it was written"):
        Snapshot.from_json(text)


def test_figures_of_a_learner() -> None:
    learner = grown()
    status = learner.status()
    page = page_of(learner.release(), stored=1400, learned=400, snapshot=Snapshot.of(learner))
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
    cells = (
        CellEstimate("", "control", 0.25, 0.125),
        CellEstimate("", "coach", -0.5, 2.0),
        CellEstimate("0", "coach", 0.75, 0.0),  # of another release
    )
    page = page_of(release_of(), snapshot=Snapshot(estimates=cells))
    assert page.words.count("not known yet") == 1
    for words in ("0.25 ± 0.12", "−0.50 ± 2.00"):
        assert words in page.words
    assert "0.75" not in page.text
    bars = [given["d"] for tag, given in page.tags if (given.get("class") or "")[:4] == "line"]
    assert bars == ["M12.5 8H37.5M25.0 2V14", "M0.0 8H100.0M0.0 2V14"]


def test_more_reports_than_expected_fill_the_bar_and_no_more() -> None:
    page = page_of(release_of(horizon=10), snapshot=Snapshot(status_of(target=25)))
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
    settings: dict[str, Any] = {
        "name": "<script>name</script>",
        "arms": NASTY,
        "context": context[:features],
        "auxiliary": [sv.Population("<script>population", 1.0, 1)],
    }
    release = release_of([(0,), (0, 1, 2), (2,)], cuts={"": 0, "0": 0}, **settings)
    source = SourceSummary(
        population="<script>population",
        epsilon=1.0,
        reports=1,
        expected=1,
        worth=1.0,
        exploration=None,
        overlap=None,
        promises=None,
        harmful=False,
        effective_users=1.0,
        expected_users=1.0,
    )
    snapshot = Snapshot(
        status=status_of(**{"<script>population": 1}),
        estimates=(CellEstimate("01", NASTY[0], 0.5, 0.1),),
        certificates=(Certificate(2, "1", NASTY[0], NASTY[1], 2.0, 1.0, 0.01),),
        history=(Event(5, "1", arms=(0,)), Event(3, "", axis=0)),
        diagnosis=DiagnosisSummary(1, (source,), None, NASTY),
    )
    page = page_of(release, snapshot=snapshot)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in page.tags)
    assert [tag for tag, _ in page.tags].count("style") == 1
    for name in ("<script>name</script>", "<script>population", *NASTY):
        assert name in page.text
    assert not any(name.startswith("on") for _, given in page.tags for name in given)


def test_a_browser_would_run_and_load_nothing() -> None:
    text = render(ExperimentStatus(release_of(), 0))
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
    cell = CellEstimate("10", "reminder", 0.625, 0.125)
    page = page_of(release, snapshot=Snapshot(estimates=(cell,)))
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
    certificate = Certificate(3, "0", "control", "coach", 7.25, 6.5, None)
    history = (
        Event(1000, "", axis=0),
        Event(2000, "0", arms=(0, 1)),
        Event(3000, "01", axis=0),  # of a release to come
    )
    snapshot = Snapshot(history=history, certificates=(certificate,))
    told = page_of(release, snapshot=snapshot).words
    start = told.index("after 3,000 reports")
    assert told[start : start + 6] == [
        "after 3,000 reports",
        "a part of age 18–54: split by age",
        "after 2,000 reports",
        "age 18–54: dropped control and reminder; coach is better, 7.25 ≥ 6.5",
        "after 1,000 reports",
        "everyone: split by age into 18–54 and 54–90",
    ]
    snapshot = Snapshot(certificates=(replace(certificate, delta=0.01),))
    alone = page_of(release, snapshot=snapshot).words
    assert alone[alone.index("release 3") + 1].endswith("wrong with chance at most 0.01")


def test_only_the_last_decisions_are_told() -> None:
    history = tuple(Event(n, "", axis=0) for n in range(1, 31))
    page = page_of(release_of(cuts={"": 0}), snapshot=Snapshot(history=history))
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
    (scale,) = scales_of(feature)
    assert describe_extent(scale, Extent.between(low, high, count=len(scale.places))) == words


@pytest.mark.parametrize("levels", range(2, 14))
def test_a_bin_says_the_levels_that_the_device_puts_there(levels: int) -> None:
    feature = sv.Ordinal("level", tuple(f"level {i}" for i in range(levels)))
    release = release_of(cuts=dict.fromkeys(deep(16), 0), context=[feature])
    found = {
        path: [name for name in feature.levels if release.partition.find(at(name)) == path]
        for at in [feature.positions]
        for path in release.partition.leaves()
    }
    bins = bins_of(release)
    assert math.fsum(each.size for each in bins) == pytest.approx(1)
    for each in bins:
        names = found[each.policy.path]
        assert each.size == pytest.approx(len(names) / levels)
        assert re.findall(r"level \d+", each.description.removeprefix("level ")) == names


def test_a_cut_that_leaves_no_level_out_is_not_mentioned() -> None:
    release = release_of(cuts={"": 0, "1": 0, "11": 0}, context=[ACTIVITY, AGE])
    assert [each.description for each in bins_of(release)] == [
        "activity low",
        "activity middling",
        "activity high",
        "activity at no level",
    ]
    assert page_of(release).count("rect", "open") == 3  # the last is empty
    assert describe_path(release, "") == "everyone"


@pytest.mark.parametrize(
    ("low", "high"),
    [(18, 90), (0, 1), (-1e308, 7e307), (0, 5e-324), (1e15, 1e15 + 1), (-3e-7, 1e-7), (0, 0.3)],
)
def test_axes_have_a_few_ticks_inside(low: float, high: float) -> None:
    (scale,) = scales_of(sv.Numeric("number", low, high))
    places = [at for at, _ in ticks(scale, most=10)]
    assert 2 <= len(places) <= 9
    assert all(0 <= at <= 1 for at in places)
    assert places == sorted(places)
    describe_extent(scale, Extent.between(0.0, 0.5, count=0))


def test_levels_that_would_run_into_each_other_are_left_out() -> None:
    feature = sv.Categorical("region", tuple(f"region {i}" for i in range(100)))
    assert len(ticks(*scales_of(feature), most=10)) == 10
    assert len(ticks(*scales_of(ACTIVITY), most=10)) == 3


SMOKES = sv.Boolean("smokes")
INCOME = sv.Numeric("income", 0, 100, optional=True)
MOOD = sv.Ordinal("mood", ("low", "high"), optional=True)


def test_a_boolean_and_a_missing_number_are_told_in_words() -> None:
    cuts = {"": 0, "0": 2, "1": 1, "11": 2}
    release = release_of(cuts=cuts, context=[SMOKES, INCOME])
    told = [
        "smokes: False, income is there",
        "smokes: False, income is missing",
        "smokes: True, income 0–50 or missing",
        "smokes: True, income 50–100",
        "smokes: True, income at no value",
    ]
    assert [each.description for each in bins_of(release)] == told
    page = page_of(release, snapshot=Snapshot(history=(Event(10, "0", axis=2),)))
    assert all(words in page.words for words in told)
    decision = "smokes: False: split by whether income is missing into there and missing"
    assert decision in page.words


def test_an_optional_number_alone_is_drawn_with_its_second_axis() -> None:
    release = release_of(cuts={"": 1, "0": 0}, context=[INCOME])
    page = page_of(release)
    assert [each.description for each in bins_of(release)] == [
        "income 0–50",
        "income 50–100",
        "income is missing",
    ]
    assert page.count("rect", "open") == 3
    for words in ("income", "income is missing", "there", "missing"):
        assert words in page.words


def test_missing_and_other_levels_are_told_in_words() -> None:
    city = sv.Categorical("city", ("Rome", "Oslo"), other=True, optional=True)
    release = release_of(cuts={"": 0, "1": 0}, context=[city])
    descriptions = [each.description for each in bins_of(release)]
    assert descriptions == ["city: Rome or Oslo", "city: other", "city: missing"]
    page = page_of(release)
    assert all(place in page.words for place in ("Rome", "Oslo", "other", "missing"))
    release = release_of(cuts={"": 0, "0": 1, "1": 1}, context=[MOOD])
    assert [each.description for each in bins_of(release)] == [
        "mood low",
        "mood is missing",
        "mood high",
        "mood at no value",
    ]
    whole = release_of(cuts={"": 0, "0": 0}, context=[MOOD])
    descriptions = [each.description for each in bins_of(whole)]
    assert descriptions == ["mood at no level", "mood low or missing", "mood high"]


@pytest.mark.parametrize("feature", [SMOKES, INCOME, MOOD])
def test_everyone_needs_no_words(feature: sv.Boolean | sv.Numeric | sv.Ordinal) -> None:
    assert [each.description for each in bins_of(release_of(context=[feature]))] == ["everyone"]
