"""Whole runs of the lab's ``whisper`` crowd and of real devices with a real learner are alike.

Each comparison has a nominal false-alarm rate of 1e-9 (``support/crowds.py``: we vouch for 1e-7).

Power: 80 runs of devices against 400 of the crowd tell a crowd with a sixth of ε apart, and each
test shows that they do. They find a mean that is off by 0.8 standard deviations of a single run
(6.5 standard errors) in one setting, or by 0.25 in all settings alike, added up by the last test.
Smaller differences stay unseen here. They are seen in the sums of one batch
(``test_whisper_crowd.py``) and step by step (``test_whisper_steps.py``), which are the strong
tests. So two settings run every day, and the others by ``make test-all``.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import sottovoce as sv
from sottovoce.estimate.history import Elimination, Split
from sottovoce.lab.environments import Exponential, Slope
from sottovoce.lab.simulation import Auxiliary, simulate
from support.crowds import CERTIFIED, EACH, PUBLIC, WHISPER, Floats, Setting, faults

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


@lru_cache
def runs_of_devices(setting: Setting) -> Floats:
    runs = []
    for seed in range(RUNS):
        learner = sv.Learner(setting.experiment())
        regret = setting.with_devices(learner, np.random.default_rng(seed))
        runs.append(summary(regret, learner.history(), learner.release()))
    return np.array(runs, dtype=np.float64)


def runs_of_the_crowd(setting: Setting, *, times: float = 1.0) -> Floats:
    """Runs in which every ε is so many times as large."""
    rows = tuple(replace(each, epsilon=times * each.epsilon) for each in setting.rows)
    changed = replace(setting, epsilon=times * setting.epsilon, rows=rows)
    return np.array([in_the_crowd(changed, seed) for seed in range(5 * RUNS)])


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
EVERY_DAY = ("one bit a cell",)


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(setting, id=name, marks=() if name in EVERY_DAY else pytest.mark.slow)
        for name, setting in SETTINGS.items()
    ],
)
def test_runs_of_the_crowd_and_of_real_devices_have_the_same_law(setting: Setting) -> None:
    devices, crowd = runs_of_devices(setting), runs_of_the_crowd(setting)
    # Arms are dropped and bins split: there is something to see.
    assert devices[:, SUMMARY.index("eliminations")].mean() > 0.1
    assert devices[:, SUMMARY.index("splits")].mean() > 0.1
    assert faults(devices, crowd, SUMMARY) == []
    # The test can tell laws apart: with a sixth of ε they differ.
    assert faults(devices, runs_of_the_crowd(setting, times=1 / 6), SUMMARY) != []


@pytest.mark.parametrize(("shift", "is_found"), [(0.4, False), (1.1, True)])
def test_what_whole_runs_of_one_setting_can_tell_apart(shift: float, is_found: bool) -> None:
    """Their power, at shifts that are clearly below and above the limit of 0.8."""
    rng = np.random.default_rng(0)
    one, other = (rng.normal(size=(runs, len(SUMMARY))) for runs in (RUNS, 5 * RUNS))
    other[:, 0] += shift
    assert bool(faults(one, other, SUMMARY)) is is_found


@pytest.mark.slow
@pytest.mark.parametrize(("times", "is_found"), [(1.0, False), (0.7, True)])
def test_all_settings_together_have_the_same_means(times: float, is_found: bool) -> None:
    """The differences of all settings, each over its standard error, added up.

    times: what ε of the crowd is multiplied by; 0.7 must be told apart.
    """
    scores = []
    for setting in SETTINGS.values():
        one, other = runs_of_devices(setting), runs_of_the_crowd(setting, times=times)
        error = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
        scores.append((one.mean(axis=0) - other.mean(axis=0)) / np.maximum(error, 1e-9))
    together = np.sum(scores, axis=0) / np.sqrt(len(scores))
    p_value = len(SUMMARY) * 2 * stats.norm.sf(np.abs(together).max())
    assert bool(p_value < EACH) is is_found, dict(zip(SUMMARY, together.round(1), strict=True))
