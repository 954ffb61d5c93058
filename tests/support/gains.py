"""Simulated answers of the two groups, as the learner adds them up."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import sottovoce as sv
from sottovoce.estimate.gain import (
    Gain,
    GainConstants,
    add_people,
    gain_constants,
    look_at_gain,
    new_gain,
)
from sottovoce.estimate.gain_interval import GainEstimate, gain_estimate
from sottovoce.shared.whisper.cells import one_cell_mechanism

STEP = 100

Means = Callable[[float, Gain], tuple[float, float]]
"""Of the share of all people who have come, and of what is known, the two mean outcomes now."""


def compared(
    epsilon: float = 1.0, *, share: float = 0.1, horizon: int = 4000, **settings: object
) -> sv.Experiment:
    return sv.Experiment(
        arms=["control", "coach"],
        context=[sv.Numeric("age", 18, 90)],
        epsilon=epsilon,
        horizon=horizon,
        baseline={"arm": "control", "share": share},
        **settings,  # type: ignore[arg-type]
    )


def fixed_of(experiment: sv.Experiment) -> GainConstants:
    """What the rules need to know of an experiment of whisper."""
    return gain_constants(experiment, signal=one_cell_mechanism(experiment, 0).signal)


@dataclass
class Play:
    """One simulated experiment: what is known of the gain, and what it truly is."""

    experiment: sv.Experiment
    seed: int
    means: Means
    settled_from: float = 2.0  # the share of the people after whom everything is settled
    people: int = 0
    truth: list[float] = field(default_factory=lambda: [0.0])  # sums of the gain, step by step

    def __post_init__(self) -> None:
        self.fixed: GainConstants = fixed_of(self.experiment)
        self.gain = new_gain(self.fixed)
        self.rng = np.random.default_rng(self.seed)

    def step(self) -> None:
        come = self.people / self.experiment.horizon
        means, share = self.means(come, self.gain), int(self.gain.share[0])
        told = np.zeros((2, 2), dtype=np.int64)
        sizes = self.rng.multinomial(STEP, [share / 10_000, share / 10_000, 1 - share / 5_000])
        for group in range(2):
            plus = (1 + self.fixed.signal * (2 * means[group] - 1)) / 2
            told[group, 1] = self.rng.binomial(sizes[group], plus)
            told[group, 0] = sizes[group] - told[group, 1]
        settled = come >= self.settled_from
        add_people(self.gain, self.fixed, share, settled, told, float(sizes[2]))
        self.people += STEP
        self.truth.append(self.truth[-1] + STEP * (means[0] - means[1]))
        look_at_gain(self.gain, self.fixed, float(self.people))

    def known(self, level: float = 0.95) -> GainEstimate:
        return gain_estimate(self.gain, people=float(self.people), level=level)

    def true_gain(self, since: int = 0) -> float:
        return (self.truth[-1] - self.truth[since // STEP]) / (self.people - since)

    def fixed_time_width(self) -> float:
        """The width of the usual interval for one look, of the same estimate."""
        sums = self.gain.windows[0]
        return float(2 * 1.96 * math.sqrt(sums[5]) / sums[2])


def drifting(come: float, gain: Gain) -> tuple[float, float]:
    """A policy that becomes better as it learns, and a world in which everything does."""
    return 0.4 + 0.35 * come, 0.4 + 0.1 * come


def by_luck(come: float, gain: Gain) -> tuple[float, float]:
    """A policy that learns from what was told: it is good after good news and bad after bad."""
    news = gain.told[0] - gain.told[1]
    return (0.75, 0.5) if news > 0 else (0.3, 0.5)


def nothing(come: float, gain: Gain) -> tuple[float, float]:
    """A policy that brings nothing, where rewards are rare."""
    return 0.1, 0.1


def much(come: float, gain: Gain) -> tuple[float, float]:
    """A policy that brings so much that the share falls."""
    return 0.85, 0.25
