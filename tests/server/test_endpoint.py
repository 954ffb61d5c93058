"""What no answer and no log line may hold: anything that came."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import Request
from starlette.responses import Response

from sottovoce.server.endpoint import endpoint
from sottovoce.server.worker import Worker


def test_an_unforeseen_error_is_told_by_its_kind_alone(caplog: pytest.LogCaptureFixture) -> None:
    @endpoint
    async def fails(request: Request, worker: Worker) -> Response:
        raise ZeroDivisionError("61.73205081")

    worker = SimpleNamespace(settings=SimpleNamespace(answer_within=5.0))
    app = SimpleNamespace(state=SimpleNamespace(worker=worker))

    async def served() -> Response:
        return await fails(Request({"type": "http", "headers": [], "app": app}))

    answer = asyncio.run(served())
    assert (answer.status_code, answer.body) == (500, b'{"error":"something went wrong here"}')
    assert "ZeroDivisionError in " in caplog.text
    assert "61.73205081" not in caplog.text
