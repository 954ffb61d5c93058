"""``one_bit`` in the estimator's room: counts of bits in, releases out.

Of n people who were asked about arm k, which had chance π, a bit v = ±1 has the mean
β·(2·π·f_k - 1), β = (A - B)/(A + B). So (v/β + 1)/(2π) estimates f_k, with a variance of at most
1/(2πβ)² each. What several releases and populations say is weighted by the inverse of that.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from contracts.one_bit.shared import OneBit, chance_of, odds, policy_of
from sottovoce.estimate.diagnosis import Diagnosis, Source
from sottovoce.estimate.figures import DEVIATIONS, LEVEL, Known, Worth
from sottovoce.estimate.gate import Batch, Bytes, Flags, Gate, Values, saved_ids
from sottovoce.estimate.history import Certificate, Elimination, Event
from sottovoce.estimate.method import CellEstimate
from sottovoce.shared.allocation import Allocation
from sottovoce.shared.errors import Rejection, ReportRejected, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.wire import release_id

BIT = "a bit"
_Key = tuple[int, int, int]  # release, population, question


class OneBitReleases:
    """Implements ``PastReleases``: the live arms of each release, the first at index 0.

    arms: how many arms its experiment had, by which its questions are numbered.
    """

    def __init__(self) -> None:
        self.live: list[tuple[int, ...]] = []
        self.arms: list[int] = []

    def record(self, release: Release) -> None:
        """Add the newest release."""
        self.live.append(release.bins[0].arms)
        self.arms.append(len(release.experiment.arms))

    def check(self, report: Report, version: int) -> str | None:
        """Refuse what is no bit about a live arm."""
        if not isinstance(report.payload, bytes) or report.ranking:
            rule = "be one bit and have no ranking, for its method is one_bit"
            raise ReportRejected(Rejection.MALFORMED, must("a report", rule, "something else"))
        live, arms = self.live[version - 1], self.arms[version - 1]
        if report.question >= 2 * arms or report.question % arms not in live:
            rule = "be about an arm that is live in its release"
            raise ReportRejected(
                Rejection.UNKNOWN_QUESTION, must("a report's question", rule, report.question)
            )
        length = 1 if len(live) > 1 else 0
        if len(report.payload) != length:
            raise ReportRejected(
                Rejection.WRONG_LENGTH,
                must("a report's payload", f"take {length} bytes", len(report.payload)),
            )
        return BIT if length else None

    def unpack(self, form: Any, payloads: Bytes) -> tuple[Values, Flags]:
        """Read 0 as -1 and 1 as 1; there is no other bit."""
        valid = payloads[:, 0] <= 1
        values = np.where(payloads == 1, 1, -1) * valid[:, np.newaxis]
        return values.astype(np.int8), valid


class OneBitEstimator:
    """Implements ``Estimator``: how many were asked each question, and the sum of their bits."""

    def __init__(self, release: Release, past: OneBitReleases, ids: Sequence[bytes]) -> None:
        settings = release.experiment.settings
        assert isinstance(settings, OneBit)
        self.release = release
        self.gate = Gate(release.experiment, past, ids=ids)
        self.sums: dict[_Key, tuple[int, int]] = {}
        self._clear = settings.clear
        self._past = past
        self._certificates: list[Certificate] = []

    def absorb(self, batch: Batch) -> int:
        """Count bits; return how many are about an arm that was dropped since."""
        report, arms = batch.report, self._past.arms[batch.version - 1]
        if batch.values is None:
            return 0
        key = (batch.version, report.population, report.question)
        self.count(key, batch.count, int(batch.values.sum()))
        gone = report.question % arms not in self.release.bins[0].arms
        return batch.count * gone

    def count(self, key: _Key, asked: int, total: int) -> None:
        """Add answers to one question; the lab does so for many people at once."""
        before = self.sums.get(key, (0, 0))
        self.sums[key] = (before[0] + asked, before[1] + total)

    def means(self) -> tuple[Any, Any]:
        """Return the mean reward and the standard error of each arm, (K,) each."""
        experiment = self.release.experiment
        arms = len(experiment.arms)
        precision, vector = np.zeros(arms), np.zeros(arms)
        for (version, m, question), (asked, total) in sorted(self.sums.items()):
            logged, arm = divmod(question, self._past.arms[version - 1])
            population, live = experiment.populations[m], self._past.live[version - 1]
            chance = chance_of(arm, live, logged=bool(logged), population=population)
            if not chance:
                continue
            told, other = odds(population.epsilon)
            signal = (told - other) / (told + other)
            precision[arm] += asked * (2 * chance * signal) ** 2
            vector[arm] += (total / signal + asked) * 2 * chance * signal**2
        with np.errstate(divide="ignore", invalid="ignore"):
            return vector / precision, 1 / np.sqrt(precision)

    def step(self) -> list[Event]:
        """Drop the arms that are clearly behind the best."""
        live = self.release.bins[0].arms
        mean, error = self.means()
        if len(live) == 1 or not np.isfinite(error[list(live)]).all():
            return []
        best = max(live, key=lambda arm: mean[arm])
        behind = {
            arm: float((mean[best] - mean[arm]) / np.hypot(error[best], error[arm])) for arm in live
        }
        dropped = tuple(arm for arm in live if behind[arm] >= self._clear)
        if not dropped:
            return []
        self._publish([arm for arm in live if arm not in dropped])
        names, version = self.release.experiment.arms, self.release.version
        self._certificates += [
            Certificate(version, "", names[arm], names[best], behind[arm], self._clear, None)
            for arm in dropped
        ]
        return [Elimination("", dropped)]

    def amend(self, experiment: Experiment) -> None:
        """Go on with an amended experiment, and with all counts: each keeps its release."""
        before, gone = len(self.release.experiment.arms), experiment.retired
        live = {*self.release.bins[0].arms, *range(before, len(experiment.arms))} - gone
        arms = sorted(live or set(range(before)) - gone)
        self.release = _release(experiment, self.release.version + 1, arms)
        self.gate.publish(self.release)

    def _publish(self, live: Sequence[int]) -> None:
        self.release = _release(self.release.experiment, self.release.version + 1, live)
        self.gate.publish(self.release)

    def estimates(self) -> list[CellEstimate]:
        """Return the mean reward of each arm, with an interval."""
        policy, experiment = self.release.bins[0], self.release.experiment
        mean, error = (each.tolist() for each in self.means())
        found = []
        for arm, name in enumerate(experiment.arms):
            if arm in experiment.retired:
                continue
            known, live = bool(np.isfinite(error[arm])), arm in policy.live
            estimate = mean[arm] if known else None
            radius = DEVIATIONS * error[arm] if known else None
            found.append(CellEstimate("", name, estimate, radius, LEVEL, live))
        return found

    def shares(self) -> dict[str, Known]:
        """Return that everybody is in the one bin."""
        return {"": Known(1.0, 0.0)}

    def worth(self, allocation: Allocation) -> Worth | None:
        """Return Σ chance·mean over the arms."""
        chances = np.array(allocation.chances[""])
        mean, error = (each[chances > 0] for each in self.means())
        if not np.isfinite(error).all():
            return None
        given = chances[chances > 0]
        known = Known(float(given @ mean), float(np.sqrt(given**2 @ error**2)))
        return Worth(known, tuple(Known(float(chance), 0.0) for chance in chances))

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped."""
        return tuple(self._certificates)

    def diagnose(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the privacy budgets tell."""
        target, *others = self.release.experiment.populations
        sources = (
            Source(
                population=each.name,
                epsilon=each.epsilon,
                reports=reports[m],
                expected=each.users,
                worth=(_signal(each.epsilon) / _signal(target.epsilon)) ** 2,
                exploration=None,
                overlap=None,
                promises=None,
                harmful=False,
            )
            for m, each in enumerate(others, start=1)
        )
        return Diagnosis(tuple(sources), audit=None)

    def to_table(self) -> dict[str, Any]:
        """Write the counts, the live arms of each release, and the certificates."""
        return {
            "arms": self._past.arms,
            "live": self._past.live,
            "sums": [[*key, *self.sums[key]] for key in sorted(self.sums)],
            "certificates": [asdict(each) for each in self._certificates],
        }

    def read(self, table: dict[str, Any]) -> None:
        """Read the counts and the certificates; what is inconsistent raises ValueError."""
        for version, m, question, asked, total in table["sums"]:
            probe = Report(b"", m, b"", b"\0", question)
            if not 1 <= version <= self.release.version or self._past.check(probe, version) is None:
                raise ValueError("it has answers to a question that nobody was asked")
            if not 0 <= m < len(self.release.experiment.populations) or abs(total) > asked:
                raise ValueError("its answers are not counts")
            self.count((version, m, question), int(asked), int(total))
        self._certificates = [Certificate(**each) for each in table["certificates"]]


def _signal(epsilon: float) -> float:
    told, other = odds(epsilon)
    return (told - other) / (told + other)


def _release(experiment: Experiment, version: int, live: Sequence[int]) -> Release:
    return Release(experiment, version, Partition(experiment.dimension), (policy_of(live),))


def past_releases(experiment: Experiment) -> OneBitReleases:
    """Begin with no release at all."""
    return OneBitReleases()


def begin(experiment: Experiment) -> OneBitEstimator:
    """Begin with all arms."""
    past = OneBitReleases()
    release = _release(experiment, 1, range(len(experiment.arms)))
    past.record(release)
    return OneBitEstimator(release, past, [release_id(release)])


def resume(release: Release, table: dict[str, Any]) -> OneBitEstimator:
    """Read what ``to_table`` wrote."""
    past = OneBitReleases()
    past.arms = list(map(int, table["arms"]))
    past.live = [tuple(map(int, live)) for live in table["live"]]
    if (
        not len(past.live) == len(past.arms) == release.version
        or past.live[-1] != release.bins[0].arms
    ):
        raise ValueError("its releases are not those before its own")
    estimator = OneBitEstimator(release, past, saved_ids(release, table))
    estimator.read(table)
    return estimator
