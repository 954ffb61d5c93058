"""The ledger of a client without one: its outbox remembers that the person has reported."""

from sottovoce.device.outbox import Outbox
from sottovoce.shared.errors import BudgetSpent


class OneKeptReport:
    """A single report for each experiment in the outbox."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def spend(self, epsilon: float, *, experiment: str, name: str, release: int) -> None:
        """Allow the first report only. That is on disk before the device makes the report."""
        if not self._outbox.note_report(experiment=experiment):
            raise BudgetSpent(
                "a client without a ledger must report at most once; got a second report:"
                " pass ledger=Ledger(path, budget=…)"
            )

    def give_back(self, *, experiment: str, release: int, count: int) -> None:
        """Allow the report again: it was erased before it was ever sent."""
        if count:
            with self._outbox.transaction() as database:
                database.execute("DELETE FROM reported WHERE experiment = ?", (experiment,))
