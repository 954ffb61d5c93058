"""The walk with even work finds what the partition says, in the same number of steps for all."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sottovoce as sv
from factories import uniform, unit_cube
from sottovoce.shared.partition import Partition
from sottovoce.shared.walk import Walk, walk_of
from support.partitions import (
    COORDINATE,
    partitions,
    partitions_with_scales,
    partitions_with_sets,
    point_of,
    position,
)


def release_of(partition: Partition) -> sv.Release:
    bins = tuple(uniform(path, 0, 1) for path in partition.leaves())
    return sv.Release(unit_cube(d=partition.dimension), 1, partition, bins)


@given(partitions(), st.data())
def test_a_walk_ends_in_the_bin_that_holds_the_point(
    partition: Partition, data: st.DataObject
) -> None:
    point = data.draw(st.tuples(*[COORDINATE] * partition.dimension))
    release = release_of(partition)
    path = partition.find(point)
    walk = walk_of(release)
    assert walk.find(point) is release.policies[path]
    for axis, (low, high) in enumerate(partition.box(path)):
        assert walk.middle_of_leaf(point, axis=axis) == (low + high) / 2


def test_a_point_on_a_cut_is_in_the_upper_half() -> None:
    release = release_of(Partition(2, {"": 0, "0": 1, "1": 0}))
    points = {(0.5, 0.0): "10", (0.75, 0.0): "11", (0.0, 0.5): "01", (0.0, 0.0): "00"}
    assert {point: walk_of(release).find(point).path for point in points} == points
    # In a leaf that is cut along its feature, the middle is that of the half.
    assert walk_of(release).middle_of_leaf((0.5, 0.0), axis=0) == 0.625


class Counted(Sequence[Any]):
    """Numbers that note how often they are read."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)


PARTS = ("axis", "look", "middle", "levels", "upper", "child", "lower", "higher", "policies")


@pytest.mark.parametrize("deep", [1, 7, 96])
def test_the_shallowest_and_the_deepest_bin_take_the_same_reads(deep: int) -> None:
    # One branch at the lower end of each feature.
    partition = Partition(3, {"0" * depth: depth % 3 for depth in range(deep)})
    walk = walk_of(release_of(partition))
    seen = set()
    for point in ((1.0, 1.0, 1.0), (0.0, 0.9, 0.9), (0.0, 0.0, 0.0)):
        parts: dict[str, Any] = {name: Counted(getattr(walk, name)) for name in PARTS}
        asked = Counted(point)
        counted = Walk(**parts, root=walk.root, steps=walk.steps)
        counted.find(asked)
        counted.middle_of_leaf(asked, axis=1)
        seen.add((asked.reads, *(part.reads for part in parts.values())))
    ((point_reads, axis, look, *_),) = seen
    assert (point_reads, axis, look) == (2 * deep, deep, 2 * deep)


@given(partitions_with_sets(), st.data())
def test_a_walk_over_sets_ends_in_the_bin_that_holds_the_point(
    partition: Partition, data: st.DataObject
) -> None:
    point = data.draw(st.tuples(*map(position, partition.levels)))
    bins = tuple(uniform(path, 0, 1) for path in partition.leaves())
    release = sv.Release(unit_cube(d=partition.dimension), 1, partition, bins)
    path, walk = partition.find(point), walk_of(release)
    assert walk.find(point) is release.policies[path]
    for axis, (levels, (low, high)) in enumerate(
        zip(partition.levels, partition.box(path), strict=True)
    ):
        if levels:
            assert (low, high) == (0.0, 1.0)
            assert min(int(point[axis] * levels), levels - 1) in partition.places(path, axis)
        else:
            assert walk.middle_of_leaf(point, axis=axis) == (low + high) / 2


@given(partitions_with_sets())
def test_a_walk_over_sets_takes_the_same_reads_for_everybody(partition: Partition) -> None:
    bins = tuple(uniform(path, 0, 1) for path in partition.leaves())
    walk = walk_of(sv.Release(unit_cube(d=partition.dimension), 1, partition, bins))
    seen = set()
    for path in partition.leaves():
        point = point_of(partition, path)
        assert partition.find(point) == path
        reads = []
        parts: dict[str, Any] = {name: Counted(getattr(walk, name)) for name in PARTS}
        # Within a node, too: one byte of its levels is read, whichever it is.
        parts["upper"] = Counted([Counted(each) for each in walk.upper])
        asked, counted = Counted(point), Walk(**parts, root=walk.root, steps=walk.steps)
        counted.find(asked)
        for axis in range(partition.dimension):
            counted.middle_of_leaf(asked, axis=axis)
        reads = [asked.reads, *(part.reads for part in parts.values())]
        reads.append(sum(each.reads for each in parts["upper"].values))
        seen.add(tuple(reads))
    (counts,) = seen
    assert counts[0] == counts[-1] == (1 + partition.dimension) * walk.steps


def test_1000_levels_are_found_wherever_they_go() -> None:
    up = frozenset(range(0, 1000, 3)) | {999}
    partition = Partition(1, {"": 0, "1": 0}, (1000,), {"": up, "1": frozenset({999})})
    bins = tuple(uniform(path, 0, 1) for path in partition.leaves())
    walk = walk_of(sv.Release(unit_cube(d=1), 1, partition, bins))
    for level in range(1000):
        expected = "11" if level == 999 else "10" if level % 3 == 0 else "0"
        assert walk.find(((level + 0.5) / 1000,)).path == expected
    # Nobody is there; but if a position were 1, it would be in the last level.
    assert walk.find((1.0,)).path == partition.find((1.0,)) == "11"


def test_a_walk_is_worked_out_for_all_bins_before_anybody_comes() -> None:
    release = release_of(Partition(2, {"": 0, "0": 1}))
    walk = walk_of(release)
    before = dict(release.derived)
    for point in ((0.1, 0.1), (0.1, 0.9), (0.9, 0.9)):
        walk_of(release).find(point)
    assert walk_of(release) is walk
    assert release.derived == before


# --- bounds on what a release may make a device do ------------------------------------------------


def branch(deep: int, *, dimension: int = 3) -> dict[str, int]:
    return {"0" * depth: depth % dimension for depth in range(deep)}


def bushy(splits: int) -> dict[str, int]:
    paths = [""]
    for index in range(splits):
        paths += [paths[index] + "0", paths[index] + "1"]
    return dict.fromkeys(paths[:splits], 0)


def test_bins_may_be_96_splits_deep_and_no_deeper() -> None:
    assert len(Partition.from_table((0, 0, 0), branch(96), {}).cuts) == 96
    with pytest.raises(sv.WireError, match="cuts must make bins at most 96 splits deep; got more"):
        Partition.from_table((0, 0, 0), branch(97), {})


def test_there_may_be_4096_bins_and_no_more() -> None:
    assert len(list(Partition.from_table((0,), bushy(4095), {}).leaves())) == 4096
    with pytest.raises(sv.WireError, match="cuts must make at most 4096 bins; got 4097"):
        Partition.from_table((0,), bushy(4096), {})


def test_an_edge_may_be_halved_48_times_and_no_more() -> None:
    assert len(Partition.from_table((0,), branch(48, dimension=1), {}).cuts) == 48
    with pytest.raises(sv.WireError, match=r"at least 2\^-48 long"):
        Partition.from_table((0,), branch(49, dimension=1), {})
    mixed = {"0" * depth: int(depth % 2 == 1 and depth < 20) for depth in range(59)}
    with pytest.raises(sv.WireError, match=r"at least 2\^-48 long"):
        Partition.from_table((0, 0), mixed, {})


def test_a_context_may_have_1000_features_and_no_more() -> None:
    assert unit_cube(d=1000).dimension == 1000
    with pytest.raises(sv.ExperimentError, match="context must have at most 1000 axes; got 1001"):
        unit_cube(d=1001)
    optional = [sv.Numeric(f"x{j}", 0, 1, optional=True) for j in range(501)]
    assert sv.Experiment(arms=["a", "b"], context=optional[1:], epsilon=1).dimension == 1000
    with pytest.raises(sv.ExperimentError, match="context must have at most 1000 axes; got 1002"):
        sv.Experiment(arms=["a", "b"], context=optional, epsilon=1)


def test_a_release_beyond_the_bounds_is_refused_when_it_is_read() -> None:
    deep = release_of(Partition(3, branch(97)))
    with pytest.raises(sv.WireError, match="at most 96 splits deep"):
        sv.Release.from_table(deep.to_table())


@given(partitions_with_scales(), st.data())
def test_a_walk_on_scales_ends_in_the_bin_of_the_point_and_knows_its_middles(
    partition: Partition, data: st.DataObject
) -> None:
    levels = partition.levels or (0,) * partition.dimension
    point = data.draw(st.tuples(*map(position, levels)))
    release = release_of(partition)
    path, walk = partition.find(point), walk_of(release)
    assert walk.find(point) is release.policies[path]
    for axis, (low, high) in enumerate(partition.edges(path)):
        if not levels[axis]:
            middle = partition.position(axis, (low + high) / 2)
            assert walk.middle_of_leaf(point, axis=axis) == middle


def test_both_middles_are_read_whichever_half_a_person_is_in() -> None:
    tail = tuple((piece / 32) ** 3 for piece in range(33))
    walk = walk_of(release_of(Partition(1, {"": 0}, scales={0: tail})))
    assert walk.middle_of_leaf((0.1,), axis=0) == tail[8]
    assert walk.middle_of_leaf((0.2,), axis=0) == tail[24]
    for point in ((0.1,), (0.2,)):
        parts: dict[str, Any] = {name: Counted(getattr(walk, name)) for name in PARTS}
        Walk(**parts, root=walk.root, steps=walk.steps).middle_of_leaf(point, axis=0)
        assert parts["lower"].reads == parts["higher"].reads == walk.steps
