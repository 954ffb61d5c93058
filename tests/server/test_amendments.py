"""Amendments over HTTP: an administrator's request, and what becomes of it, on both databases."""

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.lab.local_server import LocalServer
from sottovoce.server.administration import MOST_BYTES
from sottovoce.server.replay import replay
from sottovoce.shared.amending import after_amendments
from support.databases import KINDS, new_database
from support.http import (
    ADMIN,
    JSON,
    Answer,
    ask,
    get,
    metric,
    post,
    receipt,
    release_of,
    report_for,
    serving,
    until,
)
from support.pages import Page

WALKING = experiment(name="walking", method="whisper")
OTHERS = [experiment(name="twin", method="whisper", seed=seed) for seed in (1, 2)]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalServer]:
    """Two workers and a learner; no test is long enough to be slow by it."""
    with (
        new_database(request.param, folder=tmp_path) as url,
        serving(tmp_path, [WALKING], database=url, workers=2) as local,
    ):
        yield local


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server whose experiments nobody amends."""
    with serving(tmp_path_factory.mktemp("server"), [WALKING, *OTHERS]) as local:
        yield local


def path_of(of: sv.Experiment = WALKING, part: str = "/amendments") -> str:
    return f"/experiments/{of.fingerprint}{part}"


def amend(server: LocalServer, kind: str, *, by: str = "Ada", **about: Any) -> Answer:
    body = json.dumps({"kind": kind, "by": by, **about})
    return ask(server, "POST", path_of(), body=body, kind=JSON, headers=ADMIN)


def amended(server: LocalServer, kind: str, **about: Any) -> dict[str, Any]:
    """Amend, and wait until a device would get the release."""
    answer = amend(server, kind, **about)
    assert answer.status == 201, answer.body
    number = answer.json()["number"]

    def entry() -> dict[str, Any]:
        found: dict[str, Any] = get(server, path_of()).json()["amendments"][number - 1]
        return found

    until(lambda: entry()["release"] is not None)
    until(lambda: len(release_of(server, WALKING).experiment.amendments) >= number)
    return entry()


def agrees(server: LocalServer) -> None:
    server.wait_until_learned(WALKING)
    found = replay(server.store, WALKING.fingerprint)
    assert (found.troubles, found.waiting) == ((), 0)
    taken = [each for each in server.store.amendments(WALKING.fingerprint) if not each.waits]
    assert len(found.amendments) == len(taken)


def test_an_amendment_is_stored_taken_and_told(server: LocalServer) -> None:
    first = release_of(server, WALKING)
    answer = amend(server, "pause", after=0)
    assert answer.status == 201
    told = answer.json()
    assert (told["number"], told["words"]) == (1, "pause")
    assert told["amendment"]["before"] == WALKING.fingerprint
    assert (told["amendment"]["by"], told["amendment"]["kind"]) == ("Ada", "pause")
    until(lambda: get(server, path_of()).json()["state"] == "paused")
    listed = get(server, path_of()).json()
    assert (listed["experiment"], listed["name"]) == (WALKING.fingerprint, "walking")
    assert listed["amendments"] == [told | {"position": 0, "release": 2}]
    until(lambda: release_of(server, WALKING).version == 2)
    release = release_of(server, WALKING)
    assert release.experiment.state == "paused"
    assert release.experiment == after_amendments(WALKING, release.experiment.amendments)
    assert release.experiment.amendments[0].to_table() == told["amendment"]
    status = get(server, path_of(part="/status")).json()
    assert (status["state"], status["release"]) == ("paused", 2)
    assert status["amendments"] == listed["amendments"]
    # Reports for releases of before are stored and acknowledged still, on every worker.
    for _ in range(4):
        assert post(server, report_for(first)).json() == receipt(stored=1)
    page = Page(get(server, path_of(part="")).body.decode())
    assert page.count("span", "paused") == 1
    for words in ("Amendments", "Ada", "pause", "release 2"):
        assert words in page.text
    agrees(server)


def test_a_request_that_is_sent_again_is_made_once(server: LocalServer) -> None:
    answers = [amend(server, "pause", after=0) for _ in range(3)]
    assert [answer.status for answer in answers] == [201, 200, 200]
    assert len({json.dumps(answer.json()["amendment"]) for answer in answers}) == 1
    other = amend(server, "resume", after=0)
    assert (other.status, other.json()["reason"]) == (409, "amended meanwhile")
    assert amend(server, "resume", after=5).status == 409
    # What another one asked for is not this request, even if it says the same.
    assert amend(server, "pause", by="Bea", after=0).status == 409
    assert amend(server, "resume", after=1).status == 201
    assert amend(server, "pause", after=0).status == 200
    assert len(server.store.amendments(WALKING.fingerprint)) == 2


def test_many_at_once_become_one_chain(server: LocalServer) -> None:
    horizons = range(2000, 2030)

    def extend(horizon: int) -> int:
        return amend(server, "extend horizon", horizon=horizon).status

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(extend, horizons))
    made = server.store.amendments(WALKING.fingerprint)
    assert set(statuses) <= {201, 422, 503}
    assert len(made) == statuses.count(201) >= 1
    assert [each.number for each in made] == list(range(1, len(made) + 1))
    longest = max(each for each, came in zip(horizons, statuses, strict=True) if came == 201)
    until(lambda: release_of(server, WALKING).version == 1 + len(made))
    until(lambda: release_of(server, WALKING).experiment.horizon == longest)  # of either worker
    agrees(server)


def test_who_may_take_part_after_which_amendment(server: LocalServer) -> None:
    first = release_of(server, WALKING)
    sent = report_for(first)
    assert post(server, sent).json() == receipt(stored=1)
    amended(server, "stop")
    assert post(server, report_for(first)).json() == receipt(stored=1)
    for kind in ("pause", "resume", "stop", "extend horizon"):
        about: dict[str, Any] = {"horizon": 10**6} if kind == "extend horizon" else {}
        answer = amend(server, kind, **about)
        assert (kind, answer.status, answer.json()["reason"]) == (kind, 409, "wrong state")
        assert "stopped" in answer.json()["error"]
    amended(server, "archive")
    until(lambda: post(server, report_for(first)).status == 410)

    def ended() -> bool:  # every worker knows of it by then
        return all(post(server, report_for(first)).status == 410 for _ in range(20))

    until(ended)
    before = server.store.length(WALKING.fingerprint)
    last = sv.wire.release_id(release_of(server, WALKING))
    # No device reports on an archived experiment; a client that was changed could try.
    made_up = replace(sv.wire.report_from_bytes(report_for(first)), release=last)
    for report in (report_for(first), sv.wire.report_to_bytes(made_up)):
        answer = post(server, report)
        assert (answer.status, answer.json()) == (
            410,
            {"error": "the report was refused: archived", "reason": "archived"},
        )
    assert post(server, sent).json() == receipt(repeated=1)
    batch = sv.wire.batch_to_bytes([sent, report_for(first), b"sv"])
    refused = [{"index": 2, "reason": "truncated"}, {"index": 1, "reason": "archived"}]
    came = post(server, batch, batch=True).json()
    came["refused"].sort(key=lambda each: -each["index"])
    assert came == receipt(repeated=1, refused=refused)
    assert metric(server, "sottovoce_reports_refused_total", reason="archived") > 2
    assert server.store.length(WALKING.fingerprint) == before
    answer = amend(server, "archive")
    assert (answer.status, answer.json()["reason"]) == (409, "wrong state")
    agrees(server)


def test_amendments_while_reports_flow(server: LocalServer) -> None:
    rng = random.Random(0)
    kinds = ["pause", "resume"]
    first = release_of(server, WALKING)

    def send(_: int) -> int:
        stored, release = 0, first
        for _ in range(20):
            now = release_of(server, WALKING)
            # While it is paused, only reports on choices of before are sent.
            release = now if now.experiment.state == "running" else release
            reports = [report_for(release) for _ in range(rng.randint(1, 20))]
            stored += post(server, sv.wire.batch_to_bytes(reports), batch=True).json()["stored"]
        return stored

    with ThreadPoolExecutor(3) as threads:
        flow = [threads.submit(send, each) for each in range(3)]
        made = 0
        while not all(each.done() for each in flow):
            assert amend(server, kinds[made % 2], after=made).status == 201
            made += 1
        stored = sum(each.result() for each in flow)
    assert stored == server.store.length(WALKING.fingerprint) > 100
    until(lambda: not any(each.waits for each in server.store.amendments(WALKING.fingerprint)))
    places = [each.position or 0 for each in server.store.amendments(WALKING.fingerprint)]
    assert places == sorted(places)
    assert max(places) > 0
    agrees(server)


CANNOT_BE: list[tuple[Any, int]] = [
    (b"", 400),
    (b"{", 400),
    (b"\xff", 400),
    (b"[" * 10_000, 400),
    (b"1" * 5000, 400),
    (b" " * (MOST_BYTES + 1), 413),
    (b'{"kind": "pause", "by": "' + b"a" * MOST_BYTES + b'"}', 413),
    (b"[]", 422),
    (b"{}", 422),
    (b"null", 422),
    ({"kind": "pause"}, 422),
    ({"by": "Ada"}, 422),
    ({"kind": "pause", "by": ""}, 422),
    ({"kind": "pause", "by": "a\nb"}, 422),
    ({"kind": "pause", "by": "\ud800"}, 422),
    ({"kind": "pause", "by": ["Ada"]}, 422),
    ({"kind": "PAUSE", "by": "Ada"}, 422),
    ({"kind": ["pause"], "by": "Ada"}, 422),
    ({"kind": {}, "by": "Ada"}, 422),
    ({"kind": None, "by": "Ada"}, 422),
    ({"kind": "pause", "by": "Ada", "arm": "coach"}, 422),
    ({"kind": "pause", "by": "Ada", "before": "0" * 64}, 422),
    ({"kind": "pause", "by": "Ada", "made": "2026-03-01T09:30:00Z"}, 422),
    ({"kind": "pause", "by": "Ada", "epsilon": 1}, 422),
    ({"kind": "pause", "by": "Ada", "after": -1}, 422),
    ({"kind": "pause", "by": "Ada", "after": 0.5}, 422),
    ({"kind": "pause", "by": "Ada", "after": "0"}, 422),
    ({"kind": "pause", "by": "Ada", "after": True}, 422),
    ({"kind": "pause", "by": "Ada", "after": 7}, 409),
    ({"kind": "resume", "by": "Ada"}, 409),
    ({"kind": "add arm", "by": "Ada"}, 422),
    ({"kind": "add arm", "by": "Ada", "arm": "coach"}, 422),
    ({"kind": "add arm", "by": "Ada", "arm": ""}, 422),
    ({"kind": "add arm", "by": "Ada", "arm": 1}, 422),
    ({"kind": "add arm", "by": "Ada", "arm": "game", "cap": 0}, 422),
    ({"kind": "add arm", "by": "Ada", "arm": "game", "cap": 0.6}, 422),
    ({"kind": "add arm", "by": "Ada", "arm": "game", "cap": "10%"}, 422),
    (b'{"kind": "add arm", "by": "Ada", "arm": "game", "cap": NaN}', 422),
    (b'{"kind": "add arm", "by": "Ada", "arm": "game", "cap": 1e999}', 422),
    ({"kind": "retire arm", "by": "Ada", "arm": "nobody"}, 422),
    ({"kind": "retire arm", "by": "Ada", "arm": "coach", "cap": 0.1}, 422),
    ({"kind": "extend horizon", "by": "Ada", "horizon": 1}, 422),
    ({"kind": "extend horizon", "by": "Ada", "horizon": 2**53 + 1}, 422),
    ({"kind": "extend horizon", "by": "Ada", "horizon": 1e6}, 422),
    ({"kind": "extend horizon", "by": "Ada", "horizon": "many"}, 422),
]


@pytest.mark.parametrize(("body", "status"), CANNOT_BE)
def test_an_amendment_that_cannot_be(lasting: LocalServer, body: Any, status: int) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = ask(lasting, "POST", path_of(), body=data, kind=JSON, headers=ADMIN)
    assert (answer.status, set(answer.json()) - {"reason"}) == (status, {"error"})
    assert "got" not in answer.json()["error"]  # what came may be anything
    assert lasting.store.amendments(WALKING.fingerprint) == []
    assert get(lasting, path_of()).json()["amendments"] == []


def test_requests_that_are_for_nobody(lasting: LocalServer) -> None:
    body = json.dumps({"kind": "pause", "by": "Ada"})
    for kind in ("", "text/plain", "application/toml"):
        assert ask(lasting, "POST", path_of(), body=body, kind=kind, headers=ADMIN).status == 415
    unknown = f"/experiments/{'0' * 64}/amendments"
    for method in ("GET", "POST"):
        answer = ask(lasting, method, unknown, body=body, kind=JSON, headers=ADMIN)
        assert (answer.status, answer.json()["reason"]) == (404, "no such experiment")
    # Without a token nobody learns whether it is there.
    assert ask(lasting, "POST", unknown, body=body, kind=JSON).status == 401
    assert ask(lasting, "PUT", path_of(), headers=ADMIN).status == 405


# All experiments.


def test_all_experiments_are_listed_for_people_and_for_programs(lasting: LocalServer) -> None:
    listed = get(lasting, "/experiments").json()["experiments"]
    assert {each["name"] for each in listed} == {"walking", "twin"}
    assert {each["state"] for each in listed} == {"running"}
    (walking,) = (each for each in listed if each["name"] == "walking")
    assert (walking["people"], walking["retired"]) == (0, [])
    assert walking["experiment"] == WALKING.fingerprint
    for accepted in ("application/json", "text/plain, application/json;q=0.9, text/html"):
        assert get(lasting, "/", Accept=accepted).json() == {"experiments": listed}
    for accepted in ("", "*/*", "text/html,application/xhtml+xml", "text/html, application/json"):
        answer = get(lasting, "/", Accept=accepted)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["vary"] == "accept"
    page = Page(get(lasting, "/").body.decode())
    links = [given["href"] for tag, given in page.tags if tag == "a"]
    assert {path_of(each, "") for each in (WALKING, *OTHERS)} <= set(links)
    assert page.count("span", "running") == 3


def test_a_name_leads_to_the_one_experiment_that_has_it(lasting: LocalServer) -> None:
    answer = get(lasting, "/experiments/walking")
    assert (answer.status, answer.headers["location"]) == (307, path_of(part=""))
    several = get(lasting, "/experiments/twin")
    assert (several.status, several.json()["reason"]) == (404, "ambiguous name")
    nobody = get(lasting, "/experiments/running")
    assert (nobody.status, nobody.json()) == (
        404,
        {"error": "there is no such experiment here", "reason": "no such experiment"},
    )
    # Programs have to know the fingerprint.
    assert get(lasting, "/experiments/walking/status").status == 404
