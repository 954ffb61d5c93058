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
    OutboxError,
    Refused,
    Rejection,
    ReportRejected,
    RewardError,
    RowsError,
    SignatureError,
    SottovoceError,
    StateError,
    StoreError,
    TransportError,
    WireError,
)
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.ldpmab.settings import Ldpmab
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.schema import Categorical, Numeric, Ordinal
from sottovoce.shared.whisper.settings import Whisper

if TYPE_CHECKING:
    from sottovoce.device.async_client import AsyncClient
    from sottovoce.device.client import Client
    from sottovoce.device.device import Device
    from sottovoce.device.ledger import Ledger
    from sottovoce.estimate.learner import Learner

__all__ = [
    "AsyncClient",
    "BudgetSpent",
    "Categorical",
    "Client",
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
    "OutboxError",
    "Population",
    "Refused",
    "Rejection",
    "Release",
    "Report",
    "ReportRejected",
    "RewardError",
    "RowsError",
    "SignatureError",
    "SottovoceError",
    "StateError",
    "StoreError",
    "TransportError",
    "Whisper",
    "WireError",
    "wire",
]

_SIDES = {
    "AsyncClient": "sottovoce.device.async_client",
    "Client": "sottovoce.device.client",
    "Device": "sottovoce.device.device",
    "Ledger": "sottovoce.device.ledger",
    "Learner": "sottovoce.estimate.learner",
}


def __getattr__(name: str) -> object:
    if name not in _SIDES:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    return getattr(import_module(_SIDES[name]), name)
