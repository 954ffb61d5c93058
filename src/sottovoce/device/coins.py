"""The public ranking of a person's next report, where arms are public: drawn once.

An app may choose as often as it likes before it reports. If each choice had a ranking of its own,
the app would pick one of them, perhaps by what it knows about the person, and the report would show
which. So a ranking stays until a report is made with it: through further choices, contexts that are
refused, new releases and failures. ``kept_coins.py`` keeps it through restarts, too.
"""

import os
from collections.abc import Callable
from typing import Protocol

from sottovoce.shared.errors import DeviceError
from sottovoce.shared.report import Report

Ranking = tuple[int, ...]


class PublicCoins(Protocol):
    """Where the ranking of the next report is, and where the report goes that used it.

    A ranking is empty where arms are private.
    """

    def take(self, draw: Callable[[], Ranking]) -> Ranking:
        """Return the ranking of the next report; draw it if there is none yet."""

    def check(self, ranking: Ranking) -> None:
        """Raise unless the next report may be made with this ranking."""

    def use(self, ranking: Ranking, report: Report) -> None:
        """Forget the ranking, now that a report was made with it."""


class CoinsInMemory:
    """The ranking of a device without an outbox."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._ranking: Ranking = ()

    def take(self, draw: Callable[[], Ranking]) -> Ranking:
        """Return the ranking of the next report; draw it if there is none yet."""
        # A fork copies the ranking. Of several copies an app could pick one to report with.
        if self._process != os.getpid():
            raise DeviceError("a ranking must be used where it was drawn; got another process")
        if not self._ranking:
            self._ranking = draw()
        return self._ranking

    def check(self, ranking: Ranking) -> None:
        """Agree: a device has one choice at a time, which was made with the ranking here."""

    def use(self, ranking: Ranking, report: Report) -> None:
        """Forget the ranking."""
        self._ranking = ()
