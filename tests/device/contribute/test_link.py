"""How a custodian's run waits for its server, and when it gives up."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from factories import clinic
from sottovoce.device.contribute.journal import Begun, Journal, Pins
from sottovoce.device.contribute.link import Clock, Custodian, Link
from sottovoce.device.device import Device
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.errors import TransportError
from support.custodian_server import CustodianServer
from support.custodians import FakeTime


@pytest.fixture
def server() -> CustodianServer:
    return CustodianServer(clinic())


@pytest.fixture
def journal(server: CustodianServer, tmp_path: Path) -> Iterator[Journal]:
    """A journal in which five reports wait."""
    release = server.learner.release()
    pins = Pins(server.experiment.fingerprint, "clinic-b", 4.0)
    reports = [
        Device(release, population="clinic-b").report_logged(
            {"age": 42, "activity": "low"}, arm="coach", reward=1
        )
        for _ in range(5)
    ]
    with closing(Journal(tmp_path / "journal", pins=pins)) as journal:
        journal.begin(Begun(b"sha", 100, b"name", b"columns", rows=5))
        journal.keep(b"sha", rows=(0, 5), reports=map(wire.report_to_bytes, reports))
        yield journal


def link(
    server: CustodianServer, time: FakeTime, patience: float = 300.0, clock: Clock | None = None
) -> Link:
    custodian = Custodian(
        experiment=server.experiment.fingerprint,
        keys=[server.key],
        population="clinic-b",
        epsilon=4.0,
        transport=server.transport,
        patience=patience,
        clock=clock or time.clock(),
    )
    return Link(server.address, custodian)


def test_reports_are_sent_again_until_they_are_answered(
    server: CustodianServer, journal: Journal
) -> None:
    time = FakeTime()
    answers = iter([(503, {"Retry-After": "7"}), (429, {}), (507, {}), (408, {})])
    server.hook = lambda stage: next(answers, None) if stage == "before" else None
    sending = link(server, time)
    sending.send(journal)
    assert (sending.taken, sending.repeated, dict(sending.refused)) == (5, 0, {})
    assert journal.count(experiment="") == 0
    assert len(time.slept) == 4
    assert 7 <= time.slept[0] <= 8
    assert all(wait <= 2**tries for tries, wait in enumerate(time.slept[1:], start=1))


def test_an_answer_that_was_lost_makes_reports_repeated_and_not_two(
    server: CustodianServer, journal: Journal
) -> None:
    answers: list[tuple[int, dict[str, str]]] = [(502, {})]
    server.hook = lambda stage: answers.pop() if answers and stage == "after" else None
    sending = link(server, FakeTime())
    sending.send(journal)
    assert (sending.taken, sending.repeated) == (5, 5)
    assert len(server.log) == 5
    assert set(server.sent.values()) == {2}


def test_patience_ends_without_a_success_and_keeps_the_reports(
    server: CustodianServer, journal: Journal
) -> None:
    time = FakeTime()
    server.hook = lambda stage: (503, {}) if stage == "before" else None
    with pytest.raises(TransportError, match=r"within 300 s; got status 503. Nothing is lost"):
        link(server, time).send(journal)
    assert time.now <= 300
    assert len(time.slept) > 5
    assert journal.count(experiment="") == 5


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, {}, b"<html>Welcome to the hotel</html>"),
        Response(200, {}, b'{"stored": 1, "repeated": 0, "refused": []}'),
        Response(401, {}, b'{"error": "who are you?"}'),
        Response(404, {}, b"no such page"),
        Response(302, {"location": "https://elsewhere.example"}, b""),
    ],
)
def test_what_is_no_verdict_keeps_the_reports(
    server: CustodianServer, journal: Journal, answer: Response
) -> None:
    sending = link(server, FakeTime(), patience=20)
    sending._transport = lambda request: answer
    with pytest.raises(TransportError, match=f"status {answer.status}"):
        sending.send(journal)
    assert journal.count(experiment="") == 5


def test_a_batch_that_is_too_large_is_cut(server: CustodianServer, journal: Journal) -> None:
    def narrow(request: Request) -> Response:
        if request.url.endswith("/batch") and len(wire.batch_from_bytes(request.body or b"")) > 2:
            return Response(413, {}, json.dumps({"error": "too large"}).encode())
        return server.transport(request)

    time = FakeTime()
    sending = link(server, time)
    sending._transport = narrow
    sending.send(journal)
    assert sending.taken == len(server.log) == 5
    assert time.slept == []


def test_a_release_is_waited_for_too(server: CustodianServer) -> None:
    time = FakeTime()
    answers = iter([(503, {"Retry-After": "20"}), (500, {})])
    server.hook = lambda stage: next(answers, None)
    following = link(server, time)
    assert following.release() == server.learner.release()
    assert len(time.slept) == 2
    assert time.slept[0] >= 20
    server.hook = lambda stage: (503, {"Retry-After": "301"})
    with pytest.raises(TransportError, match="within 300 s; got status 503"):
        following.release()
    # No use waiting for what comes too late.
    assert len(time.slept) == 2


def test_an_address_must_be_one(server: CustodianServer) -> None:
    server.address = "example.org"
    with pytest.raises(TransportError, match="http://"):
        link(server, FakeTime())


# --- turns ----------------------------------------------------------------------------------------


def turn(server: CustodianServer, *, rows: int, work: float, chance: float = 0.0) -> float:
    """Return how long a turn takes, from the release on, if the work takes some time."""
    time = FakeTime()
    clock = Clock(lambda: time.now, time.sleep, lambda: chance)
    following = link(server, time, clock=clock)
    time.now = 1000.0
    following.release()
    time.now += work
    following.wait_for_turn(rows)
    return time.now - 1000.0


def test_a_turn_takes_as_long_whatever_the_work(server: CustodianServer) -> None:
    whole = turn(server, rows=500, work=0.0)
    assert whole > 0
    assert turn(server, rows=500, work=0.5 * whole) == pytest.approx(whole)
    assert turn(server, rows=500, work=0.99 * whole) == pytest.approx(whole)


def test_a_turn_depends_on_how_many_rows_it_has(server: CustodianServer) -> None:
    none, some, more = (turn(server, rows=rows, work=0.0) for rows in (0, 1000, 2000))
    assert 0 < none < some < more
    assert more - some == pytest.approx(some - none)
    # A hundred thousand rows take minutes, not hours.
    assert turn(server, rows=100_000, work=0.0) < 300


def test_a_turn_that_was_too_short_takes_whole_turns_more(server: CustodianServer) -> None:
    whole = turn(server, rows=500, work=0.0)
    assert turn(server, rows=500, work=1.01 * whole) == pytest.approx(2 * whole)
    assert turn(server, rows=500, work=1.7 * whole) == pytest.approx(2 * whole)
    assert turn(server, rows=500, work=4.3 * whole) == pytest.approx(5 * whole)


def test_chance_makes_a_turn_a_little_longer_and_never_shorter(server: CustodianServer) -> None:
    whole = turn(server, rows=500, work=0.0)
    late = turn(server, rows=500, work=0.0, chance=0.999)
    assert whole < late < 1.5 * whole
    assert turn(server, rows=500, work=0.9 * whole, chance=0.999) == pytest.approx(late)
