"""What every method must do: when an operator amends a running experiment."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

import sottovoce as sv
from contracts.methods import Make, anybody, grown
from sottovoce.shared.amending import draft
from sottovoce.shared.amendment import ARCHIVE, EXTEND_HORIZON, PAUSE, RESUME, STOP

MORNING = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def amend(learner: sv.Learner, kind: str, **about: Any) -> None:
    learner.amend(draft(learner.experiment, kind, by="operator", made=MORNING, **about))


def test_each_amendment_makes_a_release_and_is_in_the_history(make: Make) -> None:
    learner = grown(make)
    for kind, about in [(PAUSE, {}), (EXTEND_HORIZON, {"horizon": 900}), (STOP, {}), (ARCHIVE, {})]:
        before, reports = learner.release(), sum(learner.status().reports.values())
        amend(learner, kind, **about)
        release = learner.release()
        assert release.version == before.version + 1
        assert release.bins == before.bins
        assert release.experiment == learner.experiment
        last = learner.history()[-1]
        assert (last.reports, last.event) == (
            reports,
            sv.Amended(release.version, learner.experiment.amendments[-1]),
        )
        assert sv.Learner.from_json(learner.to_json()).to_json() == learner.to_json()
    assert learner.experiment.horizon == 900


def test_an_amendment_that_is_refused_changes_nothing(make: Make) -> None:
    learner = grown(make)
    before = learner.to_json()
    with pytest.raises(sv.ExperimentError, match="must be one of"):
        amend(learner, RESUME)
    with pytest.raises(sv.ExperimentError, match="an extended horizon must be more than"):
        amend(learner, EXTEND_HORIZON, horizon=1)
    assert learner.to_json() == before


@pytest.mark.parametrize("kind", [PAUSE, STOP, ARCHIVE])
def test_reports_are_counted_and_no_step_is_taken_unless_it_is_running(
    make: Make, kind: str
) -> None:
    rng, learner = random.Random(1), grown(make, epsilon=64.0)
    amend(learner, kind)
    release, count = learner.release(), sum(learner.status().reports.values())
    history = learner.history()
    for number in range(1, 301):
        learner.receive(anybody(rng, release))
        assert sum(learner.status().reports.values()) == count + number
    assert learner.release() == release
    assert learner.history() == history
    if kind == PAUSE:
        amend(learner, RESUME)
        for _ in range(20_000):
            learner.receive(anybody(rng, learner.release()))
            if learner.release().version > release.version + 1:
                return
        raise AssertionError("a learner that goes on must decide again")
