"""Partitions and points, drawn by hypothesis."""

from dataclasses import replace

from hypothesis import strategies as st

from sottovoce.shared.partition import Partition, max_edge_axis
from sottovoce.shared.scale import Knots

COORDINATE = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.75]),
    st.integers(0, 2**20).map(lambda numerator: numerator / 2**20),
)


def grow(dimension: int, choices: list[int], *, seed: int) -> Partition:
    """Cut one leaf after the other, each along the axis of Algorithm 1."""
    partition = Partition(dimension)
    for choice in choices:
        leaves = list(partition.leaves())
        path = leaves[choice % len(leaves)]
        axis = max_edge_axis(partition.box(path), path=path, seed=seed)
        assert axis is not None
        partition = partition.cut(path, axis=axis)
    return partition


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    choices = draw(st.lists(st.integers(0, 10**6), max_size=60))
    return grow(draw(st.integers(1, 5)), choices, seed=draw(st.integers(0, 2**53)))


@st.composite
def partitions_with_sets(draw: st.DrawFn) -> Partition:
    """Some axes are split at midpoints, and one at least into sets of 3 to 20 levels."""
    levels = tuple(draw(st.lists(st.sampled_from([0, 3, 4, 8, 9, 20]), min_size=1, max_size=4)))
    levels = (*levels, draw(st.integers(3, 20)))
    partition = Partition(len(levels), {}, levels)
    for _ in range(draw(st.integers(0, 15))):
        leaves = list(partition.leaves())
        path = leaves[draw(st.integers(0, 10**6)) % len(leaves)]
        axis = draw(st.integers(0, len(levels) - 1))
        if levels[axis]:
            here = sorted(partition.places(path, axis))
            if len(here) < 2:
                continue
            up = draw(st.sets(st.sampled_from(here), min_size=1, max_size=len(here) - 1))
            partition = replace(partition, sets={**partition.sets, path: frozenset(up)})
        partition = partition.cut(path, axis=axis)
    return partition


@st.composite
def knots(draw: st.DrawFn) -> Knots:
    """The scale of an axis: 31 numbers that rise between 0 and 1, some near each other."""
    inside = st.floats(0, 1, exclude_min=True, exclude_max=True)
    kinds = st.one_of(inside, st.integers(1, 2**10 - 1).map(lambda numerator: numerator / 2**10))
    return (0.0, *sorted(draw(st.sets(kinds, min_size=31, max_size=31))), 1.0)


@st.composite
def partitions_with_scales(draw: st.DrawFn) -> Partition:
    """Splits along any axis; some axes have scales, and some are split into sets."""
    partition = draw(st.one_of(partitions(), partitions_with_sets()))
    levels = partition.levels or (0,) * partition.dimension
    numbers = [axis for axis, count in enumerate(levels) if not count]
    scaled = draw(st.sets(st.sampled_from(numbers))) if numbers else set()
    return replace(partition, scales={axis: draw(knots()) for axis in sorted(scaled)})


def position(levels: int) -> st.SearchStrategy[float]:
    """Where somebody may be along an axis: anywhere, or in the middle of a level."""
    if not levels:
        return COORDINATE
    middles = st.integers(0, levels - 1).map(lambda level: (level + 0.5) / levels)
    return st.one_of(middles, st.sampled_from([0.0, 1.0]))


def point_of(partition: Partition, path: str) -> tuple[float, ...]:
    """Somebody in a bin: in the middle of its edges, and in the last of its levels."""
    return tuple(
        (max(partition.places(path, axis)) + 0.5) / levels if levels else (low + high) / 2
        for axis, (levels, (low, high)) in enumerate(
            zip(partition.levels, partition.box(path), strict=True)
        )
    )
