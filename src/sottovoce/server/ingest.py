"""The way in: reports from the network → the log, many in one commit.

A report is acknowledged only when it is durably stored, and a sync of the disk is slow. So reports
that come while one commit is under way wait, and go into the next one together: the more come, the
less each costs. Single reports and batches go the same way.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import msgspec

from sottovoce.server import metrics
from sottovoce.server.catalogue import Catalogue
from sottovoce.server.health import Health
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import Rejection, StoreDamaged, StoreFull
from sottovoce.shared.wire import nonce_of

# Reports that go into one commit, roughly: the last delivery may bring it above.
MOST_TOGETHER = 20_000


class RefusedReport(msgspec.Struct, frozen=True):
    """A report that was not stored. index: its place in the delivery."""

    index: int
    reason: Rejection


class Receipt(msgspec.Struct):
    """What became of the reports of one delivery."""

    stored: int = 0
    repeated: int = 0
    refused: list[RefusedReport] = msgspec.field(default_factory=list)


class Outcome(Receipt):
    """A receipt before it is handed out. is_frozen: whether some can be counted by nobody now."""

    is_frozen: bool = False

    def receipt(self) -> Receipt:
        """Return what is handed out."""
        return Receipt(self.stored, self.repeated, self.refused)


class TooMany(Exception):
    """More reports wait than the database can take soon."""


class Ingest:
    """Takes deliveries, and hands out receipts once they are stored."""

    def __init__(
        self, store: Store, catalogue: Catalogue, *, most_waiting: int, health: Health | None = None
    ) -> None:
        self._health = health or Health()
        self._store = store
        self._catalogue = catalogue
        self._most_waiting = most_waiting
        self._waiting: list[tuple[Sequence[bytes], asyncio.Future[Receipt]]] = []
        self._bytes = 0
        self._bell = asyncio.Event()
        # One thread: it alone writes to the log and uses the catalogue.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ingest")

    async def put(self, reports: Sequence[bytes]) -> Receipt:
        """Return when all of them are stored or refused; raise StoreError or TooMany otherwise."""
        size = sum(map(len, reports))
        if self._waiting and self._bytes + size > self._most_waiting:
            raise TooMany
        waits: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._waiting.append((reports, waits))
        self._bytes += size
        self._bell.set()
        return await waits

    async def run(self) -> None:
        """Commit what waits, again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._bell.wait()
            deliveries = self._take()
            try:
                receipts = await loop.run_in_executor(
                    self._writer, self._commit, [reports for reports, _ in deliveries]
                )
            except Exception as error:  # whatever it was, nobody may wait for ever
                for _, waits in deliveries:
                    if not waits.done():
                        waits.set_exception(error)
                continue
            for (_, waits), receipt in zip(deliveries, receipts, strict=True):
                if waits.done():  # it is when the client has gone
                    continue
                if receipt.is_frozen:
                    text = "an experiment must be learned; this one is not, just now"
                    waits.set_exception(StoreDamaged(text))
                else:
                    waits.set_result(receipt.receipt())

    async def refresh(self) -> None:
        """Look for new experiments and releases, in the thread that writes."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._catalogue.refresh)

    def close(self) -> None:
        """End the thread, when nothing comes any more."""
        self._writer.shutdown()

    def _take(self) -> list[tuple[Sequence[bytes], asyncio.Future[Receipt]]]:
        taken, together = 0, 0
        while taken < len(self._waiting) and together < MOST_TOGETHER:
            together += len(self._waiting[taken][0])
            taken += 1
        deliveries, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self._bytes -= sum(len(report) for reports, _ in deliveries for report in reports)
        if not self._waiting:
            self._bell.clear()
        return deliveries

    def _commit(self, deliveries: Sequence[Sequence[bytes]]) -> list[Outcome]:
        """Check and store; what was refused is in no log, database or message."""
        begun = perf_counter()
        frozen = self._health.frozen
        receipts = [Outcome() for _ in deliveries]
        places = [(d, i) for d, delivery in enumerate(deliveries) for i in range(len(delivery))]
        reports = [report for delivery in deliveries for report in delivery]
        for checked in self._catalogue.check(reports):
            good: list[int] = []
            for each, refusal in zip(checked.places, checked.refusals, strict=True):
                if refusal is None:
                    good.append(each)
                else:
                    d, index = places[each]
                    receipts[d].refused.append(RefusedReport(index, refusal))
            if not good:
                continue
            if checked.experiment in frozen:
                # What nobody can count is not acknowledged: the client keeps it.
                for each in good:
                    receipts[places[each][0]].is_frozen = True
                continue
            bodies = [(nonce_of(reports[each]), reports[each]) for each in good]
            published = self._catalogue.newest(checked.experiment)
            try:
                stored = self._store.append(checked.experiment, bodies, published=published)
            except StoreFull:
                self._health.is_full = True
                raise
            self._health.is_full = False
            for each, is_new in zip(good, stored, strict=True):
                receipt = receipts[places[each][0]]
                if is_new:
                    receipt.stored += 1
                else:
                    receipt.repeated += 1
        _count(receipts, seconds=perf_counter() - begun)
        return receipts


def _count(receipts: Sequence[Receipt], *, seconds: float) -> None:
    metrics.STORED.inc(sum(receipt.stored for receipt in receipts))
    metrics.REPEATED.inc(sum(receipt.repeated for receipt in receipts))
    refused = Counter(each.reason for receipt in receipts for each in receipt.refused)
    for reason, count in refused.items():
        metrics.REFUSED.labels(reason.value).inc(count)
    metrics.COMMIT_SECONDS.observe(seconds)
