"""Partitions and points, drawn by hypothesis."""

from hypothesis import strategies as st

from sottovoce.shared.partition import Partition, max_edge_axis

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
