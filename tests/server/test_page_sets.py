"""The status page of experiments with sets of levels, and what it says of questions."""

import math
import random
import re
from dataclasses import replace
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.server.extents import Extent
from sottovoce.server.formatting import bins_of, describe_extent, scales_of
from sottovoce.server.status import Event, Snapshot
from sottovoce.shared.partition import Partition
from support.pages import Page, page_of, release_of

AGE, BMI = sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)
INCOME = sv.Numeric("income", 0, 100, optional=True)
CITY = sv.Categorical("city", ("Rome", "Oslo", "Bern", "Turin"), optional=True)
JOB = sv.Categorical("job", ("nurse", "clerk", "driver", "baker"))


def in_cities(bins: list[tuple[int, ...]] | None = None, **settings: Any) -> sv.Release:
    """Oslo and Turin; Bern; the others, young and old."""
    defaults: dict[str, Any] = {
        "cuts": {"": 0, "0": 0, "00": 1},
        "sets": {"": {1, 3}, "0": {2}},
        "context": [CITY, AGE],
        "method": "whisper",
    }
    return release_of(bins or [(0,), (0, 1), (1,), (2,)], **{**defaults, **settings})


def test_sets_of_levels_are_told_in_words_with_their_shares() -> None:
    bins = bins_of(in_cities())
    assert [each.description for each in bins] == [
        "city: Rome or missing, age 18–54",
        "city: Rome or missing, age 54–90",
        "city: Bern",
        "city: Oslo or Turin",
    ]
    assert [each.size for each in bins] == pytest.approx([0.2, 0.2, 0.2, 0.4])


@pytest.mark.parametrize("seed", range(20))
def test_a_bin_of_sets_says_the_levels_that_the_device_puts_there(seed: int) -> None:
    draw = random.Random(seed)
    feature = sv.Categorical("level", tuple(f"level {i}" for i in range(draw.randint(3, 12))))
    levels = len(feature.levels)
    partition = Partition(1, {}, (levels,))
    for _ in range(draw.randint(1, levels - 1)):
        left = {path: sorted(partition.places(path, 0)) for path in partition.leaves()}
        path = draw.choice([path for path in left if len(left[path]) > 1])
        upper = draw.sample(left[path], draw.randint(1, len(left[path]) - 1))
        partition = replace(
            partition.cut(path, axis=0), sets={**partition.sets, path: frozenset(upper)}
        )
    release = release_of(
        cuts=dict(partition.cuts),
        sets={path: set(upper) for path, upper in partition.sets.items()},
        context=[feature],
        method="whisper",
    )
    bins = bins_of(release)
    assert math.fsum(each.size for each in bins) == pytest.approx(1)
    for each in bins:
        names = [
            name
            for name in feature.levels
            if release.partition.find(feature.positions(name)) == each.policy.path
        ]
        assert each.size == pytest.approx(len(names) / levels)
        words = each.description.removeprefix("level: ")
        told = re.findall(r"level \d+", words)
        if words.startswith("any but "):
            told = [name for name in feature.levels if name not in told]
        assert told == names


@pytest.mark.parametrize(
    ("count", "places", "words"),
    [
        (4, {1, 3}, "level 1 or level 3"),
        (30, {0, 2, 4, 6, 8, 10}, "level 0, level 2, level 4, level 6, level 8 or level 10"),
        (30, set(range(15)), f"{', '.join(f'level {i}' for i in range(6))} or 9 others"),
        (14, set(range(7)), f"{', '.join(f'level {i}' for i in range(6))} or 1 other"),
        (30, set(range(30)) - {3, 17}, "any but level 3 or level 17"),
        (30, set(range(29)), "any but level 29"),
        (7, {0, 1, 2, 4, 5, 6}, "level 0, level 1, level 2, level 4, level 5 or level 6"),
    ],
)
def test_many_levels_are_counted_or_those_that_are_missing_are_named(
    count: int, places: set[int], words: str
) -> None:
    (scale,) = scales_of(sv.Categorical("city", tuple(f"level {i}" for i in range(count))))
    assert describe_extent(scale, Extent.of(places, count=count)) == words


def test_a_set_whose_levels_are_no_neighbours_is_several_rectangles_with_one_tip() -> None:
    page = page_of(in_cities())
    # Rome and missing are not side by side, nor are Oslo and Turin.
    counts = {kind: page.count("rect", kind) for kind in ("k0", "open", "k1", "k2")}
    assert counts == {"k0": 2, "open": 2, "k1": 1, "k2": 2}
    assert page.count("circle", "k0") == page.count("circle", "k1") == 2
    assert page.titles[1:] == [
        "city: Rome or missing, age 18–54: control",
        "city: Rome or missing, age 54–90: not decided yet\n"
        "control: 50%, not known yet\nreminder: 50%, not known yet",
        "city: Bern: reminder",
        "city: Oslo or Turin: coach",
    ]
    assert page.words.count("3 coach") == page.words.count("1 control") == 2
    assert page.words.count("2 reminder") == 1
    drawn = [given for tag, given in page.tags if tag == "rect" and given.get("class") == "k2"]
    width = 760 / 5  # of the drawing, for each of five places
    assert [float(given["width"] or 0) for given in drawn] == pytest.approx([width, width])
    assert float(drawn[1]["x"] or 0) - float(drawn[0]["x"] or 0) == pytest.approx(2 * width)
    assert [float(given["height"] or 0) for given in drawn] == [440, 440]


def test_neighbouring_levels_of_a_set_are_one_rectangle() -> None:
    page = page_of(in_cities(sets={"": {1, 2}, "0": {3, 4}}))
    assert [page.count("rect", kind) for kind in ("k0", "open", "k1", "k2")] == [1, 1, 1, 1]


def test_sets_along_both_axes_are_drawn_as_a_grid() -> None:
    cuts, sets = {"": 0, "0": 1}, {"": {1, 3}, "0": {0, 2}}
    page = page_of(in_cities([(0,), (1,), (2,)], cuts=cuts, sets=sets, context=[CITY, JOB]))
    # Three runs of cities by two of jobs, twice; and two whole columns.
    assert [page.count("rect", kind) for kind in ("k0", "k1", "k2")] == [6, 6, 2]


def test_one_axis_of_levels_is_a_strip_of_rectangles() -> None:
    cuts, sets = {"": 0}, {"": {1, 3}}
    page = page_of(in_cities([(0,), (1, 2)], cuts=cuts, sets=sets, context=[CITY]))
    assert page.count("rect", "k0") == 3
    assert page.count("rect", "open") == 2


@pytest.mark.parametrize(("ages", "drawn"), [(8, 8000), (16, 0)])
def test_sets_with_too_many_rectangles_are_told_in_words(ages: int, drawn: int) -> None:
    """Two sets of 500 regions, none beside another of its set, by so many ages."""
    region = sv.Categorical("region", tuple(f"region {i}" for i in range(1000)))
    depths = range(ages.bit_length() - 1)
    young_to_old = [f"{n:0{depth}b}" if depth else "" for depth in depths for n in range(2**depth)]
    release = release_of(
        cuts={"": 0} | {side + path: 1 for side in "01" for path in young_to_old},
        sets={"": set(range(0, 1000, 2))},
        context=[region, AGE],
        method="whisper",
    )
    page = page_of(release)
    assert len(release.bins) == 2 * ages
    assert page.count("rect", "open") == drawn
    assert page.count("svg", "map") == (drawn > 0)
    assert ("of all contexts" in page.words) == (drawn == 0)


def test_a_split_by_levels_says_into_which_sets() -> None:
    history = (
        Event(100, "", axis=0),
        Event(200, "0", axis=0),
        Event(300, "00", axis=1),
        Event(400, "0", arms=(2,)),  # of a bin that was split later
        Event(500, "10", axis=0),  # of a release to come
    )
    told = page_of(in_cities(), snapshot=Snapshot(history=history)).words
    start = told.index("after 500 reports")
    assert told[start + 1 : start + 10 : 2] == [
        "a part of city: Oslo or Turin: split by city",
        "city: Rome, Bern or missing: dropped coach",
        "city: Rome or missing: split by age into 18–54 and 54–90",
        "city: Rome, Bern or missing: split by city into Rome or missing, and Bern",
        "everyone: split by city into Rome, Bern or missing, and Oslo or Turin",
    ]


# --- what people are asked about ------------------------------------------------------------------


def asked(page: Page) -> list[str]:
    return [words for words in page.words if words.startswith("Asked about")]


def test_the_page_says_which_axes_are_asked_about_most() -> None:
    six = [AGE, INCOME, BMI, CITY, JOB]  # six axes
    release = release_of(context=six, method="whisper", ask=(205, 20, 410, 102, 41, 236, 10))
    assert asked(page_of(release)) == [
        "Asked about: income 40%, city 23%, no feature 20%, whether income is missing 10%,"
        " bmi 4%, the rest 3%."
    ]
    few = release_of(method="whisper", ask=(256, 0, 768))
    assert asked(page_of(few)) == ["Asked about: bmi 75%, no feature 25%."]


def test_nothing_is_said_of_questions_where_there_are_none() -> None:
    assert not asked(page_of(release_of()))
    settled = release_of([(1,)], method="whisper", ask=(512, 256, 256))
    assert not asked(page_of(settled))
