"""The command line with a mistake built in, to see whether the tests would find it.

    python faulty_service.py MISTAKE serve …

Its workers are new processes that begin by running this file, so they have the mistake as well.
"""

import asyncio
import os
import sys
from collections.abc import Sequence

from sottovoce.cli import main
from sottovoce.server import learning
from sottovoce.server.ingest import Ingest, Receipt
from sottovoce.server.store import postgres, schema, store

if __name__ == "__main__":
    os.environ["MISTAKE"] = sys.argv.pop(1)


def acknowledge_before_storing() -> None:
    put = Ingest.put
    tasks: set[asyncio.Task[Receipt]] = set()

    async def hasty(self: Ingest, reports: Sequence[bytes]) -> Receipt:
        task = asyncio.create_task(put(self, reports))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return Receipt(stored=len(reports))

    Ingest.put = hasty  # type: ignore[method-assign]


def forget_nonces() -> None:
    apply = schema._apply

    def without_index(connection: object, script: str) -> None:
        apply(connection, script.replace(",\n    UNIQUE (experiment, nonce)", ""))  # type: ignore[arg-type]

    schema._apply = without_index
    store.choose_new = lambda reports, known: (list(reports), [True] * len(reports))


def commit_without_waiting_for_the_disk() -> None:
    settings = postgres.SETTINGS
    postgres.SETTINGS = settings.replace("synchronous_commit = on", "synchronous_commit = off")


def fail_to_learn() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("as a test has it")

    learning.learn_until = fail  # type: ignore[assignment]


globals()[os.environ["MISTAKE"]]()

if __name__ == "__main__":
    main()
