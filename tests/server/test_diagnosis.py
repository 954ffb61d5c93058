"""The diagnosis as a server keeps it: plain, now and then, and of no influence."""

import json
import math
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.estimate.diagnosis import Audit, Diagnosis, Source
from sottovoce.server.diagnosis import DiagnosisCache, DiagnosisSummary, diagnosis_to_table
from sottovoce.server.learning import ExperimentLearner
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from support.whispers import person

CLINIC = sv.Population("clinic-b", 4.0, 500)
WHISPER: dict[str, Any] = {"method": "whisper", "epsilon": 4.0, "release_every": 20}


def learner_of(**settings: Any) -> sv.Learner:
    return sv.Learner(experiment(**{**WHISPER, "auxiliary": [CLINIC], **settings}))


def come(rng: random.Random, learner: sv.Learner) -> None:
    logged = rng.random() < 0.5
    learner.receive(person(rng, learner.release(), population=int(logged), logged=logged))


def test_a_diagnosis_is_plain_json() -> None:
    source = Source(
        population="clinic-b",
        epsilon=4.0,
        reports=100,
        expected=400,
        worth=0.5,
        exploration=1.0,
        overlap=math.nan,
        promises=0.25,
        harmful=True,
    )
    audit = Audit(0, delivered=0.5, promised=0.5, at_random=0.5, standard_error=math.inf)
    table = diagnosis_to_table(Diagnosis((source,), audit))
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    (told,) = table["sources"]
    assert told["harmful"] is True
    assert told["overlap"] is None
    assert (told["effective_users"], told["expected_users"]) == (50, 200)
    assert table["audit"]["standard_error"] is None
    assert (table["audit"]["holds"], table["audit"]["falls_short"]) == (False, False)
    assert "clinic-b seems to mislead" in table["warnings"][0]
    assert diagnosis_to_table(Diagnosis((source,), None))["audit"] is None


@pytest.mark.parametrize("behaviour", [None, [0.5, 0.25, 0.25]])
def test_looking_changes_nothing_that_is_learned(behaviour: list[float] | None) -> None:
    auxiliary = [sv.Population("clinic-b", 4.0, 500, behaviour)]
    looked, left = learner_of(auxiliary=auxiliary), learner_of(auxiliary=auxiliary)
    rng, same = random.Random(1), random.Random(1)
    for came in range(1, 301):
        come(rng, looked)
        come(same, left)
        summary = DiagnosisSummary.of(looked)
        assert summary is not None
        assert summary.learned == came
        json.dumps(msgspec.to_builtins(summary), allow_nan=False)
    assert looked.to_json() == left.to_json()


def test_an_experiment_of_its_own_people_has_none() -> None:
    learner = learner_of(auxiliary=[])
    assert DiagnosisSummary.of(learner) is None
    cache = DiagnosisCache(learner)
    assert not cache.is_due(0)
    assert cache.at(0, at_once=True) is None


class Clock:
    """Time that passes when it is told to, and by a second for each diagnosis."""

    def __init__(self) -> None:
        self.now, self.looks = 1000.0, 0

    def monotonic(self) -> float:
        return self.now

    def look(self, learner: sv.Learner) -> DiagnosisSummary:
        self.now += 1
        self.looks += 1
        return DiagnosisSummary(self.looks)


def test_a_diagnosis_takes_a_twentieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("sottovoce.server.diagnosis.time", clock)
    monkeypatch.setattr(DiagnosisSummary, "of", clock.look)
    cache = DiagnosisCache(learner_of())
    for position in range(1000):
        if cache.is_due(position):
            cache.at(position)
        assert cache.at(position) == DiagnosisSummary(clock.looks)
        clock.now += 0.5
    passed = clock.now - 1000
    assert 0.04 * passed < clock.looks < 0.06 * passed
    # Nothing new: nothing to look for.
    clock.now += 100
    assert cache.at(2000) == DiagnosisSummary(clock.looks)
    looks = clock.looks
    clock.now += 100
    assert not cache.is_due(2000)
    assert cache.at(2000, at_once=True) == DiagnosisSummary(looks)
    # At once means now, due or not.
    assert cache.at(2001, at_once=True) == DiagnosisSummary(looks + 1)
    assert cache.at(2002) == DiagnosisSummary(looks + 1)
    assert cache.at(2002, at_once=True) == DiagnosisSummary(looks + 2)


def test_a_diagnosis_that_is_not_due_yet_follows_when_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.server.learning.SNAPSHOT_EVERY_IDLE", 0.0)
    monkeypatch.setattr("sottovoce.server.learning.SNAPSHOT_EVERY", 0.0)
    monkeypatch.setattr("sottovoce.server.diagnosis.SHARE", 1e-9)  # one look in a lifetime
    learner, rng = learner_of(), random.Random(2)
    name, release = learner.experiment.fingerprint, learner.release()
    store = Store.open(f"sqlite:///{tmp_path}/store.db")
    store.migrate()
    text = canonical_json(learner.experiment.to_table()).decode()
    store.add_experiment(name, text, wire.release_to_json(release))

    def told() -> tuple[int, int]:
        position, snapshot = store.snapshot(name) or (-1, "{}")
        return position, json.loads(snapshot)["diagnosis"]["learned"]

    def send(count: int) -> None:
        reports = [person(rng, release, population=1, logged=True) for _ in range(count)]
        store.append(name, [(each.nonce, wire.report_to_bytes(each)) for each in reports])

    session = store.learner_session(name)
    assert session is not None
    follower = ExperimentLearner(session, learner.experiment)
    send(5)
    follower.poll()
    assert told() == (5, 5)
    send(5)
    follower.poll()
    follower.poll()
    assert told() == (10, 5)
    follower._diagnosis._due = -math.inf
    follower.poll()  # although nothing else is new
    assert told() == (10, 10)
    send(3)
    follower.poll()
    assert told() == (13, 10)
    follower.poll()
    follower.close()
    assert told() == (13, 13)
    store.close()
