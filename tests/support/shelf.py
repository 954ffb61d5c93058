"""A server that hands out the releases it is given, and stores every report unread."""

from pathlib import Path

import sottovoce as sv
from sottovoce.device.outbox import Outbox
from sottovoce.shared import wire
from support.fake_server import FakeServer


class Shelf(FakeServer):
    """Its release is whatever a test puts there, whether a learner would have made it or not."""

    def __init__(self, release: sv.Release) -> None:
        super().__init__(release.experiment)
        self.current = release

    def document(self, release: sv.Release | None = None) -> bytes:
        return super().document(release or self.current)

    def _take(self, body: bytes) -> int:
        self.bodies[wire.report_from_bytes(body).nonce] = body
        return 1

    def reports(self) -> list[sv.Report]:
        """Return the reports that came, in their order."""
        return [wire.report_from_bytes(body) for body in self.bodies.values()]


def waiting_in(path: Path, experiment: str) -> list[sv.Report]:
    """Return the reports in an outbox."""
    waiting = Outbox(path).oldest(1000, experiment=experiment)
    return [wire.report_from_bytes(each.report) for each in waiting]
