"""The transport of the standard library, over real HTTP on this machine."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.device.async_client import send_in_thread
from sottovoce.device.transport import Request, Response, send
from support.fake_server import FakeServer, Plenty, on_loopback


def test_what_is_sent_arrives_and_what_is_answered_comes_back() -> None:
    seen: list[Request] = []

    def handle(request: Request) -> Response:
        seen.append(request)
        return Response(201, {"X-Thing": "yes"}, b"answer")

    with on_loopback(handle) as address:
        asked = Request("POST", f"{address}/reports", {"Content-Type": "text/plain"}, b"\0body")
        response = send(asked)
        assert asyncio.run(send_in_thread(asked)).body == b"answer"
    assert (response.status, response.body) == (201, b"answer")
    assert response.headers["x-thing"] == "yes"
    assert (seen[0].method, seen[0].body) == ("POST", b"\0body")
    assert dict(seen[0].headers)["Content-Type"] == "text/plain"


@pytest.mark.parametrize("status", [304, 400, 404, 429, 500, 503])
def test_every_status_is_a_response(status: int) -> None:
    body = b"" if status == 304 else b"why"
    with on_loopback(lambda _: Response(status, {"Retry-After": "7"}, body)) as address:
        response = send(Request("GET", address))
    assert (response.status, response.body) == (status, body)
    assert response.headers["retry-after"] == "7"


def test_an_answer_without_end_is_cut_off() -> None:
    with on_loopback(lambda _: Response(200, {}, b"x" * 1001)) as address:
        assert len(send(Request("GET", address), most=1001).body) == 1001
        with pytest.raises(sv.TransportError, match="an answer must have at most 1000 bytes"):
            send(Request("GET", address), most=1000)
    with (
        on_loopback(lambda _: Response(500, {}, b"x" * 1001)) as address,
        pytest.raises(sv.TransportError, match="an answer must have at most 1000 bytes"),
    ):
        send(Request("GET", address), most=1000)


def redirect(location: str, status: int) -> Response:
    return Response(status, {"Location": location}, b"")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_redirect_is_followed(method: str, status: int) -> None:
    """Its address would be something that somebody else chose, such as a name for this device."""
    seen: list[str] = []

    def handle(request: Request) -> Response:
        seen.append(request.url)
        return redirect("/there?person=7", status)

    with on_loopback(handle) as address:
        asked = Request(method, address + "/here", {}, b"report" if method == "POST" else None)
        assert send(asked).status == status
    assert len(seen) == 1


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "data:text/plain,x", "http://[", "http://host:port/"]
)
def test_a_redirect_to_anywhere_is_a_response_like_any_other(location: str) -> None:
    with on_loopback(lambda _: redirect(location, 302)) as address:
        assert send(Request("GET", address)).status == 302


@contextmanager
def raw_server(answer: bytes, *, hang: bool = False) -> Iterator[str]:
    """Say these bytes to the first who comes, and then nothing more."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with closing(connection):
            connection.recv(65536)
            connection.sendall(answer)
            if hang:
                over.wait(20)

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
    ],
)
def test_what_is_not_http_is_an_error_of_the_transport(answer: bytes) -> None:
    with (
        raw_server(answer) as address,
        pytest.raises(sv.TransportError, match="the server must be reachable"),
    ):
        send(Request("GET", address), timeout=5)


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("half", [b"", b"half"])
def test_an_answer_that_does_not_come_whole_is_none(status: int, half: bytes) -> None:
    with (
        raw_server(b"HTTP/1.1 %d So\r\nContent-Length: 9\r\n\r\n%s" % (status, half)) as address,
        pytest.raises(sv.TransportError, match="an answer must come whole"),
    ):
        send(Request("GET", address), timeout=5)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
def test_a_server_that_falls_silent_is_an_error_of_the_transport(answer: bytes) -> None:
    with (
        raw_server(answer, hang=True) as address,
        pytest.raises(sv.TransportError, match="the server must be reachable; TimeoutError"),
    ):
        send(Request("GET", address), timeout=0.2)


def test_an_answer_that_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.device.transport.SLOWEST", -1.0)
    with (
        on_loopback(lambda _: Response(200, {}, b"drop")) as address,
        pytest.raises(sv.TransportError, match="an answer must come within"),
    ):
        send(Request("GET", address))


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/", "host", "HTTP", "http://["])
def test_an_address_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(sv.TransportError):
        send(Request("GET", url))


def test_an_error_does_not_say_what_was_sent() -> None:
    with pytest.raises(sv.TransportError) as caught:
        send(Request("POST", "http://127.0.0.1:1/secret", {"X": "secret"}, b"secret"), timeout=5)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_clients_work_over_http(tmp_path: Path) -> None:
    server = FakeServer(experiment(method="whisper"))
    with on_loopback(server) as address:
        client = sv.Client(
            address,
            experiment=server.experiment,
            keys=[server.key.public.hex()],
            most_epsilon=1.0,
            ledger=Plenty(),
            outbox=tmp_path / "outbox",
        )
        client.report(client.choose(CONTEXT), reward=1)
        assert [client.send(), client.refresh()] == [1, False]  # 304 this time

        async def live() -> None:
            other = sv.AsyncClient(
                address,
                experiment=server.experiment,
                keys=[server.key.public.hex()],
                most_epsilon=1.0,
            )
            await other.report(await other.choose(CONTEXT), reward=0)
            assert await other.flush()

        asyncio.run(live())
    client.report(client.choose(CONTEXT), reward=1)
    assert [client.send(), client.waiting] == [0, 1]
    assert server.learner.status().reports == {"target": 2}
