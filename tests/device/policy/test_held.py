import math
from collections.abc import Callable

from hypothesis import assume, given
from hypothesis import strategies as st

import sottovoce as sv
from sottovoce.device.policy.held import Halves, Numbers, Places, divide, everybody

BOUND = st.one_of(
    st.floats(-1e6, 1e6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 1.0, 0.1, 0.3, 5e-324, 2.0**53, 1e300]),
)
CUT = st.one_of(
    st.floats(0, 1, exclude_min=True), st.integers(1, 2**48 - 1).map(lambda each: each / 2**48)
)


def at_or_above(cut: float) -> Callable[[float], bool]:
    return lambda position: position >= cut


@given(BOUND, BOUND, CUT)
def test_the_first_number_that_goes_up_does_and_the_one_before_it_does_not(
    low: float, high: float, cut: float
) -> None:
    assume(low < high and math.isfinite(high - low))
    feature = sv.Numeric("x", low, high)
    halves = divide(feature, everybody(feature), 0, at_or_above(cut))
    least = halves.cut
    assert least is not None
    assert feature.positions(least)[0] >= cut
    assert feature.positions(math.nextafter(least, -math.inf))[0] < cut
    assert feature.low < least <= feature.high
    assert halves == Halves(Numbers(below=least), Numbers(least=least), least)


def test_a_split_where_all_positions_lie_on_one_side_divides_nobody() -> None:
    feature = sv.Numeric("x", 0, 1, optional=True)
    all_up = divide(feature, everybody(feature), 0, at_or_above(0.0))
    assert all_up.lower.is_nobody
    assert all_up.upper == everybody(feature)
    all_down = divide(feature, everybody(feature), 0, at_or_above(1.5))
    assert all_down.upper.is_nobody
    assert all_down.lower == everybody(feature)


def test_who_has_no_number_is_with_the_lowest_and_on_the_second_axis_apart() -> None:
    feature = sv.Numeric("x", 0, 2, optional=True)
    halves = divide(feature, everybody(feature), 0, at_or_above(0.5))
    assert halves == Halves(Numbers(below=1.0, missing=True), Numbers(least=1.0), 1.0)
    apart = divide(feature, everybody(feature), 1, at_or_above(0.5))
    assert apart.lower == Numbers()
    assert apart.upper == Numbers(least=math.inf, missing=True)
    assert apart.cut is None


def test_places_are_divided_as_their_positions_are() -> None:
    feature = sv.Categorical("x", ("a", "b", "c"), optional=True, other=True)
    halves = divide(feature, everybody(feature), 0, lambda position: position in (0.1, 0.7, 0.9))
    assert halves == Halves(Places(frozenset({1, 2})), Places(frozenset({0, 3, 4})))
