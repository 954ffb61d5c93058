"""The log of a server → a learner, report by report, and nothing of the server's own code."""

import sottovoce as sv
from sottovoce.server.store.store import LoggedRelease, Store
from sottovoce.shared import wire


def relearn(store: Store, experiment: sv.Experiment) -> tuple[sv.Learner, list[LoggedRelease]]:
    """Return the learner after the last report, and each release as it should be in the store."""
    learner = sv.Learner(experiment)
    releases = [LoggedRelease(1, 0, wire.release_to_json(learner.release()))]
    log = store.read(experiment.fingerprint, after=0, limit=10**9)
    for position, body in enumerate(log, start=1):
        learner.receive(wire.report_from_bytes(body))
        if learner.release().version > releases[-1].version:
            text = wire.release_to_json(learner.release())
            releases.append(LoggedRelease(learner.release().version, position, text))
    return learner, releases
