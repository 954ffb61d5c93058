"""Pictures of a release: who is drawn where."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import sottovoce as sv
from sottovoce.lab.pictures import COLOURS, CONTESTED, draw_partition
from support.pages import release_of

AGE = sv.Numeric("age", 18, 90)
CITY = sv.Categorical("city", ("Rome", "Oslo", "Bern", "Turin"))


def rectangles(release: sv.Release) -> dict[str, list[tuple[float, float, float, float]]]:
    """Left, low, width and height of all that is drawn in a colour."""
    axes = Figure().subplots()
    draw_partition(axes, release)
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for patch in axes.patches:
        assert isinstance(patch, Rectangle)
        colour = to_hex(patch.get_facecolor())
        found.setdefault(colour, []).append(
            (*patch.get_xy(), patch.get_width(), patch.get_height())
        )
    return found


def test_bins_are_drawn_on_the_scales_of_their_features() -> None:
    release = release_of([(0,), (0, 1)], cuts={"": 1}, context=[AGE, sv.Numeric("bmi", 15, 45)])
    assert rectangles(release) == {
        COLOURS[0].lower(): [(18, 15, 72, 15)],
        CONTESTED: [(18, 30, 72, 15)],
    }


def test_a_set_of_levels_is_drawn_as_several_rectangles() -> None:
    release = release_of(
        [(0,), (1,)], cuts={"": 0}, sets={"": {1, 3}}, context=[CITY, AGE], method="whisper"
    )
    assert rectangles(release) == {
        COLOURS[0].lower(): [(0, 18, 0.25, 72), (0.5, 18, 0.25, 72)],
        COLOURS[1].lower(): [(0.25, 18, 0.25, 72), (0.75, 18, 0.25, 72)],
    }
    axes = Figure().subplots()
    draw_partition(axes, release)
    assert [label.get_text() for label in axes.get_xticklabels()] == list(CITY.levels)


@pytest.mark.parametrize("context", [[AGE], [AGE, sv.Numeric("income", 0, 1, optional=True)]])
def test_only_two_axes_are_drawn(context: list[sv.Numeric]) -> None:
    with pytest.raises(sv.ExperimentError, match="an experiment that is drawn must have two axes"):
        draw_partition(Figure().subplots(), release_of(context=context))
