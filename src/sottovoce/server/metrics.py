"""What a server counts, for Prometheus.

Counts of requests and reports by kind and outcome: no address, no context, nothing about anybody.
With several workers each counts in a file of its own, in the folder that the environment variable
PROMETHEUS_MULTIPROC_DIR names, and whichever is asked adds them up.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from sottovoce.server.status import ExperimentStatus

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

STORED = Counter("sottovoce_reports_stored", "Reports that were stored in the log.")
REPEATED = Counter("sottovoce_reports_repeated", "Reports that were in the log already.")
REFUSED = Counter("sottovoce_reports_refused", "Reports that were refused.", ["reason"])
TURNED_AWAY = Counter("sottovoce_reports_turned_away", "Requests that were told to come later.")
COMMIT_SECONDS = Histogram(
    "sottovoce_commit_seconds",
    "Time to check and store the reports of one commit.",
    buckets=SECONDS,
)
REQUESTS = Counter("sottovoce_requests", "Answers, by endpoint and status.", ["endpoint", "status"])
REQUEST_SECONDS = Histogram(
    "sottovoce_request_seconds", "Time to answer, by endpoint.", ["endpoint"], buckets=SECONDS
)


# Of each experiment: the metric's name, where its value stands in ExperimentStatus, its help text.
EXPERIMENT_GAUGES = (
    ("stored", "stored", "Reports in the log."),
    ("learned", "learned", "Reports that the learner has counted."),
    ("release", "release.version", "The newest release."),
    ("restores", "restores", "How often the server was restored, and went on in a new branch."),
    ("bins", "bins", "Bins of the newest release."),
    ("settled_bins", "settled_bins", "Bins with one arm left."),
    ("late_reports", "counts.late_reports", "Counted reports that were made for an older release."),
    (
        "dropped_cells",
        "counts.dropped_cells",
        "Cells of late reports that were no longer contested.",
    ),
)
# Of each auxiliary population, likewise in SourceSummary.
SOURCE_GAUGES = (
    ("effective_users", "Reports of target users that would have said as much."),
    ("harmful", "1 if an auxiliary population seems to mislead."),
)


TROUBLES = ("behind", "frozen", "lagging", "hung", "full")
"""What can be wrong with a server: the database has lost what it had; an experiment cannot be
learned; nobody learns it; the learner gives no sign of life; the disk is full."""


class _Statuses(Collector):
    def __init__(self, statuses: Mapping[str, ExperimentStatus]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterable[Metric]:
        for name, path, text in EXPERIMENT_GAUGES:
            gauge = GaugeMetricFamily(f"sottovoce_{name}", text, labels=["experiment"])
            for fingerprint, status in self._statuses.items():
                gauge.add_metric([fingerprint], attrgetter(path)(status))
            yield gauge
        for name, text in SOURCE_GAUGES:
            labels = ["experiment", "population"]
            gauge = GaugeMetricFamily(f"sottovoce_{name}", text, labels=labels)
            for fingerprint, status in self._statuses.items():
                for source in status.diagnosis.sources:
                    if (value := getattr(source, name)) is not None:
                        gauge.add_metric([fingerprint, source.population], value)
            yield gauge


class _Troubles(Collector):
    def __init__(self, troubles: Collection[str]) -> None:
        self._troubles = troubles

    def collect(self) -> Iterable[Metric]:
        text = "1 for what is wrong with the server."
        gauge = GaugeMetricFamily("sottovoce_trouble", text, labels=["kind"])
        for kind in TROUBLES:
            gauge.add_metric([kind], kind in self._troubles)
        yield gauge


def render(statuses: Mapping[str, ExperimentStatus], troubles: Collection[str] = ()) -> bytes:
    """Write all metrics in Prometheus's text format.

    statuses: by the experiment's fingerprint. troubles: the kinds of what is wrong.
    """
    where = CollectorRegistry()
    where.register(_Statuses(statuses))
    where.register(_Troubles(troubles))
    if os.environ.get(FOLDER):
        MultiProcessCollector(where)  # type: ignore[no-untyped-call]  # it has no types
        return generate_latest(where)
    return generate_latest(where) + generate_latest(REGISTRY)
