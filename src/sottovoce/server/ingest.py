"""Bytes from the network → the learner, with every refusal counted by its reason."""

import logging
from collections import Counter

from sottovoce.estimate.learner import Learner
from sottovoce.shared import wire
from sottovoce.shared.errors import Refused, Rejection

logger = logging.getLogger(__name__)


class Ingest:
    """The way in. A refused report changes nothing but a counter."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.accepted = 0
        self.rejected: Counter[Rejection] = Counter()

    def take(self, data: bytes) -> Rejection | None:
        """Count one report in the compact format; return why it was refused, or None."""
        try:
            self.learner.receive(wire.report_from_bytes(data))
        except Refused as refused:
            self.rejected[refused.reason] += 1
            # The reason only: a message that does not parse may hold anything.
            logger.warning("refused a report: %s", refused.reason.value)
            return refused.reason
        self.accepted += 1
        return None
