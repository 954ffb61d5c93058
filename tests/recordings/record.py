"""Make the recordings anew: ``python -m recordings.record`` in ``tests/``.

Only for a change that is meant to change what is learned; the commit that does it says why.
"""

import json
import zlib
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from recordings.cases import LOGS, SIMULATIONS, Log, Simulation
from sottovoce import wire
from sottovoce.lab.environments import Environment, Exponential, Floats, Slope, Symmetric
from sottovoce.lab.simulation import Auxiliary, Result, simulate
from sottovoce.shared.canonical import canonical_json

HERE = Path(__file__).parent


class UpsideDown(Slope):
    """The other arm is the better one."""

    def means(self, contexts: Floats) -> Floats:
        return 1 - super().means(contexts)


WORLDS: dict[str, Environment] = {
    "exponential": Exponential(),
    "symmetric": Symmetric(),
    "two arms": Slope(),
    "upside down": UpsideDown(),
}


def main() -> None:
    """Write every recording."""
    for name, log in LOGS.items():
        reports = make_reports(log)
        (HERE / f"{name}.reports").write_bytes(zlib.compress(wire.batch_to_bytes(reports), 9))
        (HERE / f"{name}.json").write_text(json.dumps(replayed(log, reports), indent=1) + "\n")
        print(name, len(reports))
    runs = {}
    for name, case in SIMULATIONS.items():
        runs[name] = summary(run(case))
        print(name, runs[name]["regret"])
    (HERE / "simulations.json").write_text(json.dumps(runs, indent=1) + "\n")


def make_reports(log: Log) -> list[bytes]:
    """Let real devices answer, some of them with an older release."""
    rng = np.random.default_rng(0)
    learner = sv.Learner(log.experiment)
    arms, context = log.experiment.arms, log.experiment.context
    releases = [learner.release()]
    reports = []
    people = [m for m, rows in enumerate(log.rows, start=1) for _ in range(rows)]
    for population in [*people, *[0] * log.people]:
        name = log.experiment.populations[population].name
        release = releases[max(0, len(releases) - 1 - int(rng.geometric(0.7) - 1))]
        device = sv.Device(release, population=name, public_arms=True)
        point = rng.random(len(context))
        features = {
            each.name: each.levels[int(4 * x)] if isinstance(each, sv.Ordinal) else float(x)
            for each, x in zip(context, point, strict=True)
        }
        centres = np.linspace(0.1, 0.9, len(arms))
        means = np.clip(1 - 1.5 * np.abs(point[0] - centres), 0, 1)
        if population:
            arm = int(rng.choice(len(arms), p=log.experiment.populations[population].behaviour))
            reward = float(rng.random() < means[arm])
            report = device.report_logged(features, arm=arms[arm], reward=reward)
        else:
            arm = arms.index(device.choose(features))
            report = device.report(reward=float(rng.random() < means[arm]))
        reports.append(wire.report_to_bytes(report))
        learner.receive(report)
        if learner.release() != releases[-1]:
            releases.append(learner.release())
    return reports


def replayed(log: Log, reports: list[bytes]) -> dict[str, Any]:
    """Return what a learner makes of reports: each release, and all that it says at the end."""
    learner = sv.Learner(log.experiment)
    releases: list[list[Any]] = []
    for position, report in enumerate(reports, start=1):
        learner.receive(wire.report_from_bytes(report))
        if not releases or learner.release().version != releases[-1][1]:
            releases.append([position, learner.release().version, digest(learner.release())])
    status = learner.status()
    return {
        "releases": releases,
        "last": as_recorded(learner.release()),
        "history": [[dated.reports, *asdict(dated.event).values()] for dated in learner.history()],
        "certificates": [list(asdict(each).values()) for each in learner.certificates()],
        "estimates": [list(asdict(each).values()) for each in learner.estimates()],
        "diagnosis": [list(asdict(each).values()) for each in learner.diagnosis().sources],
        "late": [status.late_reports, status.dropped_cells],
    }


def as_recorded(release: sv.Release) -> dict[str, Any]:
    """Return a release as it was written when the recordings were made, by wire version 1."""
    return {"sottovoce": 1, "kind": "release", **release.to_table()}


def digest(release: sv.Release) -> str:
    """Return the SHA-256 of that text."""
    return sha256(canonical_json(as_recorded(release))).hexdigest()


def run(case: Simulation) -> Result:
    """Play one simulation."""
    settings = {"n": 20_000, "seed": 11, "release_every": 100, **case.settings}
    settings["auxiliary"] = [
        Auxiliary(**{**each, "environment": WORLDS.get(each.get("environment", ""))})
        for each in settings.get("auxiliary", ())
    ]
    return simulate(WORLDS[case.world], **settings)


def summary(result: Result) -> dict[str, Any]:
    """Return the numbers of a run, short enough to keep."""
    events = [[dated.reports, *asdict(dated.event).values()] for dated in result.history]
    try:
        release = digest(result.release)
    except sv.ExperimentError:  # a baseline has no release
        release = None
    quarters = np.linspace(0, len(result.regret) - 1, 5).astype(int)
    return {
        "regret": result.regret[quarters].tolist(),
        "people": result.people[quarters].tolist(),
        "local": result.local_regret[-1].tolist(),
        "ratios": result.arm_ratios[-1].tolist(),
        "events": len(events),
        "history": sha256(json.dumps(events).encode()).hexdigest(),
        "release": release,
        "heeded": result.heeded,
    }


if __name__ == "__main__":
    main()
