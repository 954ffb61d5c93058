"""What a worker knows: the experiments, their releases, and which reports fit them.

All of it follows from the database. A worker looks there from time to time, and when a report
speaks of something newer than it knows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sottovoce.estimate.gate import Gate
from sottovoce.server.keys import SigningKey
from sottovoce.server.store.store import Store
from sottovoce.shared import wire
from sottovoce.shared.errors import Rejection, WireError
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


@dataclass(frozen=True, slots=True)
class Current:
    """An experiment and its newest release, ready to be sent."""

    experiment: Experiment
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

    def check(self, fingerprint: str, reports: Sequence[bytes]) -> list[Rejection | None]:
        """Say of each report whether it can be counted."""
        gate = self._gates.get(fingerprint)
        if gate is None:
            return [_unknown(report) for report in reports]
        return gate.check_many(reports)

    def _follow(self, fingerprint: str, gate: Gate) -> None:
        release = None
        for logged in self._store.releases(fingerprint, after=gate.newest):
            release = wire.release_from_json(logged.text)
            gate.publish(release)
        if release is not None:
            signed = self._key.sign(wire.release_to_json(release)).to_json()
            self.current[fingerprint] = Current(release.experiment, release, signed)


def _unknown(report: bytes) -> Rejection:
    """Refuse a report of no experiment here; of one that is no report at all, say that."""
    try:
        wire.report_from_bytes(report)
    except WireError as error:
        return error.reason
    return Rejection.UNKNOWN_EXPERIMENT
