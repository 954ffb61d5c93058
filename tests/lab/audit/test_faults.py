"""Every fault is caught with the run that its case has; the same case without it is not flagged.

Each case has a false-alarm rate of 1e-4, and is caught with a far larger probability than 0.999.
"""

from dataclasses import replace
from typing import Any

import pytest

from sottovoce.device.draws import OPERATING_SYSTEM
from sottovoce.lab.audit.adaptive import Game, OneDevice
from sottovoce.lab.audit.faults import Fault, Seeded, faults
from sottovoce.lab.audit.mechanism import RealDevice
from support.slow import slow_but

RATE = 1e-4
FAULTS = {each.name: each for each in faults()}
FAST = {"noise only in the cells that were hit", "one cell missed", "rows left out"}
each_fault = pytest.mark.parametrize("fault", slow_but(FAST, FAULTS))


def test_all_faults_are_listed() -> None:
    assert set(FAULTS) == {
        "noise only in the cells that were hit",
        "halved scale",
        "halved scale, of sets: twice the ε",
        "one cell missed",
        "a seeded generator",
        "floating-point Laplace",
        "a report counted twice",
        "a ledger that resets",
        "a question drawn by the outcome",
        "a group drawn by the outcome",
        "rows left out",
    }


@each_fault
def test_each_fault_is_caught(fault: str) -> None:
    found = FAULTS[fault].task.find(error_rate=RATE, seed=0)
    assert not found.kept
    assert found.bound is not None
    assert found.epsilon is not None
    assert found.bound > found.epsilon


@each_fault
def test_without_its_fault_each_case_is_kept(fault: str) -> None:
    assert mended(FAULTS[fault]).find(error_rate=RATE, seed=0).kept


def mended(fault: Fault) -> Any:
    """The same task with the real device."""
    if isinstance(fault.task, Game):
        return replace(fault.task, participant=OneDevice)
    task: Any = fault.task
    return replace(task, mechanism=RealDevice())


def test_no_fault_changes_the_real_device() -> None:
    pair: Any = FAULTS["rows left out"].task
    Seeded().reports(pair.pair.scene, pair.pair.one, 3)
    assert vars(OPERATING_SYSTEM) == {}
