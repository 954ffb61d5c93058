"""What a server counts, for Prometheus.

Counts of requests and reports by kind and outcome: no address, no context, nothing about anybody.
With several workers each counts in a file of its own, in the folder that the environment variable
PROMETHEUS_MULTIPROC_DIR names, and whichever is asked adds them up.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

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


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one experiment stands.

    stored: reports in the log. learned: those that the learner has counted.
    sources: the auxiliary populations, as a diagnosis has them.
    """

    stored: int
    learned: int
    release: int
    bins: int
    settled_bins: int
    late_reports: int
    dropped_cells: int
    sources: Sequence[Mapping[str, Any]] = ()


class _Standings(Collector):
    def __init__(self, standings: Mapping[str, Standing]) -> None:
        self._standings = standings

    def collect(self) -> Iterable[Metric]:
        texts = {
            "stored": "Reports in the log.",
            "learned": "Reports that the learner has counted.",
            "release": "The newest release.",
            "bins": "Bins of the newest release.",
            "settled_bins": "Bins with one arm left.",
            "late_reports": "Counted reports that were made for an older release.",
            "dropped_cells": "Cells of late reports that no longer stood and were left out.",
        }
        for name, text in texts.items():
            family = GaugeMetricFamily(f"sottovoce_{name}", text, labels=["experiment"])
            for fingerprint, standing in self._standings.items():
                family.add_metric([fingerprint], getattr(standing, name))
            yield family
        yield from self._of_sources()

    def _of_sources(self) -> Iterable[Metric]:
        texts = {
            "effective_users": "Reports of target users that would have said as much.",
            "harmful": "1 if an auxiliary population seems to mislead.",
        }
        for name, text in texts.items():
            labels = ["experiment", "population"]
            family = GaugeMetricFamily(f"sottovoce_{name}", text, labels=labels)
            for fingerprint, standing in self._standings.items():
                for source in standing.sources:
                    if source[name] is not None:
                        family.add_metric([fingerprint, source["population"]], source[name])
            yield family


def render(standings: Mapping[str, Standing]) -> bytes:
    """Write all metrics in Prometheus's text format."""
    where = CollectorRegistry()
    where.register(_Standings(standings))
    if os.environ.get(FOLDER):
        MultiProcessCollector(where)  # type: ignore[no-untyped-call]  # it has no types
        return generate_latest(where)
    return generate_latest(where) + generate_latest(REGISTRY)
