import asyncio
import dataclasses
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from support.fake_server import (
    ADDRESS,
    FakeClock,
    FakeServer,
    Key,
    answer,
    async_client_of,
    client_of,
)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(experiment(method="whisper", release_every=10))


def newer(server: FakeServer, version: int) -> sv.Release:
    return dataclasses.replace(server.learner.release(), version=version)


def serve(server: FakeServer, document: bytes) -> None:
    """Serve this as the release, whatever it is."""

    def instead(request: Request) -> Response | None:
        return Response(200, {}, document) if request.method == "GET" else None

    server.instead = instead


def test_a_person_is_served_and_the_learner_learns(server: FakeServer) -> None:
    client = client_of(server)
    decision = client.choose(CONTEXT)
    assert decision.arm in server.learner.experiment.arms
    client.report(decision, reward=1.0)
    assert client.waiting == 1
    assert client.flush()
    assert server.learner.status().reports == {"target": 1}
    assert (client.waiting, client.refused) == (0, {})
    assert [(each.method, each.url) for each in server.seen] == [
        ("GET", f"{ADDRESS}/experiments/{server.experiment}/releases/current"),
        ("POST", f"{ADDRESS}/reports"),
    ]


def test_a_slash_at_the_end_of_the_address_does_not_matter(server: FakeServer) -> None:
    client = sv.Client(
        "http://sottovoce.test/",
        experiment=server.experiment,
        keys=[server.key.public.hex()],
        most_epsilon=1.0,
        transport=server,
    )
    client.refresh()
    assert server.seen[0].url.startswith("http://sottovoce.test/experiments/")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"server": "ftp://sottovoce.test"}, sv.TransportError),
        ({"server": "sottovoce.test"}, sv.TransportError),
        ({"experiment": "walking"}, sv.ExperimentError),
        ({"experiment": None}, sv.ExperimentError),
        ({"keys": []}, sv.SignatureError),
        ({"keys": ["00" * 32]}, sv.SignatureError),  # of small order
        ({"keys": ["ab" * 31]}, sv.SignatureError),
        ({"keys": ["no key"]}, sv.SignatureError),
        ({"keys": [None]}, sv.SignatureError),
        ({"most_epsilon": None}, sv.ExperimentError),
        ({"most_epsilon": 0}, sv.ExperimentError),
        ({"most_epsilon": float("inf")}, sv.ExperimentError),
    ],
)
def test_settings_that_cannot_be_are_refused(
    server: FakeServer, settings: dict[str, Any], error: type[Exception]
) -> None:
    good: dict[str, Any] = {
        "experiment": server.experiment,
        "keys": [server.key.public.hex()],
        "server": ADDRESS,
        "most_epsilon": 1.0,
    }
    sv.Client(**good)
    with pytest.raises(error):
        sv.Client(**{**good, **settings})


def test_a_release_by_an_untrusted_key_is_refused(server: FakeServer) -> None:
    client = client_of(server, keys=[Key().public.hex()])
    for use in (client.refresh, lambda: client.choose(CONTEXT)):
        with pytest.raises((sv.SignatureError, sv.TransportError), match="must be signed by one"):
            use()
    assert client.release is None
    with pytest.raises(sv.DeviceError, match="choose must come before a report"):
        client.report("0" * 32, reward=1)


def test_at_the_first_use_a_bad_signature_is_raised_by_choose(server: FakeServer) -> None:
    with pytest.raises(sv.SignatureError):
        client_of(server, keys=[Key().public.hex()]).choose(CONTEXT)


def test_any_of_several_keys_is_enough(server: FakeServer) -> None:
    client = client_of(server, keys=[Key().public.hex(), server.key.public.hex()])
    assert client.refresh()
    server.key = Key()
    with pytest.raises(sv.SignatureError):
        client.refresh()


def test_any_changed_byte_of_a_release_is_refused(server: FakeServer) -> None:
    client, good = client_of(server), server.document()
    begin = good.index(b'"release"')
    for place in [*range(40), *range(begin, begin + 60), *range(len(good) - 40, len(good))]:
        changed = bytearray(good)
        changed[place] ^= 1
        serve(server, bytes(changed))
        try:
            moved = client.refresh()
        except (sv.SignatureError, sv.WireError):
            moved = False
        assert not moved
        assert client.release is None
    serve(server, good)
    assert client.refresh()


def test_a_changed_release_with_the_old_signature_is_refused(server: FakeServer) -> None:
    client, table = client_of(server), json.loads(server.document())
    table["release"] = table["release"].replace('"version":1', '"version":2')
    serve(server, canonical_json(table))
    with pytest.raises(sv.SignatureError, match="must carry a good signature"):
        client.refresh()
    table["release"] = "\ud800"  # half a character
    serve(server, canonical_json(table))
    with pytest.raises(sv.WireError, match="canonical form"):
        client.refresh()
    assert client.release is None


def test_a_signature_of_anything_else_does_not_do_for_a_release(server: FakeServer) -> None:
    client, text = client_of(server), wire.release_to_json(server.learner.release())
    table = json.loads(server.document())
    table["signature"] = server.key.sign_bytes(text.encode()).hex()
    serve(server, canonical_json(table))
    with pytest.raises(sv.SignatureError):
        client.refresh()


def test_a_release_of_another_experiment_is_refused(server: FakeServer) -> None:
    other = FakeServer(experiment(method="whisper", epsilon=8.0))
    other.key = server.key
    client = client_of(server)
    serve(server, other.document())
    with pytest.raises(sv.DeviceError, match=f"be of experiment {server.experiment}; got"):
        client.refresh()
    assert client.release is None


def test_an_older_release_is_left_aside(server: FakeServer) -> None:
    client = client_of(server)
    serve(server, server.document(newer(server, 5)))
    assert client.refresh()
    for version in (4, 5, 1):
        serve(server, server.document(newer(server, version)))
        assert not client.refresh()
        assert client.release is not None
        assert client.release.version == 5
    serve(server, server.document(newer(server, 6)))
    assert client.refresh()


def test_an_older_release_is_left_aside_after_a_restart_too(
    server: FakeServer, tmp_path: Path
) -> None:
    serve(server, server.document(newer(server, 5)))
    assert client_of(server, outbox=tmp_path / "outbox").refresh()
    serve(server, server.document(newer(server, 4)))
    again = client_of(server, outbox=tmp_path / "outbox")
    assert not again.refresh()
    assert again.release is not None
    assert again.release.version == 5


def test_a_process_that_is_behind_does_not_undo_what_another_has_kept(
    server: FakeServer, tmp_path: Path
) -> None:
    one, two = (client_of(server, outbox=tmp_path / "outbox") for _ in range(2))
    serve(server, server.document(newer(server, 5)))
    one.refresh()
    serve(server, server.document(newer(server, 4)))
    two.refresh()
    again = client_of(server, outbox=tmp_path / "outbox")
    assert again.release is not None
    assert again.release.version == 5


def test_a_device_starts_offline_with_the_release_it_had(
    server: FakeServer, tmp_path: Path
) -> None:
    client_of(server, outbox=tmp_path / "outbox").refresh()
    server.online = False
    again = client_of(server, outbox=tmp_path / "outbox")
    again.report(again.choose(CONTEXT), reward=0)
    assert again.waiting == 1


def test_a_kept_release_is_verified_again(server: FakeServer, tmp_path: Path) -> None:
    serve(server, server.document(newer(server, 9)))
    client_of(server, outbox=tmp_path / "outbox").refresh()
    old, server.key = server.key.public.hex(), Key()
    serve(server, server.document(newer(server, 1)))
    again = client_of(server, outbox=tmp_path / "outbox")
    assert again.release is None
    # What an old key has signed stands in nobody's way, however new it claims to be.
    assert again.refresh()
    server.online = False
    once_more = client_of(server, outbox=tmp_path / "outbox")
    assert once_more.release is not None
    assert once_more.release.version == 1
    assert client_of(server, outbox=tmp_path / "outbox", keys=[old]).release is None


def test_offline_without_any_release_nothing_can_be_chosen(server: FakeServer) -> None:
    server.online, clock = False, FakeClock()
    client = client_of(server, clock)
    assert client.refresh() is False
    with pytest.raises(sv.TransportError, match="a first release must come from the server"):
        client.choose(CONTEXT)
    clock.now += 10
    server.online = True
    assert client.choose(CONTEXT)


def test_choose_looks_for_a_release_only_when_it_is_time(server: FakeServer) -> None:
    clock = FakeClock()
    client = client_of(server, clock, refresh_every=60)
    for _ in range(3):
        client.choose(CONTEXT)
    assert len(server.seen) == 1
    clock.now += 59
    client.choose(CONTEXT)
    assert len(server.seen) == 1
    clock.now += 1
    client.choose(CONTEXT)
    assert len(server.seen) == 2
    server.online = False
    clock.now += 60
    for _ in range(3):  # one failure, and then no more until the wait is over
        client.choose(CONTEXT)
    assert len(server.seen) == 3
    clock.now += 0.5
    client.choose(CONTEXT)
    assert len(server.seen) == 4


def test_a_release_that_did_not_change_is_not_followed_again(
    server: FakeServer, tmp_path: Path
) -> None:
    client = client_of(server, outbox=tmp_path / "outbox")
    assert [client.refresh(), client.refresh()] == [True, False]
    assert client_of(server, outbox=tmp_path / "outbox").refresh() is False
    assert len({tuple(request.headers.items()) for request in server.seen}) == 1


def test_a_tag_that_the_server_made_up_is_never_sent_back(server: FakeServer) -> None:
    client, document = client_of(server), server.document()
    server.instead = lambda _: Response(200, {"etag": '"you are number 7"'}, document)
    client.refresh()
    client.refresh()
    assert not any("number 7" in str(dict(each.headers)) for each in server.seen)


NONSENSE: list[Callable[[bytes], Response]] = [
    lambda _: Response(200, {}, b""),
    lambda _: Response(200, {}, b"<html>Welcome to the hotel</html>"),
    lambda _: Response(200, {}, b"[" * 100_000),
    lambda _: Response(200, {}, b"{}"),
    lambda _: Response(200, {}, b'{"sottovoce":5,"kind":"release","key":3}'),
    lambda _: Response(200, {}, b"\xff\xfe\x00"),
    lambda good: Response(200, {"content-encoding": "gzip"}, gzip.compress(good)[:-20]),
    lambda _: Response(200, {"content-encoding": "gzip"}, b"\x1f\x8b nonsense"),
    lambda _: Response(200, {}, gzip.compress(b"0" * 70_000_000)),
    lambda _: Response(200, {}, b" " * 70_000_000),
    lambda _: Response(302, {"location": "file:///etc/passwd"}, b""),
    lambda _: Response(304, {}, b""),
    lambda _: Response(500, {}, b"oops"),
    lambda _: Response(503, {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}, b""),
    lambda _: answer(404, {"error": "there is no such experiment"}),
]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_what_is_no_release_is_as_good_as_offline(
    server: FakeServer, nonsense: Callable[[bytes], Response]
) -> None:
    clock, good = FakeClock(), server.document()
    client = client_of(server, clock)
    server.instead = lambda _: nonsense(good)
    assert client.refresh() is False
    with pytest.raises(sv.TransportError):
        client.choose(CONTEXT)
    assert len(server.seen) == 1  # it is a failure like any other: the next try comes later
    server.instead = None
    clock.now += 10
    assert client.choose(CONTEXT)
    server.instead = lambda _: nonsense(good)
    assert client.refresh() is False
    assert client.choose(CONTEXT)


def test_a_bad_release_does_not_keep_a_person_from_an_arm(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    client = client_of(server, clock)
    client.refresh()
    server.key = Key()
    clock.now += 10_000
    assert client.choose(CONTEXT)
    assert "a release was not used" in caplog.text
    with pytest.raises(sv.SignatureError):
        client.refresh()


def test_a_body_that_some_library_has_unpacked_already_is_read_as_well(server: FakeServer) -> None:
    client = client_of(server)
    document = server.document()
    server.instead = lambda _: Response(200, {"content-encoding": "gzip"}, document)
    assert client.refresh()


def test_a_device_agrees_to_no_more_than_it_was_told_to(server: FakeServer, tmp_path: Path) -> None:
    with pytest.raises(sv.DeviceError, match=r"at most epsilon = 0\.5"):
        client_of(server, most_epsilon=0.5, outbox=tmp_path / "outbox").choose(CONTEXT)
    with pytest.raises(sv.ExperimentError, match="population must be one of"):
        client_of(server, population="clinic-b").choose(CONTEXT)
    public = FakeServer(experiment(method=sv.Whisper(public_arms=True)))
    with pytest.raises(sv.DeviceError, match="unless the device agrees to public_arms"):
        client_of(public).choose(CONTEXT)
    assert client_of(public, public_arms=True).choose(CONTEXT)


def test_the_ledger_is_spent_once_and_stops_the_client(server: FakeServer, tmp_path: Path) -> None:
    ledger = sv.Ledger(tmp_path / "ledger", budget=1)
    client = client_of(server, ledger=ledger)
    client.report(client.choose(CONTEXT), reward=1)
    assert ledger.left == 0
    decision = client.choose(CONTEXT)
    assert not decision.asked
    client.report(decision, reward=1)
    client.flush()
    assert len(server.bodies) == 1


def test_without_a_ledger_there_is_one_report_whatever_the_release(server: FakeServer) -> None:
    client = client_of(server, ledger=None)
    client.report(client.choose(CONTEXT), reward=1)
    serve(server, server.document(newer(server, 2)))
    assert client.refresh()
    assert not client.choose(CONTEXT).asked


def test_nothing_is_spent_on_a_report_that_cannot_be_kept(
    server: FakeServer, tmp_path: Path
) -> None:
    ledger = sv.Ledger(tmp_path / "ledger", budget=4)
    client = client_of(server, ledger=ledger, outbox=tmp_path / "outbox")
    client.refresh()
    (tmp_path / "outbox").write_bytes(b"")
    with pytest.raises(sv.OutboxError):
        client.choose(CONTEXT)
    assert ledger.left == 4
    assert [each.method for each in server.seen] == ["GET"]


def test_the_same_for_asyncio(server: FakeServer, tmp_path: Path) -> None:
    clock = FakeClock()

    async def live() -> None:
        client = async_client_of(server, clock, outbox=tmp_path / "outbox")
        decision = await client.choose(CONTEXT)
        assert decision.arm in server.learner.experiment.arms
        await client.report(decision, reward=1)
        assert await client.send() == 1
        assert await client.refresh() is False
        server.online = False
        for _ in range(3):
            await client.report(await client.choose(CONTEXT), reward=None)
        assert (client.waiting, await client.send()) == (3, 0)
        assert not await client.flush(timeout=4)
        server.online = True
        assert await client.flush(timeout=60)
        assert client.waiting == 0

    asyncio.run(live())
    assert server.learner.status().reports == {"target": 4}
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]  # it doubles, and half of it is the jitter


def test_errors_reach_whoever_awaits(server: FakeServer) -> None:
    async def live() -> None:
        client = sv.AsyncClient(
            ADDRESS,
            experiment=server.experiment,
            keys=[Key().public.hex()],
            most_epsilon=1.0,
            transport=server.later,
        )
        with pytest.raises(sv.SignatureError):
            await client.choose(CONTEXT)
        with pytest.raises(sv.DeviceError):
            await client.report("0" * 32, reward=1)

    asyncio.run(live())
