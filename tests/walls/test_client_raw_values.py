"""No raw value leaves a client: not to the network, not to the disk, not in an error."""

import logging
import struct
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.device.transport import Request, Response
from support.fake_server import FakeClock, FakeServer, Key, answer, client_of

AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566
CONTEXT = {"age": AGE, "bmi": BMI}
NUMBERS = [AGE, BMI, REWARD, (AGE - 18) / 72, (BMI - 15) / 30, 2 * REWARD - 1]
# Eight bytes or more each, so that none turns up in random bytes.
SECRETS = [
    *(repr(number)[:10].encode() for number in NUMBERS),
    *(struct.pack(form, number) for number in NUMBERS for form in ("<d", ">d")),
    *(b"Lindqvist", b"passport"),
]


def clean(data: bytes) -> bool:
    return not any(secret in data for secret in SECRETS)


def test_the_check_itself_can_fail() -> None:
    assert not clean(f"age {AGE}".encode())
    assert not clean(b"?" + struct.pack("<d", REWARD))


def sent(server: FakeServer) -> Iterator[bytes]:
    for each in server.seen:
        yield repr((each.method, each.url, dict(each.headers))).encode() + (each.body or b"")


@pytest.mark.parametrize("method", ["whisper", "ldpmab"])
def test_no_raw_value_is_sent_written_or_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    caplog.set_level(logging.DEBUG)
    server, clock = FakeServer(experiment(method=method, release_every=10)), FakeClock()
    written = b""
    ledger = sv.Ledger(tmp_path / "ledger", budget=1000)
    client = client_of(server, clock, ledger=ledger, outbox=tmp_path / "outbox", refresh_every=1)
    for number in range(60):
        server.online = number == 0 or number % 7 > 3
        clock.now += 20
        client.report(client.choose(CONTEXT), reward=REWARD)
        written += b"".join(path.read_bytes() for path in tmp_path.iterdir())
    server.online = True
    server.key = Key()
    clock.now += 10_000
    client.choose(CONTEXT)  # logs that a release was not used
    assert client.flush(timeout=1000)
    assert len(server.bodies) == 60
    assert all(clean(each) for each in sent(server))
    assert clean(written)
    assert "a release was not used" in caplog.text
    assert clean(caplog.text.encode())
    assert clean((repr(client) + repr(client.release) + repr(client.refused)).encode())


def trouble(request: Request) -> Response:
    return answer(422, {"error": f"age {AGE}", "reason": "Lindqvist"})


BAD: list[Any] = [
    lambda client: client.choose({**CONTEXT, "passport": "Lindqvist"}),
    lambda client: client.choose({"age": str(AGE), "bmi": BMI}),
    lambda client: client.choose(f"{AGE} {BMI}"),
    lambda client: client.report(client.choose(CONTEXT), reward=AGE),
    lambda client: client.report(client.choose(CONTEXT), reward=str(REWARD)),
    lambda client: client.report("0" * 32, reward=REWARD),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_no_raw_value_is_in_an_error(tmp_path: Path, number: int) -> None:
    server = FakeServer(experiment(method="whisper"))
    client = client_of(server, ledger=None, outbox=tmp_path / "outbox")
    client.refresh()
    with pytest.raises(sv.SottovoceError) as caught:
        BAD[number](client)
    chain, error = "", caught.value
    while error is not None:
        chain += "".join(traceback.format_exception_only(error))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    assert clean(chain.encode())


def test_what_a_server_says_of_a_report_is_not_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = FakeServer(experiment(method="whisper"))
    client = client_of(server, outbox=tmp_path / "outbox")
    decision = client.choose(CONTEXT)
    server.instead = trouble
    client.report(decision, reward=REWARD)
    client.send()
    # A reason that the client does not know: the report waits, and the words are nowhere.
    assert (dict(client.refused), client.waiting) == ({}, 1)
    assert clean(caplog.text.encode())
    assert clean((repr(client) + repr(client.refused)).encode())
