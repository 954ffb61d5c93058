"""What the policy brings over the baseline, for programs and for people."""

from typing import Any

from sottovoce.estimate.gain_interval import Brought, GainEstimate
from sottovoce.server.export import learned
from sottovoce.server.status import Snapshot
from sottovoce.server.store.store import Store
from sottovoce.shared.baseline import AT_RANDOM
from sottovoce.shared.experiment import Experiment


def gain_in(store: Store, experiment: str | None) -> tuple[int, Experiment, GainEstimate | None]:
    """Return what a database knows of the gain of an experiment, and from how many reports.

    experiment: a fingerprint, or a name that only one experiment has.
    """
    meant = learned(store, experiment=experiment, version=None).release.experiment
    found = store.snapshot(meant.fingerprint)
    if found is None:
        return 0, meant, None
    return found[0], meant, Snapshot.from_json(found[1]).gain


def gain_table(gain: GainEstimate, experiment: Experiment) -> dict[str, Any]:
    """Write a gain, which is in the owner's unit, for JSON."""
    return {
        "baseline": baseline_name(experiment),
        "level": gain.level,
        "share": gain.share,
        "ever": _table(gain.ever),
        "present": None if gain.present is None else _table(gain.present),
    }


def _table(brought: Brought) -> dict[str, Any]:
    return {
        "since": brought.since,
        "people": brought.people,
        "mean": brought.mean,
        "low": brought.low,
        "high": brought.high,
        "total": brought.total,
        "policy_people": brought.policy_people,
        "baseline_people": brought.baseline_people,
        "balanced": brought.balanced,
    }


def gain_words(gain: GainEstimate | None, experiment: Experiment) -> list[str]:
    """Say it in sentences; an empty list where there is no baseline."""
    if gain is None:
        return []
    ever, name = gain.ever, baseline_name(experiment)
    if not ever.policy_people or not ever.baseline_people:
        return [f"Too few people have come to compare the policy with {name}."]
    words = [
        f"The policy has brought {_signed(ever.mean)} per person over {name}, between"
        f" {_signed(ever.low)} and {_signed(ever.high)} ({100 * gain.level:g} %, whenever one"
        f" looks): {_signed(ever.total)} for {ever.people:,} people."
    ]
    if gain.present is not None:
        now = gain.present
        words.append(
            f"The policies of the latest {now.people:,} people have brought {_signed(now.mean)} per"
            f" person, between {_signed(now.low)} and {_signed(now.high)}."
        )
    if not ever.balanced:
        words.append(
            f"The groups are not equally large ({ever.policy_people:,} and"
            f" {ever.baseline_people:,} people): reports of one of them get lost, and the figures"
            " cannot be trusted."
        )
    return words


def baseline_name(experiment: Experiment) -> str:
    """Return what the policy is compared with, for people."""
    baseline = experiment.compared_with
    if baseline is None or baseline.arm is None:
        return f"arms at {AT_RANDOM}"
    return baseline.arm


def _signed(number: float) -> str:
    return f"{number:+,.0f}" if abs(number) >= 1000 else f"{number:+.4g}"
