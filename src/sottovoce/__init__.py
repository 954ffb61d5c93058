"""Sottovoce: learn which option suits which person without collecting anything about them.

The public API. Each side is loaded when it is first asked for: a device gets by without NumPy,
and a server without the device.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sottovoce.shared import wire
from sottovoce.shared.errors import (
    BudgetSpent,
    ContextError,
    DeviceError,
    ExperimentError,
    LedgerError,
    Refused,
    Rejection,
    ReportRejected,
    RewardError,
    SottovoceError,
    StateError,
    WireError,
)
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.method import Ldpmab, Whisper
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.schema import Categorical, Numeric, Ordinal

if TYPE_CHECKING:
    from sottovoce.device.device import Device
    from sottovoce.device.ledger import Ledger
    from sottovoce.estimate.learner import Learner

__all__ = [
    "BudgetSpent",
    "Categorical",
    "ContextError",
    "Device",
    "DeviceError",
    "Experiment",
    "ExperimentError",
    "Ldpmab",
    "Learner",
    "Ledger",
    "LedgerError",
    "Numeric",
    "Ordinal",
    "Population",
    "Refused",
    "Rejection",
    "Release",
    "Report",
    "ReportRejected",
    "RewardError",
    "SottovoceError",
    "StateError",
    "Whisper",
    "WireError",
    "wire",
]

_SIDES = {
    "Device": "sottovoce.device.device",
    "Ledger": "sottovoce.device.ledger",
    "Learner": "sottovoce.estimate.learner",
}


def __getattr__(name: str) -> object:
    if name not in _SIDES:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    return getattr(import_module(_SIDES[name]), name)
