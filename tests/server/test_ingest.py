"""Each report is read once on its way into the log."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.requests import Request

import sottovoce as sv
from factories import experiment
from sottovoce.estimate.gate import Gate
from sottovoce.server.body import reports_in
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.ingest import Ingest, Receipt
from sottovoce.server.keys import SigningKey
from sottovoce.server.responses import RequestFailed
from sottovoce.server.settings import ServerSettings
from sottovoce.server.store.store import LoggedRelease, Store
from sottovoce.shared import wire
from sottovoce.shared.canonical import canonical_json
from support.http import as_json, report_for

SETTINGS = ServerSettings(database="", key=Path(), token="")


def request(kind: str) -> Request:
    return Request({"type": "http", "headers": [(b"content-type", kind.encode())]})


def test_a_batch_in_json_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    release = sv.Learner(experiment(method="whisper")).release()
    reports = [report_for(release) for _ in range(5)]
    body = b"[" + b",".join(map(as_json, reports)) + b"]"
    loads, parsed = json.loads, []

    def counting(text: Any) -> Any:
        parsed.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", counting)
    assert reports_in(request("application/json"), body, SETTINGS, batch=True) == reports
    assert parsed == [body]


def test_a_refusal_says_the_rule_and_not_what_came() -> None:
    body = b'{"sottovoce": 61, "kind": "report"}'  # an age, where the version should be
    with pytest.raises(RequestFailed, match="the wire version must be at most 5") as failed:
        reports_in(request("application/json"), body, SETTINGS, batch=False)
    assert "61" not in str(failed.value)


def test_what_is_known_is_not_read_again_when_something_newer_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = experiment(method="whisper")
    first = sv.Learner(of).release()
    second = replace(first, version=2)
    store = Store.open(f"sqlite:///{tmp_path}/store.db")
    store.migrate()
    text = canonical_json(of.to_table()).decode()
    store.add_experiment(of.fingerprint, text, wire.release_to_json(first))
    catalogue = Catalogue(store, SigningKey(Ed25519PrivateKey.generate()))
    catalogue.refresh()
    session = store.learner_session(of.fingerprint)
    assert session is not None
    session.publish([LoggedRelease(2, 0, wire.release_to_json(second))])
    session.close()

    checked: list[int] = []
    check_many = Gate.check_many

    def counting(gate: Gate, reports: Any) -> Any:
        checked.append(len(reports))
        return check_many(gate, reports)

    monkeypatch.setattr(Gate, "check_many", counting)
    reports = [report_for(each) for each in (first, second, first, second, first)]
    elsewhere = report_for(sv.Learner(experiment(name="elsewhere", method="whisper")).release())

    async def deliver() -> Receipt:
        ingest = Ingest(store, catalogue, most_waiting=10**6)
        running = asyncio.create_task(ingest.run())
        receipt = await ingest.put([*reports, elsewhere])
        running.cancel()
        ingest.close()
        return receipt

    receipt = asyncio.run(deliver())
    assert (receipt.stored, [each.index for each in receipt.refused]) == (5, [5])
    assert checked == [5]  # once, after the database was asked for what was unknown
    store.close()


def test_an_experiment_that_cannot_be_read_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For example one that an older version of sottovoce has begun."""
    of = experiment(method="whisper")
    store = Store.open(f"sqlite:///{tmp_path}/store.db")
    store.migrate()
    first = wire.release_to_json(sv.Learner(of).release())
    text = canonical_json(of.to_table()).decode()
    old = first.replace('"sottovoce":5', '"sottovoce":4')
    store.add_experiment("0123456789abcdef", text, old)
    store.add_experiment("fedcba9876543210", '{"arms": 3}', old)
    store.add_experiment(of.fingerprint, text, first)
    catalogue = Catalogue(store, SigningKey(Ed25519PrivateKey.generate()))
    for _ in range(3):
        catalogue.refresh()
    assert list(catalogue.current) == [of.fingerprint]
    assert caplog.text.count("cannot be served") == 2
    report = report_for(sv.Learner(of).release())
    (checked,) = catalogue.check([report])
    assert (checked.experiment, checked.refusals) == (of.fingerprint, [None])
    store.close()
