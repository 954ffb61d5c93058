"""Features of a context: their axes, where a value lies on them, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.shared.schema import (
    Feature,
    feature_from_table,
    feature_to_table,
    place_names,
)

MISSING = (None, math.nan, float("nan"), np.nan, np.float32("nan"), np.float64("nan"))
CITIES = ("Rome", "Oslo", "Bern")

names = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=8)
names = names.filter(str.isprintable)
levels = st.lists(names, min_size=2, max_size=12, unique=True).map(tuple)
plain = levels.filter(lambda listed: not {"other", "missing"} & {*listed})
bounds = st.tuples(
    st.floats(-1e6, 1e6, allow_nan=False), st.floats(1e-3, 1e6, allow_nan=False)
).map(lambda pair: (pair[0], pair[0] + pair[1]))


def features() -> st.SearchStrategy[Feature]:
    flag = st.booleans()
    return st.one_of(
        st.builds(
            lambda name, ends, optional: sv.Numeric(name, *ends, optional=optional),
            names,
            bounds,
            flag,
        ),
        st.builds(sv.Ordinal, names, levels, optional=flag),
        st.builds(sv.Categorical, names, plain, optional=flag, other=flag),
        st.builds(sv.Boolean, names, optional=flag),
    )


def values(feature: Feature) -> st.SearchStrategy[Any]:
    """Raw values that a feature takes."""
    match feature:
        case sv.Numeric():
            taken: st.SearchStrategy[Any] = st.floats(allow_nan=False, allow_infinity=False)
        case sv.Ordinal():
            taken = st.sampled_from(feature.levels)
        case sv.Categorical():
            taken = st.sampled_from(feature.levels)
            taken = taken | st.text() if feature.other else taken
        case sv.Boolean():
            taken = st.sampled_from([True, False, np.True_, np.False_, np.array(True)])
    return taken | st.sampled_from(MISSING) if feature.optional else taken


@given(st.data())
def test_a_value_has_a_position_on_each_axis_and_at_one_of_its_places(data: st.DataObject) -> None:
    feature = data.draw(features())
    positions = feature.positions(data.draw(values(feature)))
    assert len(positions) == len(feature.axes) == len(place_names(feature))
    for at, axis, places in zip(positions, feature.axes, place_names(feature), strict=True):
        assert type(at) is float
        assert 0 <= at <= 1
        assert len(places) == axis.levels
        assert axis.levels == 0 or at in [(i + 0.5) / axis.levels for i in range(axis.levels)]


@given(features())
def test_a_feature_reads_back_as_it_was_written(feature: Feature) -> None:
    table = feature_to_table(feature)
    assert feature_from_table(table) == feature
    assert table.get("optional", True) is True
    assert table.get("other", True) is True
    experiment = sv.Experiment(arms=["a", "b"], context=[feature], epsilon=1)
    again = sv.Experiment.from_table(experiment.to_table())
    assert again.fingerprint == experiment.fingerprint
    assert again.axes == feature.axes
    assert again.dimension == len(feature.axes)


@given(features(), st.sampled_from(MISSING))
def test_a_missing_value_is_taken_where_it_may_be_missing_and_refused_elsewhere(
    feature: Feature, value: Any
) -> None:
    if feature.optional:
        assert feature.positions(value) == feature.positions(None)
        shown = [
            places[int(at * len(places))] if places else at
            for at, places in zip(feature.positions(value), place_names(feature), strict=True)
        ]
        assert shown[-1] == "missing"
    else:
        with pytest.raises(sv.ContextError, match="say optional=True in the schema") as caught:
            feature.positions(value)
        assert str(caught.value).startswith(f"feature {feature.name!r} must be ")


def test_the_axes_of_each_kind() -> None:
    """Levels without an order keep none; two places have no order to lose."""
    number, mood = sv.Numeric("age", 20, 100), sv.Ordinal("mood", ("low", "high", "higher"))
    city = sv.Categorical("city", CITIES)
    assert number.axes == (sv.Axis("age", 0, ordered=True),)
    assert mood.axes == (sv.Axis("mood", 3, ordered=True),)
    assert city.axes == (sv.Axis("city", 3, ordered=False),)
    assert sv.Categorical("sex", ("f", "m")).axes == (sv.Axis("sex", 2, ordered=True),)
    assert sv.Categorical("sex", ("f", "m"), other=True).axes == (sv.Axis("sex", 3, ordered=False),)
    both = sv.Categorical("sex", ("f", "m"), other=True, optional=True)
    assert both.axes == (sv.Axis("sex", 4, ordered=False),)
    assert sv.Boolean("smokes").axes == (sv.Axis("smokes", 2, ordered=True),)
    assert sv.Boolean("smokes", optional=True).axes == (sv.Axis("smokes", 3, ordered=False),)
    assert sv.Numeric("age", 20, 100, optional=True).axes == (
        sv.Axis("age"),
        sv.Axis("age is missing", 2, ordered=True),
    )
    assert sv.Ordinal("mood", ("low", "high"), optional=True).axes == (
        sv.Axis("mood", 2),
        sv.Axis("mood is missing", 2),
    )


def test_where_values_lie() -> None:
    age = sv.Numeric("age", 20, 100, optional=True)
    assert age.positions(60) == (0.5, 0.25)
    assert age.positions(None) == (0.0, 0.75)
    assert age.positions(20) == (0.0, 0.25)
    mood = sv.Ordinal("mood", ("low", "high"), optional=True)
    assert mood.positions("high") == (0.75, 0.25)
    assert mood.positions(math.nan) == (0.25, 0.75)
    city = sv.Categorical("city", CITIES, other=True, optional=True)
    places = [*CITIES, "Atlantis", None]
    assert [city.positions(each) for each in places] == [(i / 10,) for i in (1, 3, 5, 7, 9)]
    for strange in ("", "other", "missing", "rome"):
        assert city.positions(strange) == city.positions("Atlantis")
    smokes = sv.Boolean("smokes")
    assert [smokes.positions(each) for each in (False, True)] == [(0.25,), (0.75,)]
    smokes = sv.Boolean("smokes", optional=True)
    found = [smokes.positions(each) for each in (False, np.True_, None)]
    assert found == [(0.5 / 3,), (1.5 / 3,), (2.5 / 3,)]


def test_the_places_have_names() -> None:
    city = sv.Categorical("city", CITIES, other=True, optional=True)
    assert place_names(city) == ((*CITIES, "other", "missing"),)
    assert place_names(sv.Boolean("smokes", optional=True)) == (("False", "True", "missing"),)
    assert place_names(sv.Numeric("age", 0, 1)) == ((),)
    assert place_names(sv.Numeric("age", 0, 1, optional=True)) == ((), ("there", "missing"))
    mood = sv.Ordinal("mood", ("low", "high"), optional=True)
    assert place_names(mood) == (("low", "high"), ("there", "missing"))


class Odd:
    """A value of somebody else's, whose error shows what it is."""

    shape = ()

    @property
    def dtype(self) -> Any:
        raise ValueError("61.732")


ANYTHING = [
    *(61.732, 61732, "61.732", b"61.732", [61.732], {"61.732": 1}, 61.732j, math.inf, Odd()),
    *(0, 1, 1.0, "True", "true", np.array([True, False]), np.array([61.732]), np.int64(1)),
]


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("value", ANYTHING)
def test_a_boolean_is_true_or_false_and_no_number_or_text(value: Any, optional: bool) -> None:
    smokes = sv.Boolean("smokes", optional=optional)
    with pytest.raises(sv.ContextError, match="'smokes' must be True or False; got") as caught:
        smokes.positions(value)
    assert "61" not in str(caught.value)
    assert caught.value.__context__ is None


@given(
    features(),
    st.one_of(
        st.just("Lindqvist 61.732"),
        st.just(b"61.732"),
        st.just(["Lindqvist"]),
        st.just({"Lindqvist": 61.732}),
        st.just(61.732j),
        st.just(np.array([61.732])),
    ),
)
def test_a_refusal_never_shows_the_value(feature: Feature, value: Any) -> None:
    if isinstance(feature, sv.Categorical) and feature.other and isinstance(value, str):
        return
    with pytest.raises(sv.ContextError) as caught:
        feature.positions(value)
    told = str(caught.value).removeprefix(f"feature {feature.name!r} ")
    assert "Lindqvist" not in told
    assert "61" not in told


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sv.Numeric("age", 0, 1, optional="yes"), "optional of 'age' must be true or fals"),  # type: ignore[arg-type]
        (lambda: sv.Ordinal("mood", CITIES, optional=1), "optional of 'mood' must be true or fals"),  # type: ignore[arg-type]
        (lambda: sv.Categorical("city", CITIES, other=1), "other of 'city' must be true or false"),  # type: ignore[arg-type]
        (lambda: sv.Boolean("smokes", optional=None), "optional of 'smokes' must be true or false"),  # type: ignore[arg-type]
        (lambda: sv.Boolean(""), "the name of a feature must be a non-empty"),
        (
            lambda: sv.Categorical("city", (*CITIES, "other"), other=True),
            r"levels of 'city' must leave the names .* to the schema; got \['other'\]",
        ),
        (
            lambda: sv.Categorical("city", (*CITIES, "missing"), optional=True),
            r"levels of 'city' must leave the names .* to the schema; got \['missing'\]",
        ),
        (
            lambda: sv.Ordinal("code", tuple(map(str, range(1025)))),
            "levels of 'code' must be at most 1024, with the places .*; got 1025",
        ),
        (
            lambda: sv.Categorical("code", tuple(map(str, range(1023))), other=True, optional=True),
            "levels of 'code' must be at most 1024, with the places .*; got 1025",
        ),
    ],
)
def test_a_feature_that_cannot_be_is_refused(build: Any, message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        build()


def test_a_feature_may_have_1024_places() -> None:
    many = tuple(map(str, range(1022)))
    assert sv.Categorical("code", many, other=True, optional=True).axes[0].levels == 1024
    assert sv.Categorical("code", (*CITIES, "other", "missing")).axes[0].levels == 5


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"name": "age"}, "a context feature must have a name and one of numeric .* 'age'"),
        ({"numeric": [0, 1]}, "a context feature must have a name and one of"),
        (
            {"name": "age", "numeric": [0, 1], "boolean": True},
            "must have a name and one of .* 'age'",
        ),
        (
            {"name": "age", "numeric": [0, 1], "other": True},
            r"must have only the keys \['name', 'numeric', 'optional'\]; got \['other'\] in 'age'",
        ),
        ({"name": "smokes", "boolean": True, "unit": "packs"}, r"got \['unit'\] in 'smokes'"),
        ({"name": "smokes", "boolean": False}, "must have .* boolean = true; got .*'smokes'"),
        ({"name": "smokes", "boolean": 1}, "must have .* boolean = true; got .*'smokes'"),
        (
            {"name": "smokes", "boolean": True, "optional": 1},
            "optional of 'smokes' must be true or false; got 1",
        ),
        (
            {"name": "city", "categorical": list(CITIES), "other": "yes"},
            "other of 'city' must be true or false; got 'yes'",
        ),
    ],
)
def test_a_table_that_is_no_feature_is_refused(entry: Any, message: str) -> None:
    with pytest.raises(sv.ExperimentError, match=message):
        feature_from_table(entry)


def test_a_file_may_say_that_a_feature_is_not_optional() -> None:
    plain = {"name": "city", "categorical": list(CITIES)}
    spelled = feature_from_table({**plain, "optional": False, "other": False})
    assert spelled == feature_from_table(plain)
    assert feature_to_table(spelled) == plain


def test_experiments_without_the_new_keys_keep_their_fingerprint() -> None:
    """The fingerprint is that of the version before features could be missing."""
    experiment = sv.Experiment(
        arms=["a", "b"],
        context=[
            sv.Numeric("age", 18, 90),
            sv.Ordinal("mood", ("low", "middling", "high")),
            sv.Categorical("city", ("Rome", "Oslo")),
        ],
        epsilon=1,
    )
    assert experiment.fingerprint == (
        "a3a8bec612fcf4cb8aaa722f2f7804f397255b11368669f926f809c31b8db895"
    )


def test_each_flag_changes_the_fingerprint() -> None:
    contexts: list[Feature] = [
        sv.Categorical("city", CITIES),
        sv.Categorical("city", CITIES, other=True),
        sv.Categorical("city", CITIES, optional=True),
        sv.Categorical("city", CITIES, other=True, optional=True),
        sv.Boolean("city"),
        sv.Boolean("city", optional=True),
    ]
    made = [sv.Experiment(arms=["a", "b"], context=[each], epsilon=1) for each in contexts]
    assert len({each.fingerprint for each in made}) == len(contexts)


def test_the_axes_of_an_experiment_are_those_of_its_features_and_have_different_names() -> None:
    income, smokes = sv.Numeric("income", 0, 9, optional=True), sv.Boolean("smokes")
    experiment = sv.Experiment(arms=["a", "b"], context=[income, smokes], epsilon=1)
    assert experiment.axes == (*income.axes, *smokes.axes)
    assert experiment.dimension == 3
    same = sv.Boolean("income is missing")
    with pytest.raises(sv.ExperimentError, match="axes of the context must differ"):
        sv.Experiment(arms=["a", "b"], context=[income, same], epsilon=1)
