"""The OpenAPI document is true: Schemathesis makes up requests by it, and against it."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

import sottovoce as sv
from factories import experiment
from sottovoce.lab.local_server import LocalServer
from sottovoce.shared import wire
from sottovoce.shared.partition import Partition
from support.http import ADMIN, get, serving

WHISPER = experiment(method="whisper")

# Operations whose valid requests may be refused for what no schema can say: an experiment whose
# names are not printable, a report that does not fit its release.
BEYOND_THE_SCHEMA = ["2xx", "3xx", "400", "401", "403", "404", "422"]
REFUSALS = ["304", "400", "401", "403", "404", "405", "413", "415", "422"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with serving(tmp_path_factory.mktemp("server"), [WHISPER]) as local:
        yield local


def run(
    server: LocalServer,
    *,
    cases: int,
    seed: int,
    headers: dict[str, str],
    document: dict[str, Any] | None = None,
) -> Counter[int]:
    """Run all checks on each operation; return how many answers came with each status.

    cases: how many each operation gets, roughly.
    document: the server's own, unless another is given.
    """
    config = SchemathesisConfig.from_dict(
        {
            "headers": headers,
            "base-url": server.url,
            "seed": seed,
            "continue-on-failure": True,
            "generation": {"max-examples": cases, "database": "none"},
            "phases": {
                "examples": {"enabled": False},
                # OPTIONS is for browsers that ask before they send: not part of the document.
                "coverage": {"unexpected-methods": ["PUT", "DELETE", "PATCH", "TRACE"]},
                "stateful": {"enabled": False},
            },
            "checks": {
                "positive_data_acceptance": {"expected-statuses": BEYOND_THE_SCHEMA},
                "negative_data_rejection": {"expected-statuses": REFUSALS},
            },
        }
    )
    document = document or get(server, "/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document, config=config)
    statuses: Counter[int] = Counter()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            statuses.update(_statuses(event.recorder))
            assert not list(_failures(event.recorder))
        assert not isinstance(event, events.FatalError | events.NonFatalError), event
    return statuses


def _statuses(recorder: Any) -> Iterator[int]:
    for each in recorder.interactions.values():
        assert each.response is not None, recorder.label
        yield each.response.status_code


def _failures(recorder: Any) -> Iterator[str]:
    for checks in recorder.checks.values():
        for each in checks:
            if each.failure_info is not None:
                yield f"{recorder.label}: {each.name}: {str(each.failure_info.failure)[:500]}"


def is_sound(statuses: Counter[int], *, at_least: int) -> None:
    assert statuses.total() >= at_least
    assert not [status for status in statuses if status >= 500], statuses


@pytest.mark.slow
def test_the_document_is_true_for_an_administrator(server: LocalServer) -> None:
    statuses = run(server, cases=20, seed=1, headers=ADMIN)
    is_sound(statuses, at_least=500)
    assert {200, 201, 304, 400, 404, 405, 413, 415, 422} <= statuses.keys()


def test_the_document_is_true_for_everyone_else(server: LocalServer) -> None:
    statuses = run(server, cases=5, seed=2, headers={})
    is_sound(statuses, at_least=200)
    assert {200, 401, 403} <= statuses.keys()


@pytest.mark.parametrize(
    ("path", "method", "wrong"),
    [
        ("/reports", "post", {"400": {"description": "x"}, "415": {"description": "x"}}),
        ("/health", "get", {"200": {"description": "x", "content": {"text/plain": {}}}}),
        ("/keys", "get", {"200": {"$ref": "#/components/responses/Wrong"}}),
    ],
)
def test_a_document_that_is_not_true_is_found_out(
    server: LocalServer, path: str, method: str, wrong: dict[str, Any]
) -> None:
    document = get(server, "/openapi.json").json()
    operation = document["paths"][path][method]
    operation["responses"] = wrong
    document["paths"] = {path: {method: operation}}
    content = {"application/json": {"schema": {"required": ["what is not there"]}}}
    document["components"]["responses"] = {"Wrong": {"description": "x", "content": content}}
    with pytest.raises(AssertionError, match=path):
        run(server, cases=5, seed=5, headers=ADMIN, document=document)


@pytest.mark.slow
def test_five_thousand_requests_by_the_document(server: LocalServer) -> None:
    statuses = run(server, cases=400, seed=3, headers=ADMIN)
    statuses += run(server, cases=200, seed=4, headers={})
    is_sound(statuses, at_least=5000)
    print(sorted(statuses.items()))


CITIES = sv.Categorical("city", ("Rome", "Oslo", "Bern", "Turin"))
IN_SETS = experiment(method="whisper", context=[CITIES])


def with_sets(of: sv.Experiment) -> sv.Release:
    first = sv.Learner(of).release()
    partition = Partition(1, {"": 0}, (4,), {"": frozenset({0, 2})})
    bins = tuple(replace(first.bins[0], path=path) for path in ("0", "1"))
    return replace(first, partition=partition, bins=bins)


@pytest.mark.parametrize(
    ("release", "optional"),
    [
        (sv.Learner(experiment()).release(), set()),
        (sv.Learner(WHISPER).release(), {"ask"}),
        (with_sets(IN_SETS), {"ask", "sets"}),
    ],
    ids=["ldpmab", "whisper", "whisper with sets"],
)
def test_releases_are_as_the_document_says(
    server: LocalServer, release: sv.Release, optional: set[str]
) -> None:
    table = json.loads(wire.release_to_json(release))
    assert table.keys() & {"ask", "sets"} == optional
    components = get(server, "/openapi.json").json()["components"]
    schema = {"$ref": "#/components/schemas/Release", "components": components}
    checker = jsonschema.Draft202012Validator(schema)
    checker.validate(table)
    wrongs: list[dict[str, Any]] = [
        {"sottovoce": 2},
        {"ask": ["1"]},
        {"sets": {"2": [0]}},
        {"sets": {"": []}},
        {"secret": 1},
    ]
    for wrong in wrongs:
        assert not checker.is_valid(table | wrong)
