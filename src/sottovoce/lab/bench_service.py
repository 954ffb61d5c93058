"""How fast a server is: durable reports a second beside a request that does nothing.

Load and server share the machine, as its cores allow. Ratios are within one run; the rest depends
on the machine.
"""

import itertools
import multiprocessing
import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import uvloop

from sottovoce.device.device import Device
from sottovoce.device.transport import Request, send
from sottovoce.lab.environments import Exponential
from sottovoce.lab.load import all_of, as_fast_as_possible, at_rate, post
from sottovoce.lab.local_server import LocalServer, running
from sottovoce.lab.people import features_of
from sottovoce.shared import wire
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.schema import Numeric
from sottovoce.shared.signed import SignedRelease

BATCH = 5000
# Reports that are made by real devices; sent again and again, each time with a new nonce.
POOL = 4000
ROUNDS_OF_PEOPLE = 6
MEMORY_LOOKS = 10
COMPACT = {"content-type": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class ServiceSpeed:
    """The figures of one database.

    nothing: requests a second that read a report and do nothing with it; median of the rounds.
    single: reports a second, one in each request, acknowledged when on disk; likewise.
    ratio: the median over the rounds of single / nothing.
    half_load_p50, half_load_p99: milliseconds, at half of ``single``.
    batch: reports a second, in batches.
    learned: reports a second until the learner had counted the last of those.
    memory: megabytes of all processes of the server, at tenths of the way through the batches.
    """

    database: str
    nothing: float
    single: float
    ratio: float
    half_load_p50: float
    half_load_p99: float
    batch: float
    learned: float
    reports: int
    memory: list[float]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured, and with how much.

    seconds: of each round of single reports; rounds of them.
    reports: in batches.
    connections: clients with single reports.
    """

    seconds: float
    rounds: int
    reports: int
    connections: int


def measure_service(
    effort: Effort, *, postgres: str | None, tell: Callable[[str], object]
) -> list[ServiceSpeed]:
    """Measure on SQLite and, where there is one, on PostgreSQL.

    postgres: the address of an empty database; without it the package pgserver is used, if it is
        installed.
    """
    with TemporaryDirectory(prefix="sottovoce-bench-") as folder:
        databases = [("SQLite", f"sqlite:///{folder}/reports.db")]
        with _postgres(postgres, Path(folder)) as address:
            if address is not None:
                databases.append(("PostgreSQL", address))
            return [_measure(name, url, effort, tell) for name, url in databases]


def _measure(
    name: str, database: str, effort: Effort, tell: Callable[[str], object]
) -> ServiceSpeed:
    seconds, connections, reports = effort.seconds, effort.connections, effort.reports
    experiment = Experiment(
        name="bench",
        arms=["a", "b", "c"],
        context=[Numeric("x", 0, 1), Numeric("y", 0, 1)],
        epsilon=1.0,
        horizon=10 * reports,
        release_every=1000,
    )
    with running([experiment], database=database, measured=True) as server:
        tell(f"{name}: the first people")
        report = _reports(server, experiment)

        def rate(path: str) -> float:
            load = as_fast_as_possible(
                server.url,
                lambda: post(path, report()),
                connections=connections,
                seconds=seconds,
            )
            return uvloop.run(load).rate

        pairs = []
        for number in range(effort.rounds):
            tell(f"{name}: single reports, round {number + 1} of {effort.rounds}")
            pairs.append((rate("/nothing"), rate("/reports")))
        single = statistics.median(single for _, single in pairs)
        tell(f"{name}: half load")
        half = uvloop.run(
            at_rate(
                server.url,
                lambda: post("/reports", report()),
                rate=single / 2,
                connections=connections,
                seconds=2 * seconds,
            )
        )
        tell(f"{name}: {reports:,} reports in batches")
        batch, learned, memory = _batches(server, experiment, report, reports=reports)
    return ServiceSpeed(
        database=name,
        nothing=statistics.median(nothing for nothing, _ in pairs),
        single=single,
        ratio=statistics.median(single / nothing for nothing, single in pairs),
        half_load_p50=half.quantile(0.5),
        half_load_p99=half.quantile(0.99),
        batch=batch,
        learned=learned,
        reports=reports,
        memory=memory,
    )


def _reports(server: LocalServer, experiment: Experiment) -> Callable[[], bytes]:
    """Let some people come, so that bins are contested as in the midst of an experiment.

    Return a source of reports: those of the last round, again and again, each with a new nonce.
    """
    rng = np.random.default_rng(0)
    made: list[bytes] = []
    for _ in range(ROUNDS_OF_PEOPLE):
        answer = server.get(f"/experiments/{experiment.fingerprint}/releases/current")
        release = wire.release_from_json(SignedRelease.from_json(answer.body).text)
        made = [_report(release, rng) for _ in range(POOL)]
        send(Request("POST", f"{server.url}/reports/batch", COMPACT, wire.batch_to_bytes(made)))
        server.wait_until_learned(experiment)
    again = itertools.cycle(made)
    return lambda: wire.with_nonce(next(again), secrets.token_bytes(16))


def _report(release: Release, rng: np.random.Generator) -> bytes:
    environment = Exponential()
    context = environment.contexts(rng, 1)
    device = Device(release)
    arm = release.experiment.arms.index(device.choose(features_of(release.experiment, context[0])))
    reward = float(rng.random() < environment.means(context)[0, arm])
    return wire.report_to_bytes(device.report(reward=reward))


def _batches(
    server: LocalServer, experiment: Experiment, report: Callable[[], bytes], *, reports: int
) -> tuple[float, float, list[float]]:
    """Return reports a second stored, and learned, and the memory on the way."""
    seconds = 0.0
    begun = time.perf_counter()
    making = 0.0
    memory = [_megabytes()]
    for _ in range(MEMORY_LOOKS):
        since = time.perf_counter()
        batches = [
            post("/reports/batch", wire.batch_to_bytes([report() for _ in range(BATCH)]))
            for _ in range(reports // BATCH // MEMORY_LOOKS)
        ]
        making += time.perf_counter() - since
        load = uvloop.run(all_of(server.url, iter(batches), connections=4))
        seconds += load.seconds
        memory.append(_megabytes())
    server.wait_until_learned(experiment, patience=600)
    # Making the reports is the clients' work, spread over as many machines.
    learned = reports / (time.perf_counter() - begun - making)
    return reports / seconds, learned, memory


def _megabytes() -> float:
    """Return the resident memory of the server's processes; NaN where there is no /proc."""
    pages = 0
    for process in multiprocessing.active_children():
        try:
            pages += int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        except OSError:
            return float("nan")
    return pages * 4096 / 1e6


@contextmanager
def _postgres(address: str | None, folder: Path) -> Iterator[str | None]:
    if address is not None:
        yield address
        return
    try:
        from pgserver.postgres_server import get_server
    except ImportError:
        yield None
        return
    server = get_server(folder / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
