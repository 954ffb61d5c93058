"""Sottovoce: learn which option suits which person without collecting anything about them.

The way of the data, and who has which object:

    experiment   sv.Experiment      public: arms, context schema, ε, method
    learner      sv.Learner         the server's side: reports in, releases out
    release      sv.Release         public: what to do in each bin of contexts
    device       sv.Device          the person's side: release and raw data in, report out
    report       sv.Report          ε-locally-differentially-private; all that leaves the device

In ten lines:

    import sottovoce as sv

    experiment = sv.Experiment(
        arms=["control", "reminder", "coach"],
        context=[sv.Numeric("age", 18, 90), sv.Numeric("bmi", 15, 45)],
        epsilon=1.0,
    )
    learner = sv.Learner(experiment)             # server: sees reports only
    device = sv.Device(learner.release())        # device: sees raw data, keeps it
    arm = device.choose({"age": 42, "bmi": 27.5})
    report = device.report(reward=1.0)           # ε-LDP, spends the ledger
    learner.receive(report)

``Client`` is a device that talks to a server over HTTP; ``sottovoce serve`` is that server.
``Ledger`` keeps what a person has spent. ``sottovoce.lab`` simulates people and compares methods.

These names are the public API; so are those of ``sottovoce.lab``, and the commands. All other
modules are internal. Each side is loaded when it is first used: a device needs no NumPy, and a
server works without the device's code.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from sottovoce.shared import wire
from sottovoce.shared.amendment import Amendment
from sottovoce.shared.baseline import Baseline
from sottovoce.shared.errors import (
    BudgetSpent,
    ContextError,
    DeviceError,
    ExperimentError,
    ForkError,
    LedgerError,
    MissingExtra,
    NoSuchExperiment,
    OutboxError,
    PolicyError,
    Refused,
    Rejection,
    ReportRejected,
    RewardError,
    RowsError,
    SignatureError,
    SottovoceError,
    StateError,
    StoreBehind,
    StoreDamaged,
    StoreError,
    StoreFull,
    TransportError,
    WireError,
)
from sottovoce.shared.experiment import Experiment, Population
from sottovoce.shared.extras import load
from sottovoce.shared.ldpmab import Ldpmab
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import BinPolicy, Release
from sottovoce.shared.report import Report
from sottovoce.shared.reward import RewardScale
from sottovoce.shared.schema import Axis, Boolean, Categorical, Numeric, Ordinal
from sottovoce.shared.whisper import Whisper

if TYPE_CHECKING:
    from sottovoce.device.async_client import AsyncClient
    from sottovoce.device.client import Client
    from sottovoce.device.decision import Decision
    from sottovoce.device.device import Device
    from sottovoce.device.ledger import AnyLedger, Ledger, LedgerEntry
    from sottovoce.device.policy.policy import Policy
    from sottovoce.device.session import ClientSettings
    from sottovoce.device.transport import Request, Response
    from sottovoce.estimate.diagnosis import Audit, Diagnosis, Source
    from sottovoce.estimate.figures import ArmEstimate, BinPeople, Value
    from sottovoce.estimate.gain_interval import Brought, GainEstimate
    from sottovoce.estimate.history import (
        Amended,
        BeganAnew,
        Certificate,
        DatedEvent,
        Elimination,
        Retirement,
        Split,
    )
    from sottovoce.estimate.learner import Learner, Status
    from sottovoce.estimate.method import CellEstimate

__version__ = "0.1.0"

__all__ = [
    "Amended",
    "Amendment",
    "AnyLedger",
    "ArmEstimate",
    "AsyncClient",
    "Audit",
    "Axis",
    "Baseline",
    "BeganAnew",
    "BinPeople",
    "BinPolicy",
    "Boolean",
    "Brought",
    "BudgetSpent",
    "Categorical",
    "CellEstimate",
    "Certificate",
    "Client",
    "ClientSettings",
    "ContextError",
    "DatedEvent",
    "Decision",
    "Device",
    "DeviceError",
    "Diagnosis",
    "Elimination",
    "Experiment",
    "ExperimentError",
    "ForkError",
    "GainEstimate",
    "Ldpmab",
    "Learner",
    "Ledger",
    "LedgerEntry",
    "LedgerError",
    "MethodSettings",
    "MissingExtra",
    "NoSuchExperiment",
    "Numeric",
    "Ordinal",
    "OutboxError",
    "Partition",
    "Policy",
    "PolicyError",
    "Population",
    "Refused",
    "Rejection",
    "Release",
    "Report",
    "ReportRejected",
    "Request",
    "Response",
    "Retirement",
    "RewardError",
    "RewardScale",
    "RowsError",
    "SignatureError",
    "SottovoceError",
    "Source",
    "Split",
    "StateError",
    "Status",
    "StoreBehind",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "TransportError",
    "Value",
    "Whisper",
    "WireError",
    "wire",
]

_MODULES = {
    "sottovoce.device.async_client": "AsyncClient",
    "sottovoce.device.client": "Client",
    "sottovoce.device.decision": "Decision",
    "sottovoce.device.device": "Device",
    "sottovoce.device.ledger": "AnyLedger Ledger LedgerEntry",
    "sottovoce.device.policy.policy": "Policy",
    "sottovoce.device.session": "ClientSettings",
    "sottovoce.device.transport": "Request Response",
    "sottovoce.estimate.diagnosis": "Audit Diagnosis Source",
    "sottovoce.estimate.gain_interval": "Brought GainEstimate",
    "sottovoce.estimate.figures": "ArmEstimate BinPeople Value",
    "sottovoce.estimate.history": (
        "Amended BeganAnew Certificate DatedEvent Elimination Retirement Split"
    ),
    "sottovoce.estimate.learner": "Learner Status",
    "sottovoce.estimate.method": "CellEstimate",
}
"""Where the names are that are loaded when they are first used."""


def __getattr__(name: str) -> object:
    return load(name, _MODULES, package=__name__)


def __dir__() -> list[str]:
    names = [*__all__, "__doc__", "__version__"]
    if find_spec("numpy") is not None:
        return names
    # help() loads all that is listed here, and is to work on a device, too.
    learning = [each for module, each in _MODULES.items() if "estimate" in module]
    return [name for name in names if name not in " ".join(learning).split()]
