"""What a client may do only once, kept in its outbox: so it is once after a restart, too."""

from collections.abc import Callable

from sottovoce.device.coins import Ranking
from sottovoce.device.outbox import Outbox
from sottovoce.shared import wire
from sottovoce.shared.errors import BudgetSpent
from sottovoce.shared.report import Report


class KeptCoins:
    """The ranking of a client's next report.

    The outbox forgets it in the same transaction in which it takes the report.
    """

    def __init__(self, outbox: Outbox, *, experiment: str) -> None:
        self._outbox = outbox
        self._experiment = experiment

    def take(self, draw: Callable[[], Ranking]) -> Ranking:
        """Return the ranking of the next report; draw it if there is none yet."""
        return tuple(self._outbox.coin(bytes(draw()), experiment=self._experiment))

    def check(self, ranking: Ranking) -> None:
        """Raise unless the outbox has room, and no other process has used the ranking."""
        self._outbox.check_room(experiment=self._experiment, coin=bytes(ranking))

    def use(self, ranking: Ranking, report: Report) -> None:
        """Keep the report, and forget the ranking."""
        document = wire.report_to_bytes(report)
        self._outbox.put(document, experiment=self._experiment, coin=bytes(ranking))


class OneKeptReport:
    """The ledger of a client without one: a single report for each experiment in the outbox."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Allow the first report only. That is on disk before the device makes the report."""
        if not self._outbox.note_report(experiment=experiment):
            raise BudgetSpent(
                "a client without a ledger must report at most once; got a second report:"
                " pass ledger=Ledger(path, budget=…)"
            )
