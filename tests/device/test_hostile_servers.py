"""Whatever a server says, a client raises nothing but SottovoceError, and loses no report."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import sottovoce as sv
from factories import CONTEXT, experiment
from sottovoce.device.transport import Request, Response
from sottovoce.shared import wire
from support.fake_server import FakeClock, FakeServer, client_of

SERVER = FakeServer(experiment(method="whisper"))
RELEASE = json.loads(wire.release_to_json(SERVER.learner.release()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
STATUSES = st.sampled_from([200, 201, 204, 301, 304, 400, 404, 408, 413, 422, 429, 500, 503, 999])
VERDICTS = st.fixed_dictionaries(
    {},
    optional={
        "stored": st.integers(-1, 4) | VALUES,
        "repeated": st.integers(-1, 4) | VALUES,
        "refused": st.lists(
            st.fixed_dictionaries({"index": st.integers(-1, 4), "reason": st.text(max_size=5)}),
            max_size=4,
        )
        | VALUES,
        "error": VALUES,
    },
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value at which something could be changed."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, Any]] = []
    for key, each in inside:
        found.append((value, key))
        if isinstance(each, dict | list):
            found += places(each)
    return found


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_release_that_is_signed_and_wrong_is_refused_in_order(data: st.DataObject) -> None:
    table = json.loads(json.dumps(RELEASE))
    holder, key = data.draw(st.sampled_from(places(table)))
    holder[key] = data.draw(VALUES)
    document = SERVER.key.sign(json.dumps(table))
    client = client_of(SERVER, transport=lambda _: Response(200, {}, document))
    try:
        client.choose(CONTEXT)
    except sv.SottovoceError:
        assert client.release is None
    else:
        assert client.release is not None
        assert client.release.experiment.fingerprint == SERVER.experiment


@given(STATUSES, VERDICTS.map(lambda table: json.dumps(table).encode()) | st.binary(max_size=20))
@settings(max_examples=100, deadline=None)
def test_without_a_verdict_on_each_report_all_of_them_stay(status: int, body: bytes) -> None:
    server, clock = FakeServer(experiment(method="whisper")), FakeClock()
    client = client_of(server, clock)
    client.refresh()
    server.online = False
    for _ in range(3):
        client.report(client.choose(CONTEXT), reward=1)
    clock.now += 100
    server.online = True

    def instead(request: Request) -> Response | None:
        return Response(status, {}, body)

    server.instead = instead
    taken = client.send()
    assert taken + client.refused.total() + client.waiting == 3
    if client.waiting < 3 and status < 300:
        table = json.loads(body)
        assert table["stored"] + table["repeated"] + len(table["refused"]) == 3
    server.instead = None
    waiting = client.waiting
    assert client.flush(timeout=1000)
    assert len(server.bodies) == waiting
