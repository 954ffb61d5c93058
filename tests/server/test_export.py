"""A release and its estimates, out of a database."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import sottovoce as sv
from factories import grown_whisper
from sottovoce.server.export import learned
from sottovoce.server.status import Snapshot
from sottovoce.server.store.log import LoggedRelease
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from support.databases import KINDS, new_database


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_database(request.param, folder=tmp_path) as url:
        store = Store.open(url)
        store.migrate()
        yield store
        store.close()


def table_of(experiment: sv.Experiment) -> str:
    return json.dumps(experiment.to_table())


def fill(store: Store, learner: sv.Learner, *, snapshot_of: int) -> list[sv.Release]:
    """Publish three releases, and a snapshot of the learner that is of one of them."""
    releases = [replace(learner.release(), version=version) for version in (1, 2, 3)]
    texts = [wire.release_to_json(each) for each in releases]
    fingerprint = learner.experiment.fingerprint
    store.add_experiment(fingerprint, table_of(learner.experiment), texts[0])
    snapshot = Snapshot.of(learner)
    assert snapshot.status is not None
    status = replace(snapshot.status, release=snapshot_of)
    session = store.learner_session(fingerprint)
    assert session is not None
    session.publish(
        [LoggedRelease(version, 0, texts[version - 1]) for version in (2, 3)],
        snapshot=(0, msgspec.structs.replace(snapshot, status=status).to_json()),
    )
    session.close()
    return releases


def test_the_estimates_of_a_release_are_those_of_its_own_snapshot(store: Store) -> None:
    learner = grown_whisper()
    releases = fill(store, learner, snapshot_of=2)
    known = {
        (each.path, learner.experiment.arms.index(each.arm)): (each.estimate, each.radius)
        for each in learner.estimates()
        if each.live and each.estimate is not None
    }
    assert known
    for version, estimates in ((1, {}), (2, known), (3, {}), (None, {})):
        found = learned(store, experiment=None, version=version)
        assert found.release == releases[(version or 3) - 1]
        assert found.estimates == estimates


def test_a_database_without_a_snapshot_has_no_estimates(store: Store) -> None:
    learner = grown_whisper()
    release = replace(learner.release(), version=1)
    experiment = learner.experiment
    table = table_of(experiment)
    store.add_experiment(experiment.fingerprint, table, wire.release_to_json(release))
    assert learned(store, experiment=None, version=None).estimates == {}


def test_an_empty_database_has_no_policy(store: Store) -> None:
    with pytest.raises(sv.PolicyError, match=r"which has none\); got none"):
        learned(store, experiment=None, version=None)
    with pytest.raises(sv.PolicyError, match=r"which has none\); got 'ab'"):
        learned(store, experiment="ab", version=None)
