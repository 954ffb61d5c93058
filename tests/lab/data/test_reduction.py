from dataclasses import replace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.lab.data.columns import Column, Levels, Numbers
from sottovoce.lab.data.reduction import Distribution, Reduction
from sottovoce.lab.data.selection import Selection, telling_columns
from sottovoce.lab.environments import Floats
from sottovoce.shared.schema import Feature

RNG = np.random.default_rng(0)


def columns(n: int, *, seed: int = 0) -> dict[str, Column]:
    rng = np.random.default_rng(seed)
    long = rng.normal(size=n)
    return {
        "long": Numbers(100 * long),
        "wide": Numbers(long + 0.1 * rng.normal(size=n) + 7),
        "deep": Numbers(rng.normal(size=n)),
        "colour": Levels(rng.integers(0, 3, n), ("blue", "green", "red")),
        "sex": Levels(rng.integers(0, 2, n), ("female", "male")),
    }


def test_an_axis_puts_as_many_people_into_each_part() -> None:
    values = RNG.lognormal(size=50_000)
    places = Distribution.fit(values).apply(values)
    assert np.histogram(places, 8, (0, 1))[0] == pytest.approx(np.full(8, 6250), rel=0.02)
    assert (np.diff(places[np.argsort(values)]) >= 0).all()


def test_people_with_the_same_value_lie_in_the_middle_of_their_share() -> None:
    axis = Distribution.fit(np.repeat([1.0, 2.0, 5.0], [2, 6, 2]))
    assert axis.apply(np.array([1.0, 2.0, 5.0])) == pytest.approx([0.1, 0.5, 0.9])
    assert axis.apply(np.array([-9.0, 99.0])) == pytest.approx([0.1, 0.9])
    assert axis.apply(np.array([1.5, np.nan])) == pytest.approx([0.3, 0.5])
    mixed = np.concatenate([np.zeros(9000), RNG.random(10_000) - 0.5, np.full(1000, 0.1)])
    large = Distribution.fit(mixed)
    assert len(large.knots) < 2000
    assert large.apply(np.zeros(1)) == pytest.approx(0.475, abs=0.01)
    assert large.apply(np.array([0.1])) == pytest.approx(0.775, abs=0.002)


@pytest.mark.parametrize("values", [np.full(5, 3.0), np.full(4, np.nan), np.empty(0)])
def test_an_axis_with_nothing_to_tell_puts_everybody_in_the_middle(values: Floats) -> None:
    assert Distribution.fit(values).apply(np.array([-1.0, 3.0, 9.0])) == pytest.approx([0.5] * 3)


def test_the_components_are_those_of_the_encoded_columns() -> None:
    fitting = columns(3000)
    reduction = Reduction.fit(fitting, dimensions=2)
    assert reduction.encoded == 3 + 3 + 1
    parts = []
    for name in ("long", "wide", "deep"):
        column = fitting[name]
        assert isinstance(column, Numbers)
        z = (column.values - column.values.mean()) / column.values.std()
        parts.append(np.clip(z, -4, 4)[:, np.newaxis])
    for name, width in (("colour", 3), ("sex", 2)):
        column = fitting[name]
        assert isinstance(column, Levels)
        one_hot = np.eye(width)[column.codes]
        parts.append(one_hot if width == 3 else one_hot[:, 1:])
    encoded = np.concatenate(parts, axis=1)
    encoded -= encoded.mean(axis=0)
    scores = encoded @ np.linalg.svd(encoded, full_matrices=False)[2][:2].T
    ranks = (np.argsort(np.argsort(scores, axis=0), axis=0) + 0.5) / 3000
    contexts = reduction.apply(fitting)
    for axis in range(2):
        close = [
            np.abs(contexts[:, axis] - each).max() for each in (ranks[:, axis], 1 - ranks[:, axis])
        ]
        assert min(close) < 0.01


def test_the_first_directions_tell_the_classes_apart() -> None:
    fitting = columns(5000)
    deep = fitting["deep"]
    assert isinstance(deep, Numbers)
    labels = np.searchsorted([-0.5, 0.5], deep.values)
    reduction = Reduction.fit(fitting, dimensions=3, labels=labels)
    assert reduction.features[0] == "direction 1 of the classes"
    assert reduction.features[-1].startswith("component")
    places = reduction.apply(fitting)
    assert abs(np.corrcoef(places[:, 0], deep.values)[0, 1]) > 0.95
    # What comes after does not repeat it.
    assert abs(np.corrcoef(places[:, 0], places[:, 2])[0, 1]) < 0.1


def test_labels_that_say_nothing_leave_components() -> None:
    reduction = Reduction.fit(columns(500), dimensions=3, labels=np.zeros(500, dtype=np.int64))
    assert reduction.features == ("component 1", "component 2", "component 3")


def test_a_reduction_knows_only_the_rows_it_was_fitted_on() -> None:
    fitting = columns(500)
    first, second = (Reduction.fit(fitting, dimensions=3) for _ in range(2))
    first.apply(columns(100, seed=1))
    assert (first.apply(columns(100, seed=2)) == second.apply(columns(100, seed=2))).all()


def test_unknown_levels_and_gaps_are_placed_too() -> None:
    reduction = Reduction.fit(columns(500), dimensions=3)
    strange: dict[str, Column] = {
        "long": Numbers(np.array([1e300, -1e300, np.nan])),
        "wide": Numbers(np.array([np.nan] * 3)),
        "deep": Numbers(np.zeros(3)),
        "colour": Levels(np.array([0, 1, -1]), ("pink", "red")),
        "sex": Levels(np.array([0, 0, -1]), ("other",)),
    }
    contexts = reduction.apply(strange)
    assert contexts.shape == (3, 3)
    assert ((contexts >= 0) & (contexts <= 1)).all()


def test_levels_may_be_publicly_known() -> None:
    known = {"colour": ("blue", "green", "red", "white")}
    assert Reduction.fit(columns(50), dimensions=3, levels=known).encoded == 3 + 4 + 1


def test_rare_levels_of_a_long_list_count_as_unknown() -> None:
    codes = np.concatenate([np.arange(200), np.repeat(np.arange(100, 164), 5)])
    many: dict[str, Column] = {"city": Levels(codes, tuple(f"city {k:03}" for k in range(200)))}
    assert Reduction.fit(many, dimensions=2).encoded == 64


def test_more_axes_than_columns_cannot_be() -> None:
    with pytest.raises(sv.ExperimentError, match="dimensions must be at most the 7 encoded"):
        Reduction.fit(columns(50), dimensions=8)


def test_a_column_cannot_change_its_kind() -> None:
    fitted = Reduction.fit(columns(50), dimensions=2)
    with pytest.raises(sv.ExperimentError, match="'deep' must hold numbers everywhere"):
        fitted.apply({**columns(50), "deep": columns(50)["sex"]})
    with pytest.raises(sv.ExperimentError, match="'sex' must hold text everywhere"):
        fitted.apply({**columns(50), "sex": columns(50)["deep"]})


def test_named_levels_lie_beside_those_that_behave_alike() -> None:
    codes = np.repeat([0, 1, 2, 3], 100)
    labels = (np.tile(np.arange(100), 4) < np.repeat([90, 10, 80, 20], 100)).astype(np.int64)
    column = {"town": Levels(codes, ("a", "b", "c", "d"))}
    places = Selection.fit(column, ["town"], labels=labels).apply(column)[::100, 0]
    assert sorted(places) == pytest.approx([0.125, 0.375, 0.625, 0.875])
    assert np.argsort(places).tolist() in ([1, 3, 2, 0], [0, 2, 3, 1])
    by_name = Selection.fit(column, ["town"]).apply(column)[::100, 0]
    assert by_name == pytest.approx([0.125, 0.375, 0.625, 0.875])


def test_features_of_a_schema_are_placed_as_on_a_device() -> None:
    number = sv.Numeric("deep", -1, 3)
    levels = sv.Ordinal("colour", ("red", "green", "blue"))
    data = columns(40)
    selection = Selection.fit({}, [number, levels])
    deep, colour = data["deep"], data["colour"]
    assert isinstance(deep, Numbers)
    assert isinstance(colour, Levels)
    expected = [
        [*number.positions(x), *levels.positions(colour.levels[c])]
        for x, c in zip(deep.values.tolist(), colour.codes.tolist(), strict=True)
    ]
    assert selection.apply(data) == pytest.approx(np.array(expected))
    assert selection.features == ("deep", "colour")
    with pytest.raises(sv.ExperimentError, match=r"'colour' must hold the levels .* in \d+ rows"):
        Selection.fit({}, [sv.Ordinal("colour", ("red", "green"))]).apply(data)


CITIES = ("a", "b", "c")
TRUTH = ("False", "true", "TRUE")


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize(
    "feature",
    [
        sv.Numeric("x", -1, 3),
        sv.Ordinal("x", CITIES),
        sv.Categorical("x", CITIES),
        sv.Categorical("x", CITIES[:2], other=True),
        sv.Boolean("x"),
    ],
)
def test_every_kind_of_feature_is_placed_as_on_a_device(feature: Feature, optional: bool) -> None:
    feature = replace(feature, optional=optional)
    gaps = [None, None] if optional else []
    column: Column
    if isinstance(feature, sv.Numeric):
        raw = [-2.0, 0.5, 7.0, *gaps]
        column = Numbers(np.array([np.nan if value is None else value for value in raw]))
    else:
        levels = TRUTH if isinstance(feature, sv.Boolean) else CITIES
        column = Levels(np.array([2, 0, 1, *[-1 for _ in gaps]]), levels)
        truth = isinstance(feature, sv.Boolean)
        named = [levels[code].lower() == "true" if truth else levels[code] for code in (2, 0, 1)]
        raw = [*named, *gaps]  # type: ignore[list-item]
    selection = Selection.fit({}, [feature])
    expected = np.array([feature.positions(value) for value in raw])
    assert selection.apply({"x": column}) == pytest.approx(expected)
    assert selection.features == tuple(axis.name for axis in feature.axes)


def test_gaps_of_a_feature_that_is_not_optional_are_refused() -> None:
    column = {"deep": Numbers(np.array([1.0, np.nan, np.nan]))}
    with pytest.raises(sv.ExperimentError, match=r"no gaps, unless .* optional; got 2 rows"):
        Selection.fit({}, [sv.Numeric("deep", 0, 1)]).apply(column)
    kept = Selection.fit({}, [sv.Numeric("deep", 0, 1)], optional=["deep"])
    assert kept.apply(column).tolist() == [[1.0, 0.25], [0.0, 0.75], [0.0, 0.75]]


def test_missing_numbers_have_an_axis_and_missing_levels_a_place() -> None:
    data: dict[str, Column] = {
        "deep": Numbers(np.array([1.0, 3.0, np.nan, np.nan])),
        "town": Levels(np.array([0, 0, 1, -1]), ("x", "y")),
    }
    selection = Selection.fit(data, ["deep", "town"], optional={"deep", "town"})
    assert selection.features == ("deep", "deep is missing", "town")
    assert selection.encoded == 2
    contexts = selection.apply(data)
    assert contexts[:, :2].tolist() == [[0.25, 0.25], [0.75, 0.25], [0.0, 0.75], [0.0, 0.75]]
    assert contexts[:, 2].tolist() == [0.25, 0.25, 0.625, 0.875]
    # A level that the fitting rows lack still lies in the middle.
    strange = {**data, "town": Levels(np.array([0] * 4), ("z",))}
    assert selection.apply(strange)[:, 2].tolist() == [0.5] * 4


def placed(fitting: Levels, *, optional: bool = False) -> Selection:
    gaps = ["town"] if optional else []
    return Selection.fit({"town": fitting}, ["town"], optional=gaps, text="levels")


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("known", [("a",), ("a", "b"), ("a", "other"), ("missing", "b\xa0c", "d")])
def test_levels_without_an_order_have_the_places_of_their_feature(
    known: tuple[str, ...], optional: bool
) -> None:
    selection = placed(Levels(np.arange(len(known)), known), optional=optional)
    (feature,) = selection.schema
    (axis,) = feature.axes
    assert axis.levels == len(known) + 1 + optional
    assert axis.ordered == (axis.levels == 2)
    asked = Levels(np.array([*range(len(known) + 1), *[-1] * optional]), (*known, "elsewhere"))
    places = selection.apply({"town": asked})[:, 0]
    # Each level, then the others, then what is missing.
    assert places == pytest.approx((np.arange(axis.levels) + 0.5) / axis.levels)


def test_levels_without_an_order_say_by_which_values_they_are_placed() -> None:
    (feature,) = placed(Levels(np.array([0, 1, 0, -1]), ("x", "y")), optional=True).schema
    assert feature == sv.Categorical("town", ("x", "y"), optional=True, other=True)
    (truth,) = placed(Levels(np.array([0, 0]), ("false", "true"))).schema
    assert truth == sv.Boolean("town")
    # Without a level in the fitting rows there are others, and gaps.
    (nothing,) = placed(Levels(np.array([-1, -1]), ("x", "y")), optional=True).schema
    assert nothing == sv.Categorical("town", ("other", "missing"))


def test_of_too_many_levels_the_most_frequent_have_places() -> None:
    names = tuple(f"{index:04}" for index in range(2000))
    codes = np.concatenate([np.arange(2000), np.arange(1500, 2000)])
    (feature,) = placed(Levels(codes, names)).schema
    assert isinstance(feature, sv.Categorical)
    assert len(feature.levels) == 1022
    assert set(names[1500:]) <= set(feature.levels)


def test_the_axes_of_a_reduction_are_numbers() -> None:
    reduction = Reduction.fit(columns(50), dimensions=2)
    assert reduction.schema == (sv.Numeric("component 1", 0, 1), sv.Numeric("component 2", 0, 1))


def test_a_column_that_tells_by_its_gaps_alone_is_chosen() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    noise = rng.random((2, 400))
    data: dict[str, Column] = {
        "noise": Numbers(noise[0]),
        "gaps": Numbers(np.where(labels == 1, np.nan, noise[1])),
    }
    assert telling_columns(data, labels, dimensions=1, optional={"gaps"}) == ["gaps"]
