"""Whole runs of the lab's ``whisper`` crowd and of real devices with a real learner are alike.

Each comparison has a nominal false-alarm rate of 1e-9 (``support/crowds.py``: we vouch for 1e-7).

Power: 80 runs of devices against 400 of the crowd tell a crowd with a sixth of ε apart, and each
test shows that they do. Whole runs vary much, so small differences stay unseen here. They are seen
in the sums of one batch (``test_whisper_crowd.py``) and step by step (``test_whisper_steps.py``).
So two settings run every day, and the others by ``make test-all``.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.estimate.history import Elimination, Split
from sottovoce.lab.environments import Exponential, Slope
from sottovoce.lab.simulation import Auxiliary, simulate
from support.crowds import CERTIFIED, PUBLIC, WHISPER, Setting, faults

RUNS = 80
SUMMARY = [
    *("regret", "bins", "settled", "eliminations", "splits", "first out", "first split", "release"),
]


def summary(regret: float, history: Any, release: sv.Release) -> list[float]:
    """What is compared: regret, and how the partition and the arms came out, and when."""
    when: dict[type, list[int]] = {Elimination: [], Split: []}
    for dated in history:
        when[type(dated.event)].append(dated.reports)
    dropped = sum(len(dated.event.arms) for dated in history if type(dated.event) is Elimination)
    return [
        regret,
        len(release.bins),
        sum(policy.settled for policy in release.bins),
        dropped,
        len(when[Split]),
        min(when[Elimination], default=0),
        min(when[Split], default=0),
        release.version,
    ]


def in_the_crowd(setting: Setting, seed: int) -> list[float]:
    result = simulate(
        setting.environment,
        method=setting.method,
        epsilon=setting.epsilon,
        n=setting.people,
        seed=10**6 + seed,
        release_every=25,
        auxiliary=setting.rows,
    )
    return summary(float(result.regret[-1]), result.history, result.release)


KNOWN = Auxiliary(170, 2.0, kappa=0.4)
UNKNOWN = Auxiliary(115, 8.0, kappa=0.4, known=False)

SETTINGS = {
    "one bit a cell": Setting(WHISPER, 1.0, Slope()),
    "one bit a cell, three arms": Setting(WHISPER, 1.0, Exponential()),
    "sets": Setting(WHISPER, 2.0, Exponential(), people=600),
    "halves": Setting(WHISPER, 8.0, Exponential()),
    "certified": Setting(CERTIFIED, 2.0, Slope(), people=600),
    "public": Setting(PUBLIC, 1.0, Exponential()),
    "public halves": Setting(PUBLIC, 8.0, Exponential()),
    "a log of known behaviour": Setting(WHISPER, 1.0, Exponential(), people=300, rows=(KNOWN,)),
    "a log of unknown behaviour": Setting(WHISPER, 4.0, Exponential(), people=300, rows=(UNKNOWN,)),
    "two logs": Setting(WHISPER, 2.0, Exponential(), people=300, rows=(KNOWN, UNKNOWN)),
}
# Two arms with one bit a cell; and three arms with sets, halves, both kinds of logs and an audit.
EVERY_DAY = ("one bit a cell", "two logs")


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(setting, id=name, marks=() if name in EVERY_DAY else pytest.mark.slow)
        for name, setting in SETTINGS.items()
    ],
)
def test_runs_of_the_crowd_and_of_real_devices_have_the_same_law(setting: Setting) -> None:
    runs = []
    for seed in range(RUNS):
        learner = sv.Learner(setting.experiment())
        regret = setting.with_devices(learner, np.random.default_rng(seed))
        runs.append(summary(regret, learner.history(), learner.release()))
    devices = np.array(runs, dtype=np.float64)
    crowd = np.array([in_the_crowd(setting, seed) for seed in range(5 * RUNS)])
    # Arms are dropped and bins split: there is something to see.
    assert devices[:, SUMMARY.index("eliminations")].mean() > 0.1
    assert devices[:, SUMMARY.index("splits")].mean() > 0.1
    assert faults(devices, crowd, SUMMARY) == []
    # The test can tell laws apart: with a sixth of ε they differ.
    rows = tuple(replace(each, epsilon=each.epsilon / 6) for each in setting.rows)
    louder = replace(setting, epsilon=setting.epsilon / 6, rows=rows)
    mutant = np.array([in_the_crowd(louder, seed) for seed in range(5 * RUNS)])
    assert faults(devices, mutant, SUMMARY) != []
