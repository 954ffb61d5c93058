"""What a worker knows: the experiments, their releases, and which reports fit them.

All of it follows from the database. A worker looks there from time to time, and when a report
speaks of something newer than it knows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sottovoce.estimate.gate import Gate
from sottovoce.server.keys import SigningKey
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.errors import Rejection, WireError
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release

_UNKNOWN = frozenset((Rejection.UNKNOWN_EXPERIMENT, Rejection.UNKNOWN_RELEASE))


@dataclass(frozen=True, slots=True)
class Current:
    """The newest release of an experiment; ``signed`` is ready to be sent."""

    release: Release
    signed: bytes


class Catalogue:
    """The experiments of one database.

    ``current`` may be read from any thread: its entries are replaced, never changed. All else
    belongs to the thread that calls ``refresh`` and ``check``.
    """

    def __init__(self, store: Store, key: SigningKey) -> None:
        self.current: dict[str, Current] = {}
        self._store = store
        self._key = key
        self._gates: dict[str, Gate] = {}

    def refresh(self) -> None:
        """Look for new experiments and releases."""
        newest = self._store.newest_versions()
        if newest.keys() - self._gates.keys():
            for fingerprint, text in self._store.experiments():
                if fingerprint not in self._gates:
                    self._gates[fingerprint] = Gate(Experiment.from_table(json.loads(text)))
        for fingerprint, gate in self._gates.items():
            if newest.get(fingerprint, 0) > gate.newest:
                self._follow(fingerprint, gate)

    def check(self, reports: Mapping[str, Sequence[bytes]]) -> dict[str, list[Rejection | None]]:
        """Say why each report cannot be counted, or None; by experiment, as they are given.

        A refusal is for good. So before any report is refused for something that is unknown, the
        database is asked; if it cannot answer, StoreError is raised, and all have to come again.
        """
        verdicts = {
            fingerprint: self._check(fingerprint, some) for fingerprint, some in reports.items()
        }
        unknown = {
            fingerprint: [i for i, verdict in enumerate(some) if verdict in _UNKNOWN]
            for fingerprint, some in verdicts.items()
        }
        if any(unknown.values()):
            self.refresh()
        for fingerprint, indices in unknown.items():
            if indices and fingerprint in self._gates:
                again = self._check(fingerprint, [reports[fingerprint][i] for i in indices])
                for i, verdict in zip(indices, again, strict=True):
                    verdicts[fingerprint][i] = verdict
        return verdicts

    def _check(self, fingerprint: str, reports: Sequence[bytes]) -> list[Rejection | None]:
        gate = self._gates.get(fingerprint)
        if gate is None:
            return [_without_gate(report) for report in reports]
        return gate.check_many(reports)

    def _follow(self, fingerprint: str, gate: Gate) -> None:
        release = None
        for logged in self._store.releases(fingerprint, after=gate.newest):
            release = wire.release_from_json(logged.text)
            gate.publish(release)
        if release is not None:
            signed = self._key.sign(wire.release_to_json(release)).to_json()
            self.current[fingerprint] = Current(release, signed)


def _without_gate(report: bytes) -> Rejection:
    """Refuse a report for an experiment that is not here, or bytes that are no report."""
    try:
        wire.report_from_bytes(report)
    except WireError as error:
        return error.reason
    return Rejection.UNKNOWN_EXPERIMENT
