"""No raw value reaches a report, a log line, an exception or a saved state."""

import logging
import sqlite3
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from factories import experiment
from sottovoce.shared import wire

# Enough digits that none turns up by chance: 300 reports of 6 noisy numbers of scale 4 hold
# one window of width 1e-8 with probability about 1e-6.
AGE, BMI, REWARD = 61.73205081, 31.41592654, 0.57721566
SECRETS = [
    "61.73205081",
    "31.41592654",
    "0.57721566",
    repr((AGE - 18) / 72)[:10],  # the encoded context
    repr((BMI - 15) / 30)[:10],
    "Lindqvist",
    "passport",
]


def clean(text: str) -> bool:
    return not any(secret in text for secret in SECRETS)


def test_the_check_itself_can_fail() -> None:
    assert not clean(f"age {AGE}")
    assert not clean(str(AGE - 18) + str((AGE - 18) / 72))


@pytest.fixture(params=["ldpmab", "whisper"])
def people(
    request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> list[sv.Report]:
    """Three hundred people with the same raw values, through device, wire, server and learner."""
    caplog.set_level(logging.DEBUG)
    learner = sv.Learner(experiment(release_every=10, horizon=300, method=request.param))
    reports = []
    for _ in range(300):
        device = sv.Device(learner.release(), ledger=sv.Ledger(tmp_path / "ledger", budget=1000))
        device.choose({"age": AGE, "bmi": BMI})
        assert clean(repr(device) + str(vars(device)["_release"]))
        report = device.report(reward=REWARD)
        assert vars(device)["_pending"] is None
        assert learner.receive_many([wire.report_to_bytes(report)]) == [None]
        reports.append(report)
    refused = learner.receive_many([f"age={AGE} reward={REWARD} Lindqvist".encode()])
    assert refused == [sv.Rejection.MALFORMED]
    assert clean(learner.to_json())
    assert clean(wire.release_to_json(learner.release()))
    assert clean(caplog.text)
    with closing(sqlite3.connect(tmp_path / "ledger")) as database:
        assert clean("\n".join(database.iterdump()))  # as text: SQLite keeps numbers in binary
    assert clean(sv.Ledger.read(tmp_path / "ledger").receipt())
    return reports


def test_no_raw_value_reaches_a_report_a_log_line_or_a_saved_state(people: list[sv.Report]) -> None:
    for report in people:
        assert clean(wire.report_to_json(report))
        assert clean(repr(report))


def test_the_arm_is_not_told_by_anything_but_the_noisy_numbers(people: list[sv.Report]) -> None:
    fields = {(r.population, len(r.nonce), type(r.payload)) for r in people}
    assert len(fields) == 1
    assert len({report.nonce for report in people}) == len(people)


def bad_uses() -> list[Any]:
    good = {"age": AGE, "bmi": BMI}
    device = sv.Device(sv.Learner(experiment()).release())
    learner = sv.Learner(experiment())
    choose, logged = device.choose, device.report_logged
    raw_json = f'{{"age": {AGE}, "reward": {REWARD}, "name": "Lindqvist"}}'
    named = wire.report_to_json(sv.Report(bytes(12), 0, bytes(16), ())).replace(
        "{", f'{{"reward": {REWARD}, ', 1
    )
    strange = named.replace('"reward"', '"Lindqvist"')
    return [
        lambda: wire.report_from_json(strange),
        lambda: choose({"age": str(AGE), "bmi": BMI}),
        lambda: choose({"age": AGE * 1j, "bmi": BMI}),
        lambda: choose({"age": [AGE], "bmi": BMI}),
        lambda: choose({"age": AGE}),
        lambda: choose({**good, "Lindqvist": 1}),
        lambda: choose({**good, "passport": "Lindqvist"}),
        lambda: choose(f"{AGE} {BMI}"),  # type: ignore[arg-type]
        lambda: choose([AGE, BMI]),  # type: ignore[arg-type]
        lambda: logged(good, arm="Lindqvist", reward=REWARD),
        lambda: logged(good, arm="coach", reward=REWARD + 61),
        lambda: logged(good, arm="coach", reward=-REWARD),
        lambda: logged(good, arm="coach", reward=str(REWARD)),  # type: ignore[arg-type]
        lambda: logged(good, arm="coach", reward=AGE),
        lambda: wire.report_from_bytes(raw_json.encode()),
        lambda: wire.report_from_json(raw_json),
        lambda: wire.report_from_json(raw_json[:-5]),
        lambda: wire.report_from_json(named),
        lambda: wire.release_from_json(raw_json),
        lambda: learner.receive(sv.Report(bytes(12), 0, bytes(16), (AGE, BMI, REWARD))),
        lambda: learner.receive(
            sv.Report(wire.release_id(learner.release()), 0, bytes(16), (AGE, BMI, REWARD))
        ),
        lambda: learner.receive(
            sv.Report(wire.release_id(learner.release()), 0, bytes(16), (AGE * 1e6,) * 6)
        ),
        lambda: sv.Learner.from_json(raw_json),
        lambda: sv.Learner.from_json(raw_json[:-5]),
    ]


@pytest.mark.parametrize("number", range(len(bad_uses())))
def test_no_raw_value_reaches_an_exception(number: int) -> None:
    with pytest.raises(sv.SottovoceError) as caught:
        bad_uses()[number]()
    assert clean(str(caught.value))
    # The whole chain of causes, as a logger would write it, without this test's own lines.
    chain, error = "", caught.value.__cause__ or caught.value.__context__
    while error is not None:
        chain += "".join(traceback.format_exception_only(error))
        error = error.__cause__ or error.__context__
    assert clean(chain)
