"""Which server software to build on: requests a second that read a small body and do nothing.

    python benchmarks/stacks.py

granian and FastAPI are measured where they are installed; the project does not need them.
"""

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvloop

from sottovoce.device.transport import Request, send
from sottovoce.lab.load import as_fast_as_possible, post
from sottovoce.server.serve import Listening
from sottovoce.shared.errors import TransportError

BODY = bytes(62)  # as long as a report
ANSWER = b'{"stored":1,"repeated":0,"refused":[]}'


async def plain(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer without any framework."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


def starlette() -> Any:
    """Answer through Starlette."""
    from starlette.applications import Starlette
    from starlette.requests import Request as Asked
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Asked) -> Response:
        await request.body()
        return Response(ANSWER, media_type="application/json")

    return Starlette(routes=[Route("/reports", answer, methods=["POST"])])


def fastapi() -> Any:
    """Answer through FastAPI."""
    # The project does not have it, so mypy may know it or not.
    from fastapi import FastAPI  # type: ignore[import-not-found, unused-ignore]
    from starlette.requests import Request as Asked
    from starlette.responses import Response

    app = FastAPI()

    # Without FastAPI's types its decorator has none either.
    @app.post("/reports")  # type: ignore[untyped-decorator, unused-ignore]
    async def answer(request: Asked) -> Response:
        await request.body()
        return Response(ANSWER, media_type="application/json")

    return app


def command(server: str, app: str, port: int) -> list[str]:
    """Return the command that serves one of the above."""
    module = [sys.executable, "-m", server, f"stacks:{app}", "--port", str(port)]
    quiet = ["--no-access-log", "--log-level", "error"]
    factory = [] if app == "plain" else ["--factory"]
    asgi = ["--interface", "asgi", "--loop", "uvloop"] if server == "granian" else []
    return [*module, *quiet, *factory, *asgi]


def rate(server: str, app: str, *, connections: int, seconds: float = 3.0) -> float:
    """Start one, measure it, and stop it."""
    listening = Listening.on("127.0.0.1", 0)
    listening.close()  # it only found a port that is free
    # A command of our own making, with nothing in it from outside.
    process = subprocess.Popen(command(server, app, listening.port), cwd=Path(__file__).parent)
    try:
        for _ in range(100):
            try:
                send(Request("POST", f"{listening.url}/reports", {}, BODY))
                break
            except TransportError:
                time.sleep(0.1)
        load = as_fast_as_possible(
            listening.url, lambda: post("/reports", BODY), connections=connections, seconds=seconds
        )
        return uvloop.run(load).rate
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Measure all of them, one after the other, twice."""
    servers = [name for name in ("uvicorn", "granian") if find_spec(name)]
    apps = ["plain", "starlette", *(["fastapi"] if find_spec("fastapi") else [])]
    for _ in range(2):
        for server in servers:
            for app in apps:
                rates = {n: round(rate(server, app, connections=n)) for n in (16, 64)}
                print(f"{server:10}{app:12}{json.dumps(rates)}", flush=True)


if __name__ == "__main__":
    main()
