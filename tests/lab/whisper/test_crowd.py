"""What a batch of the lab's ``whisper`` crowd tells the learner has the law of real devices.

The sums of one batch are compared before anything is decided. Each comparison has a nominal
false-alarm rate of 1e-9 (``support/crowds.py``: we vouch for 1e-7, and 1e-5 for the file).

What the same test must tell apart, the mutants, stands beside what it must not: numbers of the
mechanism that are 5 to 12 % off, sets of three cells for two, and shares of questions that are 6 to
24 of 160 off. A mutant that is missed fails its test, so it must be told apart nearly for certain.
Measured: the p-values of mutants, corrected for many tests, were 1e-25 or less; those
of larger sets 1e-20 to 1e-27 in six draws of 120 runs (with 80 runs, 1e-14 to 1e-22 in ten draws).
How small a difference would just be seen, nobody has measured.
"""

from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.device.whisper import answer
from sottovoce.estimate.whisper.state import State
from sottovoce.lab.simulation import Auxiliary
from sottovoce.lab.whisper import tables
from sottovoce.shared.whisper import questions, tuning
from sottovoce.shared.whisper.cells import cell_layout
from support.crowds import (
    CERTIFIED,
    PUBLIC,
    WHISPER,
    Batch,
    EveryKind,
    Lopsided,
    Run,
    Setting,
    TwoArms,
    estimator_on,
    root,
    tree,
)
from support.slow import slow_but

LOGS = (Auxiliary(200, 1.0, kappa=0.4), Auxiliary(200, 2.0, kappa=0.4, known=False))
LOUD = (Auxiliary(200, 8.0, kappa=0.4), Auxiliary(200, 8.0, kappa=0.4, known=False))

BATCHES = {
    "one cell": Batch(Setting(WHISPER, 1.0, Lopsided(), people=1000), root),
    "one cell, large ε": Batch(Setting(WHISPER, 8.0, Lopsided(), people=1000), root),
    "one bit a cell": Batch(Setting(WHISPER, 1.0, Lopsided(), people=300), tree),
    "sets": Batch(Setting(WHISPER, 2.0, Lopsided(), people=300), tree, runs=120),
    "halves": Batch(Setting(WHISPER, 8.0, Lopsided(), people=300), tree),
    "certified": Batch(Setting(CERTIFIED, 2.0, Lopsided(), people=300), tree),
    "certified, large ε": Batch(Setting(CERTIFIED, 8.0, Lopsided(), people=300), tree),
    "public": Batch(Setting(PUBLIC, 2.0, Lopsided(), people=300), tree),
    "public halves": Batch(Setting(PUBLIC, 8.0, Lopsided(), people=300), tree),
    "logs": Batch(Setting(WHISPER, 2.0, Lopsided(), people=30, rows=LOGS), tree),
    "logs, halves": Batch(Setting(WHISPER, 8.0, Lopsided(), people=30, rows=LOUD), tree),
    "logs of two arms": Batch(Setting(WHISPER, 2.0, TwoArms(), people=30, rows=LOGS), tree),
    "levels, small ε": Batch(Setting(WHISPER, 1.0, EveryKind(), people=300), tree, runs=30),
    "levels": Batch(Setting(WHISPER, 8.0, EveryKind(), people=300), tree),
    "levels, certified": Batch(Setting(CERTIFIED, 8.0, EveryKind(), people=300), tree),
    "levels, public": Batch(Setting(PUBLIC, 8.0, EveryKind(), people=300), tree),
    "levels, logs": Batch(Setting(WHISPER, 2.0, EveryKind(), people=30, rows=LOGS), tree),
    "levels, loud logs": Batch(Setting(WHISPER, 8.0, EveryKind(), people=30, rows=LOUD), tree),
    "two arms, halves": Batch(Setting(WHISPER, 8.0, TwoArms(), people=30, rows=LOUD), tree),
}

EVERY_DAY = ("levels, small ε",)


def mechanism_of(batch: Batch, *, population: int, by_arm: bool) -> tuple[int, int, bool]:
    experiment = batch.experiment
    release = estimator_on(experiment, batch.start(experiment)).release
    layout = cell_layout(release, population=population, by_arm=by_arm)
    assert layout is not None
    sets = layout.halves.mechanism
    return sets.size, sets.cells, layout.halves.parts == 2


def test_the_batches_are_of_every_kind() -> None:
    """One bit a cell, true sets, and halves as cells; with and without "elsewhere"."""
    kinds = {
        name: mechanism_of(batch, population=0, by_arm=False) for name, batch in BATCHES.items()
    }
    assert kinds["one cell"] == (1, 1, False)
    assert kinds["one cell, large ε"] == (1, 3, True)
    assert kinds["one bit a cell"] == (6, 6, False)
    for name in ("sets", "certified"):
        assert kinds[name] == (2, 7, False)
    assert kinds["halves"] == kinds["public halves"] == (1, 13, True)
    assert kinds["certified, large ε"] == (1, 7, False)
    size, whole, _ = mechanism_of(BATCHES["logs"], population=2, by_arm=True)
    assert 1 < size < whole


@lru_cache
def sums_of_devices(name: str) -> list[Run]:
    return BATCHES[name].many_devices()


@pytest.mark.parametrize("name", slow_but(EVERY_DAY, BATCHES))
def test_the_sums_of_a_batch_have_the_same_law(name: str) -> None:
    batch, devices = BATCHES[name], sums_of_devices(name)
    assert batch.differences(devices, batch.many_crowds()) == set()
    expected = {
        *("served.precision", "served.vector", "mass_told.precision", "mass_told.vector", "paid"),
    }
    if batch.setting.rows:
        expected |= {"logged.precision", "logged.vector", "audit"}
        expected |= {"rows_told.precision", "rows_told.vector"}
    if batch.setting.method == CERTIFIED:
        expected |= {"votes"}
    assert {kind for run in devices for kind, sums in run.items() if sums.any()} == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number", "factor", "shows"),
    [
        ("one cell", "contains", 1.08, "served.vector"),
        ("one cell, large ε", "contains", 0.9, "served.vector"),
        ("one cell, large ε", "signal", 1.1, "served.vector"),
        ("one cell, large ε", "inside", 1.05, "served.precision"),
        ("sets", "noise", 1.12, "served.precision"),
        ("sets", "set_size", 1.5, "served.vector"),
        ("certified, large ε", "elsewhere", 0.0, "votes"),
    ],
    ids=["says yes", "says no", "signal", "inside", "noise", "size", "nobody elsewhere"],
)
def test_a_crowd_with_a_slightly_different_mechanism_is_told_apart(
    name: str, number: str, factor: float, shows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = tables.mechanisms

    def altered(experiment: sv.Experiment, population: int, *, nodes: int) -> Any:
        table = honest(experiment, population, nodes=nodes).copy()
        table[number] = table[number] * factor
        return table

    monkeypatch.setattr(tables, "mechanisms", altered)
    batch = BATCHES[name]
    assert shows in batch.differences(sums_of_devices(name), batch.many_crowds())


SERVED = Batch(Setting(WHISPER, 2.0, Lopsided(), people=1000), root)
MANY = (Auxiliary(500, 1.0), Auxiliary(500, 2.0, known=False))
LOGGED = Batch(Setting(WHISPER, 2.0, Lopsided(), people=1, rows=MANY), root)
OF_TWO = Batch(Setting(WHISPER, 2.0, TwoArms(), people=1, rows=MANY), root)


def differ_from_the_crowd(batch: Batch, where: ModuleType, name: str, value: Any) -> set[str]:
    """Which sums tell devices that have another value of a name from the crowd, which has not."""
    crowd = [batch.crowd(seed) for seed in range(200)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, value)
        devices = [batch.devices(seed) for seed in range(20)]
    return batch.differences(devices, crowd)


@pytest.mark.slow
def test_devices_that_ask_slightly_more_about_axes_are_told_apart() -> None:
    """Of 1024 people, 64 fewer are asked about no axis, and so many more about the first."""

    def slightly_more(experiment: sv.Experiment) -> State:
        state = root(experiment)
        state.ask[:2] += [-64, 64]
        return state

    crowd = [SERVED.crowd(seed) for seed in range(200)]
    devices = [replace(SERVED, start=slightly_more).devices(seed) for seed in range(20)]
    assert "served.precision" in SERVED.differences(devices, crowd)


@pytest.mark.slow
def test_devices_that_ask_slightly_more_rows_about_axes_are_told_apart() -> None:
    share = tuning.LOGGED_FEATURE_SHARE + 24
    shows = differ_from_the_crowd(LOGGED, answer, "LOGGED_FEATURE_SHARE", share)
    assert "logged.precision" in shows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "kind", "share", "more", "shows"),
    [
        (SERVED, "MASS", "share", 6, "mass_told.precision"),
        (SERVED, "LEVEL", "share", 12, "served.precision"),
        (LOGGED, "COUNT", "share", 16, "rows_told.precision"),
        (LOGGED, "COUNT", "share_unknown", 20, "rows_told.precision"),
        (OF_TWO, "LOGGED_LEVEL", "share", 16, "logged.precision"),
    ],
    ids=["mass", "level", "count", "behaviour unknown", "logged level"],
)
def test_devices_that_ask_in_slightly_different_shares_are_told_apart(
    batch: Batch, kind: str, share: str, more: int, shows: str
) -> None:
    table = tuple(
        entry._replace(**{share: getattr(entry, share) + more}) if entry.name == kind else entry
        for entry in questions.TABLE
    )
    assert table != questions.TABLE
    assert shows in differ_from_the_crowd(batch, questions, "TABLE", table)
