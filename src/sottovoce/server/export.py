"""The database → a policy: a release, and the estimates that the learner had of its arms."""

import json
from dataclasses import dataclass

from sottovoce.server.status import Snapshot
from sottovoce.server.store.store import Store
from sottovoce.shared.errors import PolicyError, must
from sottovoce.shared.policy import Estimates
from sottovoce.shared.release import Release
from sottovoce.shared.wire import release_from_json


@dataclass(frozen=True, slots=True)
class Learned:
    """What one database has learned. estimates: empty if they are not of this release."""

    release: Release
    estimates: Estimates


def learned(store: Store, *, experiment: str | None, version: int | None) -> Learned:
    """Return the release of a version, the newest without one, and what was known by then.

    experiment: a fingerprint, or a name that only one experiment has; it may be left out where
        there is one experiment only.
    """
    names = {fingerprint: json.loads(text)["name"] for fingerprint, text in store.experiments()}
    found = [each for each, name in names.items() if experiment in (None, each, name)]
    if len(found) != 1:
        listed = ", ".join(f"{name} ({each})" for each, name in names.items())
        rule = f"name one of the database ({listed or 'which has none'})"
        came = "none" if experiment is None else repr(experiment)
        raise PolicyError(must("the experiment", rule, came))
    (fingerprint,) = found
    newest = store.newest_versions()[fingerprint]
    logged = store.release(fingerprint, version or newest)
    if logged is None:
        raise PolicyError(must("the release", f"be one of 1 to {newest}", version))
    release = release_from_json(logged.text)
    return Learned(release, _estimates(store, release))


def _estimates(store: Store, release: Release) -> Estimates:
    """Return the estimates of a release: only its last learner knows them, so long as it is new."""
    found = store.snapshot(release.experiment.fingerprint)
    snapshot = Snapshot.from_json(found[1]) if found else Snapshot()
    if snapshot.status is None or snapshot.status.release != release.version:
        return {}
    numbers = {arm: number for number, arm in enumerate(release.experiment.arms)}
    return {
        (each.path, numbers[each.arm]): (float(each.estimate), float(each.radius))
        for each in snapshot.estimates
        if each.live and each.estimate is not None and each.radius is not None
    }
