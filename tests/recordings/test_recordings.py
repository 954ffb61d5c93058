"""What was learned then is learned now: the same releases, to the byte, and the same simulations.

Decisions must be equal. Numbers that are only shown (estimates, certificates) may differ in their
last digits: another order of additions, or another processor, rounds otherwise.
"""

import json
import zlib
from typing import Any

import pytest

import sottovoce as sv
from recordings.cases import LOGS, SIMULATIONS
from recordings.record import HERE, as_recorded, replayed, run, summary
from sottovoce import wire

ROUNDING = 1e-7


def alike(now: Any, then: Any) -> bool:
    """Compare JSON values: numbers up to rounding, all else exactly."""
    if isinstance(then, float) and isinstance(now, float):
        return now == pytest.approx(then, rel=ROUNDING, abs=ROUNDING)
    if isinstance(then, list):
        return len(now) == len(then) and all(map(alike, now, then))
    return bool(now == then)


def recorded_reports(name: str) -> list[bytes]:
    return wire.batch_from_bytes(zlib.decompress((HERE / f"{name}.reports").read_bytes()))


@pytest.mark.parametrize("name", LOGS)
def test_a_replay_gives_the_recorded_releases(name: str) -> None:
    then = json.loads((HERE / f"{name}.json").read_text())
    now = json.loads(json.dumps(replayed(LOGS[name], recorded_reports(name))))
    assert now["last"] == then["last"]
    assert now["releases"] == then["releases"]
    assert now["history"] == then["history"]
    assert now["late"] == then["late"]
    for shown in ("certificates", "estimates", "diagnosis"):
        assert alike(now[shown], then[shown]), shown


@pytest.mark.parametrize("name", LOGS)
def test_many_at_once_give_the_same_release(name: str) -> None:
    learner = sv.Learner(LOGS[name].experiment)
    assert set(learner.receive_many(recorded_reports(name))) == {None}
    then = json.loads((HERE / f"{name}.json").read_text())
    assert json.loads(json.dumps(as_recorded(learner.release()))) == then["last"]


@pytest.mark.parametrize("name", SIMULATIONS)
def test_a_simulation_gives_the_recorded_numbers(name: str) -> None:
    then = json.loads((HERE / "simulations.json").read_text())[name]
    now = summary(run(SIMULATIONS[name]))
    for exact in ("people", "events", "history", "release", "heeded"):
        assert now[exact] == then[exact], exact
    for number in ("regret", "local", "ratios"):
        assert alike(now[number], then[number]), number
