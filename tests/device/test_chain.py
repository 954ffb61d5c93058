"""Releases form a chain, and a device follows one history: never a second text under a version.

Also: the pin is the whole fingerprint, and whatever is refused costs nothing and changes nothing.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.releases import MOST_BLOCKS, Releases
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.signed import BLOCK, block_from_json, block_to_json
from support.fake_server import FakeServer, Key, client_of

CONTEXT = {"age": 42, "bmi": 27.5}


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(experiment(method="whisper"))


def grow(server: FakeServer, until: int) -> None:
    """Publish releases of the server's own chain."""
    while len(server.releases) < until:
        server.publish(replace(server.releases[-1], version=len(server.releases) + 1))


def twin(server: FakeServer, *, at: int, until: int) -> FakeServer:
    """A server with the same key that tells another history from one version on."""
    other = FakeServer(server.learner.experiment)
    other.key = server.key
    grow(other, at - 1)
    first = other.releases[-1]
    settled = (BinPolicy("", (0,), (1.0,)),)
    other.publish(replace(first, version=at, bins=settled))
    grow(other, until)
    return other


def version_of(client: sv.Client) -> int:
    assert client.release is not None
    return client.release.version


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, 2), (1, 3), (1, BLOCK), (5, BLOCK + 1), (BLOCK, BLOCK + 1), (3, 3 * BLOCK + 7)],
)
def test_a_release_that_continues_is_followed(
    server: FakeServer, first: int, second: int, tmp_path: Path
) -> None:
    grow(server, first)
    client = client_of(server, outbox=tmp_path / "outbox")
    assert client.refresh()
    grow(server, second)
    again = client_of(server, outbox=tmp_path / "outbox")  # after a restart, too
    for each in (client, again):
        assert each.refresh()
        assert version_of(each) == second


@pytest.mark.parametrize(("first", "second"), [(2, 2), (2, 3), (2, 9), (2, BLOCK + 9)])
def test_another_history_is_refused_and_the_last_good_release_kept(
    server: FakeServer, first: int, second: int, tmp_path: Path
) -> None:
    grow(server, first)
    ledger = sv.Ledger(tmp_path / "ledger", budget=10)
    client = client_of(server, outbox=tmp_path / "outbox", ledger=ledger)
    assert client.refresh()
    server.instead = twin(server, at=2, until=second).answer
    with pytest.raises(
        sv.ForkError, match=rf"there must be one release 2|continue release {first}"
    ):
        client.refresh()
    assert version_of(client) == first
    assert client.choose(CONTEXT).arm in server.learner.experiment.arms
    assert len(ledger.entries()) == 1
    restarted = client_of(server, outbox=tmp_path / "outbox", ledger=ledger)
    assert version_of(restarted) == first
    server.instead = None
    grow(server, first + 1)
    assert client.refresh()  # the history that it has followed so far goes on


def test_the_same_text_with_another_history_is_refused(server: FakeServer) -> None:
    grow(server, 4)
    client = client_of(server)
    assert client.refresh()
    text = wire.release_to_json(server.releases[-1])
    document = server.key.sign(text, bytes(32))
    server.instead = lambda _: Response(200, {}, document)
    with pytest.raises(sv.ForkError, match="there must be one release 4"):
        client.refresh()


def test_the_first_release_begins_the_chain(server: FakeServer) -> None:
    document = server.key.sign(wire.release_to_json(server.releases[0]), bytes(32))
    server.instead = lambda _: Response(200, {}, document)
    client = client_of(server)
    with pytest.raises(sv.ForkError, match="the first release must begin the chain"):
        client.refresh()
    assert client.release is None


def spoiled(change: Callable[[bytes], bytes], server: FakeServer) -> None:
    def instead(request: Request) -> Response | None:
        if "/chain/" not in request.url:
            return None
        answer = server.answer(request)
        return Response(200, {}, change(answer.body))

    server.instead = instead


@pytest.mark.parametrize(
    "change",
    [
        lambda body: block_to_json(block_from_json(body)[:-2]),  # it stops
        lambda body: block_to_json([]),
        lambda body: block_to_json([bytes(32)] * 5),
        lambda body: block_to_json(block_from_json(body)[::-1]),
        lambda body: block_to_json([*block_from_json(body)[1:], bytes(32)]),
        lambda body: body + b" ",
        lambda body: json.dumps({**json.loads(body), "you": 7}).encode(),
        lambda body: body.replace(b'"sottovoce":5', b'"sottovoce":6'),
        lambda body: body.replace(b'"sottovoce":5', b'"sottovoce":4'),
        lambda body: body.replace(b'"chain"', b'"chains"'),
        lambda body: b"<html>please log in</html>",
        lambda body: b"",
    ],
)
def test_a_chain_that_forks_or_stops_is_refused(
    server: FakeServer, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(server)
    assert client.refresh()
    grow(server, 5)
    spoiled(change, server)
    try:
        moved = client.refresh()
    except sv.ForkError:
        moved = False
    else:
        # Too short: perhaps a cache is behind. It says so, and asks again.
        assert "the chain must go up to release 4; got release" in caplog.text
    assert not moved
    assert version_of(client) == 1
    server.instead = None
    assert client.refresh()
    assert version_of(client) == 5


def test_a_chain_that_cannot_be_had_is_asked_for_again(server: FakeServer) -> None:
    client = client_of(server)
    assert client.refresh()
    grow(server, 5)
    server.instead = lambda request: Response(503, {}, b"") if "/chain/" in request.url else None
    assert not client.refresh()
    assert version_of(client) == 1
    server.instead = None
    assert client.refresh()


def test_a_chain_that_is_too_short_is_no_fork(server: FakeServer) -> None:
    """A cache or another worker may be behind: it is asked again, and nobody is accused."""
    client = client_of(server)
    assert client.refresh()
    grow(server, 5)
    spoiled(lambda body: block_to_json(block_from_json(body)[:-2]), server)
    assert not client.refresh()
    assert version_of(client) == 1
    server.instead = None
    assert client.refresh()


def test_no_server_makes_a_device_ask_without_end(server: FakeServer) -> None:
    client = client_of(server)
    assert client.refresh()
    far = replace(server.releases[0], version=MOST_BLOCKS * BLOCK + 2 * BLOCK)
    document = server.key.sign(wire.release_to_json(far), bytes(32))
    server.instead = lambda _: Response(200, {}, document)
    asked = len(server.seen)
    with pytest.raises(sv.ForkError, match="at most 1048576 releases at once"):
        client.refresh()
    assert len(server.seen) == asked + 1


def test_devices_ask_for_whole_blocks_only(server: FakeServer) -> None:
    """Whoever follows any of 256 releases sends the same requests."""
    seen = set()
    for known in (2, 77, BLOCK - 1):
        one = FakeServer(server.learner.experiment)
        grow(one, known)
        client = client_of(one)
        client.refresh()
        grow(one, BLOCK + 2)
        one.seen.clear()
        client.refresh()
        seen.add(tuple((each.url, tuple(each.headers.items())) for each in one.seen))
    assert len(seen) == 1


def test_a_report_belongs_to_a_text_and_not_to_a_number(server: FakeServer) -> None:
    """A report for the second text of a version is refused by whoever published the first."""
    other = twin(server, at=2, until=2)
    learner = sv.Learner(server.learner.experiment)
    device = sv.Device(other.releases[-1])
    device.choose(CONTEXT)
    with pytest.raises(sv.ReportRejected) as caught:
        learner.receive(device.report(reward=1.0))
    assert caught.value.reason is sv.Rejection.UNKNOWN_RELEASE


# Several processes, threads and keys.


def test_processes_that_share_an_outbox_follow_one_history(
    server: FakeServer, tmp_path: Path
) -> None:
    grow(server, 5)
    one, two = (client_of(server, outbox=tmp_path / "outbox") for _ in range(2))
    one.refresh()
    grow(server, 8)
    assert two.refresh()
    assert version_of(two) == 8
    # The first has not looked since version 5, and is shown a history that leaves at 6.
    server.instead = twin(server, at=6, until=9).answer
    with pytest.raises(sv.ForkError, match="continue release 8"):
        one.refresh()
    assert version_of(one) == 8
    server.instead = None
    grow(server, 12)
    for client in (one, two, client_of(server, outbox=tmp_path / "outbox")):
        client.refresh()
        assert version_of(client) == 12


def test_two_that_begin_together_follow_one_text(server: FakeServer, tmp_path: Path) -> None:
    one, two = (client_of(server, outbox=tmp_path / "outbox") for _ in range(2))
    grow(server, 5)
    assert one.refresh()
    server.instead = twin(server, at=5, until=5).answer
    with pytest.raises(sv.ForkError, match="there must be one release 5"):
        two.refresh()
    assert two.document == one.document


def test_a_slow_look_does_not_undo_what_another_thread_has_followed(server: FakeServer) -> None:
    grow(server, 5)
    client = client_of(server)
    assert client.refresh()
    other = twin(server, at=6, until=7)
    nested: list[Request] = []

    def instead(request: Request) -> Response | None:
        if not nested:
            nested.append(request)
            return other.answer(request)
        if len(nested) == 1 and "/chain/" in request.url:
            nested.append(request)
            server.instead = None
            grow(server, 9)
            assert client.refresh()  # as another thread would, while this one waits
            server.instead = instead
            return other.answer(request)
        return None

    server.instead = instead
    with suppress(sv.ForkError):
        client.refresh()
    assert version_of(client) == 9


def test_while_a_key_changes_the_history_goes_on(server: FakeServer, tmp_path: Path) -> None:
    grow(server, 5)
    old, server.key = server.key, Key()
    keys = [old.public.hex(), server.key.public.hex()]
    first, server.key = server.key, old
    assert client_of(server, outbox=tmp_path / "outbox").refresh()
    server.key = first
    client = client_of(server, outbox=tmp_path / "outbox", keys=keys)
    server.instead = twin(server, at=3, until=9).answer
    with pytest.raises(sv.ForkError, match="continue release 5"):
        client.refresh()
    server.instead = None
    grow(server, 7)
    assert client.refresh()
    # Who trusts the new key alone is not bound by what the old one has signed.
    alone = client_of(server, outbox=tmp_path / "other", keys=keys[1:])
    assert alone.refresh()
    assert version_of(alone) == 7


def test_a_marked_copy_is_refused_and_said_to_be_one(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(server)
    table = {**json.loads(server.document()), "you": "number 7"}
    marked = canonical_json(table)
    server.instead = lambda _: Response(200, {}, marked)
    with pytest.raises(sv.WireError, match="canonical form"):
        client.refresh()
    assert client.release is None
    server.instead = None
    assert client.refresh()
    server.instead = lambda _: Response(200, {}, marked)
    client.choose(CONTEXT)
    assert version_of(client) == 1


# The pin.


@pytest.mark.parametrize("digits", [16, 32, 63, 65])
def test_a_short_fingerprint_is_no_pin(server: FakeServer, digits: int) -> None:
    short = (server.experiment + "0")[:digits]
    with pytest.raises(sv.ExperimentError, match="64 hexadecimal digits"):
        client_of(server, experiment=short)


def test_the_whole_fingerprint_is_compared(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two experiments with the same 64 bits, one of which asks for ε = 64."""
    releases = Releases(
        "https://sottovoce.test", experiment=server.experiment, keys=[server.key.public.hex()]
    )
    greedy = FakeServer(experiment(method="whisper", epsilon=64.0))
    greedy.key = server.key
    alike = server.experiment[:16] + greedy.experiment[16:]
    document = greedy.document()
    monkeypatch.setitem(vars(greedy.learner.experiment), "fingerprint", alike)
    monkeypatch.setattr(
        wire, "release_from_json", lambda text: replace_experiment(greedy.learner.release(), alike)
    )
    with pytest.raises(sv.DeviceError, match="a release must be of experiment"):
        releases.verify(document)


def replace_experiment(release: sv.Release, fingerprint: str) -> sv.Release:
    vars(release.experiment)["fingerprint"] = fingerprint
    return release
