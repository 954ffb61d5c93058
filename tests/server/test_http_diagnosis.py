"""What auxiliary data brings, as a real server tells it on both databases."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.lab.local_server import LocalServer
from sottovoce.server.store.log import ExperimentLog
from sottovoce.shared import wire
from support.databases import KINDS, new_database
from support.http import get, metric, post, release_of, serving, until

CLINIC = sv.Population("clinic-b", 4.0, 500)
METHODS = {
    "whisper": experiment(name="whisper", method="whisper", auxiliary=[CLINIC]),
    "ldpmab": experiment(name="ldpmab", auxiliary=[CLINIC]),
}
ALONE = experiment(name="alone", method="whisper")
ROWS = 30


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    with (
        new_database(request.param, folder=folder) as url,
        serving(folder, [*METHODS.values(), ALONE], database=url) as local,
    ):
        yield local


def address(of: sv.Experiment, part: str = "/diagnosis") -> str:
    return f"/experiments/{of.fingerprint}{part}"


def rows(release: sv.Release) -> bytes:
    """Reports of a clinic on its rows."""
    devices = [sv.Device(release, population="clinic-b") for _ in range(ROWS)]
    arms = release.experiment.arms
    reports = [
        device.report_logged(CONTEXT, arm=arms[i % len(arms)], reward=1.0)
        for i, device in enumerate(devices)
    ]
    return wire.batch_to_bytes([wire.report_to_bytes(report) for report in reports])


@pytest.mark.parametrize("method", METHODS)
def test_the_diagnosis_follows_the_reports(server: LocalServer, method: str) -> None:
    of = METHODS[method]
    until(lambda: get(server, address(of)).json()["sources"])
    before = get(server, address(of)).json()
    (source,) = before["sources"]
    assert (before["learned"], source["reports"], source["effective_users"]) == (0, 0, 0)
    assert source["expected_users"] > 0
    assert "no reports yet" in get(server, address(of, "")).body.decode()
    assert post(server, rows(release_of(server, of)), batch=True).json()["stored"] == ROWS
    until(lambda: get(server, address(of)).json()["learned"] == ROWS)
    told = get(server, address(of)).json()
    assert told.keys() == {"learned", "sources", "audit", "warnings"}
    (source,) = told["sources"]
    assert (source["population"], source["epsilon"]) == ("clinic-b", 4)
    assert (source["reports"], source["expected"], source["harmful"]) == (ROWS, 500, False)
    assert source["effective_users"] == pytest.approx(ROWS / 500 * source["expected_users"])
    assert source["effective_users"] > 0
    assert (told["audit"] is None) == (method == "ldpmab")
    labels = {"experiment": of.fingerprint, "population": "clinic-b"}
    users = metric(server, "sottovoce_effective_users", **labels)
    assert users == pytest.approx(source["effective_users"])
    assert f'sottovoce_harmful{{experiment="{of.fingerprint}",population="clinic-b"}} 0.0' in (
        get(server, "/metrics").body.decode()
    )
    page = get(server, address(of, "")).body.decode()
    assert "Auxiliary data" in page
    assert "no reports yet" not in page
    assert f'href="{of.fingerprint}/diagnosis"' in page


def test_where_nobody_helps_there_is_nothing_to_tell(server: LocalServer) -> None:
    empty = {"learned": 0, "sources": [], "audit": None, "warnings": []}
    assert get(server, address(ALONE)).json() == empty
    assert "Auxiliary data" not in get(server, address(ALONE, "")).body.decode()
    named = re.findall(r'harmful{experiment="(\w+)"', get(server, "/metrics").body.decode())
    assert sorted(named) == sorted(each.fingerprint for each in METHODS.values())


def test_a_snapshot_from_before_there_was_a_diagnosis_has_none(server: LocalServer) -> None:
    of = METHODS["whisper"]
    server.wait_until_learned(of)
    learned = get(server, address(of, "/status")).json()["learned"]
    until(lambda: get(server, address(of)).json()["learned"] == learned)
    found = server.store.snapshot(of.fingerprint)
    assert found is not None
    older = {name: each for name, each in json.loads(found[1]).items() if name != "diagnosis"}
    with server.store._database.transaction(writes=True) as connection:
        log = ExperimentLog.of(connection, of.fingerprint)
        log.replace_latest("standing", found[0], json.dumps(older))
    told = get(server, address(of)).json()
    assert told == {"learned": learned, "sources": [], "audit": None, "warnings": []}
    assert get(server, address(of, "")).status == 200
    assert get(server, "/metrics").status == 200
