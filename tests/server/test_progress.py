"""For how many people it is decided what they get, and how many more it takes."""

from dataclasses import replace

import pytest

import sottovoce as sv
from sottovoce.estimate.figures import BinPeople
from sottovoce.estimate.learner import Status
from sottovoce.server.progress import progress_of
from sottovoce.server.status import Event, ExperimentStatus, Snapshot
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release

EXPERIMENT = sv.Experiment(
    arms=["control", "coach"], context=[sv.Numeric("age", 18, 90)], epsilon=1.0, horizon=10_000
)
SHARES = {"00": 0.4, "01": 0.3, "10": 0.2, "11": 0.1}


def status_of(
    history: list[tuple[int, str, int]], *, people: int = 1000, others: int = 0, words: str = ""
) -> ExperimentStatus:
    """Four bins of known size; history: after how many reports each bin dropped which arm."""
    dropped = {path: arm for _, path, arm in history}
    bins = []
    for path in sorted(SHARES):
        gone = next((dropped[path[:n]] for n in range(3) if path[:n] in dropped), None)
        arms = (0, 1) if gone is None else (1 - gone,)
        bins.append(BinPolicy(path, arms, (1.0 / len(arms),) * len(arms)))
    partition = Partition(EXPERIMENT.dimension, {"": 0, "0": 0, "1": 0})
    events = [Event(when, path, (arm,)) for when, path, arm in history]
    events += [Event(10, "", words=words)] if words else []
    snapshot = Snapshot(
        status=Status(2, {"target": people, "clinic": others}, 0, 0, 4, 0, 0),
        history=tuple(events),
        bins=tuple(BinPeople(path, share, 0.01, 0, 0) for path, share in SHARES.items()),
    )
    return ExperimentStatus(
        Release(EXPERIMENT, 2, partition, tuple(bins)), people, people, snapshot
    )


def test_people_count_and_not_contexts() -> None:
    assert progress_of(status_of([(100, "00", 0)])).decided == pytest.approx(0.4)
    assert progress_of(status_of([(100, "1", 1)])).decided == pytest.approx(0.3)


def test_where_nobody_knows_the_people_contexts_count() -> None:
    status = status_of([(100, "11", 0)])
    status = replace(status, snapshot=Snapshot(status=status.snapshot.status))
    assert progress_of(status).decided == pytest.approx(0.25)


def test_the_pace_is_that_of_the_latest_doubling() -> None:
    """At half time 0.6 are undecided, now 0.3: each doubling halves them; 0.05 after 2.58 more."""
    progress = progress_of(status_of([(400, "00", 0), (900, "01", 1)]))
    assert progress.decided == pytest.approx(0.7)
    assert progress.more == 5000  # 1000·(0.3/0.05 - 1)
    assert progress.then == pytest.approx(0.95)


@pytest.mark.parametrize(
    "status",
    [
        status_of([]),
        status_of([(100, "00", 0)]),  # nothing since half time
        status_of([(900, "11", 0)], people=20_000),  # too slow for what is expected
        status_of([(400, "00", 0), (900, "01", 1)], others=500),
        status_of([(400, "00", 0), (900, "01", 1)], words="amended by Ada: retire arm 'coach'"),
        status_of([(100, "0", 0), (600, "1", 1)]),  # all is decided
    ],
)
def test_where_nobody_can_tell_no_number_is_given(status: ExperimentStatus) -> None:
    assert progress_of(status).more is None
