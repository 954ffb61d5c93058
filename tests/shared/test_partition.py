from fractions import Fraction
from math import prod
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.shared.errors import WireError
from sottovoce.shared.partition import Box, Partition, longest_edges, max_edge_axis
from support.partitions import COORDINATE, partitions


def volume(box: Box) -> Fraction:
    return prod((Fraction(high) - Fraction(low) for low, high in box), start=Fraction(1))


def holds(box: Box, point: tuple[float, ...]) -> bool:
    """Half-open, and closed at 1."""
    return all(
        low <= x and (x < high or high == x == 1) for (low, high), x in zip(box, point, strict=True)
    )


@given(partitions(), st.data())
def test_every_point_lies_in_exactly_one_bin(partition: Partition, data: st.DataObject) -> None:
    point = data.draw(st.tuples(*[COORDINATE] * partition.dimension))
    homes = [leaf for leaf in partition.leaves() if holds(partition.box(leaf), point)]
    assert homes == [partition.find(point)]


@given(partitions())
def test_the_bins_tile_the_cube_with_no_gap_or_overlap(partition: Partition) -> None:
    # Disjoint boxes whose volumes add up to exactly 1 leave no gap.
    boxes = [partition.box(leaf) for leaf in partition.leaves()]
    assert sum(map(volume, boxes)) == 1
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            assert any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))


@given(st.integers(1, 3), st.integers(0, 2**53), st.data())
def test_it_holds_down_to_the_deepest_bin(dimension: int, seed: int, data: st.DataObject) -> None:
    """Follow one point until no edge can be halved again."""
    point = data.draw(st.tuples(*[COORDINATE] * dimension))
    partition = Partition(dimension)
    while True:
        path = partition.find(point)
        box = partition.box(path)
        assert holds(box, point)
        axis = max_edge_axis(box, path=path, seed=seed)
        if axis is None:
            break
        partition = partition.cut(path, axis=axis)
    assert len(path) == 48 * dimension
    assert volume(box) == Fraction(1, 2 ** len(path))
    assert sum(volume(partition.box(leaf)) for leaf in partition.leaves()) == 1


@given(partitions())
def test_every_cut_is_along_one_of_the_longest_edges(partition: Partition) -> None:
    for path, axis in partition.cuts.items():
        before = Partition(
            partition.dimension, {p: a for p, a in partition.cuts.items() if p != path}
        )
        assert axis in longest_edges(before.box(path))


@given(st.integers(1, 4), st.integers(0, 2**53), st.randoms())
def test_a_replay_is_identical_in_whatever_order_bins_are_cut(
    dimension: int,
    seed: int,
    random: Random,
) -> None:
    def full(depth: int) -> Partition:
        partition = Partition(dimension)
        while shallow := [leaf for leaf in partition.leaves() if len(leaf) < depth]:
            path = random.choice(shallow)
            axis = max_edge_axis(partition.box(path), path=path, seed=seed)
            assert axis is not None
            partition = partition.cut(path, axis=axis)
        return partition

    assert full(4) == full(4)


def test_each_of_the_longest_edges_is_drawn_as_often_as_the_others() -> None:
    # 6000 seeds, 3 axes: beyond 6 standard deviations once in 10^8 sets of hashes; none is drawn
    # at random here, so this passes for good or fails for good.
    cube: Box = ((0.0, 1.0),) * 3
    axes = [max_edge_axis(cube, path="", seed=seed) for seed in range(6000)]
    for axis in range(3):
        assert abs(axes.count(axis) - 2000) < 6 * (6000 / 3 * 2 / 3) ** 0.5


def test_the_draws_of_different_bins_differ() -> None:
    cube: Box = ((0.0, 1.0),) * 2
    paths = [format(number, "08b") for number in range(256)]
    axes = [max_edge_axis(cube, path=path, seed=1) for path in paths]
    assert abs(axes.count(0) - 128) < 6 * 8


@given(partitions())
def test_cuts_survive_the_wire(partition: Partition) -> None:
    assert Partition.from_table(partition.dimension, partition.to_table()) == partition


@pytest.mark.parametrize(
    "cuts",
    [
        {"0": 0},
        {"0" * depth: 0 for depth in range(60)},
        {"0" * depth: depth % 2 for depth in range(97)},
        {"": 2},
        {"": -1},
        {"": "0"},
        {"": True},
        {"": 0, "2": 0},
        {"": 0, "00": 0},
        [],
        None,
    ],
)
def test_cuts_that_make_no_tree_are_refused(cuts: object) -> None:
    with pytest.raises(WireError):
        Partition.from_table(2, cuts)


def test_only_a_leaf_can_be_cut() -> None:
    partition = Partition(1).cut("", axis=0)
    for path in ("", "00", "2"):
        with pytest.raises(ValueError, match="the bin to cut must be a leaf"):
            partition.cut(path, axis=0)
