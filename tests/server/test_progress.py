"""For how many people it is decided what they get."""

from dataclasses import replace

import pytest

import sottovoce as sv
from sottovoce.estimate.figures import BinPeople
from sottovoce.server.progress import decided_share
from sottovoce.server.status import ExperimentStatus, Snapshot
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release

EXPERIMENT = sv.Experiment(
    arms=["control", "coach"], context=[sv.Numeric("age", 18, 90)], epsilon=1.0, horizon=10_000
)
SHARES = {"00": 0.4, "01": 0.3, "10": 0.2, "11": 0.1}


def status_of(decided: dict[str, int]) -> ExperimentStatus:
    """Four bins of known size; decided: which arm each has left."""
    bins = []
    for path in sorted(SHARES):
        left = next((decided[path[:n]] for n in range(3) if path[:n] in decided), None)
        arms = (0, 1) if left is None else (left,)
        bins.append(BinPolicy(path, arms, (1.0 / len(arms),) * len(arms)))
    partition = Partition(EXPERIMENT.dimension, {"": 0, "0": 0, "1": 0})
    people = tuple(BinPeople(path, share, 0.01, 0, 0) for path, share in SHARES.items())
    release = Release(EXPERIMENT, 2, partition, tuple(bins))
    return ExperimentStatus(release, 1000, 1000, Snapshot(bins=people))


def test_people_count_and_not_contexts() -> None:
    assert decided_share(status_of({"00": 1})) == pytest.approx(0.4)
    assert decided_share(status_of({"1": 0})) == pytest.approx(0.3)


def test_where_nobody_knows_the_people_contexts_count() -> None:
    status = replace(status_of({"11": 1}), snapshot=Snapshot())
    assert decided_share(status) == pytest.approx(0.25)


def test_at_the_end_it_is_decided_for_all() -> None:
    assert decided_share(status_of({"0": 1, "1": 0})) == 1
    assert decided_share(status_of({})) == 0
